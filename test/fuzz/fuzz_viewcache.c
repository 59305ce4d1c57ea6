/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the decoder of a kept view.
 *
 * The input is tried as it is, and with magic, size, key and sum that fit, so that
 * the search does not have to find them. What is accepted points into the entry,
 * and comes out the same when it is written and read again.
 */
#include "policy/viewcache.h"

#include "fuzz_base.h"
#include "policy/viewcache_record.h"

static struct view view, again;
static struct refused refused, other;
static struct looks none;

static void check_mount(const struct plan_mount *m, const char *bytes, size_t size)
{
	FUZZ_CHECK(m->kind < MOUNT_KINDS && !(m->flags & ~MOUNT_FLAGS_ALL));
	FUZZ_CHECK(m->dst > bytes && m->dst < bytes + size && m->dst[0] == '/');
	FUZZ_CHECK(strnlen(m->dst, (size_t)(bytes + size - m->dst)) <
		   (size_t)(bytes + size - m->dst));
	if (m->src)
		FUZZ_CHECK(m->src > bytes && m->src_len < (size_t)(bytes + size - m->src));
	else
		FUZZ_CHECK(m->src_len == 0);
}

static void check_again(const struct buf *key)
{
	struct buf out = BUF_INIT(MAX_VIEWCACHE_BYTES);
	struct err e;

	/* Texts may overlap in what was read; written one by one they may not fit. */
	if (viewcache_encode(&none, key, &view, 0, &refused, &out, &e) == 0) {
		again.n = 0;
		FUZZ_CHECK(viewcache_decode(out.p, out.n, key, &again, &other));
		FUZZ_CHECK(again.n == view.n && other.homes.n == refused.homes.n);
		for (size_t i = 0; i < view.n; i++) {
			const struct plan_mount *a = &again.mounts[i];
			const struct plan_mount *b = &view.mounts[i];
			FUZZ_CHECK(strcmp(a->dst, b->dst) == 0 && a->src_len == b->src_len);
			FUZZ_CHECK(!b->src == !a->src);
			FUZZ_CHECK(!b->src || memcmp(a->src, b->src, b->src_len) == 0);
		}
	} else {
		fuzz_check_err(&e);
	}
	buf_release(&out);
}

static void try_bytes(const char *bytes, size_t size, const struct buf *key)
{
	view.n = 0;
	if (!viewcache_decode(bytes, size, key, &view, &refused)) {
		FUZZ_CHECK(view.n == 0);
		return;
	}
	FUZZ_CHECK(refused.homes.n <= MAX_PLACES && refused.state.n <= MAX_PLACES);
	FUZZ_CHECK(refused.state_paths <= sizeof(refused.state_path) / PATH_TEXT);
	for (size_t i = 0; i < refused.state_paths; i++)
		FUZZ_CHECK(strnlen(refused.state_path[i], PATH_TEXT) < PATH_TEXT);
	for (size_t i = 0; i < view.n; i++)
		check_mount(&view.mounts[i], bytes, size);
	check_again(key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct viewcache_head h;
	struct buf key = BUF_INIT(MAX_VIEWCACHE_BYTES);
	/* Exactly as large, so that a read behind it is seen; malloc aligns it. */
	char *copy = malloc(size ? size : 1);

	FUZZ_CHECK(copy != NULL);
	if (size)
		memcpy(copy, data, size);
	try_bytes(copy, size, &key);
	if (size >= sizeof(h)) {
		memcpy(&h, copy, sizeof(h));
		h.magic = VIEWCACHE_MAGIC;
		h.format = VIEWCACHE_FORMAT;
		h.total = (uint32_t)size;
		h.inputs = 0; /* what stands is the file system's to say: the unit test's */
		h.mounts %= 16;
		h.homes %= 4;
		h.states %= 4;
		size_t used = sizeof(h) + h.mounts * sizeof(struct viewcache_mount) +
			      ((size_t)h.homes + h.states) * sizeof(struct place);
		h.text_len = used < size ? (uint32_t)(size - used) : 0;
		h.key_len = h.text_len ? h.key_len % h.text_len : 0;
		if (h.text_len)
			(void)buf_add(&key, copy + used, h.key_len);
		h.sum = viewcache_sum(&h, copy + sizeof(h), size - sizeof(h));
		memcpy(copy, &h, sizeof(h));
		try_bytes(copy, size, &key);
	}
	buf_release(&key);
	free(copy);
	return 0;
}
