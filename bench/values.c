/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values: commands that measure themselves and print lines `KEY NUMBER`.
 * Interleaved like rounds; the table is over the numbers, key by key, so the
 * cost of starting the command is not in it.
 */
#include "modes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/num.h"
#include "cmds.h"
#include "stats.h"

#define MAX_KEYS 16
#define MAX_OUTPUT 4096

struct key {
	char name[MAX_NAME];
	struct samples of[MAX_CMDS];
};

struct keys {
	struct key *v;
	size_t n;
};

/* Finds a key or makes it with room for every command. */
static int key_get(struct keys *k, const char *name, const struct cmds *c, uint64_t rounds,
		   struct key **ret, struct err *e)
{
	for (size_t i = 0; i < k->n; i++) {
		if (strcmp(k->v[i].name, name) == 0) {
			*ret = &k->v[i];
			return 0;
		}
	}
	if (k->n == MAX_KEYS || strlen(name) >= MAX_NAME)
		return err_set(e, ERR_INTERNAL, "%s: too long, or more than %d keys", name,
			       MAX_KEYS);
	struct key *key = &k->v[k->n++];
	memcpy(key->name, name, strlen(name) + 1);
	for (size_t i = 0; i < c->n; i++) {
		if (samples_init(&key->of[i], rounds, e))
			return -1;
	}
	*ret = key;
	return 0;
}

static int output_read(int fd, char out[static MAX_OUTPUT + 1], struct err *e)
{
	size_t n = 0;
	for (;;) {
		ssize_t got = RETRY_EINTR(read(fd, out + n, MAX_OUTPUT - n));
		if (got < 0)
			return err_sys(e, "read a command's output");
		if (got == 0)
			break;
		n += (size_t)got;
	}
	out[n] = 0;
	return 0;
}

/* Adds `KEY NUMBER` lines to the samples of command number at. */
static int output_take(char *out, struct keys *k, const struct cmds *c, size_t at, uint64_t rounds,
		       struct err *e)
{
	for (char *line = out, *next; *line; line = next) {
		char *end = strchr(line, '\n');
		if (!end)
			return err_set(e, ERR_INTERNAL, "%s: a line without end", c->v[at].name);
		*end = 0;
		next = end + 1;
		char *space = strchr(line, ' ');
		if (!space)
			return err_set(e, ERR_INTERNAL, "%s printed: %s", c->v[at].name, line);
		*space = 0;
		uint64_t value = 0;
		struct key *key = NULL;
		if (num_parse(space + 1, 1, UINT64_MAX, &value, e) ||
		    key_get(k, line, c, rounds, &key, e) || samples_add(&key->of[at], value, e))
			return err_wrap(e, "%s", c->v[at].name);
	}
	return 0;
}

static int value_run(const struct cmds *c, size_t at, struct keys *k, uint64_t rounds,
		     struct err *e)
{
	char out[MAX_OUTPUT + 1];
	struct cmd_run run;
	pid_t pid = 0;
	int pipe_end = -1;
	if (cmd_start(&c->v[at], CMD_IO_STDOUT, &pid, &pipe_end, e))
		return -1;
	AUTO_FD int fd = pipe_end;
	if (output_read(fd, out, e) || cmd_wait(pid, &run, e))
		return -1;
	if (run.status)
		return err_set(e, ERR_INTERNAL, "%s ends with status %d", c->v[at].name,
			       run.status);
	return output_take(out, k, c, at, rounds, e);
}

static void value_print(const struct key *key, const char *where, const struct samples *s)
{
	const struct samples *first = &key->of[0];
	printf("| %-16s | %-12s | %4zu | %9llu | %9llu | %9llu | %9llu | %7.2f | %7.2f |\n",
	       key->name, where, s->n, (unsigned long long)samples_rank(s, 0),
	       (unsigned long long)samples_rank(s, 10), (unsigned long long)samples_rank(s, 50),
	       (unsigned long long)samples_rank(s, 99),
	       (double)samples_rank(s, 0) / (double)samples_rank(first, 0),
	       (double)samples_rank(s, 50) / (double)samples_rank(first, 50));
}

static int values_print(const struct cmds *c, struct keys *k, struct err *e)
{
	printf("| %-16s | %-12s | %4s | %9s | %9s | %9s | %9s | %7s | %7s |\n", "measured", "where",
	       "n", "min", "p10", "p50", "p99", "x min", "x p50");
	printf("|---|---|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < k->n; i++) {
		struct key *key = &k->v[i];
		for (size_t at = 0; at < c->n; at++) {
			struct samples *s = &key->of[at];
			if (!s->n)
				return err_set(e, ERR_INTERNAL, "%s does not print %s",
					       c->v[at].name, key->name);
			samples_sort(s);
			value_print(key, c->v[at].name, s);
		}
	}
	return 0;
}

static int values_all(const struct cmds *c, struct keys *k, const struct options *o, struct err *e)
{
	struct rng rng;
	size_t order[MAX_CMDS];
	for (size_t i = 0; i < c->n; i++) {
		if (cmd_prove(&c->v[i], e))
			return -1;
	}
	printf("seed %llu, %llu rounds\n\n", (unsigned long long)rng_init(&rng, o->seed),
	       (unsigned long long)o->rounds);
	(void)fflush(stdout); /* a person waits; printing errors show at the end */
	for (uint64_t i = 0; i < o->rounds; i++) {
		rng_shuffle(&rng, order, c->n);
		for (size_t n = 0; n < c->n; n++) {
			if (value_run(c, order[n], k, o->rounds, e))
				return -1;
		}
	}
	return values_print(c, k, e);
}

int values_mode(const struct options *o, struct err *e)
{
	struct cmds c;
	if (cmds_read(o->file, &c, e))
		return -1;
	struct keys k = {.v = calloc(MAX_KEYS, sizeof(*k.v))};
	int rc = k.v ? values_all(&c, &k, o, e) : err_sys(e, "room for keys");
	for (size_t i = 0; i < k.n; i++) {
		for (size_t at = 0; at < c.n; at++)
			samples_release(&k.v[i].of[at]);
	}
	free(k.v);
	cmds_release(&c);
	return rc;
}
