/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows about calls that a sandbox has no use for. Arguments are such that a
 * kernel which gets to see them fails (bad pointers, bad descriptors) or makes
 * something that ends with the row: any answer but a refusal means that the
 * kernel's own code was reached.
 */
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/base.h"
#include "probe/sys.h"

#define X32_BIT 0x40000000L

static void row_io_uring(struct finding *f)
{
	struct io_uring_params p = {0};
	long fd = syscall(SYS_io_uring_setup, 4, &p);
	tried(f, "io_uring_setup", fd, BY_FILTER);
	if (fd >= 0) {
		note(f, "a ring with features %#x", p.features);
		(void)close((int)fd);
	}
	tried(f, "io_uring_enter", syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0), BY_FILTER);
	tried(f, "io_uring_register", syscall(SYS_io_uring_register, -1, 0, NULL, 0), BY_FILTER);
}

static void one_unknown(struct finding *f, void *arg)
{
	long nr = *(const long *)arg;
	long rc = syscall(nr, -1L, -1L, -1L, -1L, -1L, -1L);
	char what[MAX_WHAT];
	(void)snprintf(what, sizeof(what), "%ld", nr);
	tried(f, what, rc, BY_FILTER);
}

static void row_unknown(struct finding *f)
{
	for (long nr = NR_unknown_first; nr <= NR_unknown_last; nr++)
		guarded(f, "unknown", one_unknown, &nr);
	static const long far[] = {1000, 4095, 0x10000, 0x7fffffff};
	for (size_t i = 0; i < ARRAY_LEN(far); i++) {
		long nr = far[i];
		guarded(f, "far", one_unknown, &nr);
	}
}

static void row_userfaultfd(struct finding *f)
{
	long fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	tried(f, "userfaultfd", fd, BY_FILTER);
	if (fd >= 0)
		(void)close((int)fd);
	tried(f, "userfaultfd kernel", syscall(SYS_userfaultfd, O_CLOEXEC), BY_FILTER);
	AUTO_FD int dev = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	tried(f, "/dev/userfaultfd", dev, BY_FILE);
	AUTO_FD int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	tried(f, "/dev/fuse", fuse, BY_FILE);
}

/* Harmless with these arguments also for who may use them. */
static const struct {
	const char *name;
	long nr, a, b, c, d, e;
} surface[] = {
	{"bpf", SYS_bpf, 0, 0, 0, 0, 0},
	{"perf_event_open", SYS_perf_event_open, 0, 0, -1, -1, 0},
	{"kexec_load", SYS_kexec_load, 0, 1 << 20, 0, 0, 0}, /* more segments than there may be */
#ifdef SYS_kexec_file_load
	{"kexec_file_load", SYS_kexec_file_load, -1, -1, 0, 0, 0},
#endif
	{"init_module", SYS_init_module, 0, 0, 0, 0, 0},
	{"finit_module", SYS_finit_module, -1, 0, 0, 0, 0},
	{"delete_module", SYS_delete_module, 0, 0, 0, 0, 0},
	{"add_key", SYS_add_key, 0, 0, 0, 0, 0},
	{"request_key", SYS_request_key, 0, 0, 0, 0, 0},
	{"keyctl", SYS_keyctl, 0, -3, 0, 0, 0},
	{"quotactl", SYS_quotactl, 0, 0, 0, 0, 0},
	{"quotactl_fd", NR_quotactl_fd, -1, 0, 0, 0, 0},
	{"syslog", SYS_syslog, 10, 0, 0, 0, 0}, /* SYSLOG_ACTION_SIZE_BUFFER */
	{"syslog read", SYS_syslog, 3, 0, 0, 0, 0},
	{"swapoff", SYS_swapoff, 0, 0, 0, 0, 0},
	{"swapon", SYS_swapon, 0, 0, 0, 0, 0},
	{"acct", SYS_acct, -1, 0, 0, 0, 0},    /* not NULL, which would turn it off */
	{"reboot", SYS_reboot, 0, 0, 0, 0, 0}, /* wrong magic numbers */
	{"settimeofday", SYS_settimeofday, -1, 0, 0, 0, 0},
	{"clock_settime", SYS_clock_settime, 0, -1, 0, 0, 0},
	{"sethostname", SYS_sethostname, 0, -1, 0, 0, 0},
	{"setdomainname", SYS_setdomainname, 0, -1, 0, 0, 0},
	{"fanotify_init", SYS_fanotify_init, -1, 0, 0, 0, 0},
	{"lookup_dcookie", SYS_lookup_dcookie, 0, 0, 0, 0, 0},
	{"move_pages", SYS_move_pages, 1, 0, 0, 0, 0},
	{"migrate_pages", SYS_migrate_pages, 1, 0, 0, 0, 0},
#ifdef __x86_64__
	{"iopl", SYS_iopl, 3, 0, 0, 0, 0},
	{"ioperm", SYS_ioperm, 0x80, 1, 1, 0, 0},
	{"uselib", SYS_uselib, 0, 0, 0, 0, 0},
	{"_sysctl", SYS__sysctl, 0, 0, 0, 0, 0},
#endif
};

struct surface_call {
	size_t i;
};

static void one_surface(struct finding *f, void *arg)
{
	size_t i = ((const struct surface_call *)arg)->i;
	tried(f, surface[i].name,
	      syscall(surface[i].nr, surface[i].a, surface[i].b, surface[i].c, surface[i].d,
		      surface[i].e, 0L),
	      BY_FILTER);
}

static void row_surface(struct finding *f)
{
	for (size_t i = 0; i < ARRAY_LEN(surface); i++) {
		struct surface_call c = {i};
		guarded(f, surface[i].name, one_surface, &c);
	}
}

static void row_bpf(struct finding *f)
{
	union bpf_attr attr = {0};
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = 4;
	attr.value_size = 4;
	attr.max_entries = 1;
	long fd = syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	tried(f, "BPF_MAP_CREATE", fd, BY_FILTER);
	union bpf_attr get = {0};
	get.pathname = (uint64_t)(uintptr_t) "/sys/fs/bpf/sandglass-probe";
	tried(f, "BPF_OBJ_GET", syscall(SYS_bpf, BPF_OBJ_GET, &get, sizeof(get)), BY_FILTER);
	static const struct bpf_insn code[] = {
		{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
		{BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
	};
	union bpf_attr load = {0};
	load.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	load.insns = (uint64_t)(uintptr_t)code;
	load.insn_cnt = ARRAY_LEN(code);
	load.license = (uint64_t)(uintptr_t) "GPL";
	tried(f, "BPF_PROG_LOAD", syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load)), BY_FILTER);
}

static void row_perf(struct finding *f)
{
	struct perf_event_attr attr = {0};
	attr.type = PERF_TYPE_SOFTWARE;
	attr.size = sizeof(attr);
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	tried(f, "own task", fd, BY_FILTER);
	if (fd >= 0)
		(void)close((int)fd);
	fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0);
	tried(f, "whole cpu", fd, BY_FILTER | BY_FILE);
}

/* A filter that decides in user space, for a child of its own. */
static void new_listener(struct finding *f, void *arg)
{
	(void)arg;
	struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog prog = {ARRAY_LEN(code), code};
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			  &prog);
	tried(f, "NEW_LISTENER", fd, BY_FILTER | BY_BUSY);
}

static void row_listener(struct finding *f)
{
	guarded(f, "NEW_LISTENER", new_listener, NULL);
}

static void listener_high(struct finding *f, void *arg)
{
	(void)arg;
	struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog prog = {ARRAY_LEN(code), code};
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	long fd = syscall(SYS_seccomp, HIGH_BIT | SECCOMP_SET_MODE_FILTER,
			  HIGH_BIT | SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_LOG,
			  &prog);
	tried(f, "NEW_LISTENER high", fd, BY_FILTER | BY_BUSY);
}

static void row_listener_high(struct finding *f)
{
	guarded(f, "NEW_LISTENER high", listener_high, NULL);
}

#ifdef __x86_64__
static void compat_calls(struct finding *f, void *arg)
{
	(void)arg;
	static const struct {
		const char *name;
		long nr;
	} calls[] = {{"getpid", 20}, {"unshare", 310}, {"keyctl", 288}, {"io_uring_setup", 425}};
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		long rc = (int)entry32(calls[i].nr, 0, 0);
		errno = rc < 0 ? (int)-rc : 0;
		tried(f, calls[i].name, rc < 0 ? -1 : rc, BY_FILTER);
	}
}

static void row_int80(struct finding *f)
{
	int status = in_child(compat_calls, f, NULL);
	if (status >= 0 && WIFSIGNALED(status)) {
		int sig = WTERMSIG(status);
		note(f, "killed by signal %d", sig);
		judged(f, "int80", EPERM, sig != SIGSYS && sig != SIGSEGV);
	}
}

static void x32_calls(struct finding *f, void *arg)
{
	(void)arg;
	static const struct {
		const char *name;
		long nr;
	} calls[] = {{"getpid", 39}, {"unshare", 272}, {"ptrace", 521}, {"execveat", 545}};
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		tried(f, calls[i].name, syscall(X32_BIT | calls[i].nr, -1L, 0L, 0L, 0L, 0L),
		      BY_FILTER);
}

static void row_x32(struct finding *f)
{
	guarded(f, "x32", x32_calls, NULL);
}
#else
static void row_int80(struct finding *f)
{
	cannot(f, "this architecture has no such entry");
}

static void row_x32(struct finding *f)
{
	cannot(f, "this architecture has no such entry");
}
#endif

static const struct row rows[] = {
	{"sc-01", "io_uring", row_io_uring, 0, NULL, "io_uring_setup, _enter, _register"},
	{"sc-04", "unknown-syscalls", row_unknown, 0, NULL, "numbers 460 to 600 and far beyond"},
	{"sc-05", "userfaultfd", row_userfaultfd, 0, NULL, "userfaultfd and FUSE"},
	{"sc-06", "surface", row_surface, 0, NULL,
	 "modules, kexec, keys, quota, log, clock, names, memory placement and other rare calls"},
	{"bpf", NULL, row_bpf, 0, NULL, "bpf: a map, a pinned object, a program"},
	{"perf", NULL, row_perf, 0, NULL, "perf_event_open of the own task and of a cpu"},
	{"seccomp-listener", NULL, row_listener, 0, NULL, "seccomp with NEW_LISTENER"},
	{"seccomp-listener-high", NULL, row_listener_high, 0, NULL,
	 "the same with more flags and bits above the 32 that the kernel reads"},
	{"int80", NULL, row_int80, 0, NULL, "the entry of 32-bit programs"},
	{"x32", NULL, row_x32, 0, NULL, "the numbers of the x32 ABI"},
};
const struct row_table rows_syscall = {rows, ARRAY_LEN(rows)};
