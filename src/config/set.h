/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All policies that hold for a call, and what they come to.
 */
#pragma once

#include "config/layer.h"
#include "egress/set.h"
#include "policy/inputs.h"

#define MAX_SET_LAYERS 96
#define MAX_IGNORED 256

struct origin {
	const struct layer *layer; /* NULL: built in */
	struct position at;
};

struct set_path {
	const struct layer_path *p;
	const struct layer *from;
	bool narrow;
};

struct set_env {
	const struct layer_env *v;
	const struct layer *from;
};

struct set_host {
	const struct layer_host *v;
	const struct layer *from;
};

struct set_secret {
	const struct layer_secret *v;
	const struct layer *from;
};

struct set_name {
	const struct layer_name *v;
	const struct layer *from;
};

struct set_check {
	const struct layer_check *v;
	const struct layer *from;
};

/* Protected branches hold beside those of all layers, artifacts where no layer names any. */
extern const char *const default_protected[]; /* NULL-terminated */
extern const char *const default_artifacts[];

enum ignored_why {
	IGNORED_UNTRUSTED,   /* trusting the file would change it */
	IGNORED_FULL_ACCESS, /* never from a project's file */
	IGNORED_NOT_OWN,     /* what is kept for all projects, only the user's own file says */
	IGNORED_TAKEN,       /* a secret of that name is of a file outside of the source */
	IGNORED_WHYS,
};
extern const char *const ignored_whys[IGNORED_WHYS];

/* A value that did not count. */
struct set_ignored {
	struct origin at;
	const char *key;
	enum ignored_why why;
};

struct set {
	struct arena arena;
	struct layer_places places;
	struct findings findings;
	struct layer *layers[MAX_SET_LAYERS]; /* the weakest first; those that count */
	size_t layer_count;
	int mode;   /* MODE_UNSET: no file names one */
	int writes; /* WRITES_UNSET likewise */
	struct origin mode_from, writes_from;
	uint64_t limit[LIMIT_SETTINGS];
	struct origin limit_from[LIMIT_SETTINGS];
	uint32_t narrowed;
	struct set_path *paths;
	size_t path_count;
	struct set_env *env;
	size_t env_count;
	struct set_host *hosts; /* those that count */
	size_t host_count;
	struct set_secret *secrets; /* of one name the highest layer's */
	size_t secret_count;
	struct set_name *protected;
	size_t protected_count;
	struct set_check *checks;
	size_t check_count;
	struct set_name *artifacts;
	size_t artifact_count;
	bool artifacts_named;
	int identity; /* IDENTITY_UNSET: no file names one */
	struct origin identity_from;
	uint64_t kept_ms[KEPTS]; /* LIMIT_UNSET likewise */
	struct origin kept_from[KEPTS];
	struct set_ignored ignored[MAX_IGNORED];
	size_t ignored_count;
};

enum set_flag {
	SET_ONLY_FILE = 1u << 0, /* the file of --policy alone, and not how it would be merged */
};

/*
 * Reads what `in` names, and puts what it found about each file there. -1:
 * s->findings has errors. Release it in any case.
 */
NODISCARD int set_load(struct set *s, struct policy_inputs *in, uid_t uid, unsigned int flags);
void set_release(struct set *s);

/* How long it is kept: what the user's file says, else the default. LIMIT_NONE: for ever. */
uint64_t set_kept_ms(const struct set *s, enum kept what);

/* The form for the front; its memory is the set's. */
NODISCARD int set_compile(struct set *s, const void *key, size_t key_bytes, struct compiled *ret,
			  struct err *e);

/* "user /home/me/…/policy.yaml:3", "profile node:7", "built-in". */
void set_origin(const struct origin *o, struct buf *ret);
extern const char *const layer_names[POLICY_LAYERS];
