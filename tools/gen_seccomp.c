/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints src/core's system call filters as a header: binary trees of ranges of
 * system call numbers, so that a call costs about eight comparisons and the
 * kernel's per-number cache is built quickly. Compiled and run at build time
 * for the machine's own architecture.
 *
 * The list below is the whole policy: what is not named is allowed, up to the
 * last number known here; later numbers give ENOSYS, so that programs fall back.
 * Where Landlock alone is the boundary, a second list replaces some of its rules
 * and adds others: no namespace keeps the host's sockets, queues and processes
 * away there.
 */
#include <asm/unistd.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <linux/audit.h>
#include <linux/seccomp.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "no filter for this architecture"
#endif

/*
 * Numbers that Debian 12's headers (6.1) lack; from 424 on they are the same
 * everywhere. What came after lsm_get_self_attr (Linux 6.8) is refused as
 * unknown: every program has a way without it.
 */
enum {
	NR_fchmodat2 = 452,
	NR_last = 459,
};

enum test {
	ALWAYS,     /* refuse whatever the arguments */
	SETID_MODE, /* refuse if argument `arg` has a set-id bit */
	NODE_MODE, /* the same, or if it makes a device: a whiteout is one that needs no capability */
	WHITEOUT,     /* renameat2 that leaves a whiteout */
	SETID_CREATE, /* the same, if the flags in `arg - 1` create a file */
	NOT_FAMILY, /* refuse unless argument 0 is an allowed socket family (and netlink protocol) */
	NOT_UNIX,   /* refuse unless argument 0 is AF_UNIX */
	NS_FLAGS,   /* refuse if argument `arg` asks for a namespace */
	IOCTL,      /* refuse two terminal requests, compared on the low 32 bits */
	FCNTL_LEASE,
	PERSONALITY,
	FILTER_LISTENER, /* a seccomp filter with a listener */
	INIT,            /* refuse if argument `arg` is pid 1 */
	PRLIMIT,         /* refuse pid 1; a new core limit is taken as set */
	CORE_LIMIT,      /* argument 0 is RLIMIT_CORE: taken as set */
	NOT_STREAM_PAIR, /* refuse unless arguments 0 and 1 are AF_UNIX, stream or seqpacket */
	NOT_SELF,        /* refuse if argument `arg` is not 0, which is the caller */
	PRLIMIT_SELF,    /* the same, and a new core limit is taken as set */
	WHO_SELF,        /* argument 1 is not the caller, or argument 0 says `arg`: all of a user */
	OPEN_RUNG,       /* SETID_CREATE, or cuts a file that is opened for reading */
	WHO, /* argument 0 says what argument 1 is: refuse pid 1 (kind `arg`) and users (`arg` + 2) */
};

struct rule {
	long nr;
	int err;
	enum test test;
	int arg;
};

static const struct rule rules[] = {
	/* mounts: the view is what was built */
	{__NR_mount, EPERM, ALWAYS, 0},
	{__NR_umount2, EPERM, ALWAYS, 0},
	{__NR_pivot_root, EPERM, ALWAYS, 0},
	{__NR_chroot, EPERM, ALWAYS, 0},
	{__NR_open_tree, EPERM, ALWAYS, 0},
	{__NR_move_mount, EPERM, ALWAYS, 0},
	{__NR_fsopen, EPERM, ALWAYS, 0},
	{__NR_fsconfig, EPERM, ALWAYS, 0},
	{__NR_fsmount, EPERM, ALWAYS, 0},
	{__NR_fspick, EPERM, ALWAYS, 0},
	{__NR_mount_setattr, EPERM, ALWAYS, 0},
	/* namespaces; clone3 hides its flags in memory, and libc falls back to clone */
	{__NR_unshare, EPERM, ALWAYS, 0},
	{__NR_setns, EPERM, ALWAYS, 0},
	{__NR_clone, EPERM, NS_FLAGS, 0},
	{__NR_clone3, ENOSYS, ALWAYS, 0},
	/* kernel surface that no tool of a project needs */
	{__NR_bpf, EPERM, ALWAYS, 0},
	{__NR_perf_event_open, EPERM, ALWAYS, 0},
	{__NR_userfaultfd, EPERM, ALWAYS, 0},
	{__NR_io_uring_setup, ENOSYS, ALWAYS, 0},
	{__NR_io_uring_enter, ENOSYS, ALWAYS, 0},
	{__NR_io_uring_register, ENOSYS, ALWAYS, 0},
	{__NR_io_setup, ENOSYS, ALWAYS, 0}, /* contexts are counted for the whole machine */
	{__NR_add_key, EPERM, ALWAYS, 0},
	{__NR_request_key, EPERM, ALWAYS, 0},
	{__NR_keyctl, EPERM, ALWAYS, 0},
	{__NR_init_module, EPERM, ALWAYS, 0},
	{__NR_finit_module, EPERM, ALWAYS, 0},
	{__NR_delete_module, EPERM, ALWAYS, 0},
	{__NR_kexec_load, EPERM, ALWAYS, 0},
	{__NR_kexec_file_load, EPERM, ALWAYS, 0},
	{__NR_reboot, EPERM, ALWAYS, 0},
	{__NR_swapon, EPERM, ALWAYS, 0},
	{__NR_swapoff, EPERM, ALWAYS, 0},
	{__NR_acct, EPERM, ALWAYS, 0},
	{__NR_quotactl, EPERM, ALWAYS, 0},
	{__NR_quotactl_fd, EPERM, ALWAYS, 0},
	{__NR_syslog, EPERM, ALWAYS, 0},
	{__NR_settimeofday, EPERM, ALWAYS, 0},
	{__NR_clock_settime, EPERM, ALWAYS, 0},
	{__NR_clock_adjtime, EPERM, ALWAYS, 0},
	{__NR_adjtimex, EPERM, ALWAYS, 0},
	{__NR_sethostname, EPERM, ALWAYS, 0},
	{__NR_setdomainname, EPERM, ALWAYS, 0},
	{__NR_vhangup, EPERM, ALWAYS, 0},
	{__NR_nfsservctl, ENOSYS, ALWAYS, 0},
	{__NR_lookup_dcookie, EPERM, ALWAYS, 0},
	{__NR_fanotify_init, EPERM, ALWAYS, 0},
	{__NR_open_by_handle_at, EPERM, ALWAYS, 0},
#ifdef __x86_64__
	{__NR_iopl, EPERM, ALWAYS, 0},
	{__NR_ioperm, EPERM, ALWAYS, 0},
	{__NR_uselib, ENOSYS, ALWAYS, 0},
	{__NR__sysctl, ENOSYS, ALWAYS, 0},
	{__NR_create_module, ENOSYS, ALWAYS, 0},
#endif
	{__NR_personality, EPERM, PERSONALITY, 0},
	{__NR_seccomp, EPERM, FILTER_LISTENER, 1},
	/* init has the command's uid in the kernel's eyes: nobody slows it down or limits it */
	{__NR_setpriority, EPERM, WHO, 0 /* PRIO_PROCESS */},
	{__NR_ioprio_set, EPERM, WHO, 1 /* IOPRIO_WHO_PROCESS */},
	{__NR_sched_setscheduler, EPERM, INIT, 0},
	{__NR_sched_setparam, EPERM, INIT, 0},
	{__NR_sched_setattr, EPERM, INIT, 0},
	{__NR_sched_setaffinity, EPERM, INIT, 0},
	{__NR_prlimit64, EPERM, PRLIMIT, 0},
	/* a core limit of 1 keeps the host's handler from being started, 0 would not (core(5)) */
	{__NR_setrlimit, 0, CORE_LIMIT, 0},
	{__NR_migrate_pages, EPERM, INIT, 0},
	{__NR_move_pages, EPERM, INIT, 0},
	/* sockets of the host's own services, and input for its terminal */
	{__NR_socket, EAFNOSUPPORT, NOT_FAMILY, 0},
	{__NR_socketpair, EAFNOSUPPORT, NOT_UNIX, 0},
	{__NR_ioctl, EPERM, IOCTL, 1},
	/* a lease stalls whoever opens the file on the host */
	{__NR_fcntl, EPERM, FCNTL_LEASE, 1},
/* set-id bits: a file made here keeps its owner on the host */
#ifdef __x86_64__
	{__NR_chmod, EPERM, SETID_MODE, 1},
	{__NR_open, EPERM, SETID_CREATE, 2},
	{__NR_creat, EPERM, SETID_MODE, 1},
	{__NR_mkdir, EPERM, SETID_MODE, 1},
	{__NR_mknod, EPERM, NODE_MODE, 1},
#endif
	{__NR_fchmod, EPERM, SETID_MODE, 1},
	{__NR_fchmodat, EPERM, SETID_MODE, 2},
	{NR_fchmodat2, EPERM, SETID_MODE, 2},
	{__NR_openat, EPERM, SETID_CREATE, 3},
	{__NR_openat2, ENOSYS, ALWAYS, 0}, /* its mode is in memory */
	{__NR_mkdirat, EPERM, SETID_MODE, 2},
	{__NR_mknodat, EPERM, NODE_MODE, 2},
	{__NR_renameat2, EINVAL, WHITEOUT, 4},
};

/*
 * Without namespaces. No socket at all but pairs that cannot be given an
 * address: Landlock holds TCP only, and a datagram pair reaches any name.
 */
static const struct rule rung[] = {
	{__NR_socket, EPERM, ALWAYS, 0},
	{__NR_socketpair, EPERM, NOT_STREAM_PAIR, 0},
	{__NR_connect, EPERM, ALWAYS, 0},
	{__NR_bind, EPERM, ALWAYS, 0},
	{__NR_listen, EPERM, ALWAYS, 0},
	/* System V objects and POSIX queues are the host's */
	{__NR_shmget, ENOSYS, ALWAYS, 0},
	{__NR_shmat, ENOSYS, ALWAYS, 0},
	{__NR_shmctl, ENOSYS, ALWAYS, 0},
	{__NR_shmdt, ENOSYS, ALWAYS, 0},
	{__NR_semget, ENOSYS, ALWAYS, 0},
	{__NR_semop, ENOSYS, ALWAYS, 0},
	{__NR_semtimedop, ENOSYS, ALWAYS, 0},
	{__NR_semctl, ENOSYS, ALWAYS, 0},
	{__NR_msgget, ENOSYS, ALWAYS, 0},
	{__NR_msgsnd, ENOSYS, ALWAYS, 0},
	{__NR_msgrcv, ENOSYS, ALWAYS, 0},
	{__NR_msgctl, ENOSYS, ALWAYS, 0},
	{__NR_mq_open, ENOSYS, ALWAYS, 0},
	{__NR_mq_unlink, ENOSYS, ALWAYS, 0},
	/* the user's other processes are in reach: nobody limits them or slows them down */
	{__NR_prlimit64, EPERM, PRLIMIT_SELF, 0},
	{__NR_setpriority, EPERM, WHO_SELF, 2 /* PRIO_USER */},
	{__NR_ioprio_set, EPERM, WHO_SELF, 3 /* IOPRIO_WHO_USER */},
	{__NR_sched_setscheduler, EPERM, NOT_SELF, 0},
	{__NR_sched_setparam, EPERM, NOT_SELF, 0},
	{__NR_sched_setattr, EPERM, NOT_SELF, 0},
	{__NR_sched_setaffinity, EPERM, NOT_SELF, 0},
	{__NR_migrate_pages, EPERM, NOT_SELF, 0},
	{__NR_move_pages, EPERM, NOT_SELF, 0},
#ifdef __x86_64__
	{__NR_open, EPERM, OPEN_RUNG, 2},
#endif
	{__NR_openat, EPERM, OPEN_RUNG, 3},
};

/* Before Landlock ABI 3 (Linux 6.2) nothing else holds this one, wherever the file is. */
static const struct rule rung_old[] = {
	{__NR_truncate, EPERM, ALWAYS, 0},
};

struct insn {
	unsigned int code, jt, jf, k;
};

struct code {
	struct insn i[64];
	size_t n;
};

#define LD_W_ABS 0x20
#define AND 0x54
#define JEQ 0x15
#define JGE 0x35
#define JSET 0x45
#define JA 0x05
#define RET 0x06
#define RET_ALLOW SECCOMP_RET_ALLOW
#define LOW_WORD(arg) (16u + 8u * (unsigned int)(arg)) /* seccomp_data.args[arg], little endian */

/* Flags of clone(2) that ask for a namespace; CLONE_NEWTIME (0x80) is in the signal's byte there. */
#define NS_BITS 0x7e020000u
#define SET_ID 06000u
/* O_CREAT and __O_TMPFILE (without O_DIRECTORY). */
#define CREATE_BITS (0100u | 020000000u)

static void emit(struct code *c, unsigned int code, unsigned int jt, unsigned int jf,
		 unsigned int k)
{
	c->i[c->n++] = (struct insn){code, jt, jf, k};
}

static void emit_end(struct code *c, int err)
{
	emit(c, RET, 0, 0, RET_ALLOW);
	emit(c, RET, 0, 0, SECCOMP_RET_ERRNO | (unsigned int)err);
}

/* Any of `values` leads to `hit` (0: allow, 1: refuse), others to the other end. */
static void emit_match(struct code *c, const unsigned int *values, unsigned int n, int hit_refuses)
{
	for (unsigned int v = 0; v < n; v++) {
		unsigned int left = n - v - 1; /* comparisons that follow */
		unsigned int to_refuse = left + 1;
		unsigned int to_allow = left;
		if (left)
			emit(c, JEQ, hit_refuses ? to_refuse : to_allow, 0, values[v]);
		else
			emit(c, JEQ, hit_refuses ? 1 : 0, hit_refuses ? 0 : 1, values[v]);
	}
}

static void emit_families(struct code *c)
{
	emit(c, LD_W_ABS, 0, 0, LOW_WORD(0));
	emit(c, JEQ, 7, 0, 1 /* UNIX */);
	emit(c, JEQ, 6, 0, 2 /* INET */);
	emit(c, JEQ, 5, 0, 10 /* INET6 */);
	emit(c, JEQ, 0, 5, 16 /* NETLINK, and there only: */);
	emit(c, LD_W_ABS, 0, 0, LOW_WORD(2));
	emit(c, JEQ, 2, 0, 0 /* ROUTE */);
	emit(c, JEQ, 1, 0, 4 /* SOCK_DIAG */);
	emit(c, JEQ, 0, 1, 15 /* KOBJECT_UEVENT */);
}

/* Only for the caller itself, or not for init; a new core limit is taken as set. */
static void emit_prlimit(struct code *c, int self)
{
	emit(c, LD_W_ABS, 0, 0, LOW_WORD(0));
	if (self)
		emit(c, JEQ, 0, 8, 0);
	else
		emit(c, JEQ, 8, 0, 1 /* init */);
	emit(c, LD_W_ABS, 0, 0, LOW_WORD(1));
	emit(c, JEQ, 0, 5, 4 /* RLIMIT_CORE */);
	emit(c, LD_W_ABS, 0, 0, LOW_WORD(2));
	emit(c, JEQ, 0, 2, 0);
	emit(c, LD_W_ABS, 0, 0, LOW_WORD(2) + 4);
	emit(c, JEQ, 1, 0, 0);
	emit(c, RET, 0, 0, SECCOMP_RET_ERRNO); /* with 0: done */
}

static void emit_pair(struct code *c)
{
	emit(c, LD_W_ABS, 0, 0, LOW_WORD(0));
	emit(c, JEQ, 0, 5, 1 /* AF_UNIX */);
	emit(c, LD_W_ABS, 0, 0, LOW_WORD(1));
	emit(c, AND, 0, 0, 0xf /* the type without its flags */);
	emit(c, JEQ, 1, 0, 1 /* SOCK_STREAM */);
	emit(c, JEQ, 0, 1, 5 /* SOCK_SEQPACKET */);
}

static void emit_open_rung(struct code *c, int arg)
{
	emit(c, LD_W_ABS, 0, 0, LOW_WORD(arg - 1));
	emit(c, JSET, 0, 3, 01000u /* O_TRUNC */);
	emit(c, AND, 0, 0, 03u /* O_ACCMODE */);
	emit(c, JEQ, 6, 0, 0 /* O_RDONLY */);
	emit(c, JEQ, 5, 0, 3 /* neither, for ioctl alone: open(2) */);
	emit(c, LD_W_ABS, 0, 0, LOW_WORD(arg - 1));
	emit(c, JSET, 0, 2, CREATE_BITS);
	emit(c, LD_W_ABS, 0, 0, LOW_WORD(arg));
	emit(c, JSET, 1, 0, SET_ID);
}

static void leaf(struct code *c, const struct rule *r)
{
	static const unsigned int local[] = {1 /* UNIX */};
	static const unsigned int requests[] = {0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */,
						0x5423 /* TIOCSETD */};
	/* Linux, 32-bit Linux, each with the 2.6 version number, and asking only. */
	static const unsigned int personas[] = {0, 8, 0x20000, 0x20008, 0xffffffff};
	static const unsigned int lease[] = {1024 /* F_SETLEASE */, 1040 /* F_SETDELEG */};

	switch (r->test) {
	case ALWAYS:
		emit(c, RET, 0, 0, SECCOMP_RET_ERRNO | (unsigned int)r->err);
		return;
	case SETID_MODE:
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(r->arg));
		emit(c, JSET, 1, 0, SET_ID);
		break;
	case NODE_MODE:
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(r->arg));
		emit(c, JSET, 4, 0, SET_ID);
		emit(c, AND, 0, 0, S_IFMT);
		emit(c, JEQ, 2, 0, S_IFCHR);
		emit(c, JEQ, 1, 0, S_IFBLK);
		break;
	case WHITEOUT:
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(r->arg));
		emit(c, JSET, 1, 0, 4 /* RENAME_WHITEOUT */);
		break;
	case SETID_CREATE:
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(r->arg - 1));
		emit(c, JSET, 0, 2, CREATE_BITS);
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(r->arg));
		emit(c, JSET, 1, 0, SET_ID);
		break;
	case NOT_UNIX:
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(0));
		emit_match(c, local, 1, 0);
		break;
	case NS_FLAGS:
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(r->arg));
		emit(c, JSET, 1, 0, NS_BITS);
		break;
	case IOCTL:
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(r->arg));
		emit_match(c, requests, 3, 1);
		break;
	case FCNTL_LEASE:
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(r->arg));
		emit_match(c, lease, 2, 1);
		break;
	case PERSONALITY:
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(0));
		emit_match(c, personas, 5, 0);
		break;
	case INIT:
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(r->arg));
		emit(c, JEQ, 1, 0, 1);
		break;
	case PRLIMIT:
	case PRLIMIT_SELF:
		emit_prlimit(c, r->test == PRLIMIT_SELF);
		break;
	case NOT_FAMILY:
		emit_families(c);
		break;
	case NOT_STREAM_PAIR:
		emit_pair(c);
		break;
	case OPEN_RUNG:
		emit_open_rung(c, r->arg);
		break;
	case CORE_LIMIT:
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(0));
		emit(c, JEQ, 1, 0, 4 /* RLIMIT_CORE */);
		break;
	case WHO:
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(0));
		emit(c, JEQ, 4, 0, (unsigned int)r->arg + 2);
		emit(c, JEQ, 0, 2, (unsigned int)r->arg);
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(1));
		emit(c, JEQ, 1, 0, 1);
		break;
	case NOT_SELF:
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(r->arg));
		emit(c, JEQ, 0, 1, 0);
		break;
	case WHO_SELF:
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(0));
		emit(c, JEQ, 3, 0, (unsigned int)r->arg);
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(1));
		emit(c, JEQ, 0, 1, 0);
		break;
	case FILTER_LISTENER:
		emit(c, LD_W_ABS, 0, 0, LOW_WORD(r->arg));
		emit(c, JSET, 1, 0, 8 /* SECCOMP_FILTER_FLAG_NEW_LISTENER */);
		break;
	}
	emit_end(c, r->err);
}

/* One range of numbers with one treatment; rule NULL is allow. */
struct range {
	unsigned int from;
	const struct rule *rule;
};

#define MAX_RULES 256

static struct insn prog[4096];
static size_t prog_len;

static void put(struct insn i)
{
	prog[prog_len++] = i;
}

static void tree(const struct range *r, size_t n)
{
	if (n == 1) {
		struct code c = {.n = 0};
		if (r->rule)
			leaf(&c, r->rule);
		else
			emit(&c, RET, 0, 0, RET_ALLOW);
		for (size_t i = 0; i < c.n; i++)
			put(c.i[i]);
		return;
	}
	size_t half = n / 2;
	size_t at = prog_len;
	put((struct insn){JGE, 0, 0, r[half].from});
	tree(r, half);
	size_t left = prog_len - at - 1;
	if (left <= 255) {
		prog[at].jt = (unsigned int)left;
	} else { /* a conditional jump reaches 255 instructions: go by a long one */
		memmove(&prog[at + 2], &prog[at + 1], left * sizeof(prog[0]));
		prog_len++;
		prog[at].jf = 1;
		prog[at + 1] = (struct insn){JA, 0, 0, (unsigned int)left};
	}
	tree(r + half, n - half);
}

static int by_number(const void *a, const void *b)
{
	const struct rule *x = a;
	const struct rule *y = b;

	return (x->nr > y->nr) - (x->nr < y->nr);
}

static int same(const struct rule *a, const struct rule *b)
{
	if (!a || !b)
		return a == b;
	return a->test == ALWAYS && b->test == ALWAYS && a->err == b->err;
}

/* The base list, changed by `n` others: what has the number of an earlier one replaces it. */
static size_t merge(struct rule *all, size_t count, const struct rule *others, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = 0;
		while (at < count && all[at].nr != others[i].nr)
			at++;
		all[at] = others[i];
		count += at == count;
	}
	return count;
}

static int print_filter(const char *name, struct rule *all, size_t count)
{
	static const struct rule later = {NR_last + 1, ENOSYS, ALWAYS, 0};
	static struct rule sorted[MAX_RULES];
	static struct range ranges[2 * MAX_RULES + 4];
	size_t n = 0;
	size_t next = 0;

	memcpy(sorted, all, count * sizeof(*all));
	qsort(sorted, count, sizeof(sorted[0]), by_number);
	for (unsigned int nr = 0; nr <= NR_last + 1; nr++) {
		const struct rule *r = NULL;
		if (nr > NR_last)
			r = &later;
		else if (next < count && sorted[next].nr == (long)nr)
			r = &sorted[next++];
		if (n && same(ranges[n - 1].rule, r))
			continue;
		ranges[n++] = (struct range){nr, r};
	}
	if (next != count) {
		(void)fprintf(stderr, "a rule's number is double or above the last known\n");
		return 1;
	}

	prog_len = 0;
	put((struct insn){LD_W_ABS, 0, 0, 4}); /* seccomp_data.arch */
	put((struct insn){JEQ, 1, 0, ARCH});
	put((struct insn){RET, 0, 0, SECCOMP_RET_KILL_PROCESS});
	put((struct insn){LD_W_ABS, 0, 0, 0}); /* seccomp_data.nr; x32 is above the last known */
	tree(ranges, n);

	(void)printf("/* %zu ranges, %zu instructions */\n"
		     "static const struct sock_filter %s[] = {\n",
		     n, prog_len, name);
	for (size_t i = 0; i < prog_len; i++)
		(void)printf("\t{0x%02x, %u, %u, 0x%08x},\n", prog[i].code, prog[i].jt, prog[i].jf,
			     prog[i].k);
	(void)printf("};\n");
	return 0;
}

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

int main(void)
{
	static struct rule all[MAX_RULES];

	(void)printf("/* SPDX-License-Identifier: Apache-2.0 */\n"
		     "/* Made by tools/gen_seccomp.c. */\n");
	size_t count = merge(all, 0, rules, COUNT(rules));
	if (count != COUNT(rules))
		return 1; /* a number is there twice */
	if (print_filter("seccomp_prog", all, count))
		return 1;
	count = merge(all, count, rung, COUNT(rung));
	if (print_filter("seccomp_rung", all, count))
		return 1;
	count = merge(all, count, rung_old, COUNT(rung_old));
	return print_filter("seccomp_rung_old", all, count);
}
