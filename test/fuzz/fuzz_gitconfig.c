/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a git configuration: the reader ends and stays in bounds, and
 * what is judged harmless holds none of the keys that make git run a program.
 * Then the same bytes as the other files of a git directory.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/gitconfig.h"
#include "policy/gitjudge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Sections of which nothing may pass; keys that may not, in whatever section. */
static const char *const sections[] = {
	"include", "includeif", "alias",    "filter",  "mergetool",  "difftool",    "credential",
	"http",    "url",       "protocol", "gpg",     "sequence",   "safe",        "trailer",
	"pager",   "receive",   "hook",     "remotes", "uploadpack", "maintenance",
};
static const char *const keys[] = {
	"hookspath", "sshcommand", "editor",       "pager",       "askpass", "gitproxy",
	"textconv",  "command",    "external",     "driver",      "cmd",     "uploadpack",
	"vcs",       "proxy",      "receivepack",  "promisor",    "program", "attributesfile",
	"gitdir",    "template",   "mergeoptions", "commentchar", "helper",  "recentobjectshook",
};

static void in_bounds(const char *s, size_t max)
{
	if (s && strlen(s) >= max)
		abort();
}

static bool look(void *self, const struct gitconfig_entry *entry)
{
	const bool *harmless = self;

	in_bounds(entry->section, MAX_GIT_KEY);
	in_bounds(entry->sub, MAX_GIT_KEY);
	in_bounds(entry->key, MAX_GIT_KEY);
	in_bounds(entry->value, MAX_GIT_VALUE);
	if (!entry->section[0] || !entry->key[0])
		abort();
	if (!*harmless)
		return true;
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		if (strcmp(entry->section, sections[i]) == 0)
			abort();
	/* In these sections any key is a colour, a layout or a truth value. */
	if (strcmp(entry->section, "color") != 0 && strcmp(entry->section, "column") != 0 &&
	    strcmp(entry->section, "advice") != 0)
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			if (strcmp(entry->key, keys[i]) == 0)
				abort();
	if (strcmp(entry->key, "fsmonitor") == 0 && strcmp(entry->section, "core") == 0 &&
	    (!entry->value || strcmp(entry->value, "false") != 0))
		abort();
	if (entry->value &&
	    (strcmp(entry->section, "remote") == 0 || strcmp(entry->section, "submodule") == 0) &&
	    (strcmp(entry->key, "url") == 0 || strcmp(entry->key, "pushurl") == 0) &&
	    (entry->value[0] == '-' || strstr(entry->value, "::") || !strchr(entry->value, ':')))
		abort();
	if (entry->value && strcmp(entry->key, "update") == 0 && strchr(entry->value, '!'))
		abort();
	return true;
}

static bool see(void *self, const char *path)
{
	(void)self;
	in_bounds(path, PATH_TEXT);
	return path[0] != '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	char path[PATH_TEXT];
	struct gitjudge judge;

	bool harmless = gitjudge_config(text, size, &judge);
	bool good = gitconfig_parse(text, size, look, &harmless);
	if ((harmless && !good) || harmless != !judge.why[0])
		abort();
	in_bounds(judge.why, sizeof(judge.why));
	in_bounds(judge.worktree, sizeof(judge.worktree));
	if (gitjudge_gitfile(text, size, path) && (!path[0] || strchr(path, '\n')))
		abort();
	if (gitjudge_path(text, size, path) && (!path[0] || strchr(path, '\n')))
		abort();
	(void)gitjudge_alternates(text, size, see, NULL);
	return 0;
}
