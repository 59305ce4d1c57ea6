/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a verb is called with: the one description of which its help, the list of
 * `sandglass help` and the shells' completions are made. Data only, so that a
 * program can describe verbs that another one carries out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/opt.h"

#define HELP_LINE_MAX 100 /* columns of any line of any help */

/* What follows the options. */
enum operand {
	OPERAND_NONE,
	OPERAND_COMMAND, /* a command with its arguments; with -c these are a script's */
	OPERAND_FILE,
	OPERAND_WORD, /* one of words */
	OPERAND_VERB, /* verbs, then their sub-verbs */
};

struct usage {
	const char *name;            /* the verb or sub-verb */
	const char *summary;         /* in a list: one line */
	const char *const *synopsis; /* each what follows `sandglass `; NULL-terminated */
	const char *about;           /* between synopsis and options; NULL if there is none */
	const char *status;          /* the last paragraph: exit statuses */
	const char *later;           /* not in this version: the part that brings it */
	const struct opt *options;
	size_t option_count;
	enum operand operand;
	const char *const *words;  /* OPERAND_WORD: NULL-terminated */
	const struct usage **subs; /* sub-verbs, NULL-terminated; NULL if there are none */
};

/* The options of a verb whose only option is --help. */
struct help_options {
	bool help;
};
extern const struct opt help_options[];
extern const size_t help_option_count;

/* The sub-verb of that name, or NULL; those of later parts too. */
const struct usage *usage_sub(const struct usage *u, const char *name);
/* Names, apart from what is there; nothing if there are none. */
void usage_list_later(const char *const *names, size_t n, struct buf *out);
/* The whole help of a verb. */
int usage_help(const struct usage *u, struct buf *out);
/* The help on stdout; the exit status, `failed` if it cannot be written. */
int usage_show(const struct usage *u, int failed);
/* Says on stderr that u has no such sub-verb, with the nearest one. Returns 2. */
int usage_unknown(const struct usage *u, const char *name);
/* Says on stderr that it comes with a later part. Returns `status`. */
int usage_later(const char *name, const char *later, int status);
