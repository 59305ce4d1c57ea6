/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stages of core share. A stage either returns or ends the process
 * through core_die(), which reports stage, errno and a text to the front: half
 * a boundary is never handed to a command.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "plan/plan.h"
#include "plan/report.h"

struct core {
	const struct plan *p;
	const struct plan *more; /* its second part: mounts only */
	int *trees;              /* detached mounts that root opened (PLAN_ROOT), by mount index */
	int plan_fd;             /* the part of the plan that was handed over last */
	int net_fd;              /* the network namespace */
	pid_t net_maker;         /* -1: it is ours already */
	bool has_egress;         /* PLAN_EGRESS, before the plan is there */
	int root_fd;             /* the new root while it is built */
	dev_t own_dev[3]; /* of the root, of /sand, of the last hidden directory with a way */
	int dir_fd;       /* the target directory used last, -1: none */
	const char *dir_path;
	size_t dir_len;
	bool dir_own;
	int sand_fd;           /* open on /sand, for usage */
	int shm_fd;            /* open on /dev/shm */
	int pts_fd, mqueue_fd; /* not attached yet; -1: there is no such file system */
	int pty_slave;         /* with PLAN_TTY */
	bool pids_counted;     /* by a cgroup */
	uint32_t lost;         /* REPORT_NO_… flags */
	int landlock_abi;
};

/* report.c: to the front. Async-signal-safe. */
void report_send(const struct report *r);
_Noreturn void core_die(enum stage stage, int sys, const char *text);
/* With n descriptors, at most MAX_REPORT_SOCKETS. */
void report_fds(const struct report *r, const int *fds, size_t n);

/* ns.c */
void ns_enter_ids(const struct core *c);
void ns_set_counters(struct core *c);
/* Makes the network namespace meanwhile; ns_end_net() enters it. */
void ns_begin_net(struct core *c);
void ns_end_net(struct core *c);
void ns_begin_names(void); /* cgroup and ipc namespaces */
void ns_set_names(const struct core *c);
void ns_new_keyring(void);

/*
 * wayout.c: with PLAN_EGRESS, in our network namespace while we have our capabilities:
 * what needs no plan (the first redirect of a host takes milliseconds), and the rest.
 */
void wayout_begin(struct core *c);
void wayout_open(struct core *c);
/* For a network in which both were called: what the plan names, and nothing else. */
void wayout_more(struct core *c);

/* mount.c, devices.c: build the root and step into it. */
/* Before the plan is there: what every sandbox has. Not attached yet, where it is no part of the system. */
void mount_begin(struct core *c);
void mount_build(struct core *c);
void mount_build_more(struct core *c);
void mount_pivot(struct core *c);
int mount_new_fs(const char *fs, const char *const *options, unsigned int attrs);
bool mount_bind_plain(const char *src, const char *dst);
void mount_attach(struct core *c, int tree, const char *dst, bool is_dir);
void mount_bind_inside(struct core *c, const char *src, const char *dst, bool is_dir,
		       uint64_t attrs);
int mount_mask(struct core *c, const char *dst, uint32_t flags, uint64_t attrs);
int mount_mask_again(struct core *c, const struct plan_mount *m);
int mount_pin(struct core *c, const struct plan_mount *m);
void devices_begin(struct core *c);
void devices_build(struct core *c);
void devices_build_proc(struct core *c);
void devices_open_pty(struct core *c);

/* The command's process, in this order. */
void rlimit_apply(const struct core *c);
void caps_drop(const struct core *c);
int landlock_version(void); /* 0: not there */
void landlock_apply(const struct core *c);
void seccomp_load(const struct core *c);
/* Without namespaces (PLAN_LANDLOCK): the command's own ids, and its parent's end is its own. */
void rung_enter_ids(const struct core *c);

/* handover.c: waits for the front's next part of the plan. False: the front is gone. */
bool handover_receive(struct core *c);

/* tool.c: the child of init that becomes the command. */
_Noreturn void tool_run(const struct core *c);

/* watch.c: limits that the kernel does not hold for us. */
struct watch {
	uint64_t next_ms;
	uint64_t distance_ms;
	uint64_t peak_bytes;
	uint64_t cpu_ms;
	uint64_t tasks;
};
#define WATCH_FIRST_MS 10u /* doubles from here, so that short commands are seen too */
/* Over init's own /proc, or over the descendants where no namespace holds them. */
void watch_sample(const struct core *c, struct watch *w, uint64_t now_ms);
bool watch_needed(const struct core *c);
/* User and system time, in milliseconds. */
uint64_t watch_cpu_ms(const struct rusage *u);

/* init.c: pid 1 of the sandbox. */
_Noreturn void init_run(struct core *c);
/* No namespaces (danger-full-access, Landlock alone): core itself is the reaper. */
_Noreturn void bare_run(struct core *c);
