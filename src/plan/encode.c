/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes a plan. Pure: bytes into a buffer; the caller puts them into a memfd.
 */
#include "plan/plan.h"

#include <string.h>

#include "base/buf.h"
#include "plan/record.h"

struct encoder {
	struct buf *out;
	uint32_t records;
	int failed;
};

static void put(struct encoder *en, const void *p, size_t n)
{
	if (buf_add(en->out, p, n) < 0)
		en->failed = 1;
}

static void record_head(struct encoder *en, uint32_t type, size_t bytes)
{
	struct plan_record r = {.type = type, .bytes = (uint32_t)bytes};

	put(en, &r, sizeof(r));
	en->records++;
}

static void record_pad(struct encoder *en, size_t bytes)
{
	static const char zero[8];

	put(en, zero, RECORD_PAD(bytes) - bytes);
}

static void put_string(struct encoder *en, uint32_t type, const char *s)
{
	size_t bytes = strlen(s) + 1;

	record_head(en, type, bytes);
	put(en, s, bytes);
	record_pad(en, bytes);
}

static void put_mount(struct encoder *en, const struct plan_mount *m)
{
	struct record_mount r = {
		.kind = m->kind,
		.flags = m->flags,
		.dev = m->dev,
		.ino = m->ino,
		.owner_uid = m->owner_uid,
		.owner_gid = m->owner_gid,
		.dst_len = (uint32_t)strlen(m->dst),
		.src_len = (uint32_t)m->src_len,
	};
	size_t bytes = sizeof(r) + r.dst_len + 1 + r.src_len + 1;

	record_head(en, REC_MOUNT, bytes);
	put(en, &r, sizeof(r));
	put(en, m->dst, (size_t)r.dst_len + 1);
	put(en, m->src ? m->src : "", r.src_len);
	put(en, "", 1);
	record_pad(en, bytes);
}

static void put_cgroup(struct encoder *en, const struct plan_cgroup *g)
{
	uint32_t head[2] = {g->role, 0};
	size_t n = strlen(g->dir) + 1;

	record_head(en, REC_CGROUP, sizeof(head) + n);
	put(en, head, sizeof(head));
	put(en, g->dir, n);
	record_pad(en, sizeof(head) + n);
}

static void put_egress(struct encoder *en, const struct plan_egress *g)
{
	struct record_egress r = {(uint32_t)g->port_count, (uint32_t)g->prefix_count};
	size_t ports = g->port_count * sizeof(*g->ports);
	size_t prefixes = g->prefix_count * sizeof(*g->prefixes);

	record_head(en, REC_EGRESS, sizeof(r) + ports + prefixes);
	put(en, &r, sizeof(r));
	put(en, g->ports, ports);
	put(en, g->prefixes, prefixes);
	record_pad(en, sizeof(r) + ports + prefixes);
}

static int finish(struct encoder *en, uint32_t magic, struct err *e)
{
	struct plan_header h = {.magic = magic,
				.version = PLAN_VERSION,
				.total = (uint32_t)en->out->n,
				.records = en->records};

	if (en->failed)
		return err_set(e, ERR_ARG_LIMIT,
			       "command, environment and view need more than %u bytes",
			       MAX_PLAN_BYTES);
	memcpy(en->out->p, &h, sizeof(h));
	return 0;
}

int plan_encode_more(const struct plan_mount *mounts, size_t n, struct buf *out, struct err *e)
{
	struct encoder en = {.out = out};
	struct plan_header h = {.magic = 0};

	put(&en, &h, sizeof(h));
	for (size_t i = 0; i < n; i++)
		put_mount(&en, &mounts[i]);
	return finish(&en, PLAN_MORE_MAGIC, e);
}

int plan_encode(const struct plan *p, struct buf *out, struct err *e)
{
	struct encoder en = {.out = out};
	struct plan_header h = {.magic = 0};

	put(&en, &h, sizeof(h));
	record_head(&en, REC_NUMBERS, sizeof(p->n));
	put(&en, &p->n, sizeof(p->n));
	record_pad(&en, sizeof(p->n));
	put_string(&en, REC_CWD, p->cwd);
	put_string(&en, REC_HOSTNAME, p->hostname);
	put_string(&en, REC_STDIN, p->stdin_path ? p->stdin_path : "");
	for (size_t i = 0; i < p->cgroup_count; i++)
		put_cgroup(&en, &p->cgroups[i]);
	for (size_t i = 0; i < p->mount_count; i++)
		put_mount(&en, &p->mounts[i]);
	for (size_t i = 0; i < p->argc; i++)
		put_string(&en, REC_ARG, p->argv[i]);
	for (size_t i = 0; i < p->envc; i++)
		put_string(&en, REC_ENV, p->envp[i]);
	if (p->n.flags & PLAN_EGRESS)
		put_egress(&en, &p->egress);
	return finish(&en, PLAN_MAGIC, e);
}
