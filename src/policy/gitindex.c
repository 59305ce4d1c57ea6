/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes are an attacker's. Where git would read on beyond what an offset or
 * a length allows, or where its two ways through a large file (from the start,
 * or in blocks on several threads) could give different names, this refuses.
 */
#include "policy/gitindex.h"

#include <assert.h>
#include <string.h>

#include "base/base.h"

#define HEADER 12
#define STAT 40           /* of an entry, before the object's name */
#define MODE_AT 24        /* in STAT */
#define NAME_MASK 0x0fffu /* in the flags */
#define STAGE_AT 12
#define EXTENDED 0x4000u
#define KNOWN_EXTENDED 0x6000u /* skip-worktree, intent-to-add */
#define NAME_MAX_BYTES 4095u

struct reader {
	const unsigned char *p;
	size_t end, at; /* end: where the checksum begins */
	unsigned int version, oid_bytes;
	uint32_t left; /* entries */
	bool nameless; /* there was an entry without a name */
	bool prefixed; /* the last one took a part of its name from the one before */
	char path[NAME_MAX_BYTES + 1]; /* version 4: the last name */
	size_t path_len;
};

static int bad(const struct reader *r, struct err *e, const char *what)
{
	return err_set(e, ERR_CONFIG_INVALID, "git index: %s at byte %zu", what, r->at);
}

static uint32_t be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static unsigned int be16(const unsigned char *p)
{
	return (unsigned int)p[0] << 8 | p[1];
}

static bool has(const struct reader *r, size_t n)
{
	return r->end - r->at >= n;
}

static int read_header(struct reader *r, const void *bytes, size_t n, unsigned int oid_bytes,
		       struct err *e)
{
	*r = (struct reader){.p = bytes, .oid_bytes = oid_bytes};
	if (n > MAX_GIT_INDEX)
		return err_set(e, ERR_CONFIG_INVALID, "git index: more than %u bytes",
			       MAX_GIT_INDEX);
	if (n < HEADER + (size_t)oid_bytes)
		return bad(r, e, "too short for a header");
	r->end = n - oid_bytes;
	if (memcmp(r->p, "DIRC", 4) != 0)
		return bad(r, e, "no index");
	r->version = be32(r->p + 4);
	if (r->version < 2 || r->version > 4)
		return bad(r, e, "unknown version");
	r->left = be32(r->p + 8);
	r->at = HEADER;
	return 0;
}

static bool is_mode(uint32_t mode)
{
	return mode == 0100644 || mode == 0100755 || mode == 0120000 || mode == 0160000 ||
	       mode == 040000;
}

/* How many bytes of the last name's end go away: base 128, each further digit one more. */
static int read_strip(struct reader *r, size_t *ret, struct err *e)
{
	size_t n = 0;

	for (bool more = true, first = true; more; first = false) {
		if (!has(r, 1) || n > NAME_MAX_BYTES)
			return bad(r, e, "a bad prefix length");
		unsigned int c = r->p[r->at++];
		n = ((first ? 0 : n + 1) << 7) + (c & 127);
		more = c & 128;
	}
	if (n > r->path_len)
		return bad(r, e, "a prefix of a name that is not there");
	*ret = n;
	return 0;
}

/* A name up to its NUL; version 4: what is kept of the last one before it. */
static int read_name(struct reader *r, struct gitindex_entry *entry, unsigned int want,
		     struct err *e)
{
	size_t keep = 0;

	if (r->version == 4) {
		size_t strip = 0;
		if (read_strip(r, &strip, e) < 0)
			return -1;
		keep = r->path_len - strip;
	}
	const unsigned char *name = r->p + r->at;
	const unsigned char *nul = memchr(name, '\0', r->end - r->at);
	if (!nul)
		return bad(r, e, "a name without an end");
	size_t n = (size_t)(nul - name);
	if (n > NAME_MAX_BYTES - keep)
		return bad(r, e, "a name that is too long");
	if (keep + n != want)
		return bad(r, e, "a name of another length than its entry says");
	entry->path = (const char *)name;
	entry->path_len = n;
	if (r->version == 4) {
		memcpy(r->path + keep, name, n);
		r->path_len = keep + n;
		entry->path = r->path;
		entry->path_len = r->path_len;
	}
	r->prefixed = keep > 0;
	r->at += n + 1;
	return 0;
}

/* Up to a multiple of 8 from the entry's start; one zero is behind the name already. */
static int read_padding(struct reader *r, size_t begin, struct err *e)
{
	for (; (r->at - begin) % 8 != 0; r->at++)
		if (!has(r, 1) || r->p[r->at] != 0)
			return bad(r, e, "bad padding");
	return 0;
}

static int read_entry(struct reader *r, struct gitindex_entry *entry, struct err *e)
{
	size_t begin = r->at;

	if (!has(r, STAT + r->oid_bytes + 2))
		return bad(r, e, "an entry that is cut");
	*entry = (struct gitindex_entry){.mode = be32(r->p + begin + MODE_AT),
					 .oid = r->p + begin + STAT};
	if (!is_mode(entry->mode))
		return bad(r, e, "an unknown mode");
	r->at += STAT + r->oid_bytes;
	unsigned int flags = be16(r->p + r->at);
	r->at += 2;
	entry->stage = flags >> STAGE_AT & 3;
	if (flags & EXTENDED) {
		if (r->version == 2 || !has(r, 2) || be16(r->p + r->at) & ~KNOWN_EXTENDED)
			return bad(r, e, "unknown flags");
		r->at += 2;
	}
	if (read_name(r, entry, flags & NAME_MASK, e) < 0)
		return -1;
	r->nameless |= entry->path_len == 0;
	r->left--;
	return r->version == 4 ? 0 : read_padding(r, begin, e);
}

/* Extension IEOT: where blocks of entries begin, each read as if it were the first. */
static int check_blocks(struct reader *r, const struct reader *start, size_t n, struct err *e)
{
	const unsigned char *table = r->p + r->at;
	struct reader again = *start;
	struct gitindex_entry entry;

	if (n < 4 || (n - 4) % 8 != 0 || be32(table) != 1)
		return bad(r, e, "a bad table of blocks");
	for (size_t i = 4; i < n; i += 8) {
		uint32_t count = be32(table + i + 4);
		if (be32(table + i) != again.at || count > again.left)
			return bad(r, e, "a table of blocks that does not fit");
		for (uint32_t k = 0; k < count; k++) {
			if (read_entry(&again, &entry, e) < 0)
				return -1;
			if (k == 0 && again.prefixed)
				return bad(r, e, "a block that needs the one before");
		}
	}
	return again.left ? bad(r, e, "a table of blocks that is not whole") : 0;
}

struct extensions {
	const struct reader *start; /* of the entries */
	size_t begin;               /* of the extensions */
	size_t eoie;                /* where that one is, 0: nowhere */
	bool link, ieot;            /* seen */
	bool split;
};

/* One of them, whose content of n bytes begins at r->at. */
static int read_extension(struct reader *r, struct extensions *x, const unsigned char *name,
			  size_t n, struct err *e)
{
	static const unsigned char zero[32];
	const unsigned char *p = r->p + r->at;

	if (memcmp(name, "link", 4) == 0) {
		if (n < r->oid_bytes || x->link)
			return bad(r, e, "a bad link to a shared index");
		x->link = true;
		x->split = memcmp(p, zero, r->oid_bytes) != 0;
		return 0;
	}
	if (memcmp(name, "EOIE", 4) == 0) {
		if (n < 4 || be32(p) != x->begin || x->eoie || n != r->end - r->at)
			return bad(r, e, "a bad end of the entries");
		x->eoie = r->at - 8;
		return 0;
	}
	if (memcmp(name, "IEOT", 4) == 0) {
		if (x->ieot)
			return bad(r, e, "a second table of blocks");
		x->ieot = true;
		return check_blocks(r, x->start, n, e);
	}
	if (memcmp(name, "sdir", 4) != 0 && (name[0] < 'A' || name[0] > 'Z'))
		return bad(r, e, "an unknown extension");
	return 0;
}

/* git finds EOIE by its distance from the end, where it may be another one's content. */
static bool hides_eoie(const struct reader *r, const struct extensions *x)
{
	static const size_t sizes[] = {8 + 4 + 20, 8 + 4 + 32};

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		if (r->end - x->begin < sizes[i])
			continue;
		size_t at = r->end - sizes[i];
		if (at != x->eoie && memcmp(r->p + at, "EOIE", 4) == 0)
			return true;
	}
	return false;
}

static int read_extensions(struct reader *r, const struct reader *start, bool *ret_split,
			   struct err *e)
{
	struct extensions x = {.start = start, .begin = r->at};

	while (r->at < r->end) {
		if (!has(r, 8))
			return bad(r, e, "an extension that is cut");
		const unsigned char *name = r->p + r->at;
		size_t n = be32(name + 4);
		r->at += 8;
		if (!has(r, n))
			return bad(r, e, "an extension that is cut");
		if (read_extension(r, &x, name, n, e) < 0)
			return -1;
		r->at += n;
	}
	if (hides_eoie(r, &x))
		return bad(r, e, "a hidden end of the entries");
	if (r->nameless && !x.split)
		return bad(r, e, "an entry without a name");
	*ret_split = x.split;
	return 0;
}

int gitindex_each(const void *bytes, size_t n, unsigned int oid_bytes, gitindex_item *item,
		  void *self, bool *ret_split, struct err *e)
{
	struct reader r;

	assert(oid_bytes == 20 || oid_bytes == 32);
	if (read_header(&r, bytes, n, oid_bytes, e) < 0)
		return -1;
	const struct reader start = r;
	while (r.left) {
		struct gitindex_entry entry;
		if (read_entry(&r, &entry, e) < 0)
			return -1;
		if (entry.path_len && !item(self, &entry))
			return 0;
	}
	return read_extensions(&r, &start, ret_split, e);
}
