/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One policy file, read and checked: typed values, each with its position.
 */
#pragma once

#include "config/arena.h"
#include "config/finding.h"
#include "config/yaml.h"
#include "policy/compiled.h"
#include "policy/request.h"

#define MAX_LAYER_PATHS 512
#define MAX_LAYER_ENV 128
#define MAX_LAYER_EXTENDS 16

struct layer_path {
	const char *written; /* as in the file */
	const char *path; /* absolute, or the pattern as written; NULL: relative, and no source */
	uint8_t access;
	bool pattern;
	struct position at;
};

struct layer_env {
	const char *text; /* NAME, or NAME=VALUE */
	struct position at;
};

struct layer_name {
	const char *name;
	struct position at;
};

struct layer {
	uint8_t layer;    /* enum policy_layer */
	const char *file; /* its path; of a built-in profile "profile NAME" */
	bool profile;     /* built in: believed, and paths of it are wishes */
	bool trusted;     /* else it can only narrow */
	bool inside;      /* lies in the source: whoever works there may write it */
	unsigned char sha256[SHA256_BYTES];
	int mode, writes; /* -1: not named */
	struct position mode_at, writes_at;
	uint64_t limit[LIMIT_SETTINGS]; /* LIMIT_UNSET: not named */
	struct position limit_at[LIMIT_SETTINGS];
	struct layer_path *paths;
	size_t path_count;
	struct layer_env *env;
	size_t env_count;
	struct layer_name extends[MAX_LAYER_EXTENDS];
	size_t extends_count;
};

/* What relative paths and `~` stand for. */
struct layer_places {
	const char *home, *source; /* NULL: none */
};

/* `limit_setting_names` of the file, in the order of enum limit_id, grace last. */
extern const char *const limit_keys[LIMIT_SETTINGS];

/*
 * Reads the text of a file into ret, whose layer, file, profile and trusted are
 * set. -1: `f` has errors; warnings may be there on success too.
 */
NODISCARD int layer_read(struct arena *a, const struct layer_places *places, const char *text,
			 size_t n, struct layer *ret, struct findings *f);
