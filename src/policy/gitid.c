/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/gitid.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "policy/gitconfig.h"
#include "policy/look.h"

struct found {
	struct git_identity *id;
	git_include *include;
	void *self;
};

static bool take(void *self, const struct gitconfig_entry *entry)
{
	const struct found *f = self;
	const struct {
		const char *section, *key;
		char *to;
	} wanted[] = {
		{"user", "name", f->id->name},
		{"user", "email", f->id->email},
		{"init", "defaultbranch", f->id->branch},
	};

	if (entry->sub || !entry->value)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		if (strcmp(entry->section, wanted[i].section) == 0 &&
		    strcmp(entry->key, wanted[i].key) == 0 &&
		    strlen(entry->value) < MAX_GIT_IDENTITY)
			memcpy(wanted[i].to, entry->value, strlen(entry->value) + 1);
	if (strcmp(entry->section, "include") == 0 && strcmp(entry->key, "path") == 0 && f->include)
		f->include(f->self, entry->value);
	return true;
}

void gitid_parse(const char *text, size_t n, struct git_identity *id, git_include *include,
		 void *self)
{
	struct found f = {.id = id, .include = include, .self = self};

	/* A file that git refuses is the caller's to mend: what stands before is taken. */
	(void)gitconfig_parse(text, n, take, &f);
}

struct includes {
	const struct caller *who;
	struct git_identity *id;
	const char *dir; /* of the file that is being read */
	int left;
};

static void read_file(struct includes *in, const char *path);

static void follow(void *self, const char *path)
{
	struct includes *in = self;
	char full[PATH_TEXT];

	if (in->left-- <= 0)
		return;
	if (strncmp(path, "~/", 2) == 0)
		(void)snprintf(full, sizeof(full), "%s/%s", in->who->home, path + 2);
	else if (path[0] == '/')
		(void)snprintf(full, sizeof(full), "%s", path);
	else
		(void)snprintf(full, sizeof(full), "%s/%s", in->dir, path);
	read_file(in, full);
}

static void read_file(struct includes *in, const char *path)
{
	char dir[PATH_TEXT];
	const char *outer = in->dir;

	struct stat st;
	AUTO_FD int fd = look_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, &st);
	if (fd < 0)
		return;
	AUTO_FREE char *text = malloc(MAX_GIT_CONFIG);
	ssize_t n = text ? read(fd, text, MAX_GIT_CONFIG) : -1;
	if (n <= 0)
		return;
	(void)snprintf(dir, sizeof(dir), "%s", path);
	char *slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	in->dir = dir;
	gitid_parse(text, (size_t)n, in->id, follow, in);
	in->dir = outer;
}

static void put_value(struct buf *out, const char *key, const char *value)
{
	if (!value[0])
		return;
	(void)buf_printf(out, "\t%s = \"", key);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			(void)buf_char(out, '\\');
		if (*value == '\n')
			(void)buf_str(out, "\\n");
		else
			(void)buf_char(out, *value);
	}
	(void)buf_str(out, "\"\n");
}

void gitid_read(const struct caller *who, struct git_identity *ret)
{
	struct includes in = {.who = who, .id = ret, .left = MAX_GIT_INCLUDES};
	char path[PATH_TEXT];
	const char *config = caller_env(who, "XDG_CONFIG_HOME");

	*ret = (struct git_identity){.name = ""};
	if (!who->home)
		return;
	/* In git's order: the later file wins. */
	if (config && config[0] == '/')
		(void)snprintf(path, sizeof(path), "%s/git/config", config);
	else
		(void)snprintf(path, sizeof(path), "%s/.config/git/config", who->home);
	read_file(&in, path);
	(void)snprintf(path, sizeof(path), "%s/.gitconfig", who->home);
	read_file(&in, path);
}

void gitid_put_ignored(const char *path, struct buf *out)
{
	(void)buf_char(out, '/');
	for (; *path; path++) {
		if (strchr("\\*?[ !#", *path))
			(void)buf_char(out, '\\');
		(void)buf_char(out, *path == '\n' ? '?' : *path);
	}
	(void)buf_char(out, '\n');
}

int gitid_add(struct view *v, const struct caller *who, const struct source *src, struct err *e)
{
	struct git_identity id;
	AUTO_BUF out = BUF_INIT(32768);

	gitid_read(who, &id);
	if (id.name[0] || id.email[0])
		(void)buf_str(&out, "[user]\n");
	put_value(&out, "name", id.name);
	put_value(&out, "email", id.email);
	/* Run by root, files are seen with other owners inside than the host's git notes down. */
	if (who->root)
		(void)buf_str(&out, "[core]\n\tcheckStat = minimal\n");
	if (id.branch[0])
		(void)buf_str(&out, "[init]\n");
	put_value(&out, "defaultBranch", id.branch);
	if (src->given) {
		(void)buf_str(&out, "[safe]\n");
		put_value(&out, "directory", src->path);
	}
	if (buf_check(&out, "the git identity", ERR_CONFIG_INVALID, e) < 0)
		return -1;
	if (view_file(v, "/sand/home/.gitconfig", buf_cstr(&out), out.n, e) < 0)
		return -1;
	if (!v->rules)
		v->mounts[v->n - 1].flags = 0; /* not the system's: it goes into /sand */
	return 0;
}

int gitid_ignore(struct view *v, const struct buf *patterns, struct err *e)
{
	if (v->rules)
		return 0; /* there is no file of ours */
	if (view_file(v, "/sand/home/.config/git/ignore", patterns->p, patterns->n, e) < 0)
		return -1;
	v->mounts[v->n - 1].flags = 0;
	return 0;
}
