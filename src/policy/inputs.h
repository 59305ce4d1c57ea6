/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which policy files there are, and what they are at this moment: the key of
 * what was compiled from them. Stats only; nothing is opened.
 */
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "policy/request.h"
#include "policy/source.h"

enum policy_input_id {
	INPUT_USER,
	INPUT_PROJECT,
	INPUT_FILE,    /* --policy */
	INPUT_TRUST,   /* the directory of records */
	INPUT_PROGRAM, /* sandglass-main: it holds the profiles */
	POLICY_INPUTS,
};

struct policy_input {
	char path[PATH_TEXT]; /* "": not asked about */
	bool there;
	int sys; /* there, but stat(2) failed with this; 0: it did not */
	struct stat st;
};

/* Where to look: all of it comes from the caller, none of it from a workspace. */
struct policy_where {
	uid_t uid;
	const char *home, *cwd;
	char state[PATH_TEXT]; /* $SANDGLASS_HOME */
	char user[PATH_TEXT];  /* the user's file */
};

struct policy_inputs {
	struct policy_input in[POLICY_INPUTS];
	uid_t uid;
	const char *home, *state, *source; /* source NULL: none */
	const struct strlist *profiles;
};

void policy_where(const struct caller *who, struct policy_where *ret);

/*
 * Looks. Three stats where there is no policy. `file` is that of --policy or
 * NULL. UNSUPPORTED if the administrator's files exist, which this version does
 * not read.
 */
NODISCARD int policy_inputs_find(const struct policy_where *where, const struct source *src,
				 const char *file, const struct strlist *profiles,
				 struct policy_inputs *ret, struct err *e);

/* Something has to be read. */
bool policy_inputs_any(const struct policy_inputs *p);

/* Fills in what only counts if something has to be read: trust and program. */
void policy_inputs_more(struct policy_inputs *p, const char *program);

/* Takes the place of what stat(2) said. */
void policy_input_set(struct policy_input *in, const struct stat *st);

/* All of it as bytes: equal bytes, equal inputs. */
NODISCARD int policy_inputs_key(const struct policy_inputs *p, struct buf *ret, struct err *e);

/*
 * No input was changed in the last two seconds, so that a later change cannot
 * have the same times (the kernel's clock for files is coarse).
 */
bool policy_inputs_settled(const struct policy_inputs *p, int64_t now_ms);
