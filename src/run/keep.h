/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session's keeper is asked, over the SOCK_SEQPACKET socket in the session's
 * directory. Both ends are the same user's programs of ours; a message of another
 * size or version is answered by the end of the connection.
 *
 * A connection that has begun a call is that call: its end is the call's end for
 * the keeper, and the keeper's end is the end of the call.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"
#include "egress/event.h"
#include "launch/launch.h"

#define KEEP_VERSION 4u
/* Pid and network namespace, user namespace, tree, authority: those that there are. */
#define KEEP_FDS 5

enum keep_kind {
	KEEP_STATUS,
	KEEP_BEGIN, /* a call; a list of masks comes along (session/masks.h), and rules if there are any */
	KEEP_INIT,  /* its first process, as a pidfd; no answer */
	KEEP_RENEW, /* value: ms from now */
	KEEP_PAUSE,
	KEEP_RESUME,
	KEEP_STOP, /* of the call named */
	KEEP_RESET,
	KEEP_DESTROY, /* value: 1, unreviewed changes are thrown away */
	KEEP_END,     /* from the keeper: the call has to end, and why */
	KEEP_HOLD, /* until the connection ends no call begins; BUSY if some run (see KEEP_FREEZE) */
	KEEP_WARN, /* from the keeper: it is near a limit; flags say which */
	KEEP_EGRESS, /* from the keeper, a struct keep_event; asked: what the proxy has said is sent first */
	KEEP_NET, /* other rules: two sealed files, the session's own ones and what is added */
	/*
	 * Two sealed files, of struct secret_files (run/secretkeep.h): taken if it has none.
	 * The answer has the second of those that it keeps, if there are any.
	 */
	KEEP_SECRETS,
	KEEP_KINDS,
};

enum keep_flag {
	KEEP_HAS_USER = 1u << 0,
	KEEP_HAS_TREE = 1u << 1,
	KEEP_DETACHED = 1u << 2,  /* of KEEP_BEGIN */
	KEEP_NEAR_DISK = 1u << 4, /* of KEEP_WARN */
	KEEP_NEAR_INODES = 1u << 5,
	KEEP_NEAR_ALL = 1u << 6, /* all sessions of the user together */
	KEEP_FREEZE = 1u << 3,   /* of KEEP_HOLD: calls that run stand still, where that can be */
	KEEP_ANEW = 1u << 8,     /* of KEEP_NET: what was added before goes */
	KEEP_NO_REDIRECT = 1u << 7, /* of the answer to KEEP_BEGIN: as REPORT_NO_REDIRECT */
	KEEP_HAS_AUTHORITY =
		1u << 9, /* likewise: the certificate of inspection, as a sealed file */
};

enum keep_state { KEEP_ACTIVE, KEEP_PAUSED, KEEP_ENDING };

struct keep_request {
	uint32_t version, kind;
	uint32_t flags, pad;
	uint64_t value;
	char call[UUID_TEXT];
	char rest[3];
};

struct keep_answer {
	uint32_t version, kind;
	uint32_t flags;
	uint32_t state;             /* enum keep_state */
	uint32_t code;              /* enum err_code; ERR_NONE: done */
	uint32_t calls;             /* that run now */
	uint64_t lease_ms, most_ms; /* that are left */
	uint64_t bytes, inodes;     /* of the session, when it was last looked at */
	char cgroup[512];           /* below which the call's leaf goes; "" none */
	char message[ERR_MSG_MAX], hint[ERR_HINT_MAX];
};

/* What the session's proxy has said, to each call that runs. Its end is EGRESS_DIED. */
struct keep_event {
	uint32_t version, kind; /* KEEP_EGRESS */
	struct egress_event v;
};

/* The socket of a session that is kept; -1: NOT_FOUND, nobody keeps it. */
NODISCARD int keep_connect(int dir, int *ret, struct err *e);

/*
 * Asks and waits for the answer; `fd` goes along (-1: none). What the keeper refuses
 * is an error with its code. Descriptors that come with the answer are in `fds`
 * (KEEP_FDS of them, -1 where there is none; NULL: none are expected).
 */
NODISCARD int keep_ask(int ctl, const struct keep_request *q, int fd, struct keep_answer *ret,
		       int *fds, struct err *e);
/* The same with n descriptors. */
NODISCARD int keep_ask_with(int ctl, const struct keep_request *q, const int *out, size_t n,
			    struct keep_answer *ret, int *fds, struct err *e);
/* The same without an answer. */
NODISCARD int keep_tell(int ctl, const struct keep_request *q, int fd, struct err *e);

/* One message with descriptors; what both ends use. -1 with errno; recv: bytes, 0 at the end. */
int keep_send(int ctl, const void *p, size_t n, const int *fds, size_t count);
long keep_receive(int ctl, void *p, size_t n, int *fds, size_t count, int flags);
