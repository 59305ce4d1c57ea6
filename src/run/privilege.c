/* SPDX-License-Identifier: Apache-2.0 */
#include "run/privilege.h"

#include <stdbool.h>
#include <string.h>

#include "base/base.h"

static bool is_one_of(const char *p, size_t n, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(names[i]) == n && memcmp(p, names[i], n) == 0)
			return true;
	return false;
}

static const char *known(const char *p, size_t n)
{
	static const char *const names[] = {"sudo", "su", "doas", "pkexec", "run0"};

	for (size_t i = n; i > 0; i--) {
		if (p[i - 1] != '/')
			continue;
		p += i;
		n -= i;
		break;
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (is_one_of(p, n, &names[i], 1))
			return names[i];
	return NULL;
}

/* Behind these a command still stands. */
static bool leads_on(const char *p, size_t n)
{
	static const char *const words[] = {"if",    "then", "elif",  "else",    "while",
					    "until", "do",   "!",     "{",       "time",
					    "exec",  "env",  "nohup", "command", "nice"};

	return is_one_of(p, n, words, ARRAY_LEN(words)) || memchr(p, '=', n) != NULL;
}

/* The word at p: quotes are part of it. */
static size_t word_at(const char *p)
{
	size_t n = 0;
	char quote = 0;

	for (; p[n]; n++) {
		if (quote)
			quote = p[n] == quote ? 0 : quote;
		else if (p[n] == '\'' || p[n] == '"')
			quote = p[n];
		else if (p[n] == '\\' && p[n + 1])
			n++;
		else if (strchr(" \t\n;&|()<>`", p[n]))
			break;
	}
	return n;
}

const char *privilege_in_script(const char *script)
{
	bool first = true; /* a command may stand here */

	for (const char *p = script; *p;) {
		if (*p == '#') {
			p += strcspn(p, "\n");
			continue;
		}
		size_t n = word_at(p);
		if (!n) {
			first |= strchr("\n;&|()`", *p) != NULL;
			p++;
			continue;
		}
		const char *name = first ? known(p, n) : NULL;
		if (name)
			return name;
		first = first && leads_on(p, n);
		p += n;
	}
	return NULL;
}

const char *privilege_named(char *const *argv, size_t argc)
{
	static const char *const shells[] = {"sh",      "bash",      "dash",
					     "/bin/sh", "/bin/bash", "/usr/bin/bash"};

	if (!argc)
		return NULL;
	if (is_one_of(argv[0], strlen(argv[0]), shells, ARRAY_LEN(shells))) {
		for (size_t i = 1; i + 1 < argc && argv[i][0] == '-'; i++)
			if (strcmp(argv[i], "-c") == 0)
				return privilege_in_script(argv[i + 1]);
		return NULL;
	}
	return known(argv[0], strlen(argv[0]));
}

const char *privilege_in_output(const char *p, size_t n)
{
	static const char said[] = "sudo: The \"no new privileges\" flag is set";

	return n && memmem(p, n, said, strlen(said)) ? "sudo" : NULL;
}
