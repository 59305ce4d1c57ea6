/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes a directory a git directory by what lies in it, and that this takes
 * nothing away from what it is to the one around it.
 */
#include "store/inventory.h"

#include "test_store_tree.h"

/* A directory with `config` and with these names in it, each a directory if it ends with a slash. */
static void put_layout(const char *where, const char *names)
{
	char name[64], path[512];

	put_dir(where);
	snprintf(path, sizeof(path), "%s/config", where);
	put_file(path, "");
	for (size_t n; (n = strcspn(names, " ")) > 0; names += n + (names[n] == ' ')) {
		memcpy(name, names, n);
		name[n] = '\0';
		if (name[n - 1] == '/')
			name[n - 1] = '\0';
		snprintf(path, sizeof(path), "%s/%s", where, name);
		if (names[n - 1] == '/')
			put_dir(path);
		else
			put_file(path, "");
	}
}

/* Objects and refs, or HEAD and commondir, of whatever kind; anywhere that is looked at. */
START_TEST(layouts)
{
	static const struct {
		const char *names;
		bool git;
	} rows[] = {
		{"objects/ refs/", true},
		{"HEAD objects/ refs/", true},
		{"objects refs", true},
		{"OBJECTS/ Refs/", true},
		{"o\xe2\x80\x8b"
		 "bjects/ ref\xc5\xbf/",
		 true},
		{"HEAD commondir", true},
		{"head/ commondir/", true},
		{"HEAD commondir objects/", true},
		{"HEAD objects/", false},
		{"HEAD refs/", false},
		{"objects/ commondir", false},
		{"refs/ commondir", false},
		{"objects/", false},
		{"HEAD", false},
		{"HEAD objects.d/ refs/", false},
		{"hooks/ info/", false},
	};
	static const char *const places[] = {"x",
					     "x/y",
					     "vendor/x",
					     "build/dist",
					     ".git/x",
					     ".git/refs/x",
					     ".git/refs/heads/logs",
					     ".git/info/x",
					     ".git/objects/info/x",
					     ".git/objects/abc",
					     ".git/rebase-merge/x",
					     ".git/sequencer/x",
					     ".git/worktrees/x/y",
					     ".git/modules/x",
					     ".git/modules/x/y",
					     ".git/modules/logs",
					     ".git/modules/objects/lfs",
					     ".git/modules/x/.git/refs/y"};
	struct inventory inv;
	char where[256], find[256];

	for (size_t p = 0; p < ARRAY_LEN(places); p++)
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			bool git = rows[i].git;
			snprintf(where, sizeof(where), "l/%s", places[p]);
			snprintf(find, sizeof(find), "%s/config", places[p]);
			put_layout(where, rows[i].names);
			if (i == 0)
				(void)check_scan("l", NULL, false, where);
			inv = scan("l", NULL);
			enum protect_class c = class_of(&inv, find);
			inventory_release(&inv);
			/* What needs the name of its own directory only is another one. */
			ck_assert_msg(c == (git ? PROTECT_CONFIG : PROTECT_NONE), "%s with %s: %d",
				      where, rows[i].names, (int)c);
			ck_assert_int_eq(nftw(at("l"), place_remove_one, 16, FTW_DEPTH | FTW_PHYS),
					 0);
		}
}
END_TEST

/* What has the layout of a git directory is still what it is to the one around it. */
START_TEST(layout_hides_nothing)
{
	static const struct {
		const char *dir, *find;
		enum protect_class class;
	} rows[] = {
		{".git/info", ".git/info/attributes", PROTECT_ATTRIBUTES},
		{".git/objects/info", ".git/objects/info/alternates", PROTECT_ALTERNATES},
		{".git/objects", ".git/objects/info/alternates", PROTECT_ALTERNATES},
		{".git/rebase-merge", ".git/rebase-merge/git-rebase-todo", PROTECT_TODO},
		{".git/rebase-merge", ".git/rebase-merge/strategy", PROTECT_STATE},
		{".git/rebase-apply", ".git/rebase-apply/apply-opt", PROTECT_STATE},
		{".git/sequencer", ".git/sequencer/todo", PROTECT_TODO},
		{".git/sequencer", ".git/sequencer/opts", PROTECT_STATE},
		{".git/remotes", ".git/remotes/origin", PROTECT_REMOTE},
		{".git/remotes", ".git/remotes/config", PROTECT_REMOTE},
		{".git/branches", ".git/branches/origin", PROTECT_REMOTE},
		{".git/worktrees", ".git/worktrees/w/gitdir", PROTECT_GITDIR},
		{".git/worktrees", ".git/worktrees/w/config.worktree", PROTECT_CONFIG_WORKTREE},
		{".git/worktrees/w", ".git/worktrees/w/hooks", PROTECT_HOOKS},
		{".git", ".git/info/attributes", PROTECT_ATTRIBUTES},
		{".git", ".git/worktrees/w/gitdir", PROTECT_GITDIR},
		{".git/info", ".git/info/hooks", PROTECT_HOOKS},
		{".git/sequencer", ".git/sequencer/info/attributes", PROTECT_ATTRIBUTES},
		{".git/refs", ".git/refs/config", PROTECT_CONFIG},
	};
	struct inventory inv;
	char path[256];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (int layout = 0; layout < 2; layout++) {
			snprintf(path, sizeof(path), "h/%s", rows[i].find);
			*strrchr(path, '/') = '\0';
			put_dir(path);
			snprintf(path, sizeof(path), "h/%s", rows[i].find);
			put_file(path, "");
			snprintf(path, sizeof(path), "h/%s", rows[i].dir);
			if (layout)
				put_layout(path, "objects/ refs/ HEAD commondir");
			inv = scan("h", NULL);
			enum protect_class c = class_of(&inv, rows[i].find);
			inventory_release(&inv);
			if (layout)
				ck_assert_msg(c == rows[i].class, "%s: %d as %s has a layout",
					      rows[i].find, (int)c, rows[i].dir);
			(void)check_scan("h", NULL, false, rows[i].find);
			ck_assert_int_eq(nftw(at("h"), place_remove_one, 16, FTW_DEPTH | FTW_PHYS),
					 0);
		}
	/* Nor are submodules hidden by one of the directory that holds them. */
	put_layout("h/.git/modules", "objects/ refs/");
	put_gitdir("h/.git/modules/logs");
	put_gitdir("h/.git/modules/objects/sub");
	(void)check_scan("h", NULL, false, "modules");
	inv = scan("h", NULL);
	enum protect_class logs = class_of(&inv, ".git/modules/logs/config");
	enum protect_class sub = class_of(&inv, ".git/modules/objects/sub/hooks");
	inventory_release(&inv);
	ck_assert(logs == PROTECT_CONFIG && sub == PROTECT_HOOKS);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store layout");
	TCase *all = tcase_create("all");

	tcase_add_checked_fixture(all, place_setup, place_close);
	tcase_set_timeout(all, 240);
	tcase_add_test(all, layouts);
	tcase_add_test(all, layout_hides_nothing);
	suite_add_tcase(s, all);
	return suite_run(s);
}
