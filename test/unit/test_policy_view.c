/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view: what is in it, and above all what is not.
 */
#include "policy/view.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "test_policy_place.h"

static struct view view;
static struct refused refused;
static const struct view_ids ids = {.uid = 4711,
				    .gid = 4712,
				    .name = "sandglass",
				    .session = "01234567-89ab-4cde-8f01-23456789abcd"};

static char *env[3];

static struct caller somebody(void)
{
	static char home[PATH_TEXT], state[PATH_TEXT + 32];
	struct err e;

	put_dir("me/.ssh");
	put_file("me/.ssh/id", "key");
	put_dir("src/sub");
	put_file("src/file", "x");
	put_dir("data/deep");
	put_file("data/file", "x");
	put_dir("state/s");
	put_file("state/s/key", "x");
	snprintf(home, sizeof(home), "%s", at("me"));
	snprintf(state, sizeof(state), "SANDGLASS_HOME=%s", at("state/s"));
	env[0] = state;
	struct caller who = caller_of(home, env);
	CK_WORKS(refused_init(&who, &refused, &e), e);
	return who;
}

static struct source source_here(void)
{
	struct source src = {.given = true, .st = stat_of("src")};

	snprintf(src.path, sizeof(src.path), "%s", at("src"));
	return src;
}

/* Grants and the whole view, as a run makes it. */
static int build(const struct request *req, const struct caller *who, const struct source *src,
		 const struct view_ids *id, struct err *e)
{
	view_release(&view);
	if (view_grants(&view, req, who, &refused, src, e) < 0)
		return -1;
	if (view_add_own(&view, id, e) < 0 || view_add_usual(&view, who, &refused, src, id, e) < 0)
		return -1;
	return view_add_places(&view, req, src, id, e);
}

static const struct plan_mount *mount_at(const char *dst)
{
	for (size_t i = 0; i < view.n; i++)
		if (strcmp(view.mounts[i].dst, dst) == 0)
			return &view.mounts[i];
	return NULL;
}

/* Something of the host at or below `path` would be visible by this view. */
static const struct plan_mount *shows(const char *path)
{
	for (size_t i = 0; i < view.n; i++)
		if (view.mounts[i].kind == MOUNT_BIND && (path_is_below(view.mounts[i].src, path) ||
							  path_is_below(path, view.mounts[i].src)))
			return &view.mounts[i];
	return NULL;
}

START_TEST(deny_by_default)
{
	static const char *const never[] = {
		"/home",
		"/root",
		"/run",
		"/var",
		"/tmp",
		"/mnt",
		"/media",
		"/srv",
		"/opt",
		"/boot",
		"/proc",
		"/dev",
		"/etc/shadow",
		"/etc/gshadow",
		"/etc/sudoers",
		"/etc/sudoers.d",
		"/etc/ssh",
		"/etc/passwd",
		"/etc/group",
		"/etc/hosts",
		"/etc/hostname",
		"/etc/machine-id",
		"/etc/ssl/private",
		"/etc/resolv.conf",
		"/etc/NetworkManager",
		"/etc/systemd",
		"/etc/docker",
		"/etc/kubernetes",
		"/etc/krb5.keytab",
		"/etc/apt",
		"/etc/cron.d",
		"/etc/environment",
		"/etc/sandglass",
		"/sys/kernel",
		"/sys/fs",
		"/sys/firmware",
		"/sys/class",
		"/sys/devices/virtual",
		"/lost+found",
	};
	struct caller who = somebody();
	struct source none = {.given = false};
	struct request req = request_of_nothing();
	struct err e;

	CK_WORKS(build(&req, &who, &none, &ids, &e), e);
	for (size_t i = 0; i < ARRAY_LEN(never); i++) {
		const struct plan_mount *m = shows(never[i]);
		ck_assert_msg(!m, "%s by %s", never[i], m ? m->src : "");
	}
	for (size_t i = 0; i < view.n; i++) {
		const struct plan_mount *m = &view.mounts[i];
		ck_assert_msg(!(m->flags & MOUNT_WRITE), "%s is writable", m->dst);
		ck_assert_msg((m->flags & MOUNT_SYSTEM) ||
				      (m->kind == MOUNT_FILE && path_is_below("/sand", m->dst)),
			      "%s is not of the system", m->dst);
		ck_assert_msg(path_is_clean(m->dst), "%s", m->dst);
	}
	ck_assert_ptr_nonnull(shows("/usr/bin"));
}
END_TEST

/* Every bind of the system is one of the few places that the manual names. */
START_TEST(system_is_listed)
{
	static const char *const known[] = {"/usr",
					    "/bin",
					    "/sbin",
					    "/lib",
					    "/lib32",
					    "/lib64",
					    "/libx32",
					    "/etc",
					    "/sys/devices/system/cpu",
					    "/sys/devices/system/node"};
	struct caller who = somebody();
	struct source none = {.given = false};
	struct request req = request_of_nothing();
	struct err e;

	CK_WORKS(build(&req, &who, &none, &ids, &e), e);
	for (size_t i = 0; i < view.n; i++) {
		const struct plan_mount *m = &view.mounts[i];
		bool found = m->kind != MOUNT_BIND;
		for (size_t k = 0; k < ARRAY_LEN(known); k++)
			found |= path_is_below(known[k], m->dst);
		ck_assert_msg(found, "%s", m->dst);
		ck_assert_str_ne(m->dst, "/etc");
		ck_assert_str_ne(m->dst, "/");
		if (m->kind == MOUNT_BIND)
			ck_assert_str_ne(m->src, "/etc");
	}
}
END_TEST

/* A made file of that name; its content in `text`. */
static const char *made(const char *dst)
{
	const struct plan_mount *m = mount_at(dst);

	ck_assert_msg(m && m->kind == MOUNT_FILE, "%s", dst);
	ck_assert_uint_eq(strlen(m->src), m->src_len);
	return m->src;
}

START_TEST(own_files)
{
	struct caller who = somebody();
	struct source src = source_here();
	struct request req = request_of_nothing();
	struct err e;

	CK_WORKS(build(&req, &who, &src, &ids, &e), e);
	ck_assert_str_eq(made("/etc/passwd"),
			 "root:x:0:0:root:/root:/usr/sbin/nologin\n"
			 "sandglass:x:4711:4712::/sand/home:/bin/bash\n"
			 "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
	ck_assert_str_eq(made("/etc/group"), "root:x:0:\nsandglass:x:4712:\nnogroup:x:65534:\n");
	ck_assert_str_eq(made("/etc/machine-id"), "0123456789ab4cde8f0123456789abcd\n");
	ck_assert_str_eq(made("/etc/hostname"), "sandglass\n");
	ck_assert_ptr_nonnull(strstr(made("/etc/hosts"), "127.0.0.1 localhost\n"));
	ck_assert_ptr_nonnull(strstr(made("/etc/resolv.conf"), "nameserver 127.0.0.53\n"));
	ck_assert_ptr_null(strstr(made("/etc/nsswitch.conf"), "sss"));
	const struct plan_mount *run = mount_at("/run");
	ck_assert(run && run->kind == MOUNT_DIR);
	const struct plan_mount *mtab = mount_at("/etc/mtab");
	ck_assert(mtab && mtab->kind == MOUNT_SYMLINK);
	ck_assert_str_eq(mtab->src, "/proc/self/mounts");
}
END_TEST

/* Core makes read-only what comes first; nothing writable may be among it. */
START_TEST(order)
{
	struct caller who = somebody();
	struct source src = source_here();
	struct request req = request_of_nothing();
	struct err e;
	bool over = false;

	req.write.v[req.write.n++] = at("data");
	req.read.v[req.read.n++] = at("src/sub");
	CK_WORKS(build(&req, &who, &src, &ids, &e), e);
	for (size_t i = 0; i < view.n; i++) {
		over |= !(view.mounts[i].flags & MOUNT_SYSTEM);
		ck_assert_msg(over == !(view.mounts[i].flags & MOUNT_SYSTEM), "%s",
			      view.mounts[i].dst);
	}
	/* A parent before what lies in it. */
	for (size_t i = 0; i < view.n; i++)
		for (size_t k = i + 1; k < view.n; k++)
			ck_assert_msg(strcmp(view.mounts[k].dst, view.mounts[i].dst) == 0 ||
					      !path_is_below(view.mounts[k].dst,
							     view.mounts[i].dst),
				      "%s after %s", view.mounts[k].dst, view.mounts[i].dst);
}
END_TEST

static void is_bind(const char *dst, uint32_t flags)
{
	const struct plan_mount *m = mount_at(dst);
	struct stat st;

	ck_assert_msg(m && m->kind == MOUNT_BIND, "%s", dst);
	ck_assert_str_eq(m->src, dst);
	ck_assert_uint_eq(m->src_len, strlen(dst));
	ck_assert_int_eq(lstat(dst, &st), 0);
	uint32_t want = flags | MOUNT_IDENT | (S_ISDIR(st.st_mode) ? MOUNT_DIRECTORY : 0u);
	ck_assert_msg(m->flags == want, "%s: flags %x, not %x", dst, m->flags, want);
	ck_assert(m->dev == st.st_dev && m->ino == st.st_ino);
	ck_assert(m->owner_uid == st.st_uid && m->owner_gid == st.st_gid);
}

START_TEST(source_modes)
{
	struct caller who = somebody();
	struct source src = source_here();
	struct request req = request_of_nothing();
	struct view_ids mapped = ids;
	struct err e;

	CK_WORKS(build(&req, &who, &src, &ids, &e), e);
	is_bind(src.path, MOUNT_WRITE);
	ck_assert_ptr_null(mount_at("/workspace"));
	mapped.idmap = true;
	CK_WORKS(build(&req, &who, &src, &mapped, &e), e);
	is_bind(src.path, MOUNT_WRITE | MOUNT_IDMAP);
	req.mode = MODE_READ_ONLY;
	CK_WORKS(build(&req, &who, &src, &ids, &e), e);
	is_bind(src.path, 0);
	src.given = false;
	CK_WORKS(build(&req, &who, &src, &ids, &e), e);
	ck_assert_ptr_null(mount_at(at("src")));
	const struct plan_mount *w = mount_at("/workspace");
	ck_assert(w && w->kind == MOUNT_SYMLINK);
	ck_assert_str_eq(w->src, "/sand/workspace");
}
END_TEST

START_TEST(grants)
{
	struct caller who = somebody();
	struct source src = source_here();
	struct request req = request_of_nothing();
	char deep[PATH_TEXT], file[PATH_TEXT], sub[PATH_TEXT], key[PATH_TEXT];
	struct err e;

	snprintf(deep, sizeof(deep), "%s", at("data/deep"));
	snprintf(file, sizeof(file), "%s", at("data/file"));
	snprintf(sub, sizeof(sub), "%s", at("src/sub"));
	snprintf(key, sizeof(key), "%s", at("me/.ssh/id"));
	req.write.v[req.write.n++] = "data/deep/";
	req.read.v[req.read.n++] = file;
	req.read.v[req.read.n++] = "src/sub";
	req.read.v[req.read.n++] = key; /* a file by its name: said on purpose */
	CK_WORKS(build(&req, &who, &src, &ids, &e), e);
	is_bind(deep, MOUNT_WRITE);
	is_bind(file, 0);
	is_bind(sub, 0);
	is_bind(key, 0);
	ck_assert_ptr_null(mount_at(at("data")));
	ck_assert_ptr_null(mount_at(at("me")));
	/* In read-only mode a write grant still opens its own place. */
	req.mode = MODE_READ_ONLY;
	CK_WORKS(build(&req, &who, &src, &ids, &e), e);
	is_bind(deep, MOUNT_WRITE);
	is_bind(src.path, 0);
}
END_TEST

START_TEST(grants_refused)
{
	static const struct {
		const char *path;
		enum err_code code;
		const char *text;
	} rows[] = {
		{"/", ERR_POLICY_DENIED, "the whole file system"},
		{"/usr/..", ERR_POLICY_DENIED, "the whole file system"},
		{"me", ERR_POLICY_DENIED, "home directory"},
		{"", ERR_CONFIG_INVALID, "empty path"},
		{".", ERR_POLICY_DENIED, "home directory or holds one"},
		{"to-me", ERR_POLICY_DENIED, "home directory"},
		{"state", ERR_POLICY_DENIED, "sandglass's own"},
		{"state/s", ERR_POLICY_DENIED, "sandglass's own"},
		{"state/s/key", ERR_POLICY_DENIED, "sandglass's own"}, /* a file in it as well */
		{"nothing", ERR_CONFIG_INVALID, "No such file"},
		{"/tmp", ERR_CONFIG_INVALID, "inside, /tmp is private"},
		{"/var/tmp", ERR_CONFIG_INVALID, "inside, /var/tmp is private"},
		{"/proc", ERR_CONFIG_INVALID, "/proc is the sandbox's own"},
		{"/proc/self/environ", ERR_CONFIG_INVALID, "/proc is the sandbox's own"},
		{"/sys", ERR_CONFIG_INVALID, "/sys is the sandbox's own"},
		{"/dev/null", ERR_CONFIG_INVALID, "/dev is the sandbox's own"},
		{"fifo", ERR_POLICY_DENIED, "a socket, device or fifo"},
		{"socket", ERR_POLICY_DENIED, "a socket, device or fifo"},
		{"src/out", ERR_POLICY_DENIED, "a link in a directory that a sandbox may write"},
	};
	struct caller who = somebody();
	struct source src = source_here();
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct err e;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	put_link("to-me", "me");
	put_link("src/out", "../data");
	ck_assert_int_eq(mkfifo(at("fifo"), 0600), 0);
	snprintf(name.sun_path, sizeof(name.sun_path), "%.100s", at("socket"));
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (int write = 0; write <= 1; write++) {
			struct request req = request_of_nothing();
			struct strlist *list = write ? &req.write : &req.read;
			list->v[list->n++] = "data/deep"; /* a good one beside it changes nothing */
			list->v[list->n++] = rows[i].path;
			CK_FAILS(build(&req, &who, &src, &ids, &e), e, rows[i].code, rows[i].text);
		}
	(void)close(fd);
}
END_TEST

/* What one grant makes writable is writable for the next: no link is followed there. */
START_TEST(grants_taint)
{
	struct caller who = somebody();
	struct source none = {.given = false};
	struct request req = request_of_nothing();
	struct err e;

	put_link("data/out", "../src");
	req.read.v[req.read.n++] = "data/out";
	CK_WORKS(build(&req, &who, &none, &ids, &e), e);
	ck_assert_ptr_nonnull(mount_at(at("src")));
	req.write.v[req.write.n++] = "data";
	CK_FAILS(build(&req, &who, &none, &ids, &e), e, ERR_POLICY_DENIED, "--read");
	/* The same among the write grants themselves. */
	req = request_of_nothing();
	req.write.v[req.write.n++] = "data";
	req.write.v[req.write.n++] = "data/out";
	CK_FAILS(build(&req, &who, &none, &ids, &e), e, ERR_POLICY_DENIED, "--write");
}
END_TEST

static const struct plan_mount *write_of(const char *path)
{
	const struct plan_mount *m = mount_at(path);

	return m && (m->flags & MOUNT_WRITE) ? m : NULL;
}

/* What files name: the higher layer, within one layer reading; what is not there is skipped. */
START_TEST(rules)
{
	struct caller who = somebody();
	struct source src = source_here();
	struct path_rule all[] = {
		{.path = at("data/gone"), .access = ACCESS_READ, .layer = LAYER_USER},
		{.path = at("data/file/x"), .access = ACCESS_READ, .layer = LAYER_USER},
		{.path = at("data/deep"), .access = ACCESS_WRITE, .layer = LAYER_PROJECT},
		{.path = at("data/deep"), .access = ACCESS_READ, .layer = LAYER_USER},
		{.path = at("data/file"), .access = ACCESS_WRITE, .layer = LAYER_USER},
		{.path = at("data/file"), .access = ACCESS_READ, .layer = LAYER_USER},
		{.path = at("src/sub"), .access = ACCESS_READ, .layer = LAYER_USER},
		{.path = "**/file", .access = ACCESS_READ, .layer = LAYER_USER, .pattern = true},
	};
	struct request req = request_of_nothing();
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		all[i].origin = "user /policy.yaml:3";
	req.rules = all;
	req.rule_count = ARRAY_LEN(all);
	CK_WORKS(build(&req, &who, &src, &ids, &e), e);
	ck_assert_ptr_null(mount_at(at("data/gone")));
	ck_assert_ptr_nonnull(write_of(at("data/deep")));
	ck_assert_ptr_nonnull(mount_at(at("data/file")));
	ck_assert_ptr_null(write_of(at("data/file")));
	ck_assert_ptr_nonnull(mount_at(at("src/sub")));
	ck_assert_ptr_null(write_of(at("src/sub")));
	ck_assert_ptr_nonnull(write_of(at("src")));
	/* An option is above them all. */
	req.write.v[req.write.n++] = "data/file";
	CK_WORKS(build(&req, &who, &src, &ids, &e), e);
	ck_assert_ptr_nonnull(write_of(at("data/file")));
	/* The top itself: nothing is writable any more, but what is named below it. */
	all[0] = (struct path_rule){.path = at("src"), .origin = "", .layer = LAYER_USER};
	all[1] = (struct path_rule){.path = at("src/sub"),
				    .origin = "",
				    .access = ACCESS_WRITE,
				    .layer = LAYER_PROJECT};
	CK_WORKS(build(&req, &who, &src, &ids, &e), e);
	ck_assert_ptr_null(write_of(at("src")));
	ck_assert_ptr_nonnull(write_of(at("src/sub")));
	/* Errors name the file. */
	all[0] = (struct path_rule){.path = "/tmp", .origin = "user /p.yaml:9"};
	CK_FAILS(build(&req, &who, &src, &ids, &e), e, ERR_CONFIG_INVALID, "/p.yaml:9");
}
END_TEST

/* An untrusted file shows nothing, whatever it says; and a link that it names is not followed. */
START_TEST(rules_narrow)
{
	struct caller who = somebody();
	struct source src = source_here();
	struct path_rule rule = {.path = at("data/file"),
				 .origin = "project /p.yaml:2",
				 .access = ACCESS_READ,
				 .layer = LAYER_PROJECT};
	struct request req = request_of_nothing();
	struct err e;

	req.rules = &rule;
	req.rule_count = 1;
	CK_WORKS(build(&req, &who, &src, &ids, &e), e);
	ck_assert_ptr_nonnull(mount_at(at("data/file")));
	rule.narrow = true;
	CK_WORKS(build(&req, &who, &src, &ids, &e), e);
	ck_assert_ptr_null(mount_at(at("data/file")));
	rule.path = at("src/file");
	CK_WORKS(build(&req, &who, &src, &ids, &e), e);
	ck_assert_ptr_nonnull(mount_at(at("src/file")));
	put_link("src/out", "../data/file");
	rule.path = at("src/out");
	CK_FAILS(build(&req, &who, &src, &ids, &e), e, ERR_POLICY_DENIED, "/p.yaml:2");
}
END_TEST

START_TEST(limit_of_grants)
{
	struct caller who = somebody();
	struct source none = {.given = false};
	struct request req = request_of_nothing();
	struct err e;

	static char names[MAX_GRANTS + 1][24];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		(void)snprintf(names[i], sizeof(names[i]), "data/%zu", i);
		put_file(names[i], "x");
	}
	for (size_t i = 0; i < MAX_GRANTS; i++)
		req.read.v[req.read.n++] = names[i];
	view_release(&view);
	CK_WORKS(view_grants(&view, &req, &who, &refused, &none, &e), e);
	ck_assert_uint_eq(view.grant_count, MAX_GRANTS);
	req.read.v[req.read.n++] = names[MAX_GRANTS];
	view_release(&view);
	CK_FAILS(view_grants(&view, &req, &who, &refused, &none, &e), e, ERR_CONFIG_INVALID,
		 "more than 128 paths");
}
END_TEST

START_TEST(limit_of_mounts)
{
	struct err e;

	view_release(&view);
	for (size_t i = 0; i < MAX_PLAN_MOUNTS; i++)
		CK_WORKS(view_made(&view, MOUNT_FILE, "/x", "y", &e), e);
	CK_FAILS(view_made(&view, MOUNT_DIR, "/x", NULL, &e), e, ERR_CONFIG_INVALID,
		 "more than 5632 entries");
	ck_assert_uint_eq(view.n, MAX_PLAN_MOUNTS);
	view_release(&view);
	ck_assert_uint_eq(view.n, 0);
}
END_TEST

START_TEST(covers)
{
	struct err e;

	view_release(&view);
	CK_WORKS(view_bind(&view, "/usr", NULL, 0, NULL, &e), e);
	CK_WORKS(view_bind(&view, "/real/tool", "/seen/tool", 0, NULL, &e), e);
	CK_WORKS(view_made(&view, MOUNT_DIR, "/run", NULL, &e), e);
	ck_assert(view_covers(&view, "/usr"));
	ck_assert(view_covers(&view, "/usr/bin/x"));
	ck_assert(!view_covers(&view, "/usrx"));
	ck_assert(!view_covers(&view, "/"));
	ck_assert(view_covers(&view, "/seen/tool/y"));
	ck_assert(!view_covers(&view, "/real/tool"));
	ck_assert(!view_covers(&view, "/run/x")); /* nothing of the host is there */
	view_release(&view);
}
END_TEST

/* The texts are the view's own: what they were made of may go. */
START_TEST(keeps_texts)
{
	char src[] = "/a", dst[] = "/b", content[] = "c\0d";
	struct err e;

	view_release(&view);
	CK_WORKS(view_bind(&view, src, dst, 0, NULL, &e), e);
	CK_WORKS(view_file(&view, dst, content, 3, &e), e);
	memset(src, 'x', sizeof(src));
	memset(dst, 'x', sizeof(dst));
	memset(content, 'x', sizeof(content));
	ck_assert_str_eq(view.mounts[0].src, "/a");
	ck_assert_str_eq(view.mounts[0].dst, "/b");
	ck_assert_mem_eq(view.mounts[1].src, "c\0d", 4);
	view_release(&view);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("policy view");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, place_setup, place_close);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, deny_by_default);
	tcase_add_test(c, system_is_listed);
	tcase_add_test(c, own_files);
	tcase_add_test(c, order);
	tcase_add_test(c, source_modes);
	tcase_add_test(c, grants);
	tcase_add_test(c, grants_refused);
	tcase_add_test(c, grants_taint);
	tcase_add_test(c, rules);
	tcase_add_test(c, rules_narrow);
	tcase_add_test(c, limit_of_grants);
	tcase_add_test(c, limit_of_mounts);
	tcase_add_test(c, covers);
	tcase_add_test(c, keeps_texts);
	suite_add_tcase(s, c);
	return suite_run(s);
}
