/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One policy file, read and checked: typed values, each with its position.
 */
#pragma once

#include "config/arena.h"
#include "config/finding.h"
#include "egress/rule.h"
#include "policy/compiled.h"
#include "policy/request.h"

#define MAX_LAYER_PATHS 512
#define MAX_LAYER_ENV 128
#define MAX_LAYER_HOSTS 512 /* of all lists of network */
#define MAX_LAYER_EXTENDS 16
#define MAX_LAYER_BRANCHES 64 /* of promotion.protected */
#define MAX_LAYER_CHECKS 16
#define MAX_CHECK_ARGS 256
#define MAX_CHECK_NAME 64 /* bytes */
#define CHECK_TIMEOUT_MS (UINT64_C(10) * 60 * 1000)
#define MAX_LAYER_ARTIFACTS 64

/* What retention is of. */
enum kept { KEPT_AUDIT, KEPT_LOGS, KEPT_ARTIFACTS, KEPTS };
extern const char *const kept_keys[KEPTS];

enum identity { IDENTITY_PLAIN, IDENTITY_PSEUDONYM };
#define IDENTITY_UNSET (-1)
extern const char *const identity_names[]; /* NULL-terminated */

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

/* One rule about the network. */
struct layer_host {
	const char *text;    /* as in the file */
	uint8_t list;        /* enum egress_list */
	unsigned int number; /* in that list of this file, from 0 */
	struct position at;
};

/* One of `secrets`. */
struct layer_secret {
	struct secret_rule rule; /* without an origin */
	struct position at;
};

struct layer_name {
	const char *name;
	struct position at;
};

/* One of promotion.checks. */
struct layer_check {
	const char *name;
	const char **run; /* argv, NULL-terminated */
	size_t run_count;
	uint64_t timeout_ms;
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
	struct layer_host *hosts;
	size_t host_count;
	struct layer_secret *secrets;
	size_t secret_count;
	struct layer_name extends[MAX_LAYER_EXTENDS];
	size_t extends_count;
	struct layer_name *protected;
	size_t protected_count;
	struct layer_check *checks;
	size_t check_count;
	struct layer_name *artifacts;
	size_t artifact_count;
	bool artifacts_named; /* also if the list is empty */
	int identity;         /* enum identity; IDENTITY_UNSET: not named */
	struct position identity_at;
	uint64_t kept_ms[KEPTS]; /* LIMIT_UNSET: not named */
	struct position kept_at[KEPTS];
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
