/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which directory is the source, and which never is.
 */
#include "policy/source.h"

#include "policy/state.h"
#include "test_policy_place.h"

static char *env[4];

/* A caller with home, state and configuration in this place. */
static struct caller somebody(void)
{
	static char state[PATH_TEXT + 32], config[PATH_TEXT + 32], home[PATH_TEXT];

	put_dir("people/me/projects/p/deep/er");
	put_dir("state/here/sessions");
	put_dir("config/sandglass/sub");
	put_dir("other/q");
	snprintf(home, sizeof(home), "%s", at("people/me"));
	snprintf(state, sizeof(state), "SANDGLASS_HOME=%s", at("state/here"));
	snprintf(config, sizeof(config), "XDG_CONFIG_HOME=%s", at("config"));
	env[0] = state;
	env[1] = config;
	return caller_of(home, env);
}

static struct refused refused_of(const struct caller *who)
{
	static struct refused r;
	struct err e;

	CK_WORKS(refused_init(who, &r, &e), e);
	return r;
}

static int check(const struct refused *r, const char *path, struct err *e)
{
	struct places nowhere = {.n = 0};
	struct resolved dir;

	ck_assert_msg(resolve_path(path, NULL, &nowhere, &dir, e) == 0, "%s", e->msg);
	return refused_check(r, "source", &dir, e);
}

START_TEST(homes_are_refused)
{
	static const char *const bad[] = {"",
					  "people",
					  "people/me",
					  "link-home",
					  "link-top",
					  "link-up",
					  "people/me/projects/..",
					  "state/../people"};
	static const char *const good[] = {"people/me/projects", "people/me/projects/p", "other",
					   "link-home/projects"};
	struct caller who = somebody();
	struct refused r = refused_of(&who);
	struct err e;

	put_link("link-home", "people/me");
	put_link("link-top", "+");
	put_link("link-up", "people/me/../..");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CK_FAILS(check(&r, at("%s", bad[i]), &e), e, ERR_POLICY_DENIED, "home directory");
		ck_assert_ptr_nonnull(strstr(e.hint, "--source DIR"));
	}
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		CK_WORKS(check(&r, at("%s", good[i]), &e), e);
	CK_FAILS(check(&r, "/", &e), e, ERR_POLICY_DENIED, "the whole file system");
	CK_FAILS(check(&r, "/usr/..", &e), e, ERR_POLICY_DENIED, "the whole file system");
	CK_FAILS(check(&r, at(".."), &e), e, ERR_POLICY_DENIED, "home directory or holds one");
	CK_WORKS(check(&r, "/usr", &e), e);
}
END_TEST

/* root's home is one for everybody. */
START_TEST(homes_of_others)
{
	struct caller who = somebody();
	struct refused r = refused_of(&who);
	struct err e;
	struct stat st;

	ck_assert_int_eq(lstat("/root", &st), 0);
	CK_FAILS(check(&r, "/root", &e), e, ERR_POLICY_DENIED, "home directory");
}
END_TEST

START_TEST(no_home_at_all)
{
	struct caller who = somebody();
	struct err e;

	who.home = NULL;
	struct refused r = refused_of(&who);
	CK_WORKS(check(&r, at("people/me"), &e), e);
	CK_FAILS(check(&r, "/", &e), e, ERR_POLICY_DENIED, "the whole file system");
	who.home = "/nonexistent/at/all";
	r = refused_of(&who);
	CK_WORKS(check(&r, at("people/me"), &e), e);
}
END_TEST

START_TEST(state_is_refused)
{
	static const struct {
		const char *path, *text;
	} bad[] = {
		{"state", "holds sandglass's own"},
		{"state/here", "holds sandglass's own"},
		{"state/here/sessions", "lies in sandglass's own"},
		{"config", "holds sandglass's own"},
		{"config/sandglass", "holds sandglass's own"},
		{"config/sandglass/sub", "lies in sandglass's own"},
		{"link-state", "holds sandglass's own"},
		{"link-sessions", "lies in sandglass's own"},
	};
	struct caller who = somebody();
	struct refused r = refused_of(&who);
	struct err e;

	put_link("link-state", "state");
	put_link("link-sessions", "+state/here/sessions");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CK_FAILS(check(&r, at("%s", bad[i].path), &e), e, ERR_POLICY_DENIED, bad[i].text);
}
END_TEST

/* The state behind a link is the state too. */
START_TEST(state_through_a_link)
{
	struct caller who = somebody();
	static char named[PATH_TEXT + 32];
	struct err e;

	put_dir("real/state/x");
	put_link("to-state", "real/state");
	snprintf(named, sizeof(named), "SANDGLASS_HOME=%s", at("to-state"));
	env[0] = named;
	struct refused r = refused_of(&who);
	CK_FAILS(check(&r, at("real"), &e), e, ERR_POLICY_DENIED, "holds sandglass's own");
	CK_FAILS(check(&r, at("real/state/x"), &e), e, ERR_POLICY_DENIED,
		 "lies in sandglass's own");
}
END_TEST

START_TEST(state_homes)
{
	static const struct {
		const char *named, *xdg, *home;
		uid_t uid;
		const char *want;
	} rows[] = {
		{"/n", "/x", "/h", 1000, "/n"},
		{"/n", "/x", "/h", 0, "/n"},
		{"relative", "/x", "/h", 1000, "/x/sandglass"},
		{"", "/x", "/h", 1000, "/x/sandglass"},
		{NULL, "/x", "/h", 0, "/var/lib/sandglass"},
		{NULL, "relative", "/h", 1000, "/h/.local/state/sandglass"},
		{NULL, NULL, "/h", 1000, "/h/.local/state/sandglass"},
	};
	char one[64], two[64], got[PATH_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *vars[3] = {NULL};
		size_t n = 0;
		if (rows[i].named) {
			snprintf(one, sizeof(one), "SANDGLASS_HOME=%s", rows[i].named);
			vars[n++] = one;
		}
		if (rows[i].xdg) {
			snprintf(two, sizeof(two), "XDG_STATE_HOME=%s", rows[i].xdg);
			vars[n++] = two;
		}
		struct caller who = {.uid = rows[i].uid, .home = rows[i].home, .env = vars};
		state_home(&who, got);
		ck_assert_str_eq(got, rows[i].want);
	}
}
END_TEST

START_TEST(variables)
{
	char *vars[] = {(char *)"AB=1", (char *)"A=2=3",  (char *)"EMPTY=",
			(char *)"odd",  (char *)"A=late", NULL};
	struct caller who = {.env = vars};

	ck_assert_str_eq(caller_env(&who, "A"), "2=3");
	ck_assert_str_eq(caller_env(&who, "AB"), "1");
	ck_assert_str_eq(caller_env(&who, "EMPTY"), "");
	ck_assert_ptr_null(caller_env(&who, "odd"));
	ck_assert_ptr_null(caller_env(&who, "B"));
	ck_assert_ptr_null(caller_env(&who, ""));
}
END_TEST

static int find(const struct request *req, const struct caller *who, struct source *ret,
		struct err *e)
{
	struct refused r = refused_of(who);

	return source_find(req, who, &r, ret, e);
}

static void finds(const struct caller *who, const char *named, const char *want)
{
	struct request req = request_of_nothing();
	struct source src;
	struct err e;

	req.source = named;
	CK_WORKS(find(&req, who, &src, &e), e);
	ck_assert(src.given);
	ck_assert_str_eq(src.path, want);
	struct stat st;
	ck_assert_int_eq(lstat(want, &st), 0);
	ck_assert(src.st.st_ino == st.st_ino && src.st.st_dev == st.st_dev);
}

START_TEST(found_by_git)
{
	struct caller who = somebody();
	char p[PATH_TEXT], deep[PATH_TEXT], er[PATH_TEXT];

	snprintf(p, sizeof(p), "%s", at("people/me/projects/p"));
	snprintf(deep, sizeof(deep), "%s", at("people/me/projects/p/deep"));
	snprintf(er, sizeof(er), "%s", at("people/me/projects/p/deep/er"));
	who.cwd = er;
	finds(&who, NULL, er);
	put_dir("people/me/projects/p/.git");
	finds(&who, NULL, p);
	who.cwd = p;
	finds(&who, NULL, p);
	/* The nearest one; a linked work tree or submodule has a file there. */
	put_file("people/me/projects/p/deep/.git", "gitdir: elsewhere\n");
	who.cwd = er;
	finds(&who, NULL, deep);
	ck_assert_int_eq(unlink(at("people/me/projects/p/deep/.git")), 0);
	/* A link is no work tree's. */
	put_link("people/me/projects/p/deep/.git", "../.git");
	finds(&who, NULL, p);
}
END_TEST

START_TEST(found_by_name)
{
	struct caller who = somebody();
	char q[PATH_TEXT];

	snprintf(q, sizeof(q), "%s", at("other/q"));
	put_dir("other/.git");
	who.cwd = at("other");
	finds(&who, "q", q); /* named: not its work tree */
	finds(&who, q, q);
	finds(&who, "./q/../q/", q);
	put_link("to-q", "other/q");
	finds(&who, at("to-q"), q);
	who.cwd = NULL;
	finds(&who, q, q);
}
END_TEST

START_TEST(found_nothing)
{
	struct caller who = somebody();
	struct request req = request_of_nothing();
	struct source src;
	struct err e;

	who.cwd = at("other/q");
	req.no_source = true;
	CK_WORKS(find(&req, &who, &src, &e), e);
	ck_assert(!src.given);
	who.cwd = NULL;
	CK_WORKS(find(&req, &who, &src, &e), e);
	req.source = "/usr";
	CK_FAILS(find(&req, &who, &src, &e), e, ERR_CONFIG_INVALID, "exclude each other");
	req = request_of_nothing();
	CK_FAILS(find(&req, &who, &src, &e), e, ERR_CONFIG_INVALID, "vanished");
	req.source = "q";
	CK_FAILS(find(&req, &who, &src, &e), e, ERR_CONFIG_INVALID, "vanished");
}
END_TEST

START_TEST(found_but_refused)
{
	static const struct {
		const char *named;
		enum err_code code;
		const char *text;
	} rows[] = {
		{"/", ERR_POLICY_DENIED, "the whole file system"},
		{"/../.", ERR_POLICY_DENIED, "the whole file system"},
		{"root-link", ERR_POLICY_DENIED, "the whole file system"},
		{"people/me", ERR_POLICY_DENIED, "home directory"},
		{"state/here", ERR_POLICY_DENIED, "sandglass's own"},
		{"file", ERR_CONFIG_INVALID, "is not a directory"},
		{"nothing", ERR_CONFIG_INVALID, "No such file"},
		{"/proc", ERR_CONFIG_INVALID, "/proc is the sandbox's own"},
		{"/proc/self", ERR_CONFIG_INVALID, "/proc is the sandbox's own"},
		{"/sys/kernel", ERR_CONFIG_INVALID, "/sys is the sandbox's own"},
		{"/dev", ERR_CONFIG_INVALID, "/dev is the sandbox's own"},
	};
	struct caller who = somebody();
	struct request req = request_of_nothing();
	struct source src;
	struct err e;

	put_link("root-link", "/");
	put_file("file", "x");
	who.cwd = "/usr";
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		req.source = rows[i].named[0] == '/' ? rows[i].named : at("%s", rows[i].named);
		CK_FAILS(find(&req, &who, &src, &e), e, rows[i].code, rows[i].text);
		ck_assert(!src.given);
	}
}
END_TEST

/* No project, and not only because a home may be in it. */
START_TEST(directories_of_the_system)
{
	static const char *const bad[] = {"/etc", "/usr",  "/usr/bin", "/tmp", "/var", "/var/tmp",
					  "/run", "/boot", "/opt",     "/srv", "/mnt", "/home"};
	struct caller who = somebody();
	struct request req = request_of_nothing();
	struct source src;
	struct stat st;
	struct err e;

	who.home = NULL;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (lstat(bad[i], &st) < 0)
			continue;
		req.source = bad[i];
		CK_FAILS(find(&req, &who, &src, &e), e, ERR_POLICY_DENIED,
			 "is a directory of the system");
	}
}
END_TEST

/* What an earlier run in this project may have put there is not followed. */
START_TEST(source_through_the_project)
{
	struct caller who = somebody();
	struct request req = request_of_nothing();
	struct source src;
	struct err e;
	char p[PATH_TEXT];

	put_dir("people/me/projects/p/.git");
	put_link("people/me/projects/p/sub", "+other/q");
	snprintf(p, sizeof(p), "%s", at("people/me/projects/p"));
	who.cwd = p;
	req.source = "sub";
	CK_FAILS(find(&req, &who, &src, &e), e, ERR_POLICY_DENIED, "a link in a directory");
	req.source = at("people/me/projects/p/sub");
	CK_FAILS(find(&req, &who, &src, &e), e, ERR_POLICY_DENIED, "a link in a directory");
	who.cwd = at("other");
	req.source = at("people/me/projects/p/sub");
	CK_WORKS(find(&req, &who, &src, &e), e);
}
END_TEST

/* A `.git` of somebody else above the working directory widens nothing. */
START_TEST(git_of_a_stranger)
{
	struct caller who = somebody();
	char deep[PATH_TEXT], p[PATH_TEXT];

	if (getuid() != 0)
		return; /* nobody else's file can be made here; as root it is */
	snprintf(p, sizeof(p), "%s", at("people/me/projects/p"));
	snprintf(deep, sizeof(deep), "%s", at("people/me/projects/p/deep"));
	put_dir("people/me/projects/p/.git");
	who.uid = 4321;
	ck_assert_int_eq(chown(deep, 4321, 4321), 0);
	who.cwd = deep;
	finds(&who, NULL, p); /* root's */
	ck_assert_int_eq(chown(at("people/me/projects/p/.git"), 999, 999), 0);
	finds(&who, NULL, deep);
	ck_assert_int_eq(chown(at("people/me/projects/p/.git"), 4321, 4321), 0);
	finds(&who, NULL, p);
	ck_assert_int_eq(chown(p, 999, 999), 0);
	finds(&who, NULL, deep);
	/* Root in a user's project: the owner of the working directory counts. */
	who.uid = 0;
	ck_assert_int_eq(chown(p, 4321, 4321), 0);
	finds(&who, NULL, p);
}
END_TEST

/* A home that is a work tree: its directories are refused as what they are in. */
START_TEST(work_tree_around_home)
{
	struct caller who = somebody();
	struct request req = request_of_nothing();
	struct source src;
	struct err e;
	char deep[PATH_TEXT];

	put_dir("people/me/.git");
	snprintf(deep, sizeof(deep), "%s", at("people/me/projects/p"));
	who.cwd = deep;
	CK_FAILS(find(&req, &who, &src, &e), e, ERR_POLICY_DENIED, "home directory");
	req.source = ".";
	CK_WORKS(find(&req, &who, &src, &e), e);
	ck_assert_str_eq(src.path, deep);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("policy source");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, place_setup, place_close);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, homes_are_refused);
	tcase_add_test(c, homes_of_others);
	tcase_add_test(c, no_home_at_all);
	tcase_add_test(c, state_is_refused);
	tcase_add_test(c, state_through_a_link);
	tcase_add_test(c, state_homes);
	tcase_add_test(c, variables);
	tcase_add_test(c, found_by_git);
	tcase_add_test(c, found_by_name);
	tcase_add_test(c, found_nothing);
	tcase_add_test(c, found_but_refused);
	tcase_add_test(c, directories_of_the_system);
	tcase_add_test(c, source_through_the_project);
	tcase_add_test(c, git_of_a_stranger);
	tcase_add_test(c, work_tree_around_home);
	suite_add_tcase(s, c);
	return suite_run(s);
}
