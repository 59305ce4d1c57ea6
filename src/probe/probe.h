/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe: a table of rows. An escape row tries one way out of a sandbox for
 * real and tells how far it came; a works row does something harmless that a
 * sandbox must not break. Each row runs in a process of its own and leaves its
 * finding in shared memory, so that what kills the process loses nothing.
 *
 * Bare, outside of any sandbox, a row is the control of itself: it must show
 * ESCAPED and must not harm the host. So a row touches only what its arguments
 * name, what it made itself, or writes back what was there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum verdict { VERDICT_SAFE, VERDICT_ESCAPED, VERDICT_INCONCLUSIVE, VERDICT_WORKS, VERDICT_BROKEN };

/* Which errors are a refusal. Any other one means that the kernel did the work: ESCAPED. */
enum refusal {
	BY_FILTER = 1u << 0,  /* EPERM ENOSYS */
	BY_FILE = 1u << 1,    /* EACCES EPERM EROFS ENOENT ENOTDIR ELOOP ENXIO ENODEV EXDEV */
	BY_LIMIT = 1u << 2,   /* EAGAIN EMFILE ENFILE ENOMEM ENOSPC EDQUOT */
	BY_NET = 1u << 3,     /* EACCES EPERM ECONNREFUSED ENETUNREACH EHOSTUNREACH ETIMEDOUT
				EADDRNOTAVAIL and what says that there is no such protocol */
	BY_ABSENCE = 1u << 4, /* ENOENT ESRCH ENOKEY */
	BY_TYPE = 1u << 5,    /* EBADF EINVAL ENOTTY ENOTSUP: the object cannot do that anyway */
	BY_BUSY = 1u << 6,    /* EBUSY ETXTBSY */
};

#define MAX_TRIES 512
#define MAX_WHAT 48
#define MAX_NOTE 2048

struct attempt {
	char what[MAX_WHAT];
	int err; /* 0: it succeeded */
	bool escaped;
};

struct finding {
	bool escaped;
	bool broken;
	unsigned int attempts; /* may exceed MAX_TRIES; only the first are kept */
	struct attempt list[MAX_TRIES];
	size_t note_len;
	char note[MAX_NOTE]; /* what was reached */
	char why[256];       /* not empty: why nothing could be tried */
};

enum row_flag {
	ROW_WORKS = 1u << 0, /* safe means works, ESCAPED means BROKEN */
	ROW_ALONE = 1u << 1, /* kills its neighbours: only by name, in the first process */
};

struct row {
	const char *name;
	const char *alias; /* another name, or NULL */
	void (*run)(struct finding *f);
	unsigned int flags;
	const char *needs; /* --set key without which it is inconclusive, or NULL */
	const char *technique;
};

struct row_table {
	const struct row *rows;
	size_t n;
};

/* finding.c */

/* One attempt that returned rc (with errno if negative). */
void tried(struct finding *f, const char *what, long rc, unsigned int refusals);
/* The same with the verdict of the caller. err 0 stands for success. */
void judged(struct finding *f, const char *what, int err, bool escaped);
/* Adds to what was reached; foreign bytes are escaped. */
void note(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Something was reached that no return value shows. */
void reached(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Nothing can be tried here. */
void cannot(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* For works rows: cond must hold; errno tells why not. Returns cond. */
bool expect(struct finding *f, const char *what, bool cond);
enum verdict finding_verdict(const struct finding *f, const struct row *row);
const char *verdict_name(enum verdict v);
const char *errno_text(int err);

/* args.c: what --set said */
int arg_set(const char *key_value);
const char *arg(const char *key); /* NULL if not given */
long arg_num(const char *key, long fallback);

/* util.c */

/* Text of a file, NUL-terminated, cut at cap - 1. -1 with errno. */
ssize_t read_text(const char *path, char *ret, size_t cap);
/* dir + "/" + name; false if it does not fit. */
bool join(char *ret, size_t cap, const char *dir, const char *name);
const char *scratch_dir(void); /* TMPDIR, else /tmp */
/* An own new file below dir, as sandglass-probe.PID.N: its path in ret. */
bool scratch_path(char *ret, size_t cap, const char *dir);
/* Creates that file with one line in it, mode 0600. An open descriptor or -1. */
int scratch_file(char *ret, size_t cap, const char *dir);
bool has_cap(unsigned int cap);   /* effective, in whatever user namespace */
bool in_host_pid_namespace(void); /* pid 1 is the machine's, hands off */
/* Runs fn in a child and gives the wait status; -1 if there is no child. */
int in_child(void (*fn)(struct finding *f, void *arg), struct finding *f, void *arg);
#ifdef __x86_64__
/*
 * A system call by the entry of 32-bit programs; -errno as there. Only in a child: under some
 * hypervisors there is no such entry, and SIGSEGV ends the process.
 */
long entry32(long nr, long a, long b);
#endif
/* Like in_child, and a death by SIGSYS counts as a refusal of `what`. */
void guarded(struct finding *f, const char *what, void (*fn)(struct finding *f, void *arg),
	     void *arg);
/* Runs a program and takes the first bytes of its stdout. Its wait status, or -1. */
int run_program(const char *const argv[], int exec_fd, char *ret, size_t cap);
void pause_ms(long ms);
long now_ms(void);
/* With --set mark=PATH: makes that file, then waits until PATH.done is there or hold=MS are over. */
void hold_here(void);
/* Lines "uid euid egid nnp seccomp capeff" of this process, for --ids. */
void ids_text(char *ret, size_t cap);
/* Same confinement as this process: no new privileges, a filter, no capability more. */
void judge_ids(struct finding *f, const char *what, const char *ids);
