/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PATH makes visible, and what it never does.
 */
#include "policy/view.h"

#include "test_policy_place.h"

static struct view view;
static char home[PATH_TEXT];

/* Builds the toolchains' part for a PATH; `%` stands for home, `+` for the place. */
static void build(const char *path, const struct source *src)
{
	static const struct source none = {.given = false};
	static char text[4 * PATH_TEXT];
	char *vars[] = {text, NULL};
	struct err e;
	size_t n = (size_t)snprintf(text, sizeof(text), "PATH=");

	for (; *path; path++) {
		const char *more = *path == '%' ? home : *path == '+' ? place_top : NULL;
		int got = more ? snprintf(text + n, sizeof(text) - n, "%s", more)
			       : snprintf(text + n, sizeof(text) - n, "%c", *path);
		n += (size_t)got;
		ck_assert_uint_lt(n, sizeof(text));
	}
	struct caller who = caller_of(home, vars);
	static struct refused refused;
	CK_WORKS(refused_init(&who, &refused, &e), e);
	view_release(&view);
	CK_WORKS(view_bind(&view, "/usr", NULL, MOUNT_SYSTEM, NULL, &e), e);
	CK_WORKS(view_add_toolchains(&view, &who, src ? src : &none, &refused, &e), e);
}

static size_t added(void)
{
	return view.n - 1;
}

/* The only thing added is that directory, read-only, by identity. */
static void shows_only(const char *src, const char *dst)
{
	struct stat st;

	ck_assert_msg(added() == 1, "%zu added", added());
	const struct plan_mount *m = &view.mounts[1];
	ck_assert_str_eq(m->src, src);
	ck_assert_str_eq(m->dst, dst);
	ck_assert_int_eq(lstat(src, &st), 0);
	ck_assert(m->dev == st.st_dev && m->ino == st.st_ino);
	ck_assert_uint_eq(m->flags, MOUNT_SYSTEM | MOUNT_OPTIONAL | MOUNT_IDENT | MOUNT_DIRECTORY);
}

static void setup(void)
{
	static const char *const dirs[] = {"me/.nvm/versions/node/v1/bin",
					   "me/.cargo/bin",
					   "me/.rustup/toolchains",
					   "me/.local/bin",
					   "me/.local/share/uv",
					   "me/.local/share/keyrings",
					   "me/.ssh/bin",
					   "me/.config/tool/bin",
					   "me/.aws",
					   "me/bin",
					   "me/.gnupg",
					   "me/.claude/bin",
					   "me/.pyenv/shims",
					   "tools/bin",
					   "src/bin"};

	place_setup_outside_tmp();
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		put_dir(dirs[i]);
	put_file("me/file", "x");
	snprintf(home, sizeof(home), "%s", at("me"));
}

static void teardown(void)
{
	view_release(&view);
	place_close();
}

START_TEST(roots_of_home)
{
	build("%/.nvm/versions/node/v1/bin:/usr/bin", NULL);
	shows_only(at("me/.nvm"), at("me/.nvm"));
	build("%/bin", NULL);
	shows_only(at("me/bin"), at("me/bin"));
	build("%/.pyenv/shims:%/.pyenv/bin:%/.pyenv/shims", NULL);
	shows_only(at("me/.pyenv"), at("me/.pyenv"));
	build("%/.cargo/bin", NULL);
	ck_assert_uint_eq(added(), 2);
	ck_assert_str_eq(view.mounts[1].dst, at("me/.cargo/bin"));
	ck_assert_str_eq(view.mounts[2].dst, at("me/.rustup"));
	build("%/.local/bin", NULL);
	ck_assert_uint_eq(added(), 2);
	ck_assert_str_eq(view.mounts[1].dst, at("me/.local/bin"));
	ck_assert_str_eq(view.mounts[2].dst, at("me/.local/share/uv"));
}
END_TEST

START_TEST(secret_places)
{
	static const char *const bad[] = {
		"%",
		"%/",
		"%/.ssh",
		"%/.ssh/bin",
		"%/.config/tool/bin",
		"%/.aws",
		"%/.gnupg",
		"%//.ssh/",
		"%/./.ssh/bin",
		"%/.claude/bin",
		"%/.",
		"%/nothing/x",
		"%/file",
		"%/.local/share/keyrings",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		build(bad[i], NULL);
		ck_assert_msg(added() == 0, "%s shows %s", bad[i], view.mounts[1].src);
	}
	/* The next entry is still looked at. */
	build("%/.ssh/bin:%/bin", NULL);
	shows_only(at("me/bin"), at("me/bin"));
}
END_TEST

START_TEST(host_places)
{
	static const char *const bad[] = {
		"/",
		"/tmp",
		"/tmp/bin",
		"/var/tmp/x",
		"/run",
		"/run/user/1000/x",
		"/var/run",
		"/mnt/bin",
		"/media/x",
		"/proc/self",
		"/sys/kernel",
		"/dev",
		"/dev/shm",
		"/sand/bin",
		"/boot",
		"/home",
		"/home/nobody-at-all/bin",
		"/root",
		"/root/bin",
		"/usr/bin",
		"/usr/local/bin",
		"relative/bin",
		".",
		"",
		":::",
		"//tmp",
		"/./tmp/../tmp",
		"/usr/../tmp",
		"/nothing/at/all",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		build(bad[i], NULL);
		ck_assert_msg(added() == 0, "%s shows %s", bad[i], view.mounts[1].src);
	}
	build("", NULL);
	ck_assert_uint_eq(added(), 0);
}
END_TEST

/* Programs of the source are no programs of the system: PATH adds nothing there. */
START_TEST(inside_the_source)
{
	static const char *const entries[] = {"+/src/bin", "+/src", "+/src/", "+/src/./bin",
					      "+/src/none"};
	struct source src = {.given = true, .st = stat_of("src")};

	snprintf(src.path, sizeof(src.path), "%s", at("src"));
	for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
		build(entries[i], &src);
		ck_assert_msg(added() == 0, "%s shows %s", entries[i], view.mounts[1].src);
	}
	/* Control: the name of the source is no prefix of it. */
	put_dir("me/srcbin");
	build("%/srcbin", &src);
	shows_only(at("me/srcbin"), at("me/srcbin"));
}
END_TEST

/*
 * A link may be an earlier command's work: it leads nowhere, least of all to what
 * PATH could not name itself.
 */
START_TEST(through_a_link)
{
	static const char *const links[][2] = {
		{"me/l1", ".nvm/versions/node/v1/bin"},
		{"me/l2", ".ssh"},
		{"me/l3", "."},
		{"me/l4", "/"},
		{"me/l5", "/root"},
		{"me/l6", "/tmp"},
		{"me/l7", "/etc"},
		{"me/l8", "+src"},
		{"me/.cargo/l9", "../.aws"},
		{"me/.local/bin/l10", "+tools/bin"},
		{"me/l11", "l2"},
	};
	struct source src = {.given = true, .st = stat_of("src")};
	char entry[128];

	snprintf(src.path, sizeof(src.path), "%s", at("src"));
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		put_link(links[i][0], links[i][1]);
		snprintf(entry, sizeof(entry), "+/%s", links[i][0]);
		build(entry, &src);
		for (size_t m = 1; m < view.n; m++) /* a root of home it lies in may appear */
			ck_assert_msg(strcmp(view.mounts[m].src, view.mounts[m].dst) == 0 &&
					      strstr(view.mounts[m].src, "/me/.") != NULL,
				      "%s shows %s", entry, view.mounts[m].src);
	}
	/* Nor does a link on the way. */
	put_dir("tools/real/bin");
	put_link("me/way", "+tools/real");
	build("%/way/bin", NULL);
	ck_assert_uint_eq(added(), 0);
}
END_TEST

/* A secret place is one in whoever's home it is, and under whatever it lies. */
START_TEST(secret_parts)
{
	static const char *const bad[] = {"tools/.ssh/bin", "tools/x/.aws", "tools/.gnupg",
					  "me/x/.docker/bin"};
	char entry[128];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		put_dir(bad[i]);
		snprintf(entry, sizeof(entry), "+/%s", bad[i]);
		build(entry, NULL);
		ck_assert_msg(added() == 0, "%s shows %s", bad[i], view.mounts[1].src);
	}
}
END_TEST

/* What holds the home is no toolchain either. */
START_TEST(around_the_home)
{
	build("+", NULL);
	ck_assert_uint_eq(added(), 0);
	build("+/:+/me/..", NULL);
	ck_assert_uint_eq(added(), 0);
}
END_TEST

START_TEST(other_places)
{
	if (place_in_home)
		return; /* a home that is not the caller's: nothing below it is shown */
	build("+/tools/bin", NULL);
	shows_only(at("tools/bin"), at("tools/bin"));
}
END_TEST

START_TEST(no_path)
{
	static const struct source none = {.given = false};
	struct caller who = caller_of(home, NULL);
	struct err e;

	view_release(&view);
	static struct refused refused;
	CK_WORKS(refused_init(&who, &refused, &e), e);
	CK_WORKS(view_add_toolchains(&view, &who, &none, &refused, &e), e);
	ck_assert_uint_eq(view.n, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("policy toolchain");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, roots_of_home);
	tcase_add_test(c, secret_places);
	tcase_add_test(c, host_places);
	tcase_add_test(c, inside_the_source);
	tcase_add_test(c, through_a_link);
	tcase_add_test(c, secret_parts);
	tcase_add_test(c, around_the_home);
	tcase_add_test(c, other_places);
	tcase_add_test(c, no_path);
	suite_add_tcase(s, c);
	return suite_run(s);
}
