/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one policy file, if it is one that may be read.
 */
#pragma once

#include <sys/stat.h>

#include "base/err.h"
#include "base/sha256.h"
#include "config/arena.h"

enum file_rule {
	FILE_ANY = 0,
	FILE_OWN = 1u << 0,    /* the caller's or root's, and nobody else may write it */
	FILE_INSIDE = 1u << 1, /* no directory on the way from `base` to it is a link */
};

struct policy_file {
	struct stat st; /* before and after reading it was this */
	const char *text;
	size_t n;
	unsigned char sha256[SHA256_BYTES];
};

/*
 * Refused before a byte is read: what is no regular file, a link, larger than
 * MAX_YAML_BYTES, or against `rules`. CONFIG_INVALID says why, with errno where
 * it could not be opened; CONFLICT if it changed while it was read. ret->st is
 * set as soon as it is known. `base` is only used with FILE_INSIDE.
 */
NODISCARD int policy_file_read(struct arena *a, const char *base, const char *path,
			       unsigned int rules, uid_t uid, struct policy_file *ret,
			       struct err *e);
