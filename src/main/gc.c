/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gc`: what is over goes, what a killed process left too. Nothing unreviewed is lost:
 * it is kept as an artifact first.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "audit/sweep.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/verbs.h"
#include "main/session_parts.h"
#include "main/verbs.h"
#include "review/artifact.h"
#include "review/recover.h"
#include "session/keeper.h"
#include "session/lease.h"
#include "session/told.h"
#include "session/usage.h"

struct sweep {
	const struct session_caller *c;
	bool dry, json;
	struct buf out;
	struct json o;
	int status;
};

/* Whether its time is over, with nobody there to end it. */
static bool is_over(const struct picked *p)
{
	struct lease l;
	struct err ignored = {0};

	return !p->kept &&
	       (lease_read(p->dir, &l, &ignored) < 0 || l.end_ns / 1000000 <= clock_wall_ms());
}

static const char *end(const struct sweep *s, struct picked *p)
{
	struct err ignored = {0};
	AUTO_FD int lock = -1;

	if (keeper_lock(p->dir, &lock, &ignored) < 0)
		return "busy";
	if (session_keep_changes(p->rec.id) < 0)
		return "stays: its changes could not be kept";
	session_told(&s->c->who, &p->rec, "session.expire", "no keeper");
	keeper_remove(&s->c->who, p->dir, &p->rec);
	return "removed";
}

static int sweep_one(void *self, struct picked *p)
{
	struct sweep *s = self;
	struct usage_of used;
	struct err e = {0};

	if (!s->dry && review_recover(&s->c->who, p->dir, &p->rec, &e) < 0) {
		s->status = cli_fail(&e, 1);
		return 0;
	}
	usage_measure(p->dir, NULL, &used);
	bool over = is_over(p);
	const char *what = !over ? (p->kept ? "kept" : "unclean") : s->dry ? "would go" : end(s, p);
	if (over && !s->dry && strcmp(what, "removed") != 0)
		s->status = 1;
	if (s->json) {
		json_obj_begin(&s->o);
		json_kv_str(&s->o, "id", p->rec.id);
		json_kv_str(&s->o, "what", what);
		json_kv_uint(&s->o, "bytes", used.bytes);
		json_kv_uint(&s->o, "inodes", used.inodes);
		json_obj_end(&s->o);
	} else if (s->dry || over) {
		(void)buf_printf(&s->out, "%s  %s  %llu bytes, %llu files\n", p->rec.id, what,
				 (unsigned long long)used.bytes, (unsigned long long)used.inodes);
	}
	return 0;
}

/* Days of the audit log that are older than the user's policy keeps. */
static void sweep_log(struct sweep *s)
{
	struct audit_swept swept;
	struct err e = {0};

	if (audit_sweep(&s->c->who, s->dry, &swept, &e) < 0) {
		s->status = cli_fail(&e, 1);
		return;
	}
	if (swept.files && !s->json)
		(void)buf_printf(&s->out, "audit log until %.10s  %s  %llu bytes, %llu files\n",
				 swept.until, s->dry ? "would go" : "removed",
				 (unsigned long long)swept.bytes, (unsigned long long)swept.files);
}

/* What was kept of sessions that are gone, beyond its retention. */
static void sweep_artifacts(struct sweep *s)
{
	struct artifact_sweep swept;

	artifacts_sweep(&s->c->who, main_kept_ms(KEPT_ARTIFACTS), main_kept_ms(KEPT_LOGS),
			clock_wall_ms(), s->dry, &swept);
	if (swept.without_logs && !s->json)
		(void)buf_printf(&s->out, "logs of %zu artifacts  %s  %llu bytes\n",
				 swept.without_logs, s->dry ? "would go" : "removed",
				 (unsigned long long)swept.logs_bytes);
	if (swept.removed && !s->json)
		(void)buf_printf(&s->out, "artifacts of %zu sessions  %s  %llu bytes\n",
				 swept.removed, s->dry ? "would go" : "removed",
				 (unsigned long long)swept.bytes);
}

int main_gc(int argc, char **argv)
{
	struct session_options o = {.json = false};
	struct session_caller c;
	struct err e = {0};
	int first = 0;

	if (opt_parse(gc_usage.options, gc_usage.option_count, argc, argv, &o, &first, &e) < 0)
		return cli_fail(&e, 2);
	if (o.help)
		return usage_show(&gc_usage, 2);
	if (argc > first) {
		(void)err_set(&e, ERR_CONFIG_INVALID, "`gc` takes no argument");
		return cli_fail(&e, 2);
	}
	if (session_caller(&c, &e) < 0)
		return cli_fail(&e, 2);
	struct sweep s = {.c = &c, .dry = o.dry_run, .json = o.json, .out = BUF_INIT(1u << 26)};
	s.o = (struct json){.out = &s.out};
	if (o.json)
		json_arr_begin(&s.o);
	(void)session_each(&c.who, sweep_one, &s);
	if (!s.dry)
		keeper_reconcile(&c.who);
	sweep_log(&s);
	sweep_artifacts(&s);
	if (o.json)
		json_arr_end(&s.o);
	if (o.json)
		(void)buf_char(&s.out, '\n');
	if (cli_write(STDOUT_FILENO, s.out.p ? s.out.p : "", s.out.n, &e) < 0)
		s.status = cli_fail(&e, 2);
	buf_release(&s.out);
	return s.status;
}
