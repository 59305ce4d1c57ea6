/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Record types of the encoded plan, shared by encoder and decoder.
 */
#pragma once

#include <stdint.h>

struct plan_header {
	uint32_t magic, version, total, records;
};

struct plan_record {
	uint32_t type, bytes;
};

enum record_type {
	REC_NUMBERS, /* struct plan_numbers, exactly one */
	REC_CWD,     /* string, exactly one; so are the next two */
	REC_HOSTNAME,
	REC_STDIN,
	REC_CGROUP, /* u32 role, u32 0, string */
	REC_MOUNT,  /* struct record_mount, dst string, src bytes and a NUL */
	REC_ARG,    /* string, at least one */
	REC_ENV,    /* string */
	REC_EGRESS, /* with PLAN_EGRESS, once: struct record_egress, ports, prefixes */
	REC_TYPES,
};

struct record_mount {
	uint32_t kind, flags;
	uint64_t dev, ino;
	uint32_t owner_uid, owner_gid;
	uint32_t dst_len, src_len; /* without their NULs */
};

struct record_egress {
	uint32_t port_count, prefix_count; /* uint16_t and struct plan_prefix each */
};

#define RECORD_PAD(n) (((n) + 7u) & ~(size_t)7)
