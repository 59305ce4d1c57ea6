/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spelling suggestions: optimal string alignment distance on three rows.
 */
#include "base/nearest.h"

#include <string.h>
#include <strings.h>

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;
	return m < c ? m : c;
}

/* Both at most NEAREST_WORD_MAX long. */
static size_t distance(const char *a, size_t an, const char *b, size_t bn)
{
	size_t rows[3][NEAREST_WORD_MAX + 1];
	size_t *before = rows[0], *prev = rows[1], *row = rows[2];

	for (size_t j = 0; j <= bn; j++)
		row[j] = j;
	for (size_t i = 1; i <= an; i++) {
		size_t *recycled = before;

		before = prev;
		prev = row;
		row = recycled;
		row[0] = i;
		for (size_t j = 1; j <= bn; j++) {
			char ca = lower(a[i - 1]), cb = lower(b[j - 1]);

			row[j] = min3(prev[j] + 1, row[j - 1] + 1, prev[j - 1] + (ca != cb));
			if (i > 1 && j > 1 && ca == lower(b[j - 2]) && lower(a[i - 2]) == cb &&
			    before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
	}
	return row[bn];
}

static const char *only_with_prefix(const char *word, size_t wn, const char *const *list, size_t n)
{
	const char *found = NULL;

	if (wn < 2)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if (!list[i] || strncasecmp(list[i], word, wn) != 0)
			continue;
		if (found)
			return NULL;
		found = list[i];
	}
	return found;
}

const char *nearest(const char *word, const char *const *list, size_t n)
{
	size_t wn = strlen(word);
	size_t best = NEAREST_WORD_MAX + 1;
	const char *found = NULL;

	if (wn == 0 || wn > NEAREST_WORD_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t ln = list[i] ? strlen(list[i]) : 0;

		if (ln == 0 || ln > NEAREST_WORD_MAX)
			continue;
		size_t allowed = (wn > ln ? wn : ln) / 3;
		size_t d = distance(word, wn, list[i], ln);

		if (d <= allowed && d < best) {
			best = d;
			found = list[i];
		}
	}
	return found ? found : only_with_prefix(word, wn, list, n);
}
