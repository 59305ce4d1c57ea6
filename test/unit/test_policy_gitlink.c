/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which git directories of linked worktrees and submodules are followed. What
 * git itself makes is the good case; everything else changes one thing of it.
 */
#include "policy/gitlink.h"

#include "test_policy_git.h"

static char state[PATH_TEXT + 32];
static char *env[] = {state, NULL};

static void setup(void)
{
	place_setup();
	put_dir("people/me");
	put_dir("state");
	snprintf(state, sizeof(state), "SANDGLASS_HOME=%s", at("state"));
}

static struct caller me(void)
{
	static char home[PATH_TEXT];

	snprintf(home, sizeof(home), "%s", at("people/me"));
	return caller_of(home, env);
}

static struct gitlink find_as(const char *name, const struct caller *who)
{
	static struct refused refused;
	struct source src = {.given = true, .st = stat_of(name)};
	struct gitlink ret;
	struct err e;

	snprintf(src.path, sizeof(src.path), "%s", at("%s", name));
	CK_WORKS(refused_init(who, &refused, &e), e);
	memset(&ret, 0x5a, sizeof(ret));
	gitlink_find(&src, who, &refused, &ret);
	ck_assert(memchr(ret.why, 0, sizeof(ret.why)) != NULL);
	ck_assert(!ret.found || !ret.why[0]);
	return ret;
}

static struct gitlink find(const char *name)
{
	struct caller who = me();

	return find_as(name, &who);
}

static void followed(const char *name, const char *common, bool worktree)
{
	struct gitlink l = find(name);
	struct stat st = stat_of(common);

	ck_assert_msg(l.found, "%s: %s", name, l.why);
	ck_assert_str_eq(l.common, at("%s", common));
	ck_assert(l.st.st_ino == st.st_ino && l.st.st_dev == st.st_dev);
	ck_assert_int_eq(l.worktree, worktree);
}

/* Not followed; why is told if `text` is not "". */
static void refused(const char *name, const char *text)
{
	struct gitlink l = find(name);

	ck_assert_msg(!l.found, "%s is followed: %s", name, l.common);
	ck_assert_int_eq(l.why[0] == '\0', text[0] == '\0');
	ck_assert_msg(strstr(l.why, text) != NULL, "\"%s\" is not in \"%s\"", text, l.why);
}

/* As git 2.39 makes them: `wt` is a worktree of `main`, `main/sub` a submodule. */
static void put_worktree(void)
{
	put_dir("main/.git/worktrees/wt");
	put_dir("main/.git/refs");
	put_dir("main/.git/objects");
	put_file("main/.git/HEAD", "ref: refs/heads/main\n");
	put_file("main/.git/config", "[core]\n\tbare = false\n");
	put_file("main/.git/worktrees/wt/HEAD", "ref: refs/heads/wt\n");
	put_file("main/.git/worktrees/wt/commondir", "../..\n");
	put_dir("wt");
	char text[2 * PATH_TEXT];
	snprintf(text, sizeof(text), "%s\n", at("wt/.git"));
	put_file("main/.git/worktrees/wt/gitdir", text);
	snprintf(text, sizeof(text), "gitdir: %s\n", at("main/.git/worktrees/wt"));
	put_file("wt/.git", text);
}

static void put_submodule(void)
{
	put_dir("main/.git/modules/sub");
	put_dir("main/sub");
	put_file("main/.git/modules/sub/HEAD", "ref: refs/heads/main\n");
	put_file("main/.git/modules/sub/config",
		 "[core]\n\tbare = false\n\tworktree = ../../../sub\n");
	put_file("main/sub/.git", "gitdir: ../.git/modules/sub\n");
}

START_TEST(made_by_git)
{
	if (!place_has_git())
		return;
	ck_assert_int_eq(place_shell("git init -q main && cd main && "
				     "git commit -q --allow-empty -m a && "
				     "git worktree add -q ../wt && "
				     "git worktree add -q -b odd '../odd name' && "
				     "git init -q ../other && "
				     "git -C ../other commit -q --allow-empty -m b && "
				     "git -c protocol.file.allow=always submodule --quiet add "
				     "../other deep/sub"),
			 0);
	followed("wt", "main/.git", true);
	followed("odd name", "main/.git", true);
	followed("main/deep/sub", "main/.git/modules/deep/sub", false);
	/* A whole repository has no link; nor does a directory without git. */
	refused("main", "");
	refused("other", "");
	refused("people", "");
	/* A submodule of a worktree: its directory lies in the worktree's. */
	ck_assert_int_eq(place_shell("cd wt && git -c protocol.file.allow=always submodule "
				     "--quiet add ../other s"),
			 0);
	followed("wt/s", "main/.git/worktrees/wt/modules/s", false);
	/* Moved by git, it still points back; moved by hand, it does not. */
	ck_assert_int_eq(place_shell("cd main && git worktree move '../odd name' ../named"), 0);
	followed("named", "main/.git", true);
	ck_assert_int_eq(rename(at("named"), at("stray")), 0);
	refused("stray", "does not point back to this source");
	/* --separate-git-dir names its work tree nowhere. */
	ck_assert_int_eq(place_shell("git init -q --separate-git-dir=apart.git apart"), 0);
	refused("apart", "does not point back to this source");
}
END_TEST

START_TEST(made_by_hand)
{
	put_worktree();
	followed("wt", "main/.git", true);
	put_submodule();
	followed("main/sub", "main/.git/modules/sub", false);
	/* Relative both ways, as newer git can make them. */
	put_file("main/.git/worktrees/wt/gitdir", "../../../../wt/.git\n");
	put_file("wt/.git", "gitdir: ../main/.git/worktrees/wt\n");
	followed("wt", "main/.git", true);
	/* The last value counts. */
	put_file("main/.git/modules/sub/config",
		 "[core]\n\tworktree = ../../../other\n[core]\n\tworktree = ../../../sub\n");
	followed("main/sub", "main/.git/modules/sub", false);
	struct gitlink l;
	struct source none = {.given = false};
	struct caller who = me();
	static struct refused r;
	gitlink_find(&none, &who, &r, &l);
	ck_assert(!l.found && !l.why[0]);
}
END_TEST

START_TEST(no_back_link)
{
	char text[2 * PATH_TEXT];

	put_worktree();
	put_submodule();
	put_dir("other");
	put_file("other/.git", "gitdir: ../main/.git/worktrees/wt\n");
	refused("other", "does not point back");
	put_file("other/.git", "gitdir: ../main/.git/modules/sub\n");
	refused("other", "does not point back");
	/* A whole repository of somebody's names no work tree. */
	put_file("other/.git", "gitdir: ../main/.git\n");
	refused("other", "does not point back");
	put_file("main/.git/modules/sub/config", "[core]\n\tbare = false\n");
	refused("main/sub", "does not point back");
	put_file("main/.git/modules/sub/config", "[core]\n\tworktree = ../../..\n");
	refused("main/sub", "does not point back");
	put_file("main/.git/modules/sub/config",
		 "[core]\n\tworktree = ../../../sub\n\tworktree = ../../..\n");
	refused("main/sub", "does not point back");
	put_file("main/.git/modules/sub/config", "[core \"x\"]\n\tworktree = ../../../sub\n");
	refused("main/sub", "does not point back");
	put_file("main/.git/modules/sub/config", "[core]\n\tworktree = ../../../sub\n[broken\n");
	refused("main/sub", "does not point back");
	static const char *const bad[] = {"",
					  "\n",
					  "wt/.git\n",
					  "../../../../wt\n",
					  "../../../../wt/.git \n",
					  "../../../../wt/.git\nx\n"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		put_file("main/.git/worktrees/wt/gitdir", bad[i]);
		refused("wt", "does not point back");
	}
	snprintf(text, sizeof(text), "%s\n", at("other/.git"));
	put_file("main/.git/worktrees/wt/gitdir", text);
	refused("wt", "does not point back");
	ck_assert_int_eq(unlink(at("main/.git/worktrees/wt/gitdir")), 0);
	refused("wt", "does not point back");
	/* The back-link is a file, not a link to one. */
	snprintf(text, sizeof(text), "%s\n", at("wt/.git"));
	put_file("right", text);
	put_link("main/.git/worktrees/wt/gitdir", "+right");
	refused("wt", "does not point back");
}
END_TEST

START_TEST(common_elsewhere)
{
	static const char *const bad[] = {"../../../../other\n", "/\nx\n", "nowhere\n", "HEAD\n",
					  "../.. \n"};

	put_worktree();
	put_dir("other/worktrees/wt");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		put_file("main/.git/worktrees/wt/commondir", bad[i]);
		refused("wt", "has a commondir that does not hold it");
	}
	put_file("main/.git/worktrees/wt/commondir", at("main/.git"));
	followed("wt", "main/.git", true);
	/* It holds it, and is more than may be shown. */
	put_file("main/.git/worktrees/wt/commondir", "/\n");
	refused("wt", geteuid() ? "belongs to somebody else" : "is in a place that is never shown");
	put_file("main/.git/worktrees/wt/commondir", at("%s", ""));
	refused("wt", "is in a place that is never shown");
}
END_TEST

/* Needs root to make it. */
START_TEST(other_owner)
{
	if (geteuid() != 0) {
		fprintf(stderr, "# not root: no directory of somebody else's\n");
		return;
	}
	put_worktree();
	put_submodule();
	ck_assert_int_eq(chown(at("main/.git/worktrees/wt"), 1, 1), 0);
	refused("wt", "belongs to somebody else");
	ck_assert_int_eq(chown(at("main/.git/worktrees/wt"), 0, 0), 0);
	ck_assert_int_eq(chown(at("main/.git"), 1, 1), 0);
	refused("wt", "belongs to somebody else");
	ck_assert_int_eq(chown(at("main/.git/modules/sub"), 1, 1), 0);
	refused("main/sub", "belongs to somebody else");
	/* Root works in somebody's project: what is theirs counts, and nobody else's. */
	struct caller who = me();
	who.root = true;
	ck_assert_int_eq(chown(at("main/sub"), 1, 1), 0);
	ck_assert(find_as("main/sub", &who).found);
	ck_assert_int_eq(chown(at("main/sub"), 2, 2), 0);
	ck_assert(!find_as("main/sub", &who).found);
	who.root = false;
	ck_assert_int_eq(chown(at("main/sub"), 1, 1), 0);
	ck_assert(!find_as("main/sub", &who).found);
	/* A user: their own only, not root's. */
	who.uid = 1;
	ck_assert(find_as("main/sub", &who).found);
	ck_assert_int_eq(chown(at("main/.git/modules/sub"), 0, 0), 0);
	ck_assert(!find_as("main/sub", &who).found);
}
END_TEST

/* The source may be written by commands: no link in it is followed, nor `.git` as one. */
START_TEST(links_in_the_source)
{
	put_worktree();
	put_link("wt/way", "+main/.git/worktrees/wt");
	put_file("wt/.git", "gitdir: way\n");
	refused("wt", "is not there");
	put_link("wt/up", "+main");
	put_file("wt/.git", "gitdir: up/.git/worktrees/wt\n");
	refused("wt", "is not there");
	put_file("wt/.git", at("wt/up/.git/worktrees/wt"));
	refused("wt", "");
	/* Outside of it links are people's own. */
	put_link("alias", "main");
	put_file("wt/.git", "gitdir: ../alias/.git/worktrees/wt\n");
	followed("wt", "main/.git", true);
	/* The commondir is looked for from the canonical place. */
	put_link("main/.git/worktrees/wt/back", "+wt/up/.git");
	put_file("main/.git/worktrees/wt/commondir", "back\n");
	refused("wt", "has a commondir that does not hold it");
	put_file("right", "gitdir: ../main/.git/worktrees/wt\n");
	ck_assert_int_eq(unlink(at("wt/.git")), 0);
	put_link("wt/.git", "+right");
	refused("wt", "");
	ck_assert_int_eq(unlink(at("wt/.git")), 0);
	put_link("wt/.git", "+main/.git/worktrees/wt");
	refused("wt", "");
	ck_assert_int_eq(unlink(at("wt/.git")), 0);
	ck_assert_int_eq(mkfifo(at("wt/.git"), 0600), 0);
	refused("wt", "");
}
END_TEST

/* In the source it is in the view already: nothing to mount, nothing to tell. */
START_TEST(inside_the_source)
{
	put_submodule();
	put_dir("main/.git/worktrees");
	put_file("main/sub/.git", "gitdir: real\n");
	put_dir("main/sub/real");
	put_file("main/sub/real/config", "[core]\n\tworktree = ..\n");
	refused("main/sub", "");
	put_file("main/sub/.git", "gitdir: .\n");
	refused("main/sub", "");
	put_file("main/sub/.git", "gitdir: .git\n");
	refused("main/sub", "is not there");
}
END_TEST

START_TEST(not_there)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"", ""},
		{"gitdir:\n", ""},
		{"gitdir: \n", ""},
		{"gitdir:x\n", ""},
		{"something else\n", ""},
		{"gitdir: nowhere\n", "nowhere is not there"},
		{"gitdir: ../main/.git/HEAD\n", "is not there"},
		{"gitdir: ../no\x1b[31m\xff\n", "is not there"},
		{"gitdir: a\ngitdir: b\n", ""},
	};
	char text[8192];

	put_worktree();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		put_file("wt/.git", rows[i].text);
		refused("wt", rows[i].why);
		struct gitlink l = find("wt");
		for (const char *p = l.why; *p; p++)
			ck_assert_msg((unsigned char)*p >= 0x20, "row %zu: %s", i, l.why);
	}
	/* The longest path, and one more. */
	for (size_t n = 4095; n <= 4096; n++) {
		memcpy(text, "gitdir: ", 8);
		memset(text + 8, 'x', n);
		text[8 + n] = '\0';
		put_file("wt/.git", text);
		refused("wt", n == 4095 ? "is not there" : "");
	}
}
END_TEST

/* Our own state is nobody's repository; nor is a home. */
START_TEST(never_shown)
{
	put_dir("state/repo");
	put_dir("wt");
	put_file("state/repo/config", "[core]\n\tworktree = ../../wt\n");
	put_file("wt/.git", "gitdir: ../state/repo\n");
	refused("wt", "is in a place that is never shown");
	put_file("people/me/config", "[core]\n\tworktree = ../../wt\n");
	put_file("wt/.git", "gitdir: ../people/me\n");
	refused("wt", "is in a place that is never shown");
	put_file("people/config", "[core]\n\tworktree = ../wt\n");
	put_file("wt/.git", "gitdir: ../people\n");
	refused("wt", "is in a place that is never shown");
	put_dir("people/me/repo");
	put_file("people/me/repo/config", "[core]\n\tworktree = ../../../wt\n");
	put_file("wt/.git", "gitdir: ../people/me/repo\n");
	followed("wt", "people/me/repo", false);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("policy gitlink");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, setup, place_close);
	tcase_set_timeout(c, 120);
	tcase_add_test(c, made_by_git);
	tcase_add_test(c, made_by_hand);
	tcase_add_test(c, no_back_link);
	tcase_add_test(c, common_elsewhere);
	tcase_add_test(c, other_owner);
	tcase_add_test(c, links_in_the_source);
	tcase_add_test(c, inside_the_source);
	tcase_add_test(c, not_there);
	tcase_add_test(c, never_shown);
	suite_add_tcase(s, c);
	return suite_run(s);
}
