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
	pid_t holder;          /* of the id map's user namespace, 0: none */
	pid_t ended;           /* the holder before it, killed, not reaped yet */
	int sync_fd;           /* launcher's and init's ends of a pair; -1 where not needed */
	int user_ns, mount_ns; /* of the sandbox, for the launcher; -1: no pins */
	int *trees;            /* detached mounts the launcher opened (PLAN_ROOT), by mount index */
	int root_fd;           /* the new root while it is built */
	dev_t own_dev[2];      /* devices of our own tmpfs: root and /sand */
	int dir_fd;            /* the target directory used last, -1: none */
	const char *dir_path;
	size_t dir_len;
	bool dir_own;
	int sand_fd;       /* open on /sand, for usage */
	int shm_fd;        /* open on /dev/shm */
	int pty_slave;     /* with PLAN_TTY */
	bool pids_counted; /* by a cgroup */
	uint32_t lost;     /* REPORT_NO_… flags */
	int landlock_abi;
};

/* report.c: to the front. Async-signal-safe. */
void report_send(const struct report *r);
_Noreturn void core_die(enum stage stage, int sys, const char *text);
void report_pty(int master_fd);

/* ns.c */
pid_t ns_clone(const struct core *c);
void ns_write_maps(const struct core *c, pid_t child);
void ns_enter_ids(const struct core *c);
void ns_start_holder(struct core *c);
void ns_end_holder(struct core *c);
void ns_reap_holder(struct core *c);
int ns_make_idmap(struct core *c, uint32_t owner_uid, uint32_t owner_gid);
void ns_set_counters(struct core *c);
void ns_set_up_net(void);
void ns_set_names(const struct core *c);
void ns_new_keyring(void);

/* mount.c, devices.c: build the root and step into it. */
void mount_open_trees(struct core *c);
void mount_build(struct core *c);
void mount_pivot(struct core *c);
int mount_new_fs(const char *fs, const char *const *options, unsigned int attrs);
void mount_attach(struct core *c, int tree, const char *dst, bool is_dir);
void mount_bind_inside(struct core *c, const char *src, const char *dst, bool is_dir,
		       uint64_t attrs);
void mount_mask(struct core *c, const char *dst, bool optional, uint64_t attrs);
int mount_pin(struct core *c, const struct plan_mount *m);
void devices_build(struct core *c);
void devices_build_proc(struct core *c);
void devices_open_pty(struct core *c);

/* cgroup.c: made and removed by the launcher. */
void cgroup_make(struct core *c);
int cgroup_open_v2(const struct core *c); /* -1: none in the plan */
void cgroup_enter(const struct core *c, pid_t child);
void cgroup_finish(const struct core *c, struct report *usage);

/* The command's process, in this order. */
void rlimit_apply(const struct core *c);
void caps_drop(const struct core *c);
int landlock_version(void); /* 0: not there */
void landlock_apply(const struct core *c);
void seccomp_load(const struct core *c);
/* Without namespaces (PLAN_LANDLOCK): the command's own ids, and its parent's end is its own. */
void rung_enter_ids(const struct core *c);

/* stdio.c: a descriptor to use as stdin */
int stdio_reopen_file(const struct core *c);

/* again.c: the launcher waits for init, and puts back pins that the host undid. */
void again_open(struct core *c, pid_t init);
int again_wait(struct core *c, pid_t init, struct rusage *ret);

/* handover.c */
void handover_send(const struct core *c, int stdin_fd);
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
/* No namespaces (danger-full-access, Landlock alone): the launcher itself is the reaper. */
_Noreturn void bare_run(struct core *c);
