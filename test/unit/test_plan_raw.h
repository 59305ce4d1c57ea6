/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans byte by byte, without the encoder: what the tests of the decoder bend.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "plan/plan.h"
#include "plan/record.h"
#include "test_base_suite.h"

/* Room for a plan over the limit. */
#define RAW_BYTES (MAX_PLAN_BYTES + (1u << 17))

struct raw {
	unsigned char *p;
	size_t n;
	uint32_t records;
};

static inline struct raw raw_new(void)
{
	struct raw r = {.p = calloc(1, RAW_BYTES), .n = sizeof(struct plan_header)};

	ck_assert_ptr_nonnull(r.p);
	return r;
}

static inline void raw_record(struct raw *r, uint32_t type, const void *payload, size_t bytes)
{
	struct plan_record head = {.type = type, .bytes = (uint32_t)bytes};

	ck_assert_uint_lt(r->n + sizeof(head) + bytes + 8, RAW_BYTES);
	memcpy(r->p + r->n, &head, sizeof(head));
	if (bytes)
		memcpy(r->p + r->n + sizeof(head), payload, bytes);
	r->n += sizeof(head) + RECORD_PAD(bytes);
	r->records++;
}

static inline void raw_string(struct raw *r, uint32_t type, const char *s)
{
	raw_record(r, type, s, strlen(s) + 1);
}

static inline struct plan_numbers raw_numbers(void)
{
	return (struct plan_numbers){.uid = 1000,
				     .gid = 1000,
				     .outer_uid = 1000,
				     .outer_gid = 1000,
				     .wall_ms = 1000,
				     .cpu_ms = UINT64_MAX,
				     .memory_bytes = UINT64_MAX,
				     .pids = UINT64_MAX,
				     .cpus_milli = UINT64_MAX,
				     .disk_bytes = 1 << 20,
				     .inodes = 100};
}

static inline void raw_head(struct raw *r)
{
	struct plan_numbers n = raw_numbers();

	raw_record(r, REC_NUMBERS, &n, sizeof(n));
	raw_string(r, REC_CWD, "/");
	raw_string(r, REC_HOSTNAME, "sand");
	raw_string(r, REC_STDIN, "");
}

/* dst and src with lengths of their own, so that NULs and lies are possible. */
static inline void raw_mount(struct raw *r, struct record_mount m, const char *dst, size_t dst_n,
			     const char *src, size_t src_n)
{
	size_t bytes = sizeof(m) + dst_n + src_n;
	unsigned char *payload = malloc(bytes + 1);

	ck_assert_ptr_nonnull(payload);
	memcpy(payload, &m, sizeof(m));
	memcpy(payload + sizeof(m), dst, dst_n);
	memcpy(payload + sizeof(m) + dst_n, src, src_n);
	raw_record(r, REC_MOUNT, payload, bytes);
	free(payload);
}

/* A mount record whose lengths are true. */
static inline void raw_true_mount(struct raw *r, uint32_t kind, const char *dst, const char *src,
				  size_t src_n)
{
	char *with_nul = calloc(1, src_n + 1);
	struct record_mount m = {.kind = kind,
				 .dst_len = (uint32_t)strlen(dst),
				 .src_len = (uint32_t)src_n};

	ck_assert_ptr_nonnull(with_nul);
	if (src_n)
		memcpy(with_nul, src, src_n);
	raw_mount(r, m, dst, strlen(dst) + 1, with_nul, src_n + 1);
	free(with_nul);
}

static inline void raw_cgroup(struct raw *r, uint32_t role, uint32_t zero, const char *dir,
			      size_t dir_n)
{
	unsigned char payload[8192];
	uint32_t head[2] = {role, zero};

	ck_assert_uint_le(sizeof(head) + dir_n, sizeof(payload));
	memcpy(payload, head, sizeof(head));
	memcpy(payload + sizeof(head), dir, dir_n);
	raw_record(r, REC_CGROUP, payload, sizeof(head) + dir_n);
}

static inline void raw_close(struct raw *r)
{
	struct plan_header h = {.magic = PLAN_MAGIC,
				.version = PLAN_VERSION,
				.total = (uint32_t)r->n,
				.records = r->records};

	memcpy(r->p, &h, sizeof(h));
}

/* Decodes a copy of exactly that many bytes, so that a read behind them is seen. */
static inline int raw_decode(const struct raw *r, struct plan *ret, struct err *e)
{
	unsigned char *copy = malloc(r->n ? r->n : 1);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, r->p, r->n);
	int rc = plan_decode(copy, r->n, ret, e);
	if (rc == 0)
		plan_release(ret);
	free(copy);
	return rc;
}

/* The plan decodes (so what a test changes is what is refused), then it is thrown away. */
#define RAW_WORKS(r)                                         \
	do {                                                 \
		struct plan plan_;                           \
		struct err e_;                               \
		raw_close(&(r));                             \
		CK_WORKS(raw_decode(&(r), &plan_, &e_), e_); \
		free((r).p);                                 \
	} while (0)

#define RAW_FAILS(r, text)                                                       \
	do {                                                                     \
		struct plan plan_;                                               \
		struct err e_;                                                   \
		raw_close(&(r));                                                 \
		CK_FAILS(raw_decode(&(r), &plan_, &e_), e_, ERR_INTERNAL, text); \
		free((r).p);                                                     \
	} while (0)
