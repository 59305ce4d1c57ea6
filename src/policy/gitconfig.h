/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git's configuration syntax (git-config(1), "SYNTAX"), read exactly as git
 * reads it: what it understands otherwise than git could hide a key from us.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define MAX_GIT_KEY 256    /* of a section's, a subsection's or a key's name, with NUL */
#define MAX_GIT_VALUE 4096 /* bytes of a value, with NUL */

struct gitconfig_entry {
	const char *section; /* in lower case */
	const char *sub;     /* subsection as git compares it, NULL: none */
	const char *key;     /* in lower case */
	const char *value;   /* NULL: the key stands alone, which means true */
	bool odd_blanks;     /* an unquoted tab or CR inside; git before 2.45 has a space there */
};

/* False: stop reading. The strings live until it returns. */
typedef bool gitconfig_item(void *self, const struct gitconfig_entry *entry);

/*
 * Calls `item` for each key of a file's text, in order. False if git would not
 * accept the text, if a name or value is longer than above, if there is a NUL
 * or a key outside any section, or if `item` stopped; what came before has been
 * told.
 */
bool gitconfig_parse(const char *text, size_t n, gitconfig_item *item, void *self);

/* An item that copies core.worktree to `self`, a char[PATH_TEXT]; "" stays if there is none. */
bool gitconfig_take_worktree(void *self, const struct gitconfig_entry *entry);
