/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The known word that a misspelled one probably meant.
 */
#pragma once

#include <stddef.h>

#define NEAREST_WORD_MAX 64 /* longer words are never near anything */

/*
 * The entry with the fewest insertions, deletions, replacements and swaps of
 * neighbours, letter case ignored, if they are at most a third of the longer
 * word's length; the first of equals. Else the only entry that begins with word (two letters or more).
 * NULL if nothing is near. NULL entries are skipped.
 */
const char *nearest(const char *word, const char *const *list, size_t n);
