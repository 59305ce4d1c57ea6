/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan in words, one line an item, for people: what `explain` prints. Texts
 * are escaped, so an item is one line whatever it holds. Values of variables and
 * contents of files may be secrets: only their sizes are told.
 */
#include "plan/plan.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/num.h"
#include "base/term.h"

struct word {
	uint32_t bit;
	const char *text;
};

static const struct word plan_words[] = {
	{PLAN_ROOT, "root"},           {PLAN_TTY, "tty"},
	{PLAN_READ_ONLY, "read-only"}, {PLAN_STDIN_FILE, "stdin-file"},
	{PLAN_BARE, "bare"},           {PLAN_LANDLOCK, "landlock"},
	{PLAN_SESSION, "session"},     {PLAN_EGRESS, "egress"},
};

static const struct word mount_words[] = {
	{MOUNT_WRITE, "writable"},      {MOUNT_OPTIONAL, "optional"},
	{MOUNT_IDMAP, "idmap"},         {MOUNT_IDENT, "ident"},
	{MOUNT_DIRECTORY, "directory"}, {MOUNT_SYSTEM, "system"},
	{MOUNT_EMPTY, "empty"},         {MOUNT_WAY, "way"},
	{MOUNT_GIVEN, "given"},
};

static const char *const cgroup_words[CGROUP_ROLES] = {"v1-memory", "v1-pids", "v1-cpu", "v2",
						       "freezer"};

static void put_words(struct buf *out, uint32_t bits, const struct word *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bits & words[i].bit)
			(void)buf_printf(out, " %s", words[i].text);
}

static void put_text(struct buf *out, const char *label, const char *p, size_t n)
{
	(void)buf_printf(out, "%s ", label);
	(void)term_escape(out, p, n);
}

static void put_line(struct buf *out, const char *label, const char *s)
{
	put_text(out, label, s, strlen(s));
	(void)buf_char(out, '\n');
}

static void put_count(struct buf *out, const char *label, uint64_t v)
{
	if (v == LIMIT_NONE)
		(void)buf_printf(out, "limit %s none\n", label);
	else
		(void)buf_printf(out, "limit %s %" PRIu64 "\n", label, v);
}

static void put_limits(struct buf *out, const struct plan_numbers *n)
{
	const struct {
		const char *label;
		uint64_t value;
		const char *(*format)(uint64_t v, char ret[NUM_TEXT]);
	} rows[] = {
		{"wall", n->wall_ms, duration_format},    {"grace", n->grace_ms, duration_format},
		{"drain", n->drain_ms, duration_format},  {"cpu_time", n->cpu_ms, duration_format},
		{"memory", n->memory_bytes, size_format}, {"cpus", n->cpus_milli, cpus_format},
		{"disk", n->disk_bytes, size_format},     {"shm", n->shm_bytes, size_format},
	};
	char text[NUM_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		(void)buf_printf(out, "limit %s %s\n", rows[i].label,
				 rows[i].format(rows[i].value, text));
	put_count(out, "pids", n->pids);
	put_count(out, "inodes", n->inodes);
	put_count(out, "inotify_instances", n->inotify_instances);
	put_count(out, "inotify_watches", n->inotify_watches);
}

static void put_numbers(struct buf *out, const struct plan *p)
{
	const struct plan_numbers *n = &p->n;

	(void)buf_printf(out, "plan version %u\nflags", PLAN_VERSION);
	put_words(out, n->flags, plan_words, ARRAY_LEN(plan_words));
	(void)buf_printf(out, "\nparent %u\n", n->parent_pid);
	(void)buf_printf(out, "ids %u:%u outside %u:%u\n", n->uid, n->gid, n->outer_uid,
			 n->outer_gid);
	if (n->flags & PLAN_TTY)
		(void)buf_printf(out, "terminal %u rows %u columns\n", n->rows, n->cols);
	put_limits(out, n);
	put_line(out, "cwd", p->cwd);
	put_line(out, "hostname", p->hostname);
	if (n->flags & PLAN_STDIN_FILE) {
		put_text(out, "stdin", p->stdin_path, strlen(p->stdin_path));
		(void)buf_printf(out, " ident %" PRIx64 ":%" PRIu64 "\n", n->stdin_dev,
				 n->stdin_ino);
	}
}

static void put_egress(struct buf *out, const struct plan_egress *g)
{
	char text[INET6_ADDRSTRLEN];

	for (size_t i = 0; i < g->port_count; i++)
		(void)buf_printf(out, "local %u\n", g->ports[i]);
	for (size_t i = 0; i < g->prefix_count; i++) {
		const struct plan_prefix *p = &g->prefixes[i];
		(void)inet_ntop(p->family == 4 ? AF_INET : AF_INET6, p->addr, text, sizeof(text));
		(void)buf_printf(out, "prefix %s/%u\n", text, p->bits);
	}
}

static void put_mount(struct buf *out, const struct plan_mount *m)
{
	static const char *const kinds[MOUNT_KINDS] = {"dir",  "symlink", "file",
						       "bind", "mask",    "pin"};

	put_text(out, m->kind < MOUNT_KINDS ? kinds[m->kind] : "?", m->dst, strlen(m->dst));
	if (m->kind == MOUNT_SYMLINK)
		put_text(out, " to", m->src, m->src_len);
	if (m->kind == MOUNT_BIND)
		put_text(out, " from", m->src, m->src_len);
	if (m->kind == MOUNT_FILE)
		(void)buf_printf(out, " %zu bytes", m->src_len);
	put_words(out, m->flags, mount_words, ARRAY_LEN(mount_words));
	if (m->flags & MOUNT_IDENT)
		(void)buf_printf(out, " %" PRIx64 ":%" PRIu64, m->dev, m->ino);
	if (m->flags & MOUNT_IDMAP)
		(void)buf_printf(out, " owner %u:%u", m->owner_uid, m->owner_gid);
	(void)buf_char(out, '\n');
}

int plan_dump(const struct plan *p, struct buf *out, struct err *e)
{
	put_numbers(out, p);
	for (size_t i = 0; i < p->cgroup_count; i++) {
		const struct plan_cgroup *g = &p->cgroups[i];
		(void)buf_printf(out, "cgroup %s",
				 g->role < CGROUP_ROLES ? cgroup_words[g->role] : "?");
		put_line(out, "", g->dir);
	}
	for (size_t i = 0; i < p->mount_count; i++)
		put_mount(out, &p->mounts[i]);
	for (size_t i = 0; i < p->argc; i++)
		put_line(out, "arg", p->argv[i]);
	for (size_t i = 0; i < p->envc; i++) {
		size_t n = strcspn(p->envp[i], "=");
		put_text(out, "env", p->envp[i], n);
		(void)buf_printf(out, " %zu bytes\n",
				 p->envp[i][n] ? strlen(p->envp[i] + n + 1) : 0);
	}
	if (p->n.flags & PLAN_EGRESS)
		put_egress(out, &p->egress);
	return buf_check(out, "the plan in words", ERR_INTERNAL, e);
}
