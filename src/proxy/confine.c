/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy's own confinement. Safe because each step only takes away, and any
 * that fails ends the start: there is no half-confined proxy. What is left to
 * somebody who takes it over: the sockets it has, new TCP and UDP sockets, the
 * rules, and the host's public files about names.
 *
 * Not core's filter: that one lists what a tool may not do, this one what an
 * event loop with sockets does, which is far less.
 */
#include "proxy/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>

#include "base/base.h"
#include "base/file.h"
#include "base/landlock_abi.h"

/* The first id above those of sandboxes (1879100000 to 1879165535): nobody else's. */
#define PROXY_ID 1879165536u

static int failed(struct err *e, const char *what)
{
	(void)err_sys(e, "sandglass-proxy cannot confine itself: %s", what);
	e->code = ERR_SANDBOX_UNAVAILABLE;
	return -1;
}

int confine_descriptors(const int *keep, int n, struct err *e)
{
	unsigned int from = 3;

	for (int i = 0; i <= n; i++) {
		unsigned int to = i < n ? (unsigned int)keep[i] : ~0u;
		if (to > from && syscall(SYS_close_range, from, i < n ? to - 1 : to, 0) < 0)
			return failed(e, "close_range");
		if (i < n)
			from = to + 1;
	}
	return 0;
}

/* SIGKILL when the parent ends; a parent that is gone by now was not noticed. */
static int bind_life(int parent, struct err *e)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return failed(e, "PDEATHSIG");
	if (getppid() != parent)
		return err_set(e, ERR_CANCELLED, "sandglass-proxy: its supervisor is gone");
	return 0;
}

/* Root of a user namespace in which 0 is somebody else outside needs no other id. */
static bool is_nobodys_root(void)
{
	char text[64];
	unsigned int outside = 0;

	return file_read_text(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text)) > 0 &&
	       sscanf(text, "%*u %u", &outside) == 1 && outside != 0;
}

/* New session keyring: the caller's keys are not the proxy's. */
static int leave_ids(struct err *e)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS &&
	    errno != EPERM && errno != EACCES)
		return failed(e, "a keyring of its own");
	if (geteuid() != 0 && getuid() != 0)
		return 0;
	if (setgroups(0, NULL) == 0 && setresgid(PROXY_ID, PROXY_ID, PROXY_ID) == 0 &&
	    setresuid(PROXY_ID, PROXY_ID, PROXY_ID) == 0)
		return 0;
	if (is_nobodys_root())
		return 0;
	return failed(e, "another id than root's");
}

static int drop_bounding(struct err *e)
{
	for (unsigned long cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
		;
	/* EPERM: an ordinary user, for whom no_new_privs keeps it from being of use. */
	return errno == EINVAL || errno == EPERM ? 0 : failed(e, "the bounding set");
}

static int drop_caps(struct err *e)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    syscall(SYS_capset, &head, data) < 0)
		return failed(e, "capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return failed(e, "no_new_privs");
	return 0;
}

static int leave_no_trace(struct err *e)
{
	/* 1, not 0: a limit of 0 still starts a piped handler on the host (core(5)). */
	struct rlimit core = {1, 1};

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return failed(e, "PR_SET_DUMPABLE");
	if (setrlimit(RLIMIT_CORE, &core) < 0)
		return failed(e, "RLIMIT_CORE");
	return 0;
}

#define LANDLOCK_BIND_TCP (1ull << 0)

/* What c-ares reads about names on a Linux host: resolv.conf(5), hosts(5), nsswitch.conf(5). */
static const char *const readable[] = {"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf",
				       "/etc/host.conf"};

static int allow_files(int ruleset, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(readable); i++) {
		AUTO_FD int fd = open(readable[i], O_PATH | O_CLOEXEC);
		struct landlock_path rule = {.access = LANDLOCK_READ_FILE, .fd = fd};
		if (fd < 0)
			continue;
		if (syscall(SYS_LANDLOCK_ADD_RULE, ruleset, LANDLOCK_PATH_RULE, &rule, 0) < 0)
			return failed(e, readable[i]);
	}
	return 0;
}

static int landlock(struct err *e)
{
	int abi = (int)syscall(SYS_LANDLOCK_CREATE, NULL, 0, LANDLOCK_VERSION_FLAG);

	if (abi < 0 && (errno == ENOSYS || errno == EOPNOTSUPP))
		return 0; /* then it reads what its id may read, and still writes nothing */
	struct landlock_ruleset rs = {
		.fs = landlock_fs_rights(abi),
		.net = abi >= LANDLOCK_ABI_NET ? LANDLOCK_BIND_TCP : 0,
		.scoped = abi >= LANDLOCK_ABI_SCOPES ? LANDLOCK_SCOPES : 0,
	};
	size_t size = abi >= LANDLOCK_ABI_SCOPES ? sizeof(rs)
		      : abi >= LANDLOCK_ABI_NET  ? offsetof(struct landlock_ruleset, scoped)
						 : 8;
	AUTO_FD int fd = (int)syscall(SYS_LANDLOCK_CREATE, &rs, size, 0);
	if (fd < 0)
		return failed(e, "a Landlock ruleset");
	if (allow_files(fd, e) < 0)
		return -1;
	return syscall(SYS_LANDLOCK_RESTRICT, fd, 0) < 0 ? failed(e, "Landlock") : 0;
}

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "no filter for this architecture"
#endif

/* Calls that are allowed whatever their arguments; the kernel caches that. */
static const int calls[] = {
	/* the loop and what it carries: libuv, relays, c-ares */
	SYS_recvfrom,
	SYS_sendto,
	SYS_recvmsg,
	SYS_sendmsg,
	SYS_read,
	SYS_write,
	SYS_readv,
	SYS_writev,
	SYS_epoll_ctl,
	SYS_epoll_pwait,
	SYS_accept4,
	SYS_connect,
	SYS_shutdown,
	SYS_close,
	SYS_getsockopt,
	SYS_setsockopt,
	SYS_getsockname,
	SYS_getpeername,
	SYS_epoll_create1,
	SYS_eventfd2,
	SYS_ppoll,
	/* memory, time, ids, the end */
	SYS_munmap,
	SYS_mremap,
	SYS_brk,
	SYS_madvise,
	SYS_futex,
	SYS_clock_gettime,
	SYS_gettimeofday,
	SYS_nanosleep,
	SYS_clock_nanosleep,
	SYS_getrandom,
	SYS_getpid,
	SYS_gettid,
	SYS_getppid,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_restart_syscall,
	SYS_exit,
	SYS_exit_group,
	SYS_sched_yield,
	SYS_uname,
	SYS_sysinfo,
	/* files about names, each time a name is asked for; Landlock says which */
	SYS_fstat,
	SYS_newfstatat,
	SYS_lseek,
#ifdef __x86_64__
	SYS_epoll_wait,
	SYS_poll,
	SYS_stat,
	SYS_lstat,
	SYS_time,
	SYS_access,
#endif
	SYS_faccessat,
};

enum test {
	NO_BITS, /* no bit of `value` in argument `arg` */
	ONE_OF,  /* the low word is `value` or `other` */
	MASKED,  /* the same under `mask` */
	IS_ZERO, /* all of argument `arg` is 0 */
};

/* Calls that are allowed with some arguments only; several rows of one call add up. */
static const struct rule {
	int nr;
	enum test test;
	unsigned int arg;
	uint32_t value, other, mask;
} rules[] = {
	{SYS_mmap, NO_BITS, 2, PROT_EXEC, 0, 0},
	{SYS_mprotect, NO_BITS, 2, PROT_EXEC, 0, 0},
	{SYS_openat, NO_BITS, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0, 0},
#ifdef __x86_64__
	{SYS_open, NO_BITS, 1, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0, 0},
#endif
	{SYS_socket, ONE_OF, 0, AF_INET, AF_INET6, 0},
	{SYS_socket, MASKED, 1, SOCK_STREAM, SOCK_DGRAM, 0xf},
	{SYS_ioctl, ONE_OF, 1, FIONBIO, 0x5411 /* SIOCOUTQ */, 0},
	{SYS_fcntl, NO_BITS, 1, ~7u, 0,
	 0}, /* flags and locks; no owner, signal, lease, pipe size */
	{SYS_prlimit64, IS_ZERO, 2, 0, 0, 0}, /* asks only */
};

#define FILTER_ROOM 256

struct filter {
	struct sock_filter i[FILTER_ROOM];
	unsigned short n;
};

static void emit(struct filter *f, unsigned int code, uint32_t k, unsigned int jt, unsigned int jf)
{
	if (f->n < FILTER_ROOM)
		f->i[f->n] = (struct sock_filter){(unsigned short)code, (unsigned char)jt,
						  (unsigned char)jf, k};
	f->n++;
}

#define LOAD (BPF_LD | BPF_W | BPF_ABS)
#define EQUAL (BPF_JMP | BPF_JEQ | BPF_K)
#define LOW(arg) ((uint32_t)(offsetof(struct seccomp_data, args) + 8 * (arg)))
#define REFUSE (SECCOMP_RET_ERRNO | EPERM)

/* Falls through if the arguments are as they should be. */
static void emit_test(struct filter *f, const struct rule *r)
{
	emit(f, LOAD, LOW(r->arg), 0, 0);
	switch (r->test) {
	case NO_BITS:
		emit(f, BPF_JMP | BPF_JSET | BPF_K, r->value, 0, 1);
		emit(f, BPF_RET | BPF_K, REFUSE, 0, 0);
		break;
	case MASKED:
		emit(f, BPF_ALU | BPF_AND | BPF_K, r->mask, 0, 0);
		__attribute__((fallthrough));
	case ONE_OF:
		emit(f, EQUAL, r->value, 2, 0);
		emit(f, EQUAL, r->other, 1, 0);
		emit(f, BPF_RET | BPF_K, REFUSE, 0, 0);
		break;
	case IS_ZERO:
		emit(f, EQUAL, 0, 1, 0);
		emit(f, BPF_RET | BPF_K, REFUSE, 0, 0);
		emit(f, LOAD, LOW(r->arg) + 4, 0, 0);
		emit(f, EQUAL, 0, 1, 0);
		emit(f, BPF_RET | BPF_K, REFUSE, 0, 0);
		break;
	}
}

/* All rules of the call of rule i, after a jump over them for other calls. */
static size_t emit_call(struct filter *f, size_t i)
{
	unsigned short jump = f->n;
	int nr = rules[i].nr;

	emit(f, EQUAL, (uint32_t)nr, 0, 0);
	for (; i < ARRAY_LEN(rules) && rules[i].nr == nr; i++)
		emit_test(f, &rules[i]);
	emit(f, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	f->i[jump].jf = (unsigned char)(f->n - jump - 1);
	return i;
}

static int seccomp(struct err *e)
{
	struct filter f = {.n = 0};

	emit(&f, LOAD, offsetof(struct seccomp_data, arch), 0, 0);
	emit(&f, EQUAL, ARCH, 1, 0);
	emit(&f, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	emit(&f, LOAD, offsetof(struct seccomp_data, nr), 0, 0);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		emit(&f, EQUAL, (uint32_t)calls[i], 0, 1);
		emit(&f, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(rules);)
		i = emit_call(&f, i);
	/* abort() and raise() reach ourselves, nobody else. */
	emit(&f, EQUAL, (uint32_t)SYS_tgkill, 0, 3);
	emit(&f, LOAD, LOW(0), 0, 0);
	emit(&f, EQUAL, (uint32_t)getpid(), 0, 1);
	emit(&f, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	emit(&f, BPF_RET | BPF_K, REFUSE, 0, 0);
	if (f.n > FILTER_ROOM)
		return err_set(e, ERR_INTERNAL, "the proxy's filter is too long");
	struct sock_fprog prog = {f.n, f.i};
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? failed(e, "seccomp")
									   : 0;
}

int confine(int parent, struct err *e)
{
	/* The bounding set and ids need capabilities, Landlock no_new_privs; the filter comes last. */
	if (drop_bounding(e) < 0 || leave_ids(e) < 0 || drop_caps(e) < 0 || leave_no_trace(e) < 0 ||
	    bind_life(parent, e) < 0 || landlock(e) < 0)
		return -1;
	return seccomp(e);
}
