/* SPDX-License-Identifier: Apache-2.0 */
#include "config/finding.h"

#include <stdio.h>
#include <string.h>

#define SHOWN_PATH 400

void findings_add(struct findings *f, bool warning, const char *file, struct position at,
		  const char *key, const struct err *why)
{
	if (!warning)
		f->errors++;
	if (f->n == MAX_FINDINGS) {
		f->more++;
		return;
	}
	struct finding *one = &f->v[f->n++];
	*one = (struct finding){.warning = warning, .at = at, .why = *why};
	(void)snprintf(one->file, sizeof(one->file), "%s", file);
	(void)snprintf(one->key, sizeof(one->key), "%s", key);
}

void finding_err(const struct finding *f, struct err *ret)
{
	size_t n = strlen(f->file);
	const char *path = n > SHOWN_PATH ? f->file + n - SHOWN_PATH : f->file;
	const char *cut = n > SHOWN_PATH ? "…" : "";
	char where[32] = "";

	if (f->at.line)
		(void)snprintf(where, sizeof(where), ":%u:%u", f->at.line, f->at.column);
	(void)err_set(ret, f->why.code, "%s%s%s: %s%s%s", cut, path, where, f->key,
		      f->key[0] ? ": " : "", f->why.msg);
	if (f->why.hint[0])
		(void)err_hint(ret, "%s", f->why.hint);
}

int findings_first(const struct findings *f, struct err *e)
{
	for (size_t i = 0; i < f->n; i++)
		if (!f->v[i].warning) {
			finding_err(&f->v[i], e);
			return -1;
		}
	return err_set(e, ERR_INTERNAL, "a policy is wrong, and nobody said where");
}
