/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over a tree, held against one that reads everything by its path, and
 * what is remembered of it: never less than what is there, whatever a command
 * did to the tree or to times.
 */
#include "store/inventory.h"

#include <sys/resource.h>

#include "base/clock.h"
#include "test_store_tree.h"

START_TEST(against_oracle)
{
	static const struct {
		const char *path;
		enum protect_class class;
	} rows[] = {
		{".git", PROTECT_GIT},
		{".git/config", PROTECT_CONFIG},
		{".git/hooks", PROTECT_HOOKS},
		{".git/info/attributes", PROTECT_ATTRIBUTES},
		{".git/objects/info/alternates", PROTECT_ALTERNATES},
		{".git/HEAD", PROTECT_NONE},
		{".git/modules/deep/sub/hooks", PROTECT_HOOKS},
		{".git/worktrees/w/commondir", PROTECT_COMMONDIR},
		{".git/worktrees/w/gitdir", PROTECT_GITDIR},
		{".git/worktrees/w/config.worktree", PROTECT_CONFIG_WORKTREE},
		{".git/worktrees/w/rebase-merge/git-rebase-todo", PROTECT_TODO},
		{".git/remotes/origin", PROTECT_REMOTE},
		{".git/remotes/dir", PROTECT_REMOTE},
		{".git/sequencer/todo", PROTECT_TODO},
		{".git/sequencer/opts", PROTECT_STATE},
		{".git/rebase-merge/strategy", PROTECT_STATE},
		{".git/rebase-apply/apply-opt", PROTECT_STATE},
		{".git/branches/old", PROTECT_REMOTE},
		{".git/modules/deep/config", PROTECT_NONE},
		{".git/modules/deep/info/attributes", PROTECT_NONE},
		{".git/modules/deep/sub/config", PROTECT_CONFIG},
		{".git/modules/deep/sub/info/attributes", PROTECT_ATTRIBUTES},
		{".git/refs/below/config", PROTECT_CONFIG},
		{".git/refs/below/objects/info/alternates", PROTECT_ALTERNATES},
		{".git/refs/heads/main", PROTECT_NONE},
		{".git/hooks/post-commit", PROTECT_LINK},
		{".git/hooks/dir/link", PROTECT_LINK},
		{".git/refs/heads/link", PROTECT_LINK},
		{".git/logs/refs/link", PROTECT_LINK},
		{".git/index", PROTECT_LINK},
		{"bare.d/packed-refs", PROTECT_LINK},
		{"a/.vscode/x/link", PROTECT_LINK},
		{"a/.vscode/x/.git", PROTECT_NONE},
		{"a/.vscode/x/.git/config", PROTECT_NONE},
		{"a/link", PROTECT_NONE},
		{"bare.d/HEAD", PROTECT_NONE},
		{"bare.d/refs", PROTECT_NONE},
		{"bare.d/config", PROTECT_CONFIG},
		{"bare.d/objects/info/alternates", PROTECT_ALTERNATES},
		{"a/.envrc", PROTECT_TOOL},
		{"a/b/c/.GitConfig", PROTECT_TOOL},
		{"a/.vscode", PROTECT_TOOL},
		{"a/.vscode/.envrc", PROTECT_NONE},
		{"vendor/x/.git/hooks", PROTECT_HOOKS},
		{"vendor/x/.envrc", PROTECT_NONE},
		{"node_modules/p/.git", PROTECT_NONE},
		{"a/link/x/.git", PROTECT_NONE},
		{"a/b/.bashrc", PROTECT_TOOL},
		{"a/b/.claude", PROTECT_TOOL},
		{"a/b/.npmrc", PROTECT_TOOL},
		{"a/b/.g\xe2\x80\x8bit", PROTECT_GIT},
		{".cargo/config.toml", PROTECT_TOOL},
		{"odd\nname/.profile", PROTECT_TOOL},
		{"bytes\xff\xfe/.zshrc", PROTECT_TOOL},
		{".git\n", PROTECT_NONE},
	};
	struct inventory inv = {.read = 0};

	put_tree();
	uint32_t read = check_scan("t", NULL, false, "cold");
	inv = scan("t", NULL);
	ck_assert_uint_eq(read, inv.dir_count);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ck_assert_msg(class_of(&inv, rows[i].path) == rows[i].class, "%s: %d", rows[i].path,
			      (int)class_of(&inv, rows[i].path));
	inventory_release(&inv);
}
END_TEST

/* The root may be something itself: a git directory, or the parent that a name counts in. */
START_TEST(kinds_of_roots)
{
	static const struct protect_dir git = {.place = PLACE_GIT, .role = ROLE_GITDIR};
	struct inventory inv;

	put_gitdir("g");
	put_file("g/.envrc", "");
	inv = scan_as("g", git, NULL, 0);
	ck_assert_int_eq(class_of(&inv, "config"), PROTECT_CONFIG);
	ck_assert_int_eq(class_of(&inv, "hooks"), PROTECT_HOOKS);
	ck_assert_int_eq(class_of(&inv, "HEAD"), PROTECT_NONE);
	ck_assert_int_eq(class_of(&inv, ".envrc"), PROTECT_NONE);
	ck_assert_uint_eq(inv.tip_count, 1);
	inventory_release(&inv);
	inv = scan_as("g", TREE, NULL, 0);
	ck_assert_int_eq(class_of(&inv, "HEAD"), PROTECT_NONE);
	ck_assert_int_eq(class_of(&inv, "hooks"), PROTECT_HOOKS);
	ck_assert_int_eq(class_of(&inv, ".envrc"), PROTECT_TOOL);
	ck_assert_uint_eq(inv.tip_count, 1);
	inventory_release(&inv);
	put_dir(".cargo");
	put_file(".cargo/config", "");
	inv = scan(".cargo", NULL);
	ck_assert_int_eq(class_of(&inv, "config"), PROTECT_TOOL);
	inventory_release(&inv);
}
END_TEST

START_TEST(paths)
{
	AUTO_BUF path = BUF_INIT(4096);
	AUTO_BUF small = BUF_INIT(4);
	struct inventory inv;

	put_dir("p/one/two");
	put_file("p/one/two/.envrc", "");
	inv = scan("p", NULL);
	ck_assert_uint_eq(inv.dir_count, 3);
	ck_assert_uint_eq(inv.find_count, 1);
	ck_assert_str_eq(inventory_name(&inv, &inv.finds[0]), ".envrc");
	(void)buf_str(&path, "/top/");
	inventory_path(&inv, &inv.finds[0], &path);
	ck_assert_str_eq(buf_cstr(&path), "/top/one/two/.envrc");
	buf_clear(&path);
	inventory_dir_path(&inv, 0, &path);
	ck_assert_uint_eq(path.n, 0);
	inventory_dir_path(&inv, 1, &path);
	ck_assert_str_eq(buf_cstr(&path), "one");
	buf_clear(&path);
	inventory_dir_path(&inv, 2, &path);
	ck_assert_str_eq(buf_cstr(&path), "one/two");
	/* What does not fit is refused as a whole. */
	inventory_path(&inv, &inv.finds[0], &small);
	ck_assert(small.failed && small.n == 0);
	inventory_release(&inv);
}
END_TEST

START_TEST(warm_reads_nothing)
{
	struct inventory first, again;

	int64_t began = clock_wall_ms();
	put_tree();
	first = scan("t", NULL);
	bool quick = clock_wall_ms() < began + 2000;
	ck_assert_uint_eq(first.read, first.dir_count);
	/* Just made: a change within the same tick of the clock could not be seen. */
	uint32_t read = check_scan("t", &first, false, "at once");
	ck_assert(!quick || read == first.dir_count);
	rest();
	/* Read before they had rested: once more. */
	read = check_scan("t", &first, true, "after a rest");
	ck_assert(!quick || read == first.dir_count);
	ck_assert_uint_eq(check_scan("t", &first, false, "warm"), 0);
	ck_assert_uint_eq(check_scan("t", &first, true, "warm"), 0);
	ck_assert_uint_eq(check_scan("t", &first, true, "warm over warm"), 0);
	/* The same through the file. */
	AUTO_FD int dir = open(place_top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	inventory_save(dir, "inv", &first);
	ck_assert(inventory_load(dir, "inv", &again));
	ck_assert_uint_eq(check_scan("t", &again, false, "loaded"), 0);
	/* Another tree of the same form is another. */
	ck_assert_int_eq(rename(at("t"), at("moved")), 0);
	put_tree();
	ck_assert_uint_eq(check_scan("t", &again, false, "another"), first.dir_count);
	inventory_release(&again);
	inventory_release(&first);
}
END_TEST

static void forge(const char *name, const struct stat *was)
{
	struct timespec times[2] = {was->st_atim, was->st_mtim};

	ck_assert_int_eq(utimensat(AT_FDCWD, at("%s", name), times, 0), 0);
}

static void move_to(const char *from, const char *to)
{
	ck_assert_msg(rename(at("%s", from), at("%s", to)) == 0, "%s: %s", from, strerror(errno));
}

static void create(void)
{
	put_file("t/a/b/.envrc", "");
}

static void remove_it(void)
{
	ck_assert_int_eq(unlink(at("t/a/b/.envrc")), 0);
}

static void create_dirs(void)
{
	put_dir("t/a/b/new/deep");
	put_gitdir("t/a/b/new/deep/.git");
}

static void rename_dir(void)
{
	move_to("t/a", "t/other");
}

static void rename_back(void)
{
	move_to("t/other", "t/a");
}

static void replace_dir(void)
{
	put_dir("made/b");
	put_file("made/b/.vimrc", "");
	move_to("t/a", "was-a");
	move_to("made", "t/a");
}

static void replace_back(void)
{
	move_to("t/a", "made");
	move_to("was-a", "t/a");
}

static void replace_file(void)
{
	put_link("fresh", "nowhere");
	move_to("fresh", "t/a/.envrc");
}

static void forge_mtime(void)
{
	struct stat was = stat_of("t/bytes\xff\xfe");

	put_file("t/bytes\xff\xfe/.exrc", "");
	forge("t/bytes\xff\xfe", &was);
	struct stat is = stat_of("t/bytes\xff\xfe");
	ck_assert(is.st_mtim.tv_sec == was.st_mtim.tv_sec &&
		  is.st_mtim.tv_nsec == was.st_mtim.tv_nsec);
}

static void forge_removal(void)
{
	struct stat was = stat_of("t/odd\nname");

	ck_assert_int_eq(unlink(at("t/odd\nname/.profile")), 0);
	forge("t/odd\nname", &was);
}

static void make_bare(void)
{
	put_gitdir("t/a/b/c");
}

static void break_bare(void)
{
	move_to("t/a/b/c/refs", "t/a/b/c/norefs");
}

/* What lies below has not changed at all, and counts now. */
static void unquiet(void)
{
	move_to("t/vendor", "t/lib");
}

static void quiet_again(void)
{
	move_to("t/lib", "t/vendor");
}

static void unpack_modules(void)
{
	move_to("t/node_modules", "t/modules");
}

static void rename_git(void)
{
	move_to("t/.git", "t/dotgit");
}

static void nest_git(void)
{
	put_dir("t/sub");
	move_to("t/dotgit", "t/sub/.git");
}

static void exchange(void)
{
	ck_assert_int_eq(renameat2(AT_FDCWD, at("t/a"), AT_FDCWD, at("t/lib/x"), RENAME_EXCHANGE),
			 0);
}

static void link_for_dir(void)
{
	move_to("t/a", "elsewhere");
	put_link("t/a", "+elsewhere");
}

static void dir_for_link(void)
{
	ck_assert_int_eq(unlink(at("t/a")), 0);
	move_to("elsewhere", "t/a");
}

static void remove_dirs(void)
{
	ck_assert_int_eq(nftw(at("t/a"), place_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void chmod_dir(void)
{
	ck_assert_int_eq(chmod(at("t/sub"), 0711), 0);
}

static void nothing(void)
{
}

/* Each change is seen from the inventory before all of them and from the one just before. */
START_TEST(changes)
{
	static const struct {
		const char *what;
		void (*make)(void);
	} rows[] = {
		{"create", create},
		{"remove", remove_it},
		{"create directories", create_dirs},
		{"rename a directory", rename_dir},
		{"rename it back", rename_back},
		{"replace a directory", replace_dir},
		{"replace it back", replace_back},
		{"replace a file", replace_file},
		{"mtime forged", forge_mtime},
		{"mtime forged after a removal", forge_removal},
		{"a bare repository", make_bare},
		{"it is none any more", break_bare},
		{"a quiet place is none any more", unquiet},
		{"and is one again", quiet_again},
		{"a skipped place is none any more", unpack_modules},
		{"a git directory under another name", rename_git},
		{"a git directory elsewhere", nest_git},
		{"a quiet place is none, again", unquiet},
		{"directories exchanged", exchange},
		{"and back", exchange},
		{"a link for a directory", link_for_dir},
		{"a directory for a link", dir_for_link},
		{"a directory's mode", chmod_dir},
		{"nothing", nothing},
		{"all removed", remove_dirs},
	};
	struct inventory first, last;
	uint32_t read = 0;

	put_tree();
	rest();
	first = scan("t", NULL);
	last = scan("t", &first);
	ck_assert_uint_eq(last.read, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		rows[i].make();
		read = check_scan("t", &first, false, rows[i].what);
		if (i == 0)
			ck_assert_uint_eq(read, 1);
		(void)check_scan("t", &last, true, rows[i].what);
	}
	inventory_release(&first);
	inventory_release(&last);
}
END_TEST

/* Random ones, in no order that somebody thought of. SEED=N gives them back. */
START_TEST(random_changes)
{
	static const char *const names[] = {".envrc", ".git",   "HEAD",  "refs", "objects",
					    "config", "vendor", "hooks", "x",    "y"};
	struct inventory first, last;
	char path[2][256];

	(void)suite_seed();
	put_tree();
	rest();
	first = scan("t", NULL);
	last = scan("t", &first);
	for (int i = 0; i < 150; i++) {
		for (size_t k = 0; k < ARRAY_LEN(path); k++) {
			int n = snprintf(path[k], sizeof(path[k]), "%s", at("t"));
			for (long depth = random() % 3 + 1; depth; depth--)
				n += snprintf(path[k] + n, sizeof(path[k]) - (size_t)n, "/%s",
					      names[(size_t)random() % ARRAY_LEN(names)]);
		}
		/* Most of them fail: then nothing changes. */
		switch (random() % 5) {
		case 0:
			(void)mkdir(path[0], 0755);
			break;
		case 1:
			(void)close(open(path[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
			break;
		case 2:
			(void)rename(path[0], path[1]);
			break;
		case 3:
			(void)renameat2(AT_FDCWD, path[0], AT_FDCWD, path[1], RENAME_EXCHANGE);
			break;
		default:
			(void)remove(path[0]);
		}
		(void)check_scan("t", &first, false, "random, from the first");
		(void)check_scan("t", &last, true, "random, from the last");
	}
	inventory_release(&first);
	inventory_release(&last);
}
END_TEST

START_TEST(deep)
{
	enum { LEVELS = 5000 };
	AUTO_BUF path = BUF_INIT(1u << 20);
	struct inventory first, again;

	put_dir("deep");
	AUTO_FD int fd = put_deep("deep", "d", LEVELS);
	put_at(fd, ".envrc");
	ck_assert_int_eq(mkdirat(fd, ".git", 0755), 0);
	put_at(fd, ".git/config");
	rest();
	first = scan("deep", NULL);
	ck_assert_uint_eq(first.dir_count, 1 + LEVELS + 1);
	ck_assert_uint_eq(first.find_count, 3);
	ck_assert_uint_eq(first.dirs[0].size, first.dir_count);
	for (uint32_t i = 0; i < first.find_count; i++) {
		buf_clear(&path);
		inventory_path(&first, &first.finds[i], &path);
		ck_assert_uint_ge(path.n, 2 * LEVELS + 4);
		for (size_t k = 0; k < LEVELS; k++)
			ck_assert(path.p[2 * k] == 'd' && path.p[2 * k + 1] == '/');
		ck_assert_int_eq(path.p[2 * (size_t)LEVELS], '.');
	}
	again = scan("deep", &first);
	ck_assert_uint_eq(again.read, 0);
	ck_assert_uint_eq(again.find_count, 3);
	inventory_release(&again);
	put_at(fd, ".npmrc");
	again = scan("deep", &first);
	ck_assert_uint_eq(again.read, 1);
	ck_assert_uint_eq(again.find_count, 4);
	inventory_release(&again);
	inventory_release(&first);
	cut_deep("deep", "d");
}
END_TEST

/*
 * The longest names, and few descriptors to go on from: what lies at the end is
 * found, or it is said that not all was looked at.
 */
START_TEST(deep_with_few_descriptors)
{
	struct rlimit few = {.rlim_cur = 48, .rlim_max = 48};
	char name[256];
	struct inventory inv;

	memset(name, 'n', 255);
	name[255] = '\0';
	put_dir("deep");
	AUTO_FD int fd = put_deep("deep", name, 600);
	put_at(fd, ".envrc");
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	inv = scan("deep", NULL);
	bool found = inv.find_count == 1;
	bool full = inv.full;
	uint32_t dirs = inv.dir_count;
	inventory_release(&inv);
	cut_deep("deep", name);
	ck_assert_msg(found || full, "silently ends after %u directories", dirs);
}
END_TEST

/* The same by directories that have to be opened up, each of which keeps a descriptor. */
START_TEST(closed_with_few_descriptors)
{
	enum { LEVELS = 100 };
	struct rlimit few = {.rlim_cur = 48, .rlim_max = 48}, was;
	struct inventory inv;
	struct stat st;
	int fds[LEVELS + 1];

	be_somebody("u");
	fds[0] = open(at("u"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < LEVELS; i++) {
		ck_assert_int_eq(mkdirat(fds[i], "d", 0755), 0);
		fds[i + 1] = openat(fds[i], "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ck_assert_int_ge(fds[i + 1], 0);
	}
	put_at(fds[LEVELS], ".envrc");
	for (int i = LEVELS; i > 0; i--) {
		ck_assert_int_eq(fchmod(fds[i], 0), 0);
		ck_assert_int_eq(close(fds[i]), 0);
	}
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
	few.rlim_max = was.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	inv = scan_as("u", TREE, NULL, INVENTORY_FORCE);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
	bool found = inv.find_count == 1;
	bool full = inv.full;
	uint32_t dirs = inv.dir_count;
	inventory_release(&inv);
	for (int i = 0; i < LEVELS; i++) {
		ck_assert_int_eq(fstatat(fds[i], "d", &st, AT_SYMLINK_NOFOLLOW), 0);
		ck_assert_msg((st.st_mode & 07777) == 0, "%o at level %d", st.st_mode, i);
		ck_assert_int_eq(fchmodat(fds[i], "d", 0755, 0), 0);
		fds[i + 1] = openat(fds[i], "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ck_assert_int_ge(fds[i + 1], 0);
	}
	for (int i = 0; i <= LEVELS; i++)
		(void)close(fds[i]);
	be_back();
	ck_assert_msg(found || full, "silently ends after %u directories", dirs);
}
END_TEST

START_TEST(wide)
{
	enum { FILES = 10000, DIRS = 300 };
	char name[64];
	struct inventory first;

	put_dir("t/wide");
	AUTO_FD int fd = open(at("t/wide"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "file-%d", i);
		put_at(fd, name);
		if (i % (FILES / DIRS) == 0) {
			snprintf(name, sizeof(name), "dir-%d", i);
			ck_assert_int_eq(mkdirat(fd, name, 0755), 0);
		}
		if (i % 1000 == 0) {
			snprintf(name, sizeof(name), "dir-%d/.envrc", i);
			put_at(fd, i % 99 ? ".envrc" : name);
		}
	}
	put_at(fd, ".Bashrc");
	first = scan("t", NULL);
	ck_assert_uint_gt(first.dir_count, DIRS);
	(void)check_scan("t", NULL, false, "cold");
	/* Half of the directories have other names now. */
	for (int i = 0; i < FILES; i += 2 * (FILES / DIRS))
		move_to(at("t/wide/dir-%d", i) + strlen(place_top) + 1,
			at("t/wide/moved-%d", i) + strlen(place_top) + 1);
	(void)check_scan("t", &first, true, "half of them moved");
	(void)check_scan("t", &first, false, "again");
	inventory_release(&first);
}
END_TEST

/* One of 65,536 spellings of a protected name. */
static void spell(uint32_t i, char ret[64])
{
	memcpy(ret, ".envrc", 7);
	for (unsigned int bit = 0; bit < 16; bit++)
		memcpy(ret + 6 + (size_t)3 * bit, i >> bit & 1 ? "\xe2\x80\x8b" : "\xe2\x80\x8c",
		       4);
}

/* One more than may be: said so, and what was left out is found when there is room again. */
START_TEST(too_many_finds)
{
	char name[64];
	struct inventory inv, next;

	/* Where it takes the least; the place's own file system will do. */
	char *own = strdup(place_top);
	ck_assert(place_open("/dev/shm") || place_open(own));
	put_dir("m/junk/sub");
	put_file("m/junk/sub/.bashrc", "");
	AUTO_FD int fd = open(at("m/junk"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (uint32_t i = 0; i + 1 < MAX_INVENTORY_FINDS; i++) {
		spell(i, name);
		put_at(fd, name);
	}
	rest();
	inv = scan("m", NULL);
	ck_assert_uint_eq(inv.find_count, MAX_INVENTORY_FINDS);
	ck_assert(!inv.full);
	inventory_release(&inv);
	put_at(fd, ".ENVRC");
	inv = scan("m", NULL);
	ck_assert_uint_eq(inv.find_count, MAX_INVENTORY_FINDS);
	ck_assert(inv.full);
	for (uint32_t i = 0; i + 1 < MAX_INVENTORY_FINDS; i++) {
		spell(i, name);
		ck_assert_int_eq(unlinkat(fd, name, 0), 0);
	}
	next = scan("m", &inv);
	bool full = next.full;
	enum protect_class found = class_of(&next, "junk/sub/.bashrc");
	inventory_release(&inv);
	inventory_release(&next);
	place_close();
	snprintf(place_top, sizeof(place_top), "%s", own);
	free(own);
	ck_assert(!full);
	ck_assert_int_eq(found, PROTECT_TOOL);
}
END_TEST

START_TEST(unreadable)
{
	static const mode_t modes[] = {0, 0100, 0200, 0300};
	struct inventory inv, before;

	be_somebody("u");
	put_dir("u/x");
	put_file("u/x/.envrc", "");
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		before = scan("u", NULL);
		ck_assert_int_eq(class_of(&before, "x/.envrc"), PROTECT_TOOL);
		ck_assert_int_eq(chmod(at("u/x"), modes[i]), 0);
		inv = scan("u", &before);
		ck_assert_uint_eq(inv.find_count, 0);
		ck_assert_uint_eq(inv.dir_count, 2);
		ck_assert_int_eq(inv.dirs[1].read_ns, 0);
		inventory_release(&inv);
		inv = scan_as("u", TREE, &before, INVENTORY_FORCE);
		ck_assert_msg(class_of(&inv, "x/.envrc") == PROTECT_TOOL, "mode %o", modes[i]);
		inventory_release(&inv);
		mode_is("u/x", modes[i]);
		ck_assert_int_eq(chmod(at("u/x"), 0755), 0);
		inventory_release(&before);
	}
	be_back();
}
END_TEST

/* What can be seen but not looked into is told; what was full is no base for the next scan. */
START_TEST(incomplete)
{
	struct inventory inv, next;

	be_somebody("u");
	put_dir("u/x/y");
	put_file("u/x/y/.envrc", "");
	put_file("u/.npmrc", "");
	ck_assert_int_eq(chmod(at("u/x"), 0444), 0);
	rest();
	inv = scan("u", NULL);
	ck_assert(inv.full);
	ck_assert_int_eq(class_of(&inv, ".npmrc"), PROTECT_TOOL);
	ck_assert_int_eq(class_of(&inv, "x/y/.envrc"), PROTECT_NONE);
	ck_assert_int_eq(chmod(at("u/x"), 0755), 0);
	next = scan("u", &inv);
	ck_assert(!next.full);
	ck_assert_uint_eq(next.read, next.dir_count);
	ck_assert_int_eq(class_of(&next, "x/y/.envrc"), PROTECT_TOOL);
	inventory_release(&inv);
	rest();
	/* The same list is one to go on from as long as nothing is said against it. */
	inv = scan("u", &next);
	inventory_release(&next);
	ck_assert_uint_eq(check_scan("u", &inv, false, "whole"), 0);
	inv.full = true;
	ck_assert_uint_eq(check_scan("u", &inv, false, "full"), inv.dir_count);
	inventory_release(&inv);
	be_back();
}
END_TEST

/* What lies deeper in it is listed too. */
START_TEST(unreadable_tree)
{
	struct inventory inv;

	be_somebody("u");
	put_dir("u/x/y/z");
	put_file("u/x/y/z/.envrc", "");
	put_dir("u/x/.git");
	put_file("u/x/.git/config", "");
	ck_assert_int_eq(chmod(at("u/x/y"), 0), 0);
	ck_assert_int_eq(chmod(at("u/x"), 0), 0);
	inv = scan_as("u", TREE, NULL, INVENTORY_FORCE);
	mode_is("u/x", 0);
	ck_assert_int_eq(chmod(at("u/x"), 0755), 0);
	mode_is("u/x/y", 0);
	ck_assert_int_eq(chmod(at("u/x/y"), 0755), 0);
	be_back();
	ck_assert_int_eq(class_of(&inv, "x/.git"), PROTECT_GIT);
	ck_assert_int_eq(class_of(&inv, "x/.git/config"), PROTECT_CONFIG);
	ck_assert_int_eq(class_of(&inv, "x/y/z/.envrc"), PROTECT_TOOL);
	inventory_release(&inv);
}
END_TEST

/* To be read, but not to be entered: the names are there to be seen. */
START_TEST(unsearchable)
{
	struct inventory inv;

	be_somebody("u");
	put_dir("u/x/y");
	put_file("u/x/.envrc", "");
	put_file("u/x/y/.envrc", "");
	ck_assert_int_eq(chmod(at("u/x"), 0444), 0);
	inv = scan_as("u", TREE, NULL, INVENTORY_FORCE);
	mode_is("u/x", 0444);
	ck_assert_int_eq(chmod(at("u/x"), 0755), 0);
	be_back();
	ck_assert_int_eq(class_of(&inv, "x/.envrc"), PROTECT_TOOL);
	ck_assert_int_eq(class_of(&inv, "x/y/.envrc"), PROTECT_TOOL);
	inventory_release(&inv);
}
END_TEST

/* What is not ours keeps its mode. Needs root to make it. */
START_TEST(unreadable_of_others)
{
	struct inventory inv;

	if (geteuid() != 0) {
		fprintf(stderr, "# not root: no directory of somebody else's\n");
		return;
	}
	put_dir("u/theirs");
	put_file("u/theirs/.envrc", "");
	ck_assert_int_eq(chmod(at("u/theirs"), 0700), 0);
	ck_assert_int_eq(seteuid(NOBODY), 0);
	inv = scan_as("u", TREE, NULL, INVENTORY_FORCE);
	be_back();
	ck_assert_uint_eq(inv.find_count, 0);
	ck_assert_uint_eq(inv.dir_count, 2);
	ck_assert_int_eq(inv.dirs[1].read_ns, 0);
	mode_is("u/theirs", 0700);
	inventory_release(&inv);
}
END_TEST

START_TEST(tips)
{
	static const struct {
		const char *name, *text;
		uint8_t bytes; /* 0: none */
	} rows[] = {
		{"r/.git/refs/heads/main", OID40 "\n", 20},
		{"r/.git/refs/heads/a/b/c", OID64 "\n", 32},
		{"r/.git/refs/tags/bare", OID40, 20},
		{"r/.git/refs/tags/more", OID40 " and words\n", 20},
		{"r/.git/refs/remotes/o/HEAD", "ref: refs/remotes/o/main\n", 0},
		{"r/.git/refs/heads/empty", "", 0},
		{"r/.git/refs/heads/short", "0123456789abcdef\n", 0},
		{"r/.git/refs/heads/long", OID40 "0\n", 0},
		{"r/.git/refs/heads/upper", "0123456789ABCDEF0123456789ABCDEF01234567\n", 0},
		{"r/.git/modules/m/refs/heads/main", OID40 "\n", 20},
		{"r/.git/worktrees/w/refs/bisect/bad", OID40 "\n", 20},
		{"r/refs/heads/main", OID40 "\n", 0},
		{"r/.git/heads/main", OID40 "\n", 0},
	};
	struct inventory inv;
	uint32_t want[33] = {0};
	uint32_t got[33] = {0};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char dir[256];
		snprintf(dir, sizeof(dir), "%s", rows[i].name);
		*strrchr(dir, '/') = '\0';
		put_dir(dir);
		put_file(rows[i].name, rows[i].text);
		want[rows[i].bytes] += rows[i].bytes > 0;
	}
	put_dir("r/.git/modules/m/objects");
	put_file("target", OID40 "\n");
	put_link("r/.git/refs/heads/link", "+target");
	ck_assert_int_eq(mkfifo(at("r/.git/refs/heads/fifo"), 0600), 0);
	inv = scan("r", NULL);
	for (uint32_t i = 0; i < inv.tip_count; i++) {
		const struct inventory_oid *t = &inv.tips[i];
		static const uint8_t first40[] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab};
		static const uint8_t first64[] = {0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54};
		got[t->bytes]++;
		ck_assert_int_eq(memcmp(t->oid, t->bytes == 20 ? first40 : first64, 6), 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		ck_assert_msg(got[i] == want[i], "%u of %zu bytes, not %u", got[i], i, want[i]);
	/* Each belongs to the directory that it lies in. */
	uint32_t sum = 0;
	for (uint32_t i = 0; i < inv.dir_count; i++)
		sum += inv.dirs[i].tips;
	ck_assert_uint_eq(sum, inv.tip_count);
	inventory_release(&inv);
}
END_TEST

START_TEST(object_names)
{
	static const struct {
		const char *text;
		size_t n;
		uint8_t bytes;
	} rows[] = {
		{OID40, 40, 20},       {OID40 "\n", 41, 20},
		{OID40 " x", 42, 20},  {OID40 "\0z", 42, 20},
		{OID64, 64, 32},       {OID64 "\n", 65, 32},
		{OID40, 39, 0},        {OID40 "x", 41, 0},
		{OID40 "a", 41, 0},    {OID40 "\t", 41, 0},
		{OID40 "\r\n", 42, 0}, {OID64, 63, 0},
		{OID64 "a", 65, 0},    {"", 0, 0},
		{" " OID40, 41, 0},    {"A" OID40, 41, 0},
		{OID64, 40, 20},       {"-" OID40, 41, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct inventory_oid oid = {.bytes = 99};
		bool good = inventory_oid_parse(rows[i].text, rows[i].n, &oid);
		ck_assert_msg(good == (rows[i].bytes != 0), "row %zu", i);
		ck_assert_uint_eq(oid.bytes, good ? rows[i].bytes : 99);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store inventory");
	TCase *reads = tcase_create("reads");
	TCase *warm = tcase_create("warm");
	TCase *modes = tcase_create("modes");
	TCase *refs = tcase_create("refs");

	tcase_add_checked_fixture(reads, place_setup, place_close);
	tcase_set_timeout(reads, 240);
	tcase_add_test(reads, against_oracle);
	tcase_add_test(reads, kinds_of_roots);
	tcase_add_test(reads, paths);
	tcase_add_test(reads, deep);
	tcase_add_test(reads, deep_with_few_descriptors);
	tcase_add_test(reads, closed_with_few_descriptors);
	tcase_add_test(reads, wide);
	tcase_add_test(reads, too_many_finds);
	suite_add_tcase(s, reads);
	tcase_add_checked_fixture(warm, place_setup, place_close);
	tcase_set_timeout(warm, 240);
	tcase_add_test(warm, warm_reads_nothing);
	tcase_add_test(warm, changes);
	tcase_add_test(warm, random_changes);
	suite_add_tcase(s, warm);
	tcase_add_checked_fixture(modes, place_setup, place_close);
	tcase_set_timeout(modes, 240);
	tcase_add_test(modes, unreadable);
	tcase_add_test(modes, incomplete);
	tcase_add_test(modes, unreadable_tree);
	tcase_add_test(modes, unsearchable);
	tcase_add_test(modes, unreadable_of_others);
	suite_add_tcase(s, modes);
	tcase_add_checked_fixture(refs, place_setup, place_close);
	tcase_set_timeout(refs, 240);
	tcase_add_test(refs, tips);
	tcase_add_test(refs, object_names);
	suite_add_tcase(s, refs);
	return suite_run(s);
}
