/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/sweep.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/place.h"
#include "audit/settings.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/num.h"

/* What goes, as far as one line can tell of it. */
struct batch {
	struct audit_place *place;
	struct audit_head file[MAX_AUDIT_ROWS];
	uint64_t bytes;
	size_t n;
};

/* The oldest that is not in the batch yet, if it is older than `before`. */
static bool next_name(const struct batch *b, const char *before, char ret[AUDIT_FILE_TEXT])
{
	return audit_oldest(b->place->dir, b->n ? b->file[b->n - 1].file : NULL, ret) &&
	       strcmp(ret, before) < 0;
}

static int collect(struct batch *b, const char *before, struct err *e)
{
	char name[AUDIT_FILE_TEXT];
	uint64_t end = 0;
	struct stat st;

	while (b->n < MAX_AUDIT_ROWS && next_name(b, before, name)) {
		AUTO_FD int fd = audit_file_open(b->place->dir, name, O_RDONLY, e);
		if (fd < 0)
			return -1;
		if (fstat(fd, &st) < 0)
			return err_sys(e, "audit log: %s", name);
		if (audit_last(fd, name, (uint64_t)st.st_size, &b->file[b->n], &end, e) < 0)
			return -1;
		b->bytes += (uint64_t)st.st_size;
		b->n++;
	}
	return 0;
}

static int tell(const struct batch *b, const struct caller *who, uint64_t kept_ms, struct err *e)
{
	struct audit_field field[MAX_AUDIT_ROWS][3];
	struct audit_row row[MAX_AUDIT_ROWS];
	char kept[NUM_TEXT];

	for (size_t i = 0; i < b->n; i++) {
		const struct audit_head *h = &b->file[i];
		field[i][0] =
			(struct audit_field){.key = "file", .kind = AUDIT_WORD, .text = h->file};
		field[i][1] =
			(struct audit_field){.key = SWEEP_SEQ, .kind = AUDIT_UINT, .u = h->seq};
		field[i][2] = (struct audit_field){.key = SWEEP_HASH,
						   .kind = AUDIT_WORD,
						   .text = h->seq ? h->hash : NULL};
		row[i] = (struct audit_row){.fields = field[i], .count = 3};
	}
	const struct audit_field data[] = {
		{.key = "kept", .kind = AUDIT_WORD, .text = duration_format(kept_ms, kept)},
		{.key = SWEEP_FILES, .kind = AUDIT_LIST, .rows = row, .count = b->n},
	};
	const struct audit_event v = {.event = SWEEP_EVENT,
				      .data = data,
				      .data_count = ARRAY_LEN(data)};
	return audit_place_write(b->place, who, &v, 1, AUDIT_SYNC, e);
}

static int delete_all(const struct batch *b, struct audit_swept *ret, struct err *e)
{
	for (size_t i = 0; i < b->n; i++) {
		if (unlinkat(b->place->dir, b->file[i].file, 0) < 0)
			return err_sys(e, "audit log: delete %s", b->file[i].file);
	}
	ret->files += b->n;
	ret->bytes += b->bytes;
	memcpy(ret->until, b->file[b->n - 1].file, sizeof(ret->until));
	return 0;
}

/* One line's worth. 0: nothing is left, 1, -1. */
static int sweep_some(struct audit_place *p, const struct caller *who, uint64_t kept_ms,
		      const char *before, struct audit_swept *ret, struct err *e)
{
	struct batch b = {.place = p};

	if (collect(&b, before, e) < 0)
		return -1;
	if (!b.n)
		return 0;
	if (tell(&b, who, kept_ms, e) < 0 || delete_all(&b, ret, e) < 0)
		return -1;
	return 1;
}

static int look_only(struct audit_place *p, const char *before, struct audit_swept *ret,
		     struct err *e)
{
	struct batch b = {.place = p};

	if (collect(&b, before, e) < 0)
		return -1;
	ret->files = b.n;
	ret->bytes = b.bytes;
	if (b.n)
		memcpy(ret->until, b.file[b.n - 1].file, sizeof(ret->until));
	return 0;
}

int audit_sweep(const struct caller *who, bool dry, struct audit_swept *ret, struct err *e)
{
	AUTO_AUDIT_PLACE p = AUDIT_PLACE_NONE;
	int64_t now = clock_wall_ms();
	char before[AUDIT_FILE_TEXT];
	struct audit_settings s;
	struct err none = {0};
	int rc = 1;

	*ret = (struct audit_swept){.files = 0};
	if (audit_place_open(who, false, &p, &none) < 0 && none.code == ERR_NOT_FOUND)
		return 0;
	if (p.dir < 0 && audit_place_open(who, false, &p, e) < 0)
		return -1;
	if (audit_place_lock(&p, e) < 0 || audit_settings_read(p.dir, &s, e) < 0)
		return -1;
	if (s.kept_ms == LIMIT_NONE || s.kept_ms > (uint64_t)now)
		return 0;
	audit_day(now - (int64_t)s.kept_ms, before);
	if (dry)
		return look_only(&p, before, ret, e);
	if (audit_place_day(&p, now, e) < 0)
		return -1;
	p.chain.now_ms = now;
	/* What is written to stays, whatever its name says. */
	if (strcmp(before, p.name) > 0)
		memcpy(before, p.name, sizeof(before));
	while (rc > 0)
		rc = sweep_some(&p, who, s.kept_ms, before, ret, e);
	return rc;
}
