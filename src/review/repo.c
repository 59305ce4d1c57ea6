/* SPDX-License-Identifier: Apache-2.0 */
#include "review/repo.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "policy/gitconfig.h"
#include "policy/gitlink.h"

#define MAX_CONFIG_BYTES ((size_t)1 << 20)

int repo_find(const struct source *src, const struct caller *who, const struct refused *refused,
	      struct repo *ret, struct err *e)
{
	char path[PATH_TEXT];
	struct gitlink link;
	struct stat st;

	if (path_join(src->path, ".git", path, sizeof(path), e) < 0)
		return -1;
	if (lstat(path, &st) < 0)
		return err_set(e, ERR_NOT_FOUND, "%s is no git work tree", src->path);
	if (S_ISDIR(st.st_mode)) {
		memcpy(ret->common, path, sizeof(path));
		return 0;
	}
	gitlink_find(src, who, refused, &link);
	if (!link.found)
		return err_set(e, ERR_POLICY_DENIED, "%s is not followed: %s", path,
			       link.why[0] ? link.why : "it is neither a directory nor a file");
	memcpy(ret->common, link.common, sizeof(ret->common));
	return 0;
}

struct search {
	const char *branch, *name;
	char of_branch[REPO_REMOTE_TEXT];
	char url[REPO_URL_TEXT];
};

static bool take_branch(void *self, const struct gitconfig_entry *entry)
{
	struct search *s = self;

	if (strcmp(entry->section, "branch") == 0 && entry->sub && entry->value &&
	    strcmp(entry->sub, s->branch) == 0 && strcmp(entry->key, "remote") == 0 &&
	    strlen(entry->value) < sizeof(s->of_branch))
		memcpy(s->of_branch, entry->value, strlen(entry->value) + 1);
	return true;
}

static bool take_url(void *self, const struct gitconfig_entry *entry)
{
	struct search *s = self;

	if (!s->url[0] && strcmp(entry->section, "remote") == 0 && entry->sub && entry->value &&
	    strcmp(entry->sub, s->name) == 0 && strcmp(entry->key, "url") == 0 &&
	    strlen(entry->value) < sizeof(s->url))
		memcpy(s->url, entry->value, strlen(entry->value) + 1);
	return true;
}

static char *read_config(const struct repo *r, size_t *ret_n)
{
	char path[PATH_TEXT + 8];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/config", r->common);
	AUTO_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    (uint64_t)st.st_size > MAX_CONFIG_BYTES)
		return NULL;
	char *text = malloc((size_t)st.st_size);
	ssize_t n = text ? RETRY_EINTR(read(fd, text, (size_t)st.st_size)) : -1;
	*ret_n = n > 0 ? (size_t)n : 0;
	return text;
}

void repo_remote(const struct repo *r, const char *name, const char *branch,
		 struct repo_remote *ret)
{
	struct search s = {.branch = branch, .name = name};
	size_t n = 0;

	*ret = (struct repo_remote){.name = ""};
	AUTO_FREE char *text = read_config(r, &n);
	if (text && !name)
		(void)gitconfig_parse(text, n, take_branch, &s);
	if (!s.name)
		s.name = s.of_branch[0] ? s.of_branch : "origin";
	if (strlen(s.name) >= sizeof(ret->name) || !text)
		return;
	/* What stands before something that git refuses counts, as long as git says nothing else. */
	(void)gitconfig_parse(text, n, take_url, &s);
	memcpy(ret->url, s.url, sizeof(ret->url));
	if (s.url[0])
		(void)snprintf(ret->name, sizeof(ret->name), "%s", s.name);
}
