/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan: everything that core needs to know to build one boundary and to
 * run one command in it. Plain data: versioned, bounded, no pointers in the
 * encoded form. The front encodes it into a sealed memfd; core decodes it
 * strictly and refuses anything it does not know.
 *
 * Encoded form (native endianness, both ends are the same machine):
 *   header  u32 magic, u32 version, u32 total bytes, u32 number of records
 *   record  u32 type, u32 payload bytes, payload, zero padding to 8 bytes
 * Record types ascend; repeated types keep their order.
 *
 * A boundary's plan comes in two parts, so that core builds while the front still
 * looks at the source: the plan, and the mounts that go on top of it (masks, pins)
 * in the same form with a magic of their own and no other record.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define PLAN_MAGIC 0x50474c53u      /* "SLGP" */
#define PLAN_MORE_MAGIC 0x4d474c53u /* "SLGM": the second part */
#define PLAN_VERSION 4u

/* Limits of a plan; a decoder refuses what is over them. */
#define MAX_PLAN_BYTES (8u << 20) /* argv and environment are at most 6 MiB on Linux */
#define MAX_PLAN_MOUNTS 5632u     /* 512, 4,096 pins, 1,024 for masks; fs.mount-max is 100,000 */
#define MAX_PLAN_STRINGS 2097152u /* argv or environment entries */
#define MAX_PLAN_PATH 4096u       /* PATH_MAX, its NUL included */
#define MAX_PLAN_FILE (1u << 20)  /* content of one made file: at most a store of certificates */
#define MAX_PLAN_CGROUPS 8u
#define MAX_PLAN_PORTS 64u      /* of the host's loopback */
#define MAX_PLAN_PREFIXES 1024u /* of addresses that are reached by their number */

enum plan_flag {
	PLAN_ROOT = 1u << 0,       /* core has host root: session uid, maps written by core */
	PLAN_TTY = 1u << 1,        /* a pty of the sandbox becomes stdin, stdout and stderr */
	PLAN_READ_ONLY = 1u << 2,  /* mode read-only: nothing of the source is writable */
	PLAN_STDIN_FILE = 1u << 3, /* fd 0 is a regular file: opened again read-only */
	PLAN_BARE = 1u << 4,       /* danger-full-access: no view, no confinement */
	PLAN_LANDLOCK = 1u << 5,   /* no namespaces: every mount is a bind, and a Landlock rule */
	PLAN_SESSION = 1u << 6,    /* of a session: its network is there, /sand is a mount */
	PLAN_EGRESS = 1u << 7,     /* a way out: sockets are made inside and handed to the front */
};
#define PLAN_FLAGS_ALL 0xffu

enum plan_mount_kind {
	MOUNT_DIR,     /* make a directory */
	MOUNT_SYMLINK, /* make a symlink with `src` as its text */
	MOUNT_FILE,    /* make a file with `src` as its content */
	MOUNT_BIND,    /* bind host path `src`, with what is mounted below it */
	MOUNT_MASK,    /* cover what is there with something empty and unreadable */
	MOUNT_PIN,     /* bind what is there over itself: it cannot be renamed or removed */
	MOUNT_KINDS,
};

enum plan_mount_flag {
	MOUNT_WRITE = 1u << 0,     /* writable (still nosuid, nodev) */
	MOUNT_OPTIONAL = 1u << 1,  /* skipped if `src` is not there */
	MOUNT_IDMAP = 1u << 2,     /* `owner` on disk appears as the session's uid (PLAN_ROOT) */
	MOUNT_IDENT = 1u << 3,     /* must be the file with this dev and ino */
	MOUNT_DIRECTORY = 1u << 4, /* `src` is a directory */
	MOUNT_SYSTEM = 1u << 5,    /* read-only part of the system; all of these come first */
	MOUNT_EMPTY = 1u << 6,     /* of a mask: a file reads as empty instead of not at all */
	MOUNT_WAY = 1u << 7,       /* of a mask: a directory in which later mounts lie */
	MOUNT_GIVEN = 1u << 8,     /* of a bind: the front hands the tree over, whoever it is */
};
#define MOUNT_FLAGS_ALL 0x1ffu

struct plan_mount {
	uint32_t kind;
	uint32_t flags;
	uint64_t dev, ino;             /* with MOUNT_IDENT */
	uint32_t owner_uid, owner_gid; /* with MOUNT_IDMAP */
	const char *dst;               /* absolute path inside */
	const char *src;               /* host path, link text or content */
	size_t src_len;
};

enum plan_cgroup_role {
	CGROUP_V1_MEMORY,
	CGROUP_V1_PIDS,
	CGROUP_V1_CPU,
	CGROUP_V2,
	CGROUP_FREEZER, /* v2 too, where it has no controllers: to freeze and kill */
	CGROUP_ROLES,
};

struct plan_cgroup {
	uint32_t role;
	const char *dir; /* absolute path of the directory to make; its parent exists */
};

/* Addresses that are routed to the proxy, in network order; what is behind the bits is 0. */
struct plan_prefix {
	uint8_t family; /* 4 or 6; of IPv4 the first four bytes count, the others are 0 */
	uint8_t bits;
	uint8_t addr[16];
};

/* With PLAN_EGRESS: beside the synthetic addresses, which are always there. */
struct plan_egress {
	uint16_t ports[MAX_PLAN_PORTS]; /* ascend */
	size_t port_count;
	const struct plan_prefix *prefixes;
	size_t prefix_count;
};

/* The numbers. UINT64_MAX in a limit means none. */
struct plan_numbers {
	uint32_t flags;
	uint32_t parent_pid; /* pid of the front, compared with getppid() */
	uint32_t uid, gid;   /* ids of the command inside */
	uint32_t outer_uid,
		outer_gid; /* what they map to in the caller's namespace (PLAN_ROOT: the kernel's) */
	uint32_t rows, cols;                         /* of the pty */
	uint32_t inotify_instances, inotify_watches; /* caps of the user namespace, 0: leave */
	uint64_t wall_ms, grace_ms, drain_ms;
	uint64_t cpu_ms;
	uint64_t memory_bytes;
	uint64_t pids;
	uint64_t cpus_milli;         /* 1000 is one cpu */
	uint64_t disk_bytes, inodes; /* of /sand */
	uint64_t shm_bytes;
	uint64_t stdin_dev, stdin_ino;
};

/* What a decoder demands of them: above all that nobody is root. */
bool plan_numbers_fit(const struct plan_numbers *n);

struct plan {
	struct plan_numbers n;
	const char *cwd;
	const char *hostname;
	const char *stdin_path; /* host path of fd 0 with PLAN_STDIN_FILE, else "" */
	struct plan_mount *mounts;
	size_t mount_count;
	struct plan_cgroup *cgroups;
	size_t cgroup_count;
	struct plan_egress egress;
	char **argv; /* NULL-terminated */
	size_t argc;
	char **envp; /* NULL-terminated */
	size_t envc;
};

/*
 * Decodes `len` bytes into *ret. The strings of *ret point into `bytes`, which
 * must live as long; the arrays are allocated, plan_release() frees them.
 * Fails with ERR_INTERNAL and the offset on anything unexpected.
 */
NODISCARD int plan_decode(const void *bytes, size_t len, struct plan *ret, struct err *e);
/* The second part: only ret->mounts. */
NODISCARD int plan_decode_more(const void *bytes, size_t len, struct plan *ret, struct err *e);
void plan_release(struct plan *p);

struct buf;
/* Appends the encoded plan to `out` (empty before). */
NODISCARD int plan_encode(const struct plan *p, struct buf *out, struct err *e);
/* The second part. */
NODISCARD int plan_encode_more(const struct plan_mount *mounts, size_t n, struct buf *out,
			       struct err *e);
/* A readable form, one line an item; what `explain` prints. */
NODISCARD int plan_dump(const struct plan *p, struct buf *out, struct err *e);
