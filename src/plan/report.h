/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What front and core say to each other over one SOCK_SEQPACKET pair while a
 * command runs. Fixed-size messages; a message of another size is ignored.
 */
#pragma once

#include <stdint.h>

#include "plan/plan.h"

/* Descriptors that core finds open when it starts. */
enum core_fd {
	CORE_FD_PLAN = 3, /* sealed memfd */
	CORE_FD_CTL = 4,  /* SOCK_SEQPACKET: reports out, orders in; end of file ends the tree */
	CORE_FD_UID = 5,  /* with PLAN_ROOT: holds the lock on the session's uid */
	CORE_FD_END = 6,
};

#define REPORT_TEXT_MAX 480

/* Where something failed; the front turns it into a code and a hint. */
enum stage {
	STAGE_PLAN,
	STAGE_PARENT,
	STAGE_CGROUP,
	STAGE_IDMAP,
	STAGE_CLONE,
	STAGE_MAPS,
	STAGE_IDS,
	STAGE_BIND,  /* a path of the view: text is the path */
	STAGE_IDENT, /* a path is not the file it was */
	STAGE_TARGET,
	STAGE_ROOT,
	STAGE_PROC,
	STAGE_DEV,
	STAGE_SAND,
	STAGE_MASK,
	STAGE_PIVOT,
	STAGE_NET,
	STAGE_EGRESS,
	STAGE_UTS,
	STAGE_KEYRING,
	STAGE_CAPS,
	STAGE_RLIMIT,
	STAGE_STDIN,
	STAGE_PTY,
	STAGE_CWD,
	STAGE_LANDLOCK,
	STAGE_SECCOMP,
	STAGE_FORK,
	STAGE_EXEC,
	STAGES,
};

enum report_kind {
	REPORT_FAIL,  /* stage, sys, text: nothing was run */
	REPORT_PTY,   /* carries the master of the pty */
	REPORT_EXEC,  /* sys: execve failed; text is the path tried */
	REPORT_EXIT,  /* status of wait(2), flags, usage */
	REPORT_USAGE, /* not sent: usage as seen from outside */
	REPORT_STOP,  /* with PLAN_TTY: a signal, `status`, has stopped the command */
	REPORT_EGRESS, /* carries `status` sockets, a struct report_socket in text for each; 0: all */
};

enum report_flag {
	REPORT_WALL = 1u << 0,   /* the wall time was over */
	REPORT_CPU = 1u << 1,    /* the cpu time was over */
	REPORT_MEMORY = 1u << 2, /* the memory limit was hit (its counter moved) */
	REPORT_PIDS = 1u << 3,
	REPORT_DISK = 1u << 4,
	REPORT_INODES = 1u << 5,
	REPORT_KILLED = 1u << 6,    /* the grace was over too: KILL */
	REPORT_CANCELLED = 1u << 7, /* ended by an order */
	REPORT_NO_LANDLOCK = 1u << 8,
	REPORT_NO_SYSCTL = 1u << 9,  /* per-user counters could not be capped */
	REPORT_INIT_DIED = 1u << 10, /* status is init's, the command's is not known */
	REPORT_ALONE = 1u << 11, /* with REPORT_EXIT: no process of the sandbox is left but init */
	REPORT_NO_REDIRECT =
		1u << 12,         /* this kernel has no nftables: proxies are to be asked for */
	REPORT_NO_WAY = 1u << 13, /* a name or an address was looked for where no way leads out */
};

struct report {
	uint32_t kind;
	uint32_t stage;
	int32_t sys;
	int32_t status;
	uint32_t flags;
	uint32_t landlock; /* with REPORT_EXIT: ABI in force, 0 none */
	uint64_t cpu_ms;
	uint64_t peak_memory_bytes;
	uint64_t processes;
	uint64_t disk_bytes;
	uint64_t inodes;
	char text[REPORT_TEXT_MAX];
};

/* What the sockets of REPORT_EGRESS are, and in which order core makes them. */
enum report_socket_kind {
	SOCKET_DNS_UDP, /* 127.0.0.53, as all but the last two */
	SOCKET_DNS_TCP,
	SOCKET_HTTP,
	SOCKET_SOCKS,
	SOCKET_REDIRECT4, /* not there with REPORT_NO_REDIRECT */
	SOCKET_REDIRECT6, /* [::1]; likewise, and not without IPv6 */
	SOCKET_LOCAL,     /* 127.0.0.1 and [::1] at a port of the plan's */
	SOCKET_KINDS,
};

struct report_socket {
	uint32_t kind;
	uint32_t port;
};

#define MAX_REPORT_SOCKETS 32 /* in one report */

enum order_kind {
	ORDER_SIGNAL, /* value: signal for the command's process */
	ORDER_END,    /* value: signal for the whole tree; KILL after the grace */
	ORDER_KILL,   /* at once */
	ORDER_STOP,   /* stop the whole tree */
	ORDER_CONT,   /* and let it go on */
	ORDER_PLAN,   /* no namespaces, first of all: the plan is complete; value: PLAN_VERSION */
	ORDER_TTY,    /* the pty of REPORT_PTY is as it should be: the command may start */
	ORDER_EGRESS, /* likewise: somebody listens on the sockets of REPORT_EGRESS */
};

struct order {
	uint32_t kind;
	uint32_t value;
};

/*
 * To init, first of all: its ids are mapped, and how large things are. With that it
 * builds what every sandbox has, while the front works out the plan, whose numbers
 * must then say the same.
 */
struct start {
	uint32_t version; /* PLAN_VERSION */
	uint32_t pad;
	struct plan_numbers n;
};
