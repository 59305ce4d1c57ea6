/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command line options from a table, which also makes the help.
 *
 * Spellings: `--name VALUE`, `--name=VALUE`, `-c VALUE`. The first argument
 * that is no option (a lone `-` too) or the one behind `--` is the first
 * operand. No abbreviations, no clusters of short options.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define OPT_TABLE_MAX 96
#define STRLIST_MAX 256

/* Texts that belong to somebody else (usually argv). */
struct strlist {
	size_t n;
	const char *v[STRLIST_MAX];
};

/* What is at `off` in the target: */
enum opt_kind {
	OPT_FLAG,     /* bool, set to true */
	OPT_STRING,   /* const char * into argv; may be empty */
	OPT_LIST,     /* struct strlist; repeatable, the 257th is ARG_LIMIT */
	OPT_CHOICE,   /* int, index in choices */
	OPT_NUM,      /* uint64_t */
	OPT_SIZE,     /* uint64_t, bytes */
	OPT_DURATION, /* uint64_t, ms */
	OPT_CPUS,     /* uint64_t, 1/1000 processor */
};

struct opt {
	const char *name; /* without dashes; NULL if there is only a short one */
	char short_name;  /* 0 if none */
	enum opt_kind kind;
	size_t off;
	const char *arg;   /* name of the value in the help */
	const char *help;  /* NULL hides it from the help */
	const char *later; /* not in this version: UNSUPPORTED with this text, no help */
	bool elsewhere;    /* with `later`: it is never taken here, which the text explains */
	uint64_t min, max; /* for numbers of all kinds; max 0 is no upper bound */
	bool none_ok;      /* the word `none` gives LIMIT_NONE */
	const char *const *choices; /* NULL-terminated; of other kinds: what completion offers */
	const char *const *choices_later; /* of each choice: as later, NULL if it is there */
	const char *section;              /* heading above this one in the help */
};

/*
 * Parses argv[0] to argv[argc - 1] (without program and verb). The target
 * holds the defaults before. Unknown option, option given twice (except
 * lists), missing, unwanted or wrong value: CONFIG_INVALID; then the target
 * may have changed in part. *ret_first_operand is argc if there is none.
 */
NODISCARD int opt_parse(const struct opt *table, size_t n, int argc, char **argv, void *target,
			int *ret_first_operand, struct err *e);

/* One aligned paragraph an option, in the table's order. */
int opt_help(struct buf *out, const struct opt *table, size_t n);
