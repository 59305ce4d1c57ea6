/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct mode's guard over names that the host runs programs from: what exists
 * is pinned by the plan, what newly appears is moved to quarantine, at once in
 * git directories known at the start and at the end everywhere else.
 * sandglass-protected(7) is its manual.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "policy/request.h"
#include "policy/source.h"
#include "policy/view.h"

struct guard;
struct launch;

/* Masks of one call. */
#define MAX_MASKS 1000u

enum guard_action {
	GUARD_QUARANTINED,    /* moved away */
	GUARD_REPROTECTED,    /* replaced from outside; read-only again */
	GUARD_REPLACED,       /* replaced from outside; only seen at the end */
	GUARD_STUCK,          /* could not be moved: it is still there */
	GUARD_MASK_REAPPLIED, /* a masked file was replaced from outside; masked again */
	GUARD_MASK_LOST,      /* … and could not be masked again */
	GUARD_MASK_MOVED,     /* a masked file has another place now; it stays masked there */
	GUARD_MASK_TRACKED,   /* git tracks a masked file now, as it read inside */
};

struct guard_flag {
	char *path; /* below the source, else absolute */
	enum guard_action action;
	char why[200];
	char *moved_to, *restore; /* NULL if nothing was moved */
};

/* A command of git's that direct mode hampered, or a `.git` file that was not followed. */
struct guard_denial {
	const char *op, *rule;
	char *target; /* below the source, else absolute */
	char *hint;
	unsigned int count;
};

/* What the guard is told; everything outlives it. */
struct guard_order {
	const struct request *req;
	const struct caller *who;
	const struct source *src;
	const struct gitlink *link;
	struct view *view; /* built; pins are added to it */
	bool idmap;        /* mounts of the host's files are id-mapped */
	const char *session;
};

/*
 * After the view is built: scans the source and the writable grants, adds pins to
 * the view, starts to watch. In read-only mode without grants there is nothing to
 * do and *ret is NULL.
 */
NODISCARD int guard_begin(const struct guard_order *o, struct guard **ret, struct err *e);

int guard_fd(const struct guard *g); /* to poll for reading; -1: nothing is watched */
/* The sandbox that pins are put back in; NULL from its end on. */
void guard_attach(struct guard *g, const struct launch *launch);
void guard_step(struct guard *g);  /* something can be read */
void guard_early(struct guard *g); /* every process of the command is gone: looks, moves nothing */
void guard_end(struct guard *g);   /* every process of the sandbox is gone */
void guard_free(struct guard *g);

/* What is hidden: below the source its path there, else absolute. */
struct guard_mask {
	const char *path;
	bool empty; /* a file that reads as empty; else unreadable */
	bool asked; /* by a rule; else by default */
};
bool guard_masked(const struct guard *g, size_t i, struct guard_mask *ret); /* false: no more */
/* What is to be hidden, and shown in spite of it, for the hash of a policy. */
void guard_put_rules(const struct guard *g, struct buf *out);
/* The command has failed: what is masked by default may be why. */
void guard_hint_masks(struct guard *g);

size_t guard_flags(const struct guard *g, const struct guard_flag **ret);
size_t guard_denials(const struct guard *g, const struct guard_denial **ret);
/* What could not be done, for `not_enforced`; NULL at the end. */
const char *guard_lost(const struct guard *g, size_t i);
