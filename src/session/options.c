/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was asked for when a session was made, spelled once more for its calls: with
 * absolute paths, since those come from anywhere. What policy files said is in the
 * snapshot of the policy.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "policy/pattern.h"
#include "session/make.h"

static void put(struct buf *out, const char *name, const char *value)
{
	(void)buf_printf(out, "--%s=%s", name, value);
	(void)buf_char(out, '\0');
}

static void put_number(struct buf *out, const char *name, uint64_t v, const char *unit)
{
	char text[NUM_TEXT];

	if (v == LIMIT_UNSET)
		return;
	if (v == LIMIT_NONE)
		(void)snprintf(text, sizeof(text), "none");
	else
		(void)snprintf(text, sizeof(text), "%llu%s", (unsigned long long)v, unit);
	put(out, name, text);
}

static int put_paths(struct buf *out, const char *name, const struct strlist *list,
		     const struct caller *who, struct err *e)
{
	char path[PATH_TEXT];

	for (size_t i = 0; i < list->n; i++) {
		const char *p = list->v[i];
		if (p[0] == '/' || pattern_is(p)) {
			put(out, name, p);
			continue;
		}
		if (!who->cwd || path_join(who->cwd, p, path, sizeof(path), e) < 0)
			return err_set(e, ERR_CONFIG_INVALID, "--%s %s: no working directory", name,
				       p);
		put(out, name, path);
	}
	return 0;
}

int options_put(const struct request *req, const struct caller *who, struct buf *out, struct err *e)
{
	char cpus[NUM_TEXT];

	if (req->mode >= 0)
		put(out, "mode", mode_names[req->mode]);
	if (put_paths(out, "read", &req->read, who, e) < 0 ||
	    put_paths(out, "write", &req->write, who, e) < 0 ||
	    put_paths(out, "hide", &req->hide, who, e) < 0)
		return -1;
	for (size_t i = 0; i < req->env.n; i++)
		put(out, "env", req->env.v[i]);
	for (size_t i = 0; i < req->allow_host.n; i++)
		put(out, "allow-host", req->allow_host.v[i]);
	for (size_t i = 0; i < req->deny_host.n; i++)
		put(out, "deny-host", req->deny_host.v[i]);
	for (size_t i = 0; i < req->allow_local.n; i++)
		put(out, "allow-local", req->allow_local.v[i]);
	for (size_t i = 0; i < req->secret.n; i++)
		put(out, "secret", req->secret.v[i]);
	put_number(out, "timeout", req->wall_ms, "ms");
	put_number(out, "grace", req->grace_ms, "ms");
	put_number(out, "cpu-time", req->cpu_ms, "ms");
	put_number(out, "memory", req->memory_bytes, "");
	put_number(out, "pids", req->pids, "");
	if (req->cpus_milli != LIMIT_UNSET)
		put(out, "cpus",
		    req->cpus_milli == LIMIT_NONE ? "none" : cpus_format(req->cpus_milli, cpus));
	return buf_check(out, "the session's options", ERR_ARG_LIMIT, e);
}
