/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict decoder of the plan. Runs in core, so it trusts nothing: every length
 * is checked before it is used, types ascend, single records occur once, every
 * string ends with its only NUL, padding is zero, unknown bits are refused.
 * Why it is safe against a hostile plan: it only reads inside [bytes, bytes+len)
 * and only allocates arrays whose sizes it has counted first.
 */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "plan/record.h"

struct cursor {
	const unsigned char *base;
	size_t len, at;
	uint32_t type;
	const unsigned char *payload;
	size_t bytes;
};

static int bad(struct err *e, const struct cursor *c, const char *what)
{
	return err_set(e, ERR_INTERNAL, "plan: %s at byte %zu", what, c->at);
}

/* Reads the record at the cursor. Leaves `at` on the next one. */
static int record_next(struct cursor *c, struct err *e)
{
	struct plan_record r;

	if (c->len - c->at < sizeof(r))
		return bad(e, c, "record is cut off");
	memcpy(&r, c->base + c->at, sizeof(r));
	size_t room = c->len - c->at - sizeof(r);
	if (r.bytes > room || RECORD_PAD((size_t)r.bytes) > room)
		return bad(e, c, "record is longer than the plan");
	if (r.type >= REC_TYPES)
		return bad(e, c, "unknown record type");
	c->payload = c->base + c->at + sizeof(r);
	c->bytes = r.bytes;
	for (size_t i = r.bytes; i < RECORD_PAD((size_t)r.bytes); i++)
		if (c->payload[i])
			return bad(e, c, "padding is not zero");
	c->type = r.type;
	c->at += sizeof(r) + RECORD_PAD((size_t)r.bytes);
	return 0;
}

/* The bytes are one string: a NUL at the end and nowhere else. */
static const char *string_at(const unsigned char *p, size_t bytes)
{
	if (!bytes || memchr(p, 0, bytes) != p + bytes - 1)
		return NULL;
	return (const char *)p;
}

static int is_path(const char *s)
{
	return s && s[0] == '/' && strlen(s) < MAX_PLAN_PATH;
}

bool plan_numbers_fit(const struct plan_numbers *n)
{
	if (n->flags & ~PLAN_FLAGS_ALL)
		return false;
	/* It needs a network of its own; a session's was made with the session. */
	if ((n->flags & PLAN_EGRESS) && (n->flags & (PLAN_BARE | PLAN_LANDLOCK | PLAN_SESSION)))
		return false;
	if (n->flags & PLAN_BARE)
		return true;
	/*
	 * Without namespaces it keeps the caller's ids, and root of a user namespace
	 * that somebody else made has only that one; core looks at what it stands for.
	 */
	if ((n->flags & PLAN_LANDLOCK) && !(n->flags & PLAN_ROOT))
		return !(n->flags & PLAN_STDIN_FILE) && n->rows <= 65535 && n->cols <= 65535;
	/* The command is never root, neither inside nor outside. */
	if (n->uid == 0 || n->uid == UINT32_MAX || n->gid == 0 || n->gid == UINT32_MAX)
		return false;
	if ((n->flags & PLAN_ROOT) &&
	    (n->outer_uid == 0 || n->outer_uid == UINT32_MAX || n->outer_gid == UINT32_MAX))
		return false;
	return n->rows <= 65535 && n->cols <= 65535;
}

static int mount_decode(const struct cursor *c, struct plan_mount *ret)
{
	struct record_mount m;

	if (c->bytes < sizeof(m))
		return -1;
	memcpy(&m, c->payload, sizeof(m));
	size_t rest = c->bytes - sizeof(m);
	if (m.dst_len >= MAX_PLAN_PATH || m.src_len > MAX_PLAN_FILE)
		return -1;
	if (rest != (size_t)m.dst_len + 1 + m.src_len + 1)
		return -1;
	const unsigned char *dst = c->payload + sizeof(m);
	const unsigned char *src = dst + m.dst_len + 1;
	if (m.kind >= MOUNT_KINDS || (m.flags & ~MOUNT_FLAGS_ALL) || src[m.src_len])
		return -1;
	*ret = (struct plan_mount){
		.kind = m.kind,
		.flags = m.flags,
		.dev = m.dev,
		.ino = m.ino,
		.owner_uid = m.owner_uid,
		.owner_gid = m.owner_gid,
		.dst = string_at(dst, (size_t)m.dst_len + 1),
		.src = (const char *)src,
		.src_len = m.src_len,
	};
	if (!is_path(ret->dst))
		return -1;
	if (m.kind == MOUNT_BIND)
		return is_path(string_at(src, (size_t)m.src_len + 1)) ? 0 : -1;
	if (m.kind == MOUNT_SYMLINK)
		return m.src_len && m.src_len < MAX_PLAN_PATH &&
				       string_at(src, (size_t)m.src_len + 1)
			       ? 0
			       : -1;
	return m.kind == MOUNT_FILE || m.src_len == 0 ? 0 : -1;
}

static int cgroup_decode(const struct cursor *c, struct plan_cgroup *ret)
{
	uint32_t head[2];

	if (c->bytes < sizeof(head))
		return -1;
	memcpy(head, c->payload, sizeof(head));
	ret->role = head[0];
	ret->dir = string_at(c->payload + sizeof(head), c->bytes - sizeof(head));
	return head[0] < CGROUP_ROLES && head[1] == 0 && is_path(ret->dir) ? 0 : -1;
}

static bool prefix_fits(const struct plan_prefix *p)
{
	unsigned int most = p->family == 4 ? 32 : 128;

	if ((p->family != 4 && p->family != 6) || p->bits > most)
		return false;
	for (unsigned int bit = p->bits; bit < 8 * sizeof(p->addr); bit++)
		if (p->addr[bit / 8] & (0x80u >> bit % 8))
			return false;
	return true;
}

static int egress_decode(const struct cursor *c, struct plan_egress *ret)
{
	struct record_egress r;

	if (c->bytes < sizeof(r))
		return -1;
	memcpy(&r, c->payload, sizeof(r));
	if (r.port_count > MAX_PLAN_PORTS || r.prefix_count > MAX_PLAN_PREFIXES)
		return -1;
	size_t ports = r.port_count * sizeof(*ret->ports);
	if (c->bytes != sizeof(r) + ports + r.prefix_count * sizeof(*ret->prefixes))
		return -1;
	memcpy(ret->ports, c->payload + sizeof(r), ports);
	ret->port_count = r.port_count;
	/* Bytes only: it lies wherever it is. */
	ret->prefixes = (const void *)(c->payload + sizeof(r) + ports);
	ret->prefix_count = r.prefix_count;
	for (size_t i = 0; i < ret->port_count; i++)
		if (!ret->ports[i] || (i && ret->ports[i] <= ret->ports[i - 1]))
			return -1;
	for (size_t i = 0; i < ret->prefix_count; i++)
		if (!prefix_fits(&ret->prefixes[i]))
			return -1;
	return 0;
}

static int single_string(const struct cursor *c, const char **slot)
{
	if (*slot)
		return -1;
	*slot = string_at(c->payload, c->bytes);
	return *slot && c->bytes <= MAX_PLAN_PATH ? 0 : -1;
}

/* First pass: counts the repeated records and checks the order of types. */
static int count_records(struct cursor c, const struct plan_header *h, size_t counts[REC_TYPES],
			 struct err *e)
{
	static const size_t most[REC_TYPES] = {
		[REC_NUMBERS] = 1,
		[REC_CWD] = 1,
		[REC_HOSTNAME] = 1,
		[REC_STDIN] = 1,
		[REC_CGROUP] = MAX_PLAN_CGROUPS,
		[REC_MOUNT] = MAX_PLAN_MOUNTS,
		[REC_ARG] = MAX_PLAN_STRINGS,
		[REC_ENV] = MAX_PLAN_STRINGS,
		[REC_EGRESS] = 1,
	};
	uint32_t last = 0;

	for (uint32_t i = 0; i < h->records; i++) {
		if (record_next(&c, e) < 0)
			return -1;
		if (h->magic == PLAN_MORE_MAGIC && c.type != REC_MOUNT)
			return bad(e, &c, "a record that does not belong into the second part");
		if (c.type < last)
			return bad(e, &c, "records are out of order");
		if (++counts[c.type] > most[c.type])
			return bad(e, &c, "too many records of one type");
		last = c.type;
	}
	if (c.at != c.len)
		return bad(e, &c, "bytes after the last record");
	if (h->magic == PLAN_MORE_MAGIC)
		return 0;
	for (uint32_t t = REC_NUMBERS; t <= REC_STDIN; t++)
		if (counts[t] != 1)
			return bad(e, &c, "a required record is missing");
	if (!counts[REC_ARG])
		return bad(e, &c, "no command");
	return 0;
}

static int fill_record(const struct cursor *c, struct plan *p)
{
	const char *s = NULL;

	switch ((enum record_type)c->type) {
	case REC_NUMBERS:
		if (c->bytes != sizeof(p->n))
			return -1;
		memcpy(&p->n, c->payload, sizeof(p->n));
		return plan_numbers_fit(&p->n) ? 0 : -1;
	case REC_CWD:
		return single_string(c, &p->cwd) < 0 || !is_path(p->cwd) ? -1 : 0;
	case REC_HOSTNAME:
		return single_string(c, &p->hostname);
	case REC_STDIN:
		return single_string(c, &p->stdin_path);
	case REC_CGROUP:
		return cgroup_decode(c, &p->cgroups[p->cgroup_count++]);
	case REC_MOUNT:
		if (mount_decode(c, &p->mounts[p->mount_count]) < 0)
			return -1;
		/* A rule is about a path of the host: nothing can be made, mapped or covered. */
		if ((p->n.flags & PLAN_LANDLOCK) &&
		    (p->mounts[p->mount_count].kind != MOUNT_BIND ||
		     (p->mounts[p->mount_count].flags & MOUNT_IDMAP)))
			return -1;
		p->mount_count++;
		return 0;
	case REC_ARG:
	case REC_ENV:
		s = string_at(c->payload, c->bytes);
		if (!s)
			return -1;
		if (c->type == REC_ARG)
			p->argv[p->argc++] = (char *)(uintptr_t)s;
		else
			p->envp[p->envc++] = (char *)(uintptr_t)s;
		return c->type == REC_ARG || strchr(s, '=') ? 0 : -1;
	case REC_EGRESS:
		return p->n.flags & PLAN_EGRESS ? egress_decode(c, &p->egress) : -1;
	case REC_TYPES:
		break;
	}
	return -1;
}

static int header_check(const void *bytes, size_t len, uint32_t magic, struct plan_header *ret,
			struct err *e)
{
	if (len < sizeof(*ret) || len > MAX_PLAN_BYTES)
		return err_set(e, ERR_INTERNAL, "plan: %zu bytes is not a plan's size", len);
	memcpy(ret, bytes, sizeof(*ret));
	if (ret->magic != magic)
		return err_set(e, ERR_INTERNAL, "plan: wrong magic");
	if (ret->version != PLAN_VERSION)
		return err_set(e, ERR_INTERNAL, "plan: version %u, this core reads %u",
			       ret->version, PLAN_VERSION);
	if (ret->total != len)
		return err_set(e, ERR_INTERNAL, "plan: says %u bytes, has %zu", ret->total, len);
	return 0;
}

static int decode(const void *bytes, size_t len, uint32_t magic, struct plan *ret, struct err *e)
{
	struct plan_header h;
	size_t counts[REC_TYPES] = {0};

	if (header_check(bytes, len, magic, &h, e) < 0)
		return -1;
	struct cursor c = {.base = bytes, .len = len, .at = sizeof(h)};
	if (count_records(c, &h, counts, e) < 0)
		return -1;

	struct plan p = {
		.mounts = calloc(counts[REC_MOUNT] + 1, sizeof(*p.mounts)),
		.cgroups = calloc(counts[REC_CGROUP] + 1, sizeof(*p.cgroups)),
		.argv = calloc(counts[REC_ARG] + 1, sizeof(*p.argv)),
		.envp = calloc(counts[REC_ENV] + 1, sizeof(*p.envp)),
	};
	if (!p.mounts || !p.cgroups || !p.argv || !p.envp) {
		plan_release(&p);
		return err_set(e, ERR_INTERNAL, "plan: out of memory");
	}
	for (uint32_t i = 0; i < h.records; i++) {
		if (record_next(&c, e) < 0 || fill_record(&c, &p) < 0) {
			plan_release(&p);
			return bad(e, &c, "invalid record before this");
		}
	}
	if ((p.n.flags & PLAN_EGRESS) && !counts[REC_EGRESS]) {
		plan_release(&p);
		return bad(e, &c, "a way out without its record");
	}
	*ret = p;
	return 0;
}

int plan_decode(const void *bytes, size_t len, struct plan *ret, struct err *e)
{
	return decode(bytes, len, PLAN_MAGIC, ret, e);
}

int plan_decode_more(const void *bytes, size_t len, struct plan *ret, struct err *e)
{
	return decode(bytes, len, PLAN_MORE_MAGIC, ret, e);
}

void plan_release(struct plan *p)
{
	free(p->mounts);
	free(p->cgroups);
	free(p->argv);
	free(p->envp);
	*p = (struct plan){0};
}
