/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front's own short table of profiles: which programs point to one, and
 * which of its paths is worth a hint. What a profile is, share/profiles/ says;
 * a test compares the two.
 */
#include "run/missed.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/term.h"

#define MAX_PATHS 8
#define MAX_WORD 64

struct hint {
	const char *profile;
	const char *programs;         /* words, each between blanks */
	const char *absent;           /* the same, only where the program itself was not found */
	const char *paths[MAX_PATHS]; /* below the home */
};

static const struct hint hints[] = {
	{"rust", " cargo ", " rustc rustup rustfmt ", {".cargo/registry", ".cargo/git", ".rustup"}},
	{"go", " go ", " gofmt gopls ", {"go/pkg/mod", "sdk"}},
	{"node",
	 " npm npx pnpm yarn corepack bun bunx node-gyp ",
	 " node ",
	 {".npm/_cacache", ".local/share/pnpm", ".yarn/berry/cache", ".cache/yarn",
	  ".bun/install/cache", ".cache/node-gyp", ".npm-global"}},
	{"jvm",
	 " mvn mvnw gradle gradlew ",
	 " java javac ",
	 {".m2/repository", ".gradle/caches/modules-2", ".gradle/wrapper", ".sdkman/candidates"}},
	{"python",
	 " pip pip3 uv pipenv poetry conda ",
	 " python python3 ",
	 {".cache/pypoetry/virtualenvs", ".local/share/virtualenvs", ".local/share/uv",
	  ".virtualenvs", ".local/lib", "miniconda3", "miniforge3"}},
	{"browser",
	 " playwright puppeteer cypress chromium google-chrome ",
	 "",
	 {".cache/ms-playwright", ".cache/puppeteer", ".cache/Cypress"}},
};

/* The word of `list` that is these n bytes; NULL if there is none. */
static const char *find_word(const char *list, const char *p, size_t n)
{
	char word[MAX_WORD + 2];

	if (!n || n >= MAX_WORD)
		return NULL;
	(void)snprintf(word, sizeof(word), " %.*s ", (int)n, p);
	const char *at = strstr(list, word);
	return at ? at + 1 : NULL;
}

/* What of the profile is there and not shown. */
static bool is_kept_away(const struct hint *h, const char *home, const struct view *v,
			 char ret[PATH_TEXT])
{
	struct stat st;

	for (size_t i = 0; i < MAX_PATHS && h->paths[i]; i++) {
		int n = snprintf(ret, PATH_TEXT, "%s/%s", home, h->paths[i]);
		if (n > 0 && n < PATH_TEXT && lstat(ret, &st) == 0 && !view_covers(v, ret))
			return true;
	}
	return false;
}

static bool try_word(const char *p, size_t n, bool absent, const char *home, const struct view *v,
		     struct missed *ret)
{
	static char program[MAX_WORD];

	for (size_t i = 0; i < ARRAY_LEN(hints); i++) {
		const struct hint *h = &hints[i];
		if (!find_word(h->programs, p, n) && !(absent && find_word(h->absent, p, n)))
			continue;
		if (!is_kept_away(h, home, v, ret->path))
			continue;
		(void)snprintf(program, sizeof(program), "%.*s", (int)n, p);
		ret->program = program;
		ret->profile = h->profile;
		return true;
	}
	return false;
}

/* The last component of each word. */
static void try_text(const char *text, bool absent, const char *home, const struct view *v,
		     struct missed *ret)
{
	static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "-_.";

	while (*text) {
		size_t n = strspn(text, name);
		bool is_directory = text[n] == '/';
		if (n && !is_directory && try_word(text, n, absent, home, v, ret))
			return;
		text += n ? n : 1;
	}
}

void missed_find(char *const *argv, size_t argc, bool absent, const char *home,
		 const struct view *v, struct missed *ret)
{
	ret->profile = ret->program = NULL;
	if (!home || !argc)
		return;
	const char *slash = strrchr(argv[0], '/');
	const char *base = slash ? slash + 1 : argv[0];
	if (try_word(base, strlen(base), absent, home, v, ret))
		return;
	for (size_t i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "-c") == 0) {
			try_text(argv[i + 1], absent, home, v, ret);
			return;
		}
}

const char *missed_hint(const struct missed *m, char ret[MISSED_TEXT])
{
	(void)snprintf(ret, MISSED_TEXT, "--profile %s shows %s %s, which is there and not shown",
		       m->profile, m->program, m->path);
	return ret;
}
