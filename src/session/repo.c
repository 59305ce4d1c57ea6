/* SPDX-License-Identifier: Apache-2.0 */
#include "session/repo.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "core/sys.h"
#include "policy/gitconfig.h"

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
#define MAX_CONFIG 262144u
#define MAX_PACKED (16u << 20)

/* A regular file below the source, whole, ended by NUL; NULL: none, or too large. */
static char *read_below(int source, const char *path, size_t most)
{
	struct stat st;

	AUTO_FD int fd = sys_openat2(source, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, BENEATH);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > most)
		return NULL;
	char *text = malloc((size_t)st.st_size + 1);
	ssize_t n = text ? read(fd, text, (size_t)st.st_size) : -1;
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

static bool take_oid(const char *text, char ret[65])
{
	size_t n = 0;

	while (isxdigit((unsigned char)text[n]) && !isupper((unsigned char)text[n]))
		n++;
	if ((n != 40 && n != 64) || (text[n] && !isspace((unsigned char)text[n])))
		return false;
	memcpy(ret, text, n);
	ret[n] = '\0';
	return true;
}

static void find_packed(int source, const char *ref, char ret[65])
{
	AUTO_FREE char *text = read_below(source, ".git/packed-refs", MAX_PACKED);
	size_t n = strlen(ref);

	for (char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		const char *blank = strchr(line, ' ');
		if (blank && strncmp(blank + 1, ref, n) == 0 &&
		    (!blank[1 + n] || blank[1 + n] == '\n') && take_oid(line, ret))
			return;
	}
}

static bool take_branch(void *self, const struct gitconfig_entry *e)
{
	struct session_record *rec = self;

	if (strcmp(e->section, "branch") == 0 && strcmp(e->key, "remote") == 0 && e->sub &&
	    e->value && strcmp(e->sub, rec->branch) == 0 && strlen(e->value) < sizeof(rec->remote))
		memcpy(rec->remote, e->value, strlen(e->value) + 1);
	return true;
}

static bool take_url(void *self, const struct gitconfig_entry *e)
{
	struct session_record *rec = self;

	if (strcmp(e->section, "remote") == 0 && strcmp(e->key, "url") == 0 && e->sub && e->value &&
	    strcmp(e->sub, rec->remote) == 0 && !rec->remote_url[0] &&
	    strlen(e->value) < sizeof(rec->remote_url))
		memcpy(rec->remote_url, e->value, strlen(e->value) + 1);
	return true;
}

void repo_look(struct session_record *rec)
{
	char path[PATH_TEXT];

	AUTO_FD int source = open(rec->source, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_FREE char *head = source < 0 ? NULL : read_below(source, ".git/HEAD", PATH_TEXT);
	if (!head)
		return;
	head[strcspn(head, "\n")] = '\0';
	if (strncmp(head, "ref: refs/heads/", 16) == 0 && strlen(head + 16) < sizeof(rec->branch)) {
		memcpy(rec->branch, head + 16, strlen(head + 16) + 1);
		(void)snprintf(path, sizeof(path), ".git/%s", head + 5);
		AUTO_FREE char *ref = read_below(source, path, 128);
		if (!ref || !take_oid(ref, rec->head))
			find_packed(source, head + 5, rec->head);
	} else {
		(void)take_oid(head, rec->head);
	}
	AUTO_FREE char *config = read_below(source, ".git/config", MAX_CONFIG);
	if (!config)
		return;
	(void)gitconfig_parse(config, strlen(config), take_branch, rec);
	if (!rec->remote[0])
		memcpy(rec->remote, "origin", sizeof("origin"));
	(void)gitconfig_parse(config, strlen(config), take_url, rec);
	if (!rec->remote_url[0])
		rec->remote[0] = '\0';
}
