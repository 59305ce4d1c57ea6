/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system call filter, instruction by instruction: a small interpreter runs
 * the program that is loaded over every number and over the arguments that
 * matter. What is expected is written down here once more, apart from the
 * generator's table.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "base/base.h"
#include "seccomp_prog.h"
#include "test_base_suite.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif
#define LAST_KNOWN 459
#define ALLOW SECCOMP_RET_ALLOW
#define REFUSE(err) (SECCOMP_RET_ERRNO | (uint32_t)(err))
#define HIGH (UINT64_C(0xdeadbeef) << 32)

static const struct sock_filter *prog = seccomp_prog;
static size_t length = ARRAY_LEN(seccomp_prog);

static void use_rung(bool old)
{
	prog = old ? seccomp_rung_old : seccomp_rung;
	length = old ? ARRAY_LEN(seccomp_rung_old) : ARRAY_LEN(seccomp_rung);
}

static uint32_t run(const struct seccomp_data *d)
{
	uint32_t a = 0;

	for (size_t pc = 0, steps = 0; pc < length && steps < length; pc++, steps++) {
		const struct sock_filter *i = &prog[pc];
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (i->k % 4 != 0 || i->k + 4 > sizeof(*d))
				ck_abort_msg("instruction %zu loads from %u", pc, i->k);
			memcpy(&a, (const char *)d + i->k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			pc += a & i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			ck_abort_msg("instruction %zu has code %x", pc, i->code);
		}
	}
	ck_abort_msg("ran off the program");
}

static uint32_t call(long nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3)
{
	struct seccomp_data d = {.nr = (int)nr, .arch = ARCH, .args = {a0, a1, a2, a3}};

	return run(&d);
}

/* Asserts only what is wrong: libcheck writes a line for each look. */
#define IS(got, want, what, n)                                                   \
	do {                                                                     \
		uint32_t got_ = (got);                                           \
		uint32_t want_ = (want);                                         \
		if (got_ != want_)                                               \
			ck_abort_msg("%s %lld: %x", what, (long long)(n), got_); \
	} while (0)

/* Whatever their arguments. */
static const struct {
	long nr;
	int err;
} always[] = {
	{SYS_mount, EPERM},
	{SYS_umount2, EPERM},
	{SYS_pivot_root, EPERM},
	{SYS_chroot, EPERM},
	{SYS_open_tree, EPERM},
	{SYS_move_mount, EPERM},
	{SYS_fsopen, EPERM},
	{SYS_fsconfig, EPERM},
	{SYS_fsmount, EPERM},
	{SYS_fspick, EPERM},
	{442 /* mount_setattr */, EPERM},
	{SYS_unshare, EPERM},
	{SYS_setns, EPERM},
	{SYS_clone3, ENOSYS},
	{SYS_bpf, EPERM},
	{SYS_perf_event_open, EPERM},
	{SYS_userfaultfd, EPERM},
	{SYS_io_uring_setup, ENOSYS},
	{SYS_io_uring_enter, ENOSYS},
	{SYS_io_uring_register, ENOSYS},
	{SYS_io_setup, ENOSYS},
	{SYS_add_key, EPERM},
	{SYS_request_key, EPERM},
	{SYS_keyctl, EPERM},
	{SYS_init_module, EPERM},
	{SYS_finit_module, EPERM},
	{SYS_delete_module, EPERM},
	{SYS_kexec_load, EPERM},
	{SYS_kexec_file_load, EPERM},
	{SYS_reboot, EPERM},
	{SYS_swapon, EPERM},
	{SYS_swapoff, EPERM},
	{SYS_acct, EPERM},
	{SYS_quotactl, EPERM},
	{443 /* quotactl_fd */, EPERM},
	{SYS_syslog, EPERM},
	{SYS_settimeofday, EPERM},
	{SYS_clock_settime, EPERM},
	{SYS_clock_adjtime, EPERM},
	{SYS_adjtimex, EPERM},
	{SYS_sethostname, EPERM},
	{SYS_setdomainname, EPERM},
	{SYS_vhangup, EPERM},
	{SYS_nfsservctl, ENOSYS},
	{SYS_lookup_dcookie, EPERM},
	{SYS_fanotify_init, EPERM},
	{SYS_open_by_handle_at, EPERM},
	{SYS_openat2, ENOSYS},
#ifdef __x86_64__
	{SYS_iopl, EPERM},
	{SYS_ioperm, EPERM},
	{SYS_uselib, ENOSYS},
	{SYS__sysctl, ENOSYS},
	{SYS_create_module, ENOSYS},
#endif
};

/* Refused for some arguments only; each has a test below. */
static const long sometimes[] = {
	SYS_clone,
	SYS_personality,
	SYS_seccomp,
	SYS_setpriority,
	SYS_ioprio_set,
	SYS_sched_setscheduler,
	SYS_sched_setparam,
	SYS_sched_setattr,
	SYS_sched_setaffinity,
	SYS_prlimit64,
	SYS_setrlimit,
	SYS_migrate_pages,
	SYS_move_pages,
	SYS_socket,
	SYS_socketpair,
	SYS_ioctl,
	SYS_fcntl,
	SYS_fchmod,
	SYS_fchmodat,
	452 /* fchmodat2 */,
	SYS_openat,
	SYS_renameat2,
	SYS_mkdirat,
	SYS_mknodat,
#ifdef __x86_64__
	SYS_chmod,
	SYS_open,
	SYS_creat,
	SYS_mkdir,
	SYS_mknod,
#endif
};

static bool listed(long nr)
{
	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		if (always[i].nr == nr)
			return true;
	for (size_t i = 0; i < ARRAY_LEN(sometimes); i++)
		if (sometimes[i] == nr)
			return true;
	return false;
}

/* Every jump lands inside, every way ends with a verdict: as the kernel checks it. */
static void check_form(void)
{
	ck_assert_uint_le(length, BPF_MAXINSNS);
	for (size_t i = 0; i < length; i++) {
		const struct sock_filter *f = &prog[i];
		if (f->code == (BPF_JMP | BPF_JA))
			ck_assert_uint_lt(i + 1 + f->k, length);
		else if (BPF_CLASS(f->code) == BPF_JMP)
			ck_assert_uint_lt(i + 1 + (f->jt > f->jf ? f->jt : f->jf), length);
	}
	ck_assert_int_eq(BPF_CLASS(prog[length - 1].code), BPF_RET);
}

START_TEST(well_formed)
{
	check_form();
	use_rung(false);
	check_form();
	use_rung(true);
	check_form();
}
END_TEST

START_TEST(every_number)
{
	for (long nr = 0; nr < 5000; nr++) {
		uint32_t got = call(nr, 0, 0, 0, 0);
		if (nr > LAST_KNOWN)
			IS(got, REFUSE(ENOSYS), "later call", nr);
		else if (!listed(nr))
			IS(got, ALLOW, "call", nr);
	}
	for (size_t i = 0; i < ARRAY_LEN(always); i++) {
		static const uint64_t values[] = {0, 1, 2, UINT32_MAX, UINT64_MAX, HIGH};
		for (size_t k = 0; k < ARRAY_LEN(values); k++)
			IS(call(always[i].nr, values[k], values[k], values[k], values[k]),
			   REFUSE(always[i].err), "call", always[i].nr);
	}
}
END_TEST

START_TEST(other_entries)
{
	static const uint32_t archs[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_RISCV64, 0,
					 UINT32_MAX,      ARCH ^ 1};
	static const uint32_t numbers[] = {0x40000000, 0x40000001, 0x40000000 | SYS_mount,
					   0x7fffffff, 0x80000000, UINT32_MAX};

	for (size_t i = 0; i < ARRAY_LEN(archs); i++)
		for (int nr = 0; nr < 500; nr++) {
			struct seccomp_data d = {.nr = nr, .arch = archs[i]};
			IS(run(&d), SECCOMP_RET_KILL_PROCESS, "foreign call", nr);
		}
	/* x32 and what is no number at all. */
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		IS(call((int)numbers[i], 0, 0, 0, 0), REFUSE(ENOSYS), "number", numbers[i]);
}
END_TEST

static const struct {
	long nr;
	int mode;     /* number of the argument */
	bool creates; /* counts only with O_CREAT or O_TMPFILE in the argument before */
} makes[] = {
	{SYS_fchmod, 1, false}, {SYS_fchmodat, 2, false}, {452, 2, false},
	{SYS_openat, 3, true},  {SYS_mkdirat, 2, false},
#ifdef __x86_64__
	{SYS_chmod, 1, false},  {SYS_open, 2, true},      {SYS_creat, 1, false},
	{SYS_mkdir, 1, false},
#endif
};

START_TEST(set_id)
{
	static const struct {
		uint64_t flags;
		bool creates;
	} flags[] = {
		{0, false},          {1, false},    {0100, true}, {0101 | 02000000, true},
		{020200000, true}, /* O_TMPFILE */
		{0200000, false},  /* O_DIRECTORY alone */
		{0100 | HIGH, true}, {HIGH, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(makes); i++)
		for (uint64_t mode = 0; mode < 010000; mode++)
			for (size_t f = 0; f < ARRAY_LEN(flags); f++)
				for (int high = 0; high <= 1; high++) {
					struct seccomp_data d = {.nr = (int)makes[i].nr,
								 .arch = ARCH};
					d.args[makes[i].mode] = mode | (high ? HIGH : 0);
					d.args[makes[i].mode - 1] = flags[f].flags;
					bool bad = (mode & 06000) &&
						   (!makes[i].creates || flags[f].creates);
					IS(run(&d), bad ? REFUSE(EPERM) : ALLOW, "mode of call",
					   makes[i].nr);
				}
}
END_TEST

/* No set-id bit, no device; fifos, sockets and plain files are made. */
START_TEST(nodes)
{
	for (uint64_t mode = 0; mode < 0200000; mode++)
		for (int high = 0; high <= 1; high++) {
			uint64_t arg = mode | (high ? HIGH : 0);
			bool device = (mode & S_IFMT) == S_IFCHR || (mode & S_IFMT) == S_IFBLK;
			uint32_t want = (mode & 06000) || device ? REFUSE(EPERM) : ALLOW;
			IS(call(SYS_mknodat, 0, 0, arg, 0), want, "mknodat", mode);
#ifdef __x86_64__
			IS(call(SYS_mknod, 0, arg, 0, 0), want, "mknod", mode);
#endif
		}
}
END_TEST

START_TEST(whiteouts)
{
	for (uint64_t flags = 0; flags < 16; flags++)
		for (int high = 0; high <= 1; high++) {
			struct seccomp_data d = {.nr = SYS_renameat2, .arch = ARCH};
			d.args[4] = flags | (high ? HIGH : 0);
			IS(run(&d), flags & 4 ? REFUSE(EINVAL) : ALLOW, "renameat2", flags);
		}
}
END_TEST

START_TEST(sockets)
{
	for (uint64_t family = 0; family < 64; family++)
		for (uint64_t protocol = 0; protocol < 40; protocol++)
			for (int high = 0; high <= 1; high++) {
				uint64_t more = high ? HIGH : 0;
				bool good = family == 1 || family == 2 || family == 10 ||
					    (family == 16 &&
					     (protocol == 0 || protocol == 4 || protocol == 15));
				IS(call(SYS_socket, family | more, 2, protocol | more, 0),
				   good ? ALLOW : REFUSE(EAFNOSUPPORT), "family", family);
				IS(call(SYS_socketpair, family | more, 1, protocol, 0),
				   family == 1 ? ALLOW : REFUSE(EAFNOSUPPORT), "pair", family);
			}
	IS(call(SYS_socket, 0x101, 1, 0, 0), REFUSE(EAFNOSUPPORT), "family", 0x101);
}
END_TEST

START_TEST(namespaces)
{
	static const uint64_t bits[] = {0x20000,    0x2000000,  0x4000000, 0x8000000,
					0x10000000, 0x20000000, 0x40000000};

	IS(call(SYS_clone, 17, 0, 0, 0), ALLOW, "fork", 17);
	IS(call(SYS_clone, 0x3d0f00, 0, 0, 0), ALLOW, "thread", 0x3d0f00);
	IS(call(SYS_clone, 0x4111, 0, 0, 0), ALLOW, "vfork", 0x4111);
	IS(call(SYS_clone, 17 | HIGH, 0, 0, 0), ALLOW, "fork", 17);
	for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
		IS(call(SYS_clone, bits[i] | 17, 0, 0, 0), REFUSE(EPERM), "clone", bits[i]);
		IS(call(SYS_clone, bits[i] | 17 | HIGH, 0, 0, 0), REFUSE(EPERM), "clone", bits[i]);
		IS(call(SYS_clone, bits[i] | 0x3d0f00, 0, 0, 0), REFUSE(EPERM), "clone", bits[i]);
	}
}
END_TEST

START_TEST(terminals)
{
	static const uint64_t bad[] = {0x5412, 0x541c, 0x5423};
	static const uint64_t good[] = {0x5401, 0x5413, 0x540e, 0x5411,
					0x541b, 0x541d, 0,      UINT32_MAX};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		IS(call(SYS_ioctl, 0, bad[i], 0, 0), REFUSE(EPERM), "ioctl", bad[i]);
		IS(call(SYS_ioctl, 0, bad[i] | HIGH, 0, 0), REFUSE(EPERM), "ioctl", bad[i]);
		IS(call(SYS_ioctl, 0, bad[i] | UINT64_C(1) << 32, 0, 0), REFUSE(EPERM), "ioctl",
		   bad[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		IS(call(SYS_ioctl, 0, good[i], 0, 0), ALLOW, "ioctl", good[i]);
	for (uint64_t request = 0x5400; request < 0x5500; request++) {
		bool is_bad = request == bad[0] || request == bad[1] || request == bad[2];
		IS(call(SYS_ioctl, 0, request, 0, 0), is_bad ? REFUSE(EPERM) : ALLOW, "ioctl",
		   request);
	}
}
END_TEST

START_TEST(leases)
{
	for (uint64_t cmd = 0; cmd < 1100; cmd++)
		for (int high = 0; high <= 1; high++)
			IS(call(SYS_fcntl, 3, cmd | (high ? HIGH : 0), 1, 0),
			   cmd == 1024 || cmd == 1040 ? REFUSE(EPERM) : ALLOW, "fcntl", cmd);
}
END_TEST

START_TEST(personalities)
{
	static const uint64_t good[] = {0, 8, 0x20000, 0x20008, UINT32_MAX, HIGH};
	static const uint64_t bad[] = {0x40000, 0x400000, 0x100000,      0x8000000,     1,
				       2,       0x20001,  0x8 | 0x40000, HIGH | 0x40000};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		IS(call(SYS_personality, good[i], 0, 0, 0), ALLOW, "personality", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		IS(call(SYS_personality, bad[i], 0, 0, 0), REFUSE(EPERM), "personality", bad[i]);
}
END_TEST

START_TEST(listeners)
{
	for (uint64_t flags = 0; flags < 256; flags++)
		for (int high = 0; high <= 1; high++)
			IS(call(SYS_seccomp, 1, flags | (high ? HIGH : 0), 0, 0),
			   flags & 8 ? REFUSE(EPERM) : ALLOW, "seccomp flags", flags);
}
END_TEST

/* Calls that name another process: init is not to be named. */
START_TEST(init_is_left_alone)
{
	static const long by_pid[] = {SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr,
				      SYS_sched_setaffinity,  SYS_prlimit64,      SYS_migrate_pages,
				      SYS_move_pages};
	static const struct {
		long nr;
		uint64_t process, group, user;
	} by_kind[] = {{SYS_setpriority, 0, 1, 2}, {SYS_ioprio_set, 1, 2, 3}};

	for (size_t i = 0; i < ARRAY_LEN(by_pid); i++) {
		IS(call(by_pid[i], 1, 0, 0, 0), REFUSE(EPERM), "call", by_pid[i]);
		IS(call(by_pid[i], HIGH | 1, 0, 0, 0), REFUSE(EPERM), "call", by_pid[i]);
		IS(call(by_pid[i], 0, 0, 0, 0), ALLOW, "call", by_pid[i]);
		IS(call(by_pid[i], 2, 0, 0, 0), ALLOW, "call", by_pid[i]);
		IS(call(by_pid[i], UINT32_MAX, 0, 0, 0), ALLOW, "call", by_pid[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(by_kind); i++) {
		IS(call(by_kind[i].nr, by_kind[i].process, 1, 0, 0), REFUSE(EPERM), "call",
		   by_kind[i].nr);
		IS(call(by_kind[i].nr, by_kind[i].process, HIGH | 1, 0, 0), REFUSE(EPERM), "call",
		   by_kind[i].nr);
		IS(call(by_kind[i].nr, by_kind[i].user, 0, 0, 0), REFUSE(EPERM), "call",
		   by_kind[i].nr);
		IS(call(by_kind[i].nr, by_kind[i].process, 0, 0, 0), ALLOW, "call", by_kind[i].nr);
		IS(call(by_kind[i].nr, by_kind[i].process, 7, 0, 0), ALLOW, "call", by_kind[i].nr);
		IS(call(by_kind[i].nr, by_kind[i].group, 0, 0, 0), ALLOW, "call", by_kind[i].nr);
	}
}
END_TEST

/* A new core limit is said to be set and is not: what is in force keeps the host's handler away. */
START_TEST(core_limit)
{
	for (uint64_t resource = 0; resource < 20; resource++) {
		uint32_t want = resource == 4 ? REFUSE(0) : ALLOW;
		IS(call(SYS_setrlimit, resource, 0x1000, 0, 0), want, "setrlimit", resource);
		IS(call(SYS_setrlimit, HIGH | resource, 0x1000, 0, 0), want, "setrlimit", resource);
		IS(call(SYS_prlimit64, 0, resource, 0x1000, 0), want, "prlimit64", resource);
		IS(call(SYS_prlimit64, 0, resource, HIGH, 0), want, "prlimit64", resource);
		IS(call(SYS_prlimit64, 7, resource, 0x1000, 0), want, "prlimit64", resource);
		IS(call(SYS_prlimit64, 0, resource, 0, 0x1000), ALLOW, "prlimit64", resource);
		IS(call(SYS_prlimit64, 1, resource, 0, 0x1000), REFUSE(EPERM), "prlimit64",
		   resource);
	}
}
END_TEST

/* Where namespaces are missing nothing is allowed that is refused where they are. */
START_TEST(rung_is_no_wider)
{
	static const uint64_t values[] = {0,      1,        2,         3,     5,      8,
					  16,     0100,     01000,     06000, 04755,  0x5412,
					  0x5423, 1024,     0x20000,   17,    0x4111, 0x10011,
					  HIGH,   HIGH | 1, UINT64_MAX};
	size_t n = ARRAY_LEN(values);
	static uint32_t base[ARRAY_LEN(values) * ARRAY_LEN(values)];

	for (long nr = 0; nr < 600; nr++) {
		for (int turn = 0; turn < 3; turn++) {
			if (turn)
				use_rung(turn == 2);
			for (size_t i = 0; i < n * n; i++) {
				uint64_t a = values[i / n];
				uint64_t b = values[i % n];
				/* each pair where arguments that count can be: 0 and 1, 1 and 2, 2 and 3 */
				uint32_t got = call(nr, a, b, a, b);
				if (!turn)
					base[i] = got;
				else if (base[i] != ALLOW && got == ALLOW)
					ck_abort_msg("call %ld with %zu is wider", nr, i);
			}
		}
		prog = seccomp_prog;
		length = ARRAY_LEN(seccomp_prog);
	}
}
END_TEST

START_TEST(rung_sockets)
{
	for (int old = 0; old <= 1; old++) {
		use_rung(old);
		for (uint64_t family = 0; family < 64; family++)
			for (uint64_t type = 0; type < 16; type++)
				for (int high = 0; high <= 1; high++) {
					uint64_t more = high ? HIGH : 0;
					uint64_t flags =
						high ? 02004000 : 0; /* CLOEXEC, NONBLOCK */
					bool good = family == 1 && (type == 1 || type == 5);
					IS(call(SYS_socket, family | more, type, 0, 0),
					   REFUSE(EPERM), "family", family);
					IS(call(SYS_socketpair, family | more, type | flags | more,
						0, 0),
					   good ? ALLOW : REFUSE(EPERM), "pair", type);
				}
	}
}
END_TEST

START_TEST(rung_always)
{
	static const long refused[] = {SYS_connect, SYS_bind, SYS_listen};
	static const long missing[] = {SYS_shmget,  SYS_shmat,    SYS_shmctl, SYS_shmdt,
				       SYS_semget,  SYS_semop,    SYS_semctl, SYS_semtimedop,
				       SYS_msgget,  SYS_msgsnd,   SYS_msgrcv, SYS_msgctl,
				       SYS_mq_open, SYS_mq_unlink};

	for (int old = 0; old <= 1; old++) {
		use_rung(old);
		for (size_t i = 0; i < ARRAY_LEN(refused); i++)
			IS(call(refused[i], 3, 1, 1, 1), REFUSE(EPERM), "call", refused[i]);
		for (size_t i = 0; i < ARRAY_LEN(missing); i++)
			IS(call(missing[i], 3, 1, 1, 1), REFUSE(ENOSYS), "call", missing[i]);
		IS(call(SYS_truncate, 1, 0, 0, 0), old ? REFUSE(EPERM) : ALLOW, "truncate", old);
		IS(call(SYS_ftruncate, 1, 0, 0, 0), ALLOW, "ftruncate", old);
	}
}
END_TEST

/* Nobody but the caller itself is named, and no user as a whole. */
START_TEST(rung_others)
{
	static const long by_pid[] = {SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr,
				      SYS_sched_setaffinity,  SYS_prlimit64,      SYS_migrate_pages,
				      SYS_move_pages};
	static const struct {
		long nr;
		uint64_t user;
	} by_kind[] = {{SYS_setpriority, 2}, {SYS_ioprio_set, 3}};

	use_rung(false);
	for (size_t i = 0; i < ARRAY_LEN(by_pid); i++) {
		IS(call(by_pid[i], 0, 0, 0, 0), ALLOW, "call", by_pid[i]);
		IS(call(by_pid[i], HIGH, 0, 0, 0), ALLOW, "call", by_pid[i]);
		for (uint64_t pid = 1; pid < 70; pid++)
			IS(call(by_pid[i], pid, 0, 0, 0), REFUSE(EPERM), "call", by_pid[i]);
		IS(call(by_pid[i], UINT32_MAX, 0, 0, 0), REFUSE(EPERM), "call", by_pid[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(by_kind); i++)
		for (uint64_t kind = 0; kind < 5; kind++) {
			IS(call(by_kind[i].nr, kind, 0, 0, 0),
			   kind == by_kind[i].user ? REFUSE(EPERM) : ALLOW, "kind", kind);
			IS(call(by_kind[i].nr, kind, 7, 0, 0), REFUSE(EPERM), "kind", kind);
		}
	for (uint64_t resource = 0; resource < 20; resource++)
		IS(call(SYS_prlimit64, 0, resource, 0x1000, 0), resource == 4 ? REFUSE(0) : ALLOW,
		   "prlimit64", resource);
	IS(call(SYS_prlimit64, 7, 4, 0x1000, 0), REFUSE(EPERM), "prlimit64", 7);
}
END_TEST

/* A file that is opened for reading, or for neither, is not cut. */
START_TEST(rung_cuts)
{
	use_rung(false);
	for (uint64_t flags = 0; flags < 04000; flags++)
		for (uint64_t mode = 0; mode < 2; mode++) {
			uint64_t bits = mode ? 04755 : 0644;
			bool cuts = (flags & 01000) && (flags % 4 == 0 || flags % 4 == 3);
			bool unsafe = (flags & 0100) && mode;
			uint32_t want = cuts || unsafe ? REFUSE(EPERM) : ALLOW;
			IS(call(SYS_openat, 0, 0, flags, bits), want, "openat", flags);
#ifdef __x86_64__
			IS(call(SYS_open, 0, flags, bits, 0), want, "open", flags);
#endif
		}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("core seccomp");
	TCase *c = tcase_create("all");

	tcase_set_timeout(c, 60);
	tcase_add_test(c, well_formed);
	tcase_add_test(c, every_number);
	tcase_add_test(c, other_entries);
	tcase_add_test(c, set_id);
	tcase_add_test(c, nodes);
	tcase_add_test(c, whiteouts);
	tcase_add_test(c, sockets);
	tcase_add_test(c, namespaces);
	tcase_add_test(c, terminals);
	tcase_add_test(c, leases);
	tcase_add_test(c, personalities);
	tcase_add_test(c, listeners);
	tcase_add_test(c, init_is_left_alone);
	tcase_add_test(c, core_limit);
	tcase_add_test(c, rung_is_no_wider);
	tcase_add_test(c, rung_sockets);
	tcase_add_test(c, rung_always);
	tcase_add_test(c, rung_others);
	tcase_add_test(c, rung_cuts);
	suite_add_tcase(s, c);
	return suite_run(s);
}
