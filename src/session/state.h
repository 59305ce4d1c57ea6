/* SPDX-License-Identifier: Apache-2.0 */
/*
 * $SANDGLASS_HOME/state.db: which ids were ever used, and what sessions live. SQLite in
 * WAL mode, so it has to be on a file system of this machine. What a session is, its
 * directory says (store/session.h); here is what has to be decided by one for all: that an
 * id is handed out once, that a name has one bearer, how many there are.
 *
 * A struct state is not to be used, nor closed, in a child of the process that opened it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"
#include "policy/request.h"
#include "store/session.h"

#define STATE_VERSION 1        /* of the schema: `PRAGMA user_version` */
#define MAX_LIVING_SESSIONS 64 /* of one user */
#define STATE_NEVER INT64_MAX  /* a lease without end */

enum session_state {
	SESSION_CREATED,   /* id and name are taken, there is no keeper yet */
	SESSION_ACTIVE,    /* a keeper holds it */
	SESSION_PAUSED,    /* frozen, the lease does not run */
	SESSION_EXPIRED,   /* the lease is over; being kept as an artifact and destroyed */
	SESSION_UNCLEAN,   /* its keeper was killed, or the machine stopped */
	SESSION_DESTROYED, /* what is left is being removed */
	SESSION_STATES,
};
extern const char *const session_state_names[]; /* "created", "active", … */

struct state;

struct state_session {
	char id[UUID_TEXT];
	char name[SESSION_NAME_MAX + 1]; /* "" none */
	char source[PATH_TEXT];          /* "" none */
	uint32_t caller_uid;
	int64_t created_ns, lease_end_ns; /* since 1970 */
	enum session_state state;
	uint64_t bytes, inodes; /* as measured last */
};

struct state_list {
	struct state_session *v; /* the oldest first */
	size_t n;
};

/*
 * Opens, and makes, migrates or mends where that is due. A file system of the network:
 * UNSUPPORTED with a hint; a database of a newer version: UNSUPPORTED; one that is damaged is put
 * aside as state.db.corrupt and made anew from the sessions' records (state_note() says it).
 */
NODISCARD int state_open(const struct caller *who, struct state **ret, struct err *e);
void state_close(struct state *s);
/* What happened to the database that a person should know; NULL if nothing did. */
const char *state_note(const struct state *s);

/*
 * Takes an id, for good: `wanted`, or a random one if it is NULL. Of `as` name, source, caller_uid,
 * created_ns and lease_end_ns count; the state is SESSION_CREATED. Durable on return.
 * CONFLICT: the id was used before, or a living session has the name. BUSY: the user has
 * MAX_LIVING_SESSIONS. CONFIG_INVALID: `wanted` is no lower-case UUID.
 */
NODISCARD int state_new_id(struct state *s, const char *wanted, const struct state_session *as,
			   char ret_id[UUID_TEXT], struct err *e);
/* NOT_FOUND if it does not live. */
NODISCARD int state_set(struct state *s, const char *id, enum session_state state,
			int64_t lease_end_ns, struct err *e);
NODISCARD int state_set_usage(struct state *s, const char *id, uint64_t bytes, uint64_t inodes,
			      struct err *e);
/* The living ones. */
NODISCARD int state_list(struct state *s, struct state_list *ret, struct err *e);
void state_list_release(struct state_list *l);
/* It lives no more; the id stays used. Durable on return. Not to have lived is no error. */
NODISCARD int state_gone(struct state *s, const char *id, struct err *e);

/* Whether a file system is one of the network: its magic number, and its type in mountinfo. */
bool state_fs_is_network(unsigned long magic, const char *type);
