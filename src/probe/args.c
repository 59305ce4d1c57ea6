/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of rows, from `--set key=value`. Only keys that some row reads
 * are taken, so that a misspelled one is an error and not a row that does less.
 */
#include "probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/num.h"

static struct {
	const char *key;
	const char *value;
	bool number;
} args[] = {
	{"abstract", NULL, false}, /* name of a stream socket, without the NUL */
	{"addr", NULL, false},     /* IPv4 address of the host */
	{"bytes", NULL, true},     /* how much memory or disk to use at most */
	{"canary", NULL, false},   /* what is behind a mask or a descriptor */
	{"cgroup", NULL, false},   /* a cgroup.procs file */
	{"dgram", NULL, false},    /* path of a datagram socket */
	{"envname", NULL, false},  /* variable that only the caller has */
	{"fifo", NULL, false},     /* a fifo in a granted tree */
	{"file", NULL, false},     /* host file that is visible and not writable */
	{"hold", NULL, true},      /* ms to hold what was got */
	{"home", NULL, false},     /* ADDRESS:PORT somewhere out there */
	{"keep", NULL, true},      /* 1: leave made files behind */
	{"key", NULL, false},      /* description of a user key */
	{"keyid", NULL, true},     /* its serial number */
	{"leave", NULL, false},    /* name to leave in shared places */
	{"limit", NULL, true},     /* how many the host's user may have */
	{"mark", NULL, false},     /* file that says: holding */
	{"mask", NULL, false},     /* mount point that hides something */
	{"mq", NULL, false},       /* POSIX queue, with its slash */
	{"msgkey", NULL, true},    /* System V keys */
	{"node", NULL, false},     /* device node in a granted tree */
	{"ns", NULL, false},       /* host namespaces, /proc/PID/ns spelling, commas between */
	{"outdir", NULL, false},   /* host directory to write to */
	{"pid", NULL, true},       /* host process */
	{"port", NULL, true},      /* host port, or one to listen on */
	{"procs", NULL, true},     /* how many processes are too many */
	{"ro", NULL, false},       /* file in a read-only place ... */
	{"rw", NULL, false},       /* ... and a writable directory on the same file system */
	{"secret", NULL, false},   /* host file that is not in the view */
	{"semkey", NULL, true},
	{"shm", NULL, false}, /* name of a file in the host's shared places */
	{"shmkey", NULL, true},
	{"sock", NULL, false}, /* path of a stream socket */
	{"suid", NULL, false}, /* set-id copy of this program */
	{"tty", NULL, false},  /* host terminal */
	{"vport", NULL, true}, /* port of a vsock listener */
};

int arg_set(const char *key_value)
{
	const char *eq = strchr(key_value, '=');
	for (size_t i = 0; eq && i < ARRAY_LEN(args); i++) {
		size_t n = strlen(args[i].key);
		if (n != (size_t)(eq - key_value) || memcmp(args[i].key, key_value, n) != 0)
			continue;
		uint64_t v;
		struct err e;
		if (args[i].number && num_parse(eq + 1, 0, INT64_MAX, &v, &e))
			return -1;
		args[i].value = eq + 1;
		return 0;
	}
	return -1;
}

const char *arg(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(args); i++)
		if (strcmp(args[i].key, key) == 0)
			return args[i].value;
	abort(); /* a row asks for a key that is not in the table: our bug */
}

long arg_num(const char *key, long fallback)
{
	const char *s = arg(key);
	uint64_t v = 0;
	struct err e;
	if (!s || num_parse(s, 0, INT64_MAX, &v, &e)) /* checked when it was set */
		return fallback;
	return (long)v;
}
