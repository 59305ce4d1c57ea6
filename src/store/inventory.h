/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the protected names of a tree, and those to be masked, are: its directories with the times that
 * they had when they were read, so that the next look reads again only what has
 * changed. What a command could forge is not trusted: a directory stands for its
 * entries only while inode, mtime and ctime are the same, on file systems whose
 * times can be trusted, and if it was read at least two seconds after its last
 * change (a clock of the kernel is coarser than its events).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "policy/protect.h"

#define MAX_INVENTORY_DIRS 1000000u
#define MAX_INVENTORY_FINDS 65536u
#define MAX_INVENTORY_TIPS 65536u
#define MAX_INVENTORY_INSIDE 16384u /* with more no commit counts as trusted any more */
#define MAX_INVENTORY_HITS 65536u
#define MAX_INVENTORY_PATTERN_BYTES 65536u
#define MAX_INVENTORY_TEXT (256u << 20)
#define INVENTORY_NONE UINT32_MAX

struct inventory_dir {
	uint64_t dev, ino;
	int64_t mtime_ns, ctime_ns, read_ns; /* since 1970; read_ns 0: not to be trusted */
	uint32_t parent;                     /* INVENTORY_NONE: the root */
	uint32_t name;                       /* in `text`; the root's is its own last name */
	uint32_t size;                       /* directories of its subtree, itself included */
	uint32_t find, finds;                /* in `finds` */
	uint32_t tip, tips;                  /* in `tips` */
	uint32_t hit, hits;                  /* in `hits` */
	uint8_t place, given, role, pad;     /* role: given, or by its layout */
};

struct inventory_find {
	uint64_t dev, ino;
	uint32_t dir;
	uint32_t name;
	uint8_t class, type; /* enum protect_class; DT_… */
	uint8_t pad[6];
};

/* A name that is to be masked, or may be. */
struct inventory_hit {
	uint64_t dev, ino;
	uint64_t
		bits; /* enum inventory_bit, and INVENTORY_PATTERN(i) of each pattern that it matches */
	uint32_t dir;
	uint32_t name;
	uint8_t type; /* DT_… */
	uint8_t pad[7];
};

enum inventory_bit {
	INVENTORY_DOTENV = 1u << 0, /* policy/maskname.h */
	INVENTORY_SECRET = 1u << 1,
	INVENTORY_SNIFF = 1u << 2,
	INVENTORY_WANTED = 1u << 3, /* by its inode */
};
#define MAX_INVENTORY_PATTERNS 56u
#define INVENTORY_PATTERN(i) ((uint64_t)1 << (8 + (i)))

/* An object's name: where a ref pointed to. */
struct inventory_oid {
	uint8_t bytes; /* 20 or 32 */
	uint8_t oid[32];
};

/* Directories in order of a walk, each before what lies in it. */
struct inventory {
	struct inventory_dir *dirs;
	struct inventory_find *finds;
	struct inventory_hit *hits;
	struct inventory_oid *tips;   /* of loose refs */
	struct inventory_oid *inside; /* tips that commands in sandboxes have made */
	char *text;
	char *patterns; /* those that hits were looked for by: each ended by NUL */
	uint32_t dir_count, find_count, hit_count, tip_count, inside_count;
	uint32_t text_count, pattern_count, pattern_bytes;
	uint32_t read;    /* directories that this scan had to read; not saved */
	bool full;        /* a limit was hit: the list is not complete */
	bool hits_full;   /* that of hits: they are not */
	bool inside_full; /* not all tips that commands made are in `inside` */
};

enum inventory_flag {
	INVENTORY_FORCE =
		1u << 0, /* directories of ours without permission are opened up to be read */
};

/* What is to be masked: the same for all roots of a call. */
struct inventory_ask {
	const char *const *pattern; /* "**" patterns and absolute ones, pattern_split() */
	uint32_t patterns;          /* at most MAX_INVENTORY_PATTERNS */
	const uint64_t *ino;        /* ascending: entries with these numbers are hits, too */
	size_t inos;
	bool all; /* nothing is trusted: an inode may have names where nothing has changed */
};

/* What is scanned. */
struct inventory_root {
	int fd; /* open directory */
	struct protect_dir kind;
	const char *name;                /* its own last name */
	const char *path;                /* absolute, what patterns are compared with */
	const struct inventory_ask *ask; /* NULL: nothing by pattern or number */
};

/*
 * Lists what lies below a directory. `old` (or NULL) is what an earlier scan of
 * the same directory found. Links are not followed; mounts are walked. With
 * ret_same a tree that is as it was is not listed again: *ret is empty then.
 * ERR_INTERNAL without memory.
 */
NODISCARD int inventory_scan(const struct inventory_root *root, const struct inventory *old,
			     unsigned int flags, struct inventory *ret, bool *ret_same,
			     struct err *e);
void inventory_release(struct inventory *inv);

/* A find's path below the root ("a/.git/config"), appended to `out`. */
void inventory_path(const struct inventory *inv, const struct inventory_find *find,
		    struct buf *out);
/* A directory's path below the root, "" for the root itself, appended. */
void inventory_dir_path(const struct inventory *inv, uint32_t dir, struct buf *out);
const char *inventory_name(const struct inventory *inv, const struct inventory_find *find);
/* The bits that a pattern has in hits of this inventory; 0: they were not looked for by it. */
uint64_t inventory_pattern(const struct inventory *inv, const char *text);

/* An object's name in hex at the start of a line, 40 or 64 digits. */
bool inventory_oid_parse(const char *text, size_t n, struct inventory_oid *ret);

/* Remembers that a command made this tip. False: out of memory. */
bool inventory_add_inside(struct inventory *inv, const struct inventory_oid *oid);

/*
 * The file that keeps an inventory: of our own format, for this machine. A file
 * that is not there, or that is not as it should be, is an empty inventory:
 * everything is read anew. False: none was there.
 */
bool inventory_load(int dir, const char *file, struct inventory *ret);
/* From bytes; what load does. For tests. */
bool inventory_decode(const void *bytes, size_t n, struct inventory *ret);
/* Replaces the file at once. Errors are not told: the next scan reads more. */
void inventory_save(int dir, const char *file, const struct inventory *inv);
