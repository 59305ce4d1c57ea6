/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changed, over layers made by hand: everything that a kernel's overlay
 * writes, and what only a hostile hand would.
 */
#include "review/change.h"

#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>

#include "review/layer.h"
#include "store/remove.h"
#include "test_policy_place.h"

static struct session_record rec;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The source exists before, all that is made later is younger. */
static void begin(uint32_t writes)
{
	struct stat st = stat_of("src");

	usleep(20000); /* times of files are of a coarse clock */
	rec = (struct session_record){.dev = st.st_dev, .ino = st.st_ino, .writes = writes};
	snprintf(rec.source, sizeof(rec.source), "%s", at("src"));
	memcpy(rec.id, "00000000-0000-4000-8000-000000000000", UUID_TEXT);
	rec.base_ns = rec.copied_ns = now_ns();
	usleep(20000);
}

static void setup(void)
{
	place_setup();
	put_dir("src");
	put_dir("s");
	put_dir("s/upper");
}

static void teardown(void)
{
	AUTO_FD int top = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	remove_tree(top, place_top + 1);
	place_top[0] = '\0';
}

static struct review open_review(void)
{
	struct review r;
	struct err e = {0};
	AUTO_FD int dir = open(at("s"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_msg(review_open(dir, &rec, &r, &e) == 0, "%s", e.msg);
	return r;
}

static char letter(const struct change *c)
{
	return !c->before.mode ? 'A' : !c->after.mode ? 'D' : 'M';
}

/* A line each: letter, path, '/' of a directory (as it is now, or was), then marks. */
static const char *found(void)
{
	static char text[1 << 16];
	struct review r = open_review();
	struct changes c;
	struct err e = {0};
	size_t n = 0;

	ck_assert_msg(changes_find(&r, &c, &e) == 0, "%s", e.msg);
	text[0] = '\0';
	for (size_t i = 0; i < c.n; i++) {
		const struct change *x = &c.v[i];
		mode_t m = x->after.mode ? x->after.mode : x->before.mode;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%c %s%s%s%s%s\n", letter(x),
				      x->path, S_ISDIR(m) ? "/" : "", x->masked ? " masked" : "",
				      x->git ? " git" : "", x->conflict ? " conflict" : "");
		ck_assert_uint_lt(n, sizeof(text));
		ck_assert_ptr_eq(changes_get(&c, x->path), x);
	}
	ck_assert_ptr_null(changes_get(&c, "no such path"));
	changes_release(&c);
	review_close(&r);
	return text;
}

static void whiteout(const char *name)
{
	ck_assert_msg(mknod(at("%s", name), S_IFCHR | 0600, makedev(0, 0)) == 0, "%s: %s", name,
		      strerror(errno));
}

static void mark(const char *name, const char *attr, const char *value)
{
	char full[64];

	snprintf(full, sizeof(full), "%s.overlay.%s", rec.root ? "trusted" : "user", attr);
	ck_assert_msg(lsetxattr(at("%s", name), full, value, strlen(value), 0) == 0, "%s: %s", full,
		      strerror(errno));
}

START_TEST(nothing)
{
	put_file("src/a", "a");
	begin(SESSION_OVERLAY);
	ck_assert_str_eq(found(), "");
}
END_TEST

START_TEST(plain)
{
	put_dir("src/d/e");
	put_dir("src/gone/deep");
	put_file("src/same", "same");
	put_file("src/mode", "same");
	put_file("src/size", "12");
	put_file("src/text", "12");
	put_file("src/d/e/f", "f");
	put_file("src/d/e/g", "g");
	put_file("src/gone/deep/file", "f");
	put_file("src/type", "f");
	put_dir("src/was");
	put_file("src/was/in", "f");
	put_link("src/link", "to");
	put_link("src/link2", "to");
	begin(SESSION_OVERLAY);
	put_file("s/upper/same", "same");
	put_file("s/upper/mode", "same");
	ck_assert_int_eq(chmod(at("s/upper/mode"), 0755), 0);
	put_file("s/upper/size", "123");
	put_file("s/upper/text", "13");
	put_dir("s/upper/d/e");
	whiteout("s/upper/d/e/f");
	whiteout("s/upper/gone");
	whiteout("s/upper/never-was");
	put_dir("s/upper/type");
	put_file("s/upper/was", "now a file");
	put_link("s/upper/link", "to");
	put_link("s/upper/link2", "elsewhere");
	put_dir("s/upper/new/empty");
	put_file("s/upper/new/file", "n");
	ck_assert_str_eq(found(), "D d/e/f\n"
				  "D gone/\n"
				  "D gone/deep/\n"
				  "D gone/deep/file\n"
				  "M link2\n"
				  "M mode\n"
				  "A new/\n"
				  "A new/empty/\n"
				  "A new/file\n"
				  "M size\n"
				  "M text\n"
				  "M type/\n"
				  "M was\n"
				  "D was/in\n");
}
END_TEST

START_TEST(opaque)
{
	put_dir("src/d/sub");
	put_file("src/d/one", "1");
	put_file("src/d/two", "2");
	put_file("src/d/sub/three", "3");
	begin(SESSION_OVERLAY);
	put_dir("s/upper/d");
	mark("s/upper/d", "opaque", "y");
	put_file("s/upper/d/two", "2");
	put_file("s/upper/d/new", "n");
	ck_assert_str_eq(found(), "A d/new\n"
				  "D d/one\n"
				  "D d/sub/\n"
				  "D d/sub/three\n");
}
END_TEST

START_TEST(file_whiteouts)
{
	put_dir("src/d");
	put_file("src/d/one", "1");
	put_file("src/d/two", "2");
	begin(SESSION_OVERLAY);
	put_dir("s/upper/d");
	put_file("s/upper/d/one", "");
	mark("s/upper/d/one", "whiteout", "y");
	put_file("s/upper/d/two", "");
	ck_assert_str_eq(found(), "M d/one\nM d/two\n");
	mark("s/upper/d", "opaque", "x");
	ck_assert_str_eq(found(), "D d/one\nM d/two\n");
}
END_TEST

/* As root: a renamed directory, one in it renamed once more, changes in both. */
START_TEST(redirects)
{
	if (geteuid() != 0)
		return;
	put_dir("src/a/b/c");
	put_file("src/a/x", "x");
	put_file("src/a/b/y", "y");
	put_file("src/a/b/c/z", "z");
	put_dir("src/k");
	begin(SESSION_OVERLAY);
	rec.root = true;
	whiteout("s/upper/a");
	put_dir("s/upper/n");
	mark("s/upper/n", "redirect", "/a");
	put_file("s/upper/n/x", "changed");
	put_dir("s/upper/n/b2");
	mark("s/upper/n/b2", "redirect", "b");
	whiteout("s/upper/n/b");
	put_dir("s/upper/k");
	put_dir("s/upper/k/cc");
	mark("s/upper/k/cc", "redirect", "/a/b/c");
	whiteout("s/upper/n/b2/c");
	put_dir("s/upper/up");
	mark("s/upper/up", "redirect", "/../../etc");
	put_dir("s/upper/up2");
	mark("s/upper/up2", "redirect", "..");
	ck_assert_str_eq(found(), "D a/\n"
				  "D a/b/\n"
				  "D a/b/c/\n"
				  "D a/b/c/z\n"
				  "D a/b/y\n"
				  "D a/x\n"
				  "A k/cc/\n"
				  "A k/cc/z\n"
				  "A n/\n"
				  "A n/b2/\n"
				  "A n/b2/y\n"
				  "A n/x\n"
				  "A up/\n"
				  "A up2/\n");
	struct review r = open_review();
	struct changes c;
	struct err e = {0};
	ck_assert_int_eq(changes_find(&r, &c, &e), 0);
	const struct change *z = changes_get(&c, "k/cc/z");
	ck_assert_int_eq(z->after.tree, SIDE_SOURCE);
	ck_assert_str_eq(z->after.where, "a/b/c/z");
	ck_assert(change_sides_equal(&r, &z->after, &changes_get(&c, "a/b/c/z")->before));
	changes_release(&c);
	review_close(&r);
}
END_TEST

START_TEST(masks)
{
	put_dir("src/d");
	put_dir("src/hidden");
	put_file("src/.env", "secret");
	put_file("src/d/.env", "secret");
	put_file("src/hidden/key", "secret");
	put_dir("s/masks/d");
	put_dir("s/masks/hidden");
	put_file("s/masks/.env", "");
	put_file("s/masks/d/.env", "");
	begin(SESSION_OVERLAY);
	mark("s/masks/hidden", "opaque", "y");
	ck_assert_str_eq(found(), "");
	put_file("s/upper/.env", "mine");
	whiteout("s/upper/d");
	put_dir("s/upper/hidden");
	put_file("s/upper/hidden/key", "mine");
	put_file("s/upper/hidden/new", "mine");
	ck_assert_str_eq(found(), "M .env masked\n"
				  "D d/\n"
				  "D d/.env masked\n"
				  "M hidden/key masked\n"
				  "A hidden/new masked\n");
}
END_TEST

/* A directory in which something is masked is renamed: the secret stays where it is. */
START_TEST(masks_of_renamed)
{
	if (geteuid() != 0)
		return;
	put_dir("src/d");
	put_file("src/d/.env", "secret");
	put_file("src/d/f", "f");
	put_dir("s/masks/d");
	put_file("s/masks/d/.env", "");
	begin(SESSION_OVERLAY);
	rec.root = true;
	whiteout("s/upper/d");
	put_dir("s/upper/n");
	mark("s/upper/n", "redirect", "d");
	ck_assert_str_eq(found(), "D d/\n"
				  "D d/.env masked\n"
				  "D d/f\n"
				  "A n/\n"
				  "A n/f\n");
}
END_TEST

START_TEST(git_directories)
{
	begin(SESSION_OVERLAY);
	put_dir("s/upper/.git/refs");
	put_file("s/upper/.git/config", "");
	put_dir("s/upper/sub");
	put_file("s/upper/sub/.GIT", "gitdir: elsewhere");
	put_dir("s/upper/bare/refs");
	put_dir("s/upper/bare/objects");
	put_file("s/upper/bare/HEAD", "");
	put_file("s/upper/.gitignore", "");
	put_dir("s/upper/objects");
	put_dir("s/upper/refs");
	ck_assert_str_eq(found(), "A .git/ git\n"
				  "A .git/config git\n"
				  "A .git/refs/ git\n"
				  "A .gitignore\n"
				  "A bare/\n"
				  "A bare/HEAD git\n"
				  "A bare/objects/ git\n"
				  "A bare/refs/ git\n"
				  "A objects/\n"
				  "A refs/\n"
				  "A sub/\n"
				  "A sub/.GIT git\n");
}
END_TEST

START_TEST(conflicts)
{
	put_file("src/both", "1");
	put_file("src/mine", "1");
	put_file("src/deleted", "1");
	begin(SESSION_OVERLAY);
	put_file("src/both", "host");
	put_file("src/deleted", "host");
	put_file("src/new", "host");
	put_file("s/upper/both", "session");
	put_file("s/upper/mine", "session");
	put_file("s/upper/new", "session");
	whiteout("s/upper/deleted");
	put_file("s/upper/lost", "was copied up");
	static const unsigned char fh[] = {0, 0xfb, 29, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
					   0, 0,    0,  0, 0, 0, 1, 2, 3, 4, 9, 9, 9, 9};
	ck_assert_int_eq(lsetxattr(at("s/upper/lost"), "user.overlay.origin", fh, sizeof(fh), 0),
			 0);
	ck_assert_str_eq(found(), "M both conflict\n"
				  "D deleted conflict\n"
				  "A lost conflict\n"
				  "M mine\n"
				  "M new conflict\n");
	struct review r = open_review();
	struct changes c;
	struct err e = {0};
	struct stat st = stat_of("src/both");
	struct applied_entry entry = {.path = "both",
				      .dev = st.st_dev,
				      .ino = st.st_ino,
				      .ctime_ns = st.st_ctim.tv_sec * 1000000000LL +
						  st.st_ctim.tv_nsec};
	struct applied applied = {.v = &entry, .n = 1};
	r.applied = &applied;
	ck_assert_int_eq(changes_find(&r, &c, &e), 0);
	ck_assert(!changes_get(&c, "both")->conflict);
	ck_assert(changes_get(&c, "new")->conflict);
	changes_release(&c);
	review_close(&r);
}
END_TEST

START_TEST(origin_of_renamed)
{
	unsigned char fh[29] = {0, 0xfb, 29, 0, 1};

	put_file("src/old", "1");
	uint32_t ino = (uint32_t)stat_of("src/old").st_ino;
	begin(SESSION_OVERLAY);
	whiteout("s/upper/old");
	put_file("s/upper/new", "1");
	for (unsigned int i = 0; i < 4; i++)
		fh[21 + i] = (unsigned char)(ino >> (8 * i));
	ck_assert_uint_eq(layer_origin_parse(fh, sizeof(fh)), ino);
	ck_assert_int_eq(lsetxattr(at("s/upper/new"), "user.overlay.origin", fh, sizeof(fh), 0), 0);
	ck_assert_str_eq(found(), "A new\nD old\n");
	ck_assert_int_eq(unlink(at("src/old")), 0);
	ck_assert_str_eq(found(), "A new conflict\n");
}
END_TEST

START_TEST(copies)
{
	put_dir("src/d");
	put_dir("s/copy/d");
	put_dir("s/copy/e");
	put_dir("src/e");
	static const char *const names[] = {"same", "gone", "touched", "mod",
					    "host", "d/in", "e/x"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		put_file(at("src/%s", names[i]) + strlen(place_top) + 1, names[i]);
		put_file(at("s/copy/%s", names[i]) + strlen(place_top) + 1, names[i]);
	}
	begin(SESSION_COPY);
	ck_assert_str_eq(found(), "");
	ck_assert_int_eq(unlink(at("s/copy/gone")), 0);
	put_file("s/copy/touched", "touched");
	put_file("s/copy/mod", "new text");
	put_file("s/copy/added", "new");
	put_file("src/host", "the host's");
	put_file("src/host-new", "the host's");
	ck_assert_int_eq(rename(at("s/copy/d"), at("s/copy/moved")), 0);
	ck_assert_str_eq(found(), "A added\n"
				  "D d/\n"
				  "D d/in\n"
				  "D gone\n"
				  "M mod\n"
				  "A moved/\n"
				  "A moved/in\n");
	/* A directory takes another's name: what came along is old, and differs. */
	put_file("s/copy/e/y", "y");
	ck_assert_int_eq(rename(at("s/copy/e"), at("s/copy/d")), 0);
	put_file("src/mod", "host");
	ck_assert_str_eq(found(), "A added\n"
				  "D d/in\n"
				  "A d/x\n"
				  "A d/y\n"
				  "D e/\n"
				  "D e/x\n"
				  "D gone\n"
				  "M mod conflict\n"
				  "A moved/\n"
				  "A moved/in\n");
}
END_TEST

static void put_chain(const char *top, unsigned int n)
{
	int dir = open(at("%s", top), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (unsigned int i = 0; i < n; i++) {
		ck_assert_int_eq(mkdirat(dir, "d", 0755), 0);
		int next = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ck_assert_int_ge(next, 0);
		close(dir);
		dir = next;
	}
	close(dir);
}

START_TEST(deep)
{
	/* ext4 takes minutes to remove such a chain. */
	place_close();
	ck_assert(place_open("/dev/shm"));
	put_dir("src");
	put_dir("s/upper");
	begin(SESSION_OVERLAY);
	put_chain("s/upper", 60000);
	struct review r = open_review();
	struct changes c;
	struct err e = {0};
	ck_assert_int_eq(changes_find(&r, &c, &e), 0);
	ck_assert_uint_eq(c.n, PATH_TEXT / 2);
	ck_assert_uint_eq(c.deep, 1);
	ck_assert_uint_eq(strlen(c.deep_at), PATH_TEXT - 1);
	changes_release(&c);
	review_close(&r);
}
END_TEST

START_TEST(hostile)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	put_file("outside", "secret");
	put_dir("outside-dir");
	put_file("outside-dir/f", "secret");
	put_dir("src/d");
	put_file("src/fifo", "12");
	put_file("src/d/f", "f");
	begin(SESSION_OVERLAY);
	ck_assert_int_eq(mkfifo(at("s/upper/fifo"), 0644), 0);
	put_link("s/upper/loop", "loop");
	put_link("s/upper/d", "+outside-dir");
	put_link("s/upper/out", "+outside");
	put_file("s/upper/...", "");
	put_file("s/upper/\xff\xfe\n\x1b[2J", "");
	put_dir("s/upper/shut/in");
	put_file("s/upper/shut/in/f", "f");
	ck_assert_int_eq(chmod(at("s/upper/shut/in/f"), 0), 0);
	ck_assert_int_eq(chmod(at("s/upper/shut/in"), 0), 0);
	ck_assert_int_eq(chmod(at("s/upper/shut"), 0), 0);
	AUTO_FD int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", at("s/upper/sock"));
	ck_assert_int_eq(bind(sock, (struct sockaddr *)&un, sizeof(un)), 0);
	ck_assert_str_eq(found(), "A ...\n"
				  "M d\n"
				  "D d/f\n"
				  "M fifo\n"
				  "A loop\n"
				  "A out\n"
				  "A shut/\n"
				  "A shut/in/\n"
				  "A shut/in/f\n"
				  "A sock\n"
				  "A \xff\xfe\n\x1b[2J\n");
	ck_assert_uint_eq(stat_of("s/upper/shut").st_mode & 07777, 0);
	struct review r = open_review();
	struct changes c;
	struct err e = {0};
	ck_assert_int_eq(changes_find(&r, &c, &e), 0);
	AUTO_FD int fd = change_open(&r, &changes_get(&c, "shut/in/f")->after, &e);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(change_open(&r, &changes_get(&c, "fifo")->after, &e), -1);
	ck_assert_int_eq(change_open(&r, &changes_get(&c, "sock")->after, &e), -1);
	/* Swapped behind the list's back. */
	struct change_side out = changes_get(&c, "shut/in/f")->after;
	out.where = "out";
	ck_assert_int_eq(change_open(&r, &out, &e), -1);
	out.where = "d/f";
	ck_assert_int_eq(change_open(&r, &out, &e), -1);
	out.where = "../../outside";
	ck_assert_int_eq(change_open(&r, &out, &e), -1);
	changes_release(&c);
	review_close(&r);
}
END_TEST

START_TEST(redirect_values)
{
	static const struct {
		const char *value, *parent, *want;
	} rows[] = {
		{"/a", NULL, "a"},     {"/a/b", "x", "a/b"}, {"b", "", "b"},
		{"b", "p/q", "p/q/b"}, {"b", NULL, NULL},    {"/", "", NULL},
		{"", "", NULL},        {"/a/", "", NULL},    {"/a//b", "", NULL},
		{"/a/../b", "", NULL}, {"..", "", NULL},     {".", "", NULL},
		{"a/b", "", NULL},     {"/./a", "", NULL},   {"/...", "", "..."},
	};
	char ret[PATH_TEXT];
	char large[PATH_TEXT + 1];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool good = layer_redirect_parse(rows[i].value, strlen(rows[i].value),
						 rows[i].parent, ret);
		ck_assert_msg(good == (rows[i].want != NULL), "%s", rows[i].value);
		if (good)
			ck_assert_str_eq(ret, rows[i].want);
	}
	ck_assert(!layer_redirect_parse("/a\0b", 4, "", ret));
	ck_assert(layer_redirect_parse("/a", 3, "", ret));
	memset(large, 'a', sizeof(large));
	ck_assert(!layer_redirect_parse(large, 256, "", ret));
	ck_assert(layer_redirect_parse(large, 255, "", ret));
	for (size_t i = 0; i < sizeof(large); i += 2)
		large[i] = '/';
	ck_assert(layer_redirect_parse(large, PATH_TEXT - 2, "", ret));
	ck_assert(!layer_redirect_parse(large, PATH_TEXT, "", ret));
}
END_TEST

START_TEST(another_source)
{
	struct review r;
	struct err e = {0};

	begin(SESSION_OVERLAY);
	AUTO_FD int dir = open(at("s"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rec.ino++;
	ck_assert_int_eq(review_open(dir, &rec, &r, &e), -1);
	ck_assert_int_eq(e.code, ERR_CONFLICT);
	rec.writes = SESSION_DIRECT;
	ck_assert_int_eq(review_open(dir, &rec, &r, &e), -1);
	ck_assert_int_eq(e.code, ERR_UNSUPPORTED);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("review change");
	TCase *t = tcase_create("layers");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, nothing);
	tcase_add_test(t, plain);
	tcase_add_test(t, opaque);
	tcase_add_test(t, file_whiteouts);
	tcase_add_test(t, redirects);
	tcase_add_test(t, masks);
	tcase_add_test(t, masks_of_renamed);
	tcase_add_test(t, git_directories);
	tcase_add_test(t, conflicts);
	tcase_add_test(t, origin_of_renamed);
	tcase_add_test(t, copies);
	tcase_add_test(t, deep);
	tcase_add_test(t, hostile);
	tcase_add_test(t, redirect_values);
	tcase_add_test(t, another_source);
	suite_add_tcase(s, t);
	return suite_run(s);
}
