/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which cgroups may be used: found from text and directories that the test made.
 */
#include "run/cgroups.h"

#include <sys/wait.h>

#include "test_run_ns.h"

static struct cgroups found;

static void setup(void)
{
	place_setup();
	put_dir("cg");
	ns_enter();
	ns_cover("cg", "/sys/fs/cgroup");
}

/* The process is said to be where these lines say. */
static void find(const char *lines)
{
	static bool covered;

	put_file("self", lines);
	if (!covered)
		ns_cover("self", "/proc/self/cgroup");
	covered = true;
	cgroups_find(&found);
}

static void is_base(uint32_t role, const char *want)
{
	ck_assert_str_eq(found.base[role], want);
}

START_TEST(hybrid)
{
	put_dir("cg/memory/a/b");
	put_dir("cg/pids/a");
	put_dir("cg/cpu/c");
	put_dir("cg/cpuset/d");
	put_dir("cg/systemd");
	find("12:cpuset:/d\n11:memory:/a/b\n9:pids:/a\n4:cpu,cpuacct:/c\n1:name=systemd:/x\n0::/y\n");
	ck_assert_int_eq(found.kind, CGROUP_KIND_V1);
	ck_assert(found.memory && found.pids && found.cpu);
	is_base(CGROUP_V1_MEMORY, "/sys/fs/cgroup/memory/a/b");
	is_base(CGROUP_V1_PIDS, "/sys/fs/cgroup/pids/a");
	is_base(CGROUP_V1_CPU, "/sys/fs/cgroup/cpu/c");
	is_base(CGROUP_V2, "");
	ck_assert(!cgroups_are_v2());
}
END_TEST

/* A name that only contains the controller's is another one. */
START_TEST(similar_names)
{
	put_dir("cg/cpu");
	put_dir("cg/pids");
	find("4:cpuacct,cpuset:/c\n3:xpids:/\n2:memory2:/\n1:name=cpu:/\n");
	ck_assert_int_eq(found.kind, CGROUP_KIND_NONE);
	find("4:cpuset,cpu:/\n");
	ck_assert(found.cpu && !found.memory && !found.pids);
	is_base(CGROUP_V1_CPU, "/sys/fs/cgroup/cpu");
}
END_TEST

/* A container shows its own group as the root of the hierarchy. */
START_TEST(container)
{
	put_dir("cg/memory");
	find("11:memory:/docker/0123\n");
	is_base(CGROUP_V1_MEMORY, "/sys/fs/cgroup/memory");
	find("11:memory:/\n");
	is_base(CGROUP_V1_MEMORY, "/sys/fs/cgroup/memory");
	find("9:pids:/docker/0123\n");
	ck_assert_int_eq(found.kind, CGROUP_KIND_NONE);
}
END_TEST

START_TEST(not_writable)
{
	put_dir("cg/memory/a");
	put_dir("cg/pids/a");
	ns_read_only("/sys/fs/cgroup/memory/a");
	find("11:memory:/a\n9:pids:/a\n");
	ck_assert(!found.memory && found.pids);
	is_base(CGROUP_V1_MEMORY, "");
	ck_assert_int_eq(found.kind, CGROUP_KIND_V1);
}
END_TEST

START_TEST(nothing)
{
	static const char *const texts[] = {"",   "\n",  "garbage\n",   "1:2\n",
					    "::", "0:x", "1:memory:/a", "\xff\xfe\n"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		find(texts[i]);
		ck_assert_int_eq(found.kind, CGROUP_KIND_NONE);
		ck_assert(!found.memory && !found.pids && !found.cpu);
		for (uint32_t r = 0; r < CGROUP_ROLES; r++)
			is_base(r, "");
	}
}
END_TEST

static void put_v2(const char *dir, const char *controllers)
{
	char path[512];

	put_dir(dir);
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", dir);
	put_file(path, controllers);
	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	put_file(path, "");
}

START_TEST(unified)
{
	put_file("cg/cgroup.controllers", "cpuset cpu io memory pids\n");
	put_v2("cg/user/me", "cpu memory pids\n");
	put_v2("cg/user/me/scope", "\n");
	find("0::/user/me/scope\n");
	ck_assert(cgroups_are_v2());
	ck_assert_int_eq(found.kind, CGROUP_KIND_V2);
	ck_assert(found.memory && found.pids && found.cpu);
	is_base(CGROUP_V2, "/sys/fs/cgroup/user/me");
	is_base(CGROUP_V1_MEMORY, "");
	/* Its own group, where that has them on for children. */
	put_v2("cg/user/me/scope", "memory\n");
	find("0::/user/me/scope\n");
	ck_assert(found.memory && !found.pids && !found.cpu);
	is_base(CGROUP_V2, "/sys/fs/cgroup/user/me/scope");
}
END_TEST

START_TEST(unified_not_delegated)
{
	put_file("cg/cgroup.controllers", "cpu memory pids\n");
	put_v2("cg", "cpu memory pids\n");
	put_v2("cg/user", "cpuset pids\n");
	find("0::/user\n");
	ck_assert_int_eq(found.kind, CGROUP_KIND_V2); /* the root of it, as root */
	is_base(CGROUP_V2, "/sys/fs/cgroup");
	/* It may not be written: nothing is. */
	ns_read_only("/sys/fs/cgroup");
	find("0::/user\n");
	ck_assert_int_eq(found.kind, CGROUP_KIND_NONE);
	find("0::/\n");
	ck_assert_int_eq(found.kind, CGROUP_KIND_NONE);
}
END_TEST

START_TEST(leaves)
{
	struct cgroups g = {.kind = CGROUP_KIND_V1};
	static struct cgroup_store store;
	struct plan_cgroup got[CGROUP_ROLES];
	char want[PATH_TEXT];

	snprintf(g.base[CGROUP_V1_MEMORY], PATH_TEXT, "/m/a");
	snprintf(g.base[CGROUP_V1_CPU], PATH_TEXT, "/c");
	ck_assert_uint_eq(cgroups_plan(&g, false, false, false, "t", &store, got), 0);
	ck_assert_uint_eq(cgroups_plan(&g, false, true, false, "t", &store, got), 0);
	ck_assert_uint_eq(cgroups_plan(&g, true, true, true, "t", &store, got), 2);
	snprintf(want, sizeof(want), "/m/a/sandglass-%d-t", (int)getpid());
	ck_assert_uint_eq(got[0].role, CGROUP_V1_MEMORY);
	ck_assert_str_eq(got[0].dir, want);
	snprintf(want, sizeof(want), "/c/sandglass-%d-t", (int)getpid());
	ck_assert_uint_eq(got[1].role, CGROUP_V1_CPU);
	ck_assert_str_eq(got[1].dir, want);
	memset(&g, 0, sizeof(g));
	snprintf(g.base[CGROUP_V2], PATH_TEXT, "/u");
	ck_assert_uint_eq(cgroups_plan(&g, false, true, false, "t", &store, got), 1);
	ck_assert_uint_eq(got[0].role, CGROUP_V2);
	ck_assert_uint_eq(cgroups_plan(&g, false, false, false, "t", &store, got), 0);
}
END_TEST

static bool is_there(const char *name)
{
	return access(at("cg/memory/%s", name), F_OK) == 0;
}

/* Leaves of the dead go, those of the living and of others stay. */
START_TEST(sweep)
{
	static const char *const stay[] = {"sandglass-x", "sandglass-0-x", "sandglass--5-x",
					   "other-1-x", "sandglass"};
	char dead[64], alive[64], busy[64];
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	snprintf(dead, sizeof(dead), "cg/memory/sandglass-%d-a", (int)pid);
	snprintf(busy, sizeof(busy), "cg/memory/sandglass-%d-b/in", (int)pid);
	snprintf(alive, sizeof(alive), "cg/memory/sandglass-%d-a", (int)getpid());
	put_dir(dead);
	put_dir(busy);
	put_dir(alive);
	for (size_t i = 0; i < ARRAY_LEN(stay); i++) {
		char name[64];
		snprintf(name, sizeof(name), "cg/memory/%s", stay[i]);
		put_dir(name);
	}
	find("1:memory:/\n");
	cgroups_sweep(&found);
	ck_assert(!is_there(dead + strlen("cg/memory/")));
	ck_assert(is_there(busy + strlen("cg/memory/")));
	ck_assert(is_there(alive + strlen("cg/memory/")));
	for (size_t i = 0; i < ARRAY_LEN(stay); i++)
		ck_assert_msg(is_there(stay[i]), "%s", stay[i]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("run cgroups");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, setup, ns_close);
	tcase_add_test(c, hybrid);
	tcase_add_test(c, similar_names);
	tcase_add_test(c, container);
	tcase_add_test(c, not_writable);
	tcase_add_test(c, nothing);
	tcase_add_test(c, unified);
	tcase_add_test(c, unified_not_delegated);
	tcase_add_test(c, leaves);
	tcase_add_test(c, sweep);
	suite_add_tcase(s, c);
	return suite_run(s);
}
