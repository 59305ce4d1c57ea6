/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the decoder of the plan.
 *
 * What it accepts must be said in the same bytes by the encoder, must be
 * printable, and must keep the promises that core builds on. The input is tried
 * as it is and with a header that fits it, since few random bytes have one.
 */
#include "plan/plan.h"

#include "base/buf.h"
#include "fuzz_base.h"
#include "plan/record.h"

#define MAX_DUMP_BYTES (8u * MAX_PLAN_BYTES)

static void check_path(const char *s)
{
	FUZZ_CHECK(s && s[0] == '/' && strlen(s) < MAX_PLAN_PATH);
}

static void check_mount(const struct plan_mount *m)
{
	FUZZ_CHECK(m->kind < MOUNT_KINDS && !(m->flags & ~MOUNT_FLAGS_ALL));
	FUZZ_CHECK(m->src_len <= MAX_PLAN_FILE && m->src[m->src_len] == '\0');
	check_path(m->dst);
	if (m->kind == MOUNT_BIND)
		check_path(m->src);
	if (m->kind == MOUNT_BIND || m->kind == MOUNT_SYMLINK)
		FUZZ_CHECK(strlen(m->src) == m->src_len && m->src_len > 0);
	else if (m->kind != MOUNT_FILE)
		FUZZ_CHECK(m->src_len == 0);
}

static void check_list(char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		FUZZ_CHECK(list[i] && strlen(list[i]) < MAX_PLAN_BYTES);
	FUZZ_CHECK(!list[n]);
}

static void check_promises(const struct plan *p)
{
	FUZZ_CHECK(!(p->n.flags & ~PLAN_FLAGS_ALL));
	if (!(p->n.flags & PLAN_BARE)) {
		FUZZ_CHECK(p->n.uid != 0);
		if (p->n.flags & PLAN_ROOT)
			FUZZ_CHECK(p->n.outer_uid != 0);
	}
	check_path(p->cwd);
	FUZZ_CHECK(strlen(p->hostname) < MAX_PLAN_PATH && strlen(p->stdin_path) < MAX_PLAN_PATH);
	FUZZ_CHECK(p->mount_count <= MAX_PLAN_MOUNTS && p->cgroup_count <= MAX_PLAN_CGROUPS);
	for (size_t i = 0; i < p->mount_count; i++)
		check_mount(&p->mounts[i]);
	for (size_t i = 0; i < p->cgroup_count; i++) {
		FUZZ_CHECK(p->cgroups[i].role < CGROUP_ROLES);
		check_path(p->cgroups[i].dir);
	}
	FUZZ_CHECK(p->n.flags & PLAN_EGRESS || !(p->egress.port_count || p->egress.prefix_count));
	FUZZ_CHECK(p->egress.port_count <= MAX_PLAN_PORTS &&
		   p->egress.prefix_count <= MAX_PLAN_PREFIXES);
	for (size_t i = 0; i < p->egress.port_count; i++)
		FUZZ_CHECK(p->egress.ports[i] > (i ? p->egress.ports[i - 1] : 0));
	for (size_t i = 0; i < p->egress.prefix_count; i++) {
		const struct plan_prefix *a = &p->egress.prefixes[i];
		FUZZ_CHECK(a->bits <= (a->family == 4 ? 32 : 128));
		for (size_t k = a->family == 4 ? 4 : 16; k < sizeof(a->addr); k++)
			FUZZ_CHECK(a->addr[k] == 0);
	}
	FUZZ_CHECK(p->argc > 0);
	check_list(p->argv, p->argc);
	check_list(p->envp, p->envc);
	for (size_t i = 0; i < p->envc; i++)
		FUZZ_CHECK(strchr(p->envp[i], '='));
}

static void check_plan(const void *bytes, size_t size)
{
	AUTO_BUF again = BUF_INIT(MAX_PLAN_BYTES);
	AUTO_BUF words = BUF_INIT(MAX_DUMP_BYTES);
	struct err e = {0};
	struct plan p;

	if (plan_decode(bytes, size, &p, &e) < 0) {
		FUZZ_CHECK(e.code == ERR_INTERNAL);
		fuzz_check_err(&e);
		return;
	}
	FUZZ_CHECK(e.code == ERR_NONE);
	check_promises(&p);
	FUZZ_CHECK(plan_encode(&p, &again, &e) == 0);
	FUZZ_CHECK(again.n == size && memcmp(again.p, bytes, size) == 0);
	FUZZ_CHECK(plan_dump(&p, &words, &e) == 0);
	plan_release(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plan_header h = {.magic = PLAN_MAGIC, .version = PLAN_VERSION};

	check_plan(data, size);
	if (size < sizeof(h))
		return 0;
	unsigned char *fixed = malloc(size);
	FUZZ_CHECK(fixed != NULL);
	memcpy(fixed, data, size);
	memcpy(&h.records, data + offsetof(struct plan_header, records), sizeof(h.records));
	h.total = (uint32_t)size;
	memcpy(fixed, &h, sizeof(h));
	check_plan(fixed, size);
	free(fixed);
	return 0;
}
