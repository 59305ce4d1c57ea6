/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/gitid.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/base.h"

struct reader {
	const char *p, *end;
};

/* One section or key word: letters, digits, `-` and `.`; as much as fits, the rest is skipped. */
static void read_word(struct reader *r, char *ret, size_t cap)
{
	size_t n = 0;

	while (r->p < r->end && (isalnum((unsigned char)*r->p) || *r->p == '-' || *r->p == '.')) {
		if (n + 1 < cap)
			ret[n++] = *r->p;
		r->p++;
	}
	ret[n] = '\0';
}

static void skip_blank(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\r'))
		r->p++;
}

static void skip_line(struct reader *r)
{
	while (r->p < r->end && *r->p != '\n')
		r->p++;
	if (r->p < r->end)
		r->p++;
}

/* A backslash: what follows it. 0: the value goes on in the next line; -1: not an escape. */
static int read_escape(struct reader *r)
{
	static const char from[] = "nt\\\"";
	static const char to[] = "\n\t\\\"";
	const char *at = r->p < r->end ? memchr(from, *r->p, 4) : NULL;

	if (at) {
		r->p++;
		return to[at - from];
	}
	if (r->p < r->end && *r->p == '\n') {
		r->p++;
		return 0;
	}
	return -1;
}

/* Up to the end of the line; blanks at the end do not count unless quoted. False: not usable. */
static bool read_value(struct reader *r, char ret[MAX_GIT_VALUE])
{
	size_t n = 0;
	size_t keep = 0;
	bool quoted = false;

	while (r->p < r->end && *r->p != '\n') {
		int c = (unsigned char)*r->p++;
		if (c == '"') {
			quoted = !quoted;
			keep = n;
			continue;
		}
		if (!quoted && (c == '#' || c == ';'))
			break;
		if (c == '\\') {
			c = read_escape(r);
			if (c == 0)
				continue;
			if (c < 0)
				return false;
		}
		if (n + 1 >= MAX_GIT_VALUE || c == 0)
			return false;
		ret[n++] = (char)c;
		if (quoted || !isspace(c))
			keep = n;
	}
	ret[keep] = '\0';
	return !quoted;
}

static void take(const char *section, const char *key, const char *value, struct git_identity *id,
		 git_include *include, void *self)
{
	if (strcasecmp(section, "user") == 0 && strcasecmp(key, "name") == 0)
		memcpy(id->name, value, strlen(value) + 1);
	else if (strcasecmp(section, "user") == 0 && strcasecmp(key, "email") == 0)
		memcpy(id->email, value, strlen(value) + 1);
	else if (strcasecmp(section, "init") == 0 && strcasecmp(key, "defaultbranch") == 0)
		memcpy(id->branch, value, strlen(value) + 1);
	else if (strcasecmp(section, "include") == 0 && strcasecmp(key, "path") == 0 && include)
		include(self, value);
}

/* [section] or [section "sub"]; one with a subsection is none of ours. */
static void read_section(struct reader *r, char section[64])
{
	r->p++;
	skip_blank(r);
	read_word(r, section, 64);
	skip_blank(r);
	if (r->p >= r->end || *r->p != ']') {
		section[0] = '\0';
		skip_line(r);
		return;
	}
	r->p++;
}

void gitid_parse(const char *text, size_t n, struct git_identity *id, git_include *include,
		 void *self)
{
	struct reader r = {text, text + n};
	char section[64] = "";
	char key[64];
	char value[MAX_GIT_VALUE];

	while (r.p < r.end) {
		skip_blank(&r);
		if (r.p < r.end && *r.p == '[') {
			read_section(&r, section);
			continue;
		}
		read_word(&r, key, sizeof(key));
		skip_blank(&r);
		if (key[0] && r.p < r.end && *r.p == '=') {
			r.p++;
			skip_blank(&r);
			if (read_value(&r, value))
				take(section, key, value, id, include, self);
		}
		skip_line(&r);
	}
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

	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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

int gitid_add(struct view *v, const struct caller *who, const struct source *src, struct err *e)
{
	struct git_identity id = {.name = ""};
	struct includes in = {.who = who, .id = &id, .left = MAX_GIT_INCLUDES};
	AUTO_BUF out = BUF_INIT(32768);
	char path[PATH_TEXT];
	const char *config = caller_env(who, "XDG_CONFIG_HOME");

	if (who->home) {
		/* In git's order: the later file wins. */
		if (config && config[0] == '/')
			(void)snprintf(path, sizeof(path), "%s/git/config", config);
		else
			(void)snprintf(path, sizeof(path), "%s/.config/git/config", who->home);
		read_file(&in, path);
		(void)snprintf(path, sizeof(path), "%s/.gitconfig", who->home);
		read_file(&in, path);
	}
	if (id.name[0] || id.email[0])
		(void)buf_str(&out, "[user]\n");
	put_value(&out, "name", id.name);
	put_value(&out, "email", id.email);
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
	v->mounts[v->n - 1].flags = 0; /* not the system's: it goes into /sand */
	return 0;
}
