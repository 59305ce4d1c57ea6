/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of `session` and `gc` share: session.c (most verbs), session_calls.c
 * (calls and logs), gc.c.
 */
#pragma once

#include "cli/session_options.h"
#include "run/job.h"
#include "session/make.h"
#include "store/session.h"

struct session_caller {
	struct caller who;
	char cwd[PATH_TEXT];
};
NODISCARD int session_caller(struct session_caller *c, struct err *e);

struct picked {
	char id[UUID_TEXT];
	struct session_record rec;
	int dir;
	int ctl; /* of its keeper; -1: none */
	bool kept;
};
/* `text` as an operand: see session_find(); @last is of the caller's source. */
NODISCARD int session_pick(const struct caller *who, const char *text, struct picked *ret,
			   struct err *e);
void session_let_go(struct picked *p);

typedef int session_item(void *self, struct picked *p);
/* Each session of the caller, until one gives a status that is not 0. */
int session_each(const struct caller *who, session_item *item, void *self);

/* Puts what was changed and not reviewed into artifacts/<id>, by `sandglass export`. */
int session_keep_changes(const char *id);

int session_tell_made(struct made *m, bool json);
int session_new_for_run(int argc, char **argv);
int session_calls(const struct session_caller *c, const struct session_options *o, char **operands);
int session_net(const struct session_caller *c, const struct session_options *o, char **operands);
int session_logs(const struct session_caller *c, const struct session_options *o, char **operands);

/* The rules about the network that hold in a session: an array, null if they cannot be read. */
void session_net_json(struct picked *p, struct json *o);
/* The same for people, a line each. */
void session_net_lines(struct picked *p, struct buf *out);

/* Two members: the names of its secrets, never a value, and whether requests are inspected. */
void session_secrets_json(struct picked *p, struct json *o);
/* The same for people; nothing where there is nothing of it. */
void session_secrets_lines(struct picked *p, struct buf *out);

/* A file of a session whole, appended; false: it is not there, or no file. */
bool session_add_file(int dir, const char *path, struct buf *out);
