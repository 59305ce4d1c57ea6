/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What push decides from text alone: branches, remotes, the commit's stream and message.
 */
#include <string.h>

#include "review/branch.h"
#include "review/commit.h"
#include "review/repo.h"
#include "test_policy_place.h"

START_TEST(no_password_is_shown)
{
	static const char *const pairs[][2] = {
		{"https://user:pa@ss@host/x", "https://host/x"},
		{"https://token@host:8443/a@b", "https://host:8443/a@b"},
		{"git@host:a/b", "git@host:a/b"},
		{"fatal: 'https://u:p@h/' and ssh://g@i:2/x",
		 "fatal: 'https://h/' and ssh://i:2/x"},
		{"file:///a@b", "file:///a@b"},
		{"", ""},
	};
	char shown[128];

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		ck_assert_str_eq(remote_shown(pairs[i][0], shown, sizeof(shown)), pairs[i][1]);
}
END_TEST

START_TEST(branches)
{
	static const char *const good[] = {"a", "sandglass/11111111", "fix/x.y", "a@b", "a{b", "é"};
	static const char *const bad[] = {"",         "-a",      "a..b", ".a",           "a/.b",
					  "a.",       "a/",      "/a",   "a//b",         "a b",
					  "a~1",      "a^",      "a:b",  "a?",           "a*",
					  "a[",       "a\\b",    "a\nb", "a\x7f",        "@",
					  "a@{1}",    "HEAD",    "head", "refs/heads/a", "a.lock",
					  "a.lock/b", "x/b.lock"};
	char longest[MAX_BRANCH + 2];
	struct err e = {0};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		CK_WORKS(branch_check(good[i], &e), e);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_msg(branch_check(bad[i], &e) == -1 && e.code == ERR_CONFIG_INVALID,
			      "accepted: `%s`", bad[i]);
	memset(longest, 'a', sizeof(longest));
	longest[MAX_BRANCH + 1] = '\0';
	ck_assert_int_eq(branch_check(longest, &e), -1);
	longest[MAX_BRANCH] = '\0';
	e = (struct err){0};
	CK_WORKS(branch_check(longest, &e), e);
}
END_TEST

START_TEST(patterns)
{
	ck_assert(branch_matches("main", "main"));
	ck_assert(branch_matches("main", "MAIN"));
	ck_assert(branch_matches("release/*", "release/1"));
	ck_assert(branch_matches("release/*", "Release/1/2"));
	ck_assert(branch_matches("*", "anything/at/all"));
	ck_assert(branch_matches("v?.*", "v1.2"));
	ck_assert(branch_matches("a*b*c", "axxbxbxc"));
	ck_assert(branch_matches("a**", "a"));
	ck_assert(!branch_matches("main", "main2"));
	ck_assert(!branch_matches("main", "mai"));
	ck_assert(!branch_matches("release/*", "release"));
	ck_assert(!branch_matches("v?.*", "v.2"));
	ck_assert(!branch_matches("a*b*c", "axxbxb"));
	ck_assert(!branch_matches("", "a"));
	/* No pattern takes long. */
	char text[201];
	memset(text, 'a', 200);
	text[200] = '\0';
	ck_assert(!branch_matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}
END_TEST

START_TEST(remotes)
{
	static const struct {
		const char *url, *local;
	} good[] = {
		{"/srv/r.git", "/srv/r.git"},
		{"../r.git", "../r.git"},
		{"./a:b", "./a:b"},
		{"file:///srv/r", "/srv/r"},
		{"https://example.com/r", NULL},
		{"HTTPS://example.com/r", NULL},
		{"ssh://git@example.com/r", NULL},
		{"git@example.com:team/r.git", NULL},
	};
	static const char *const bad[] = {
		"",
		"-x",
		"--upload-pack=x",
		"ext::sh -c x",
		"fd::7",
		"http://example.com/r",
		"git://example.com/r",
		"ftp://example.com/r",
		"ssh://-oProxyCommand=x/r",
		"https://-x",
		"foo::bar",
		"transport::https://example.com/r",
	};
	const char *local = NULL;
	struct err e = {0};

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		CK_WORKS(remote_check(good[i].url, &local, &e), e);
		ck_assert_msg(good[i].local ? local && strcmp(local, good[i].local) == 0 : !local,
			      "%s", good[i].url);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_msg(remote_check(bad[i], &local, &e) == -1, "accepted: `%s`", bad[i]);
}
END_TEST

START_TEST(remote_of_configuration)
{
	struct repo repo;
	struct repo_remote r;

	put_dir("common");
	(void)snprintf(repo.common, sizeof(repo.common), "%s", at("common"));
	repo_remote(&repo, NULL, "main", &r);
	ck_assert_str_eq(r.url, "");
	put_file("common/config",
		 "[remote \"origin\"]\n\turl = /one\n\turl = /two\n\tpushurl = /three\n"
		 "[remote \"up\"]\n\turl = https://example.com/r\n"
		 "[branch \"topic\"]\n\tremote = up\n");
	repo_remote(&repo, NULL, "main", &r);
	ck_assert_str_eq(r.name, "origin");
	ck_assert_str_eq(r.url, "/one");
	repo_remote(&repo, NULL, "topic", &r);
	ck_assert_str_eq(r.name, "up");
	ck_assert_str_eq(r.url, "https://example.com/r");
	repo_remote(&repo, "origin", "topic", &r);
	ck_assert_str_eq(r.url, "/one");
	repo_remote(&repo, "none", "", &r);
	ck_assert_str_eq(r.url, "");
	ck_assert_str_eq(r.name, "");
	ck_assert_int_eq(unlink(at("common/config")), 0);
	put_link("common/config", "+elsewhere");
	put_file("elsewhere", "[remote \"origin\"]\n\turl = /one\n");
	repo_remote(&repo, NULL, "", &r);
	ck_assert_str_eq(r.url, "");
}
END_TEST

static char *stream_of(const char *const *paths, size_t n, struct commit_paths *p)
{
	static char text[8192];
	struct commit_head head = {.parent = "aa",
				   .name = "N",
				   .email = "e@x",
				   .time_s = 7,
				   .message = "m\n"};
	struct err e = {0};
	int source = open(at("src"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int out = open(at("out"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CK_WORKS(commit_paths_find(source, paths, n, p, &e), e);
	CK_WORKS(commit_stream(out, &head, source, p, &e), e);
	ssize_t got = pread(out, text, sizeof(text) - 1, 0);
	ck_assert_int_gt(got, 0);
	text[got] = '\0';
	ck_assert_int_eq(close(out), 0);
	ck_assert_int_eq(close(source), 0);
	return text;
}

START_TEST(streams)
{
	static const char *const paths[] = {".", ".git/hooks/x", "a",    "b/.GIT/c", "dir", "gone",
					    "l", "q\"\n\\",      "s/ub", "via/x"};
	struct commit_paths p;

	put_dir("src/dir");
	put_dir("src/s/.git");
	put_dir("src/real");
	put_file("src/a", "A");
	put_file("src/s/ub", "");
	put_file("src/real/x", "not by a link");
	put_file("src/q\"\n\\", "Q");
	put_link("src/l", "/etc/passwd");
	put_link("src/via", "real");
	ck_assert_int_eq(chmod(at("src/a"), 0755), 0);
	char *text = stream_of(paths, ARRAY_LEN(paths), &p);
	ck_assert_str_eq(text, "commit refs/heads/push\nauthor N <e@x> 7 +0000\n"
			       "committer N <e@x> 7 +0000\ndata 2\nm\n\nfrom aa\n"
			       "D \"gone\"\nD \"via/x\"\n"
			       "M 100755 inline \"a\"\ndata 1\nA\n"
			       "M 120000 inline \"l\"\ndata 11\n/etc/passwd\n"
			       "M 100644 inline \"q\\\"\\n\\\\\"\ndata 1\nQ\n\ndone\n");
	ck_assert_uint_eq(p.foreign, 3);
	commit_paths_ignore(&p, "a\0gone\0zzz", 11);
	ck_assert_uint_eq(p.ignored, 1); /* what is gone is not ignored */
	ck_assert_uint_eq(p.n, 4);
	commit_paths_release(&p);
}
END_TEST

START_TEST(a_file_that_changes)
{
	static const char *const paths[] = {"a"};
	struct commit_head head = {.parent = "aa", .name = "N", .email = "e", .message = "m"};
	struct commit_paths p;
	struct err e = {0};

	put_dir("src");
	put_file("src/a", "A");
	int source = open(at("src"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int out = open(at("out"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CK_WORKS(commit_paths_find(source, paths, 1, &p, &e), e);
	ck_assert_int_eq(unlink(at("src/a")), 0);
	put_file("src/b", "A");
	ck_assert_int_eq(rename(at("src/b"), at("src/a")), 0);
	CK_FAILS(commit_stream(out, &head, source, &p, &e), e, ERR_CONFLICT, "changed while");
	commit_paths_release(&p);
	ck_assert_int_eq(close(out), 0);
	ck_assert_int_eq(close(source), 0);
}
END_TEST

START_TEST(messages)
{
	AUTO_BUF out = BUF_INIT(4096);
	struct err e = {0};

	CK_WORKS(commit_message("Fix it\n\n \n", "ID", "", "N", "e@x", &out, &e), e);
	ck_assert_str_eq(out.p, "Fix it\n\nSandglass-Session: ID\nSandglass-Policy: none\n"
				"Approved-by: N <e@x>\n");
	CK_FAILS(commit_message(" \n", "ID", "", "N", "e@x", &out, &e), e, ERR_CONFIG_INVALID,
		 "empty");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("review/push");
	TCase *c = tcase_create("push");

	tcase_add_checked_fixture(c, place_setup, place_close);
	tcase_add_test(c, branches);
	tcase_add_test(c, patterns);
	tcase_add_test(c, remotes);
	tcase_add_test(c, no_password_is_shown);
	tcase_add_test(c, remote_of_configuration);
	tcase_add_test(c, streams);
	tcase_add_test(c, a_file_that_changes);
	tcase_add_test(c, messages);
	suite_add_tcase(s, c);
	return suite_run(s);
}
