/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The usual part of a view as it is kept: comes back as it was, for the same key,
 * as long as what was looked at is the same; and damage is never taken for it.
 */
#include "policy/viewcache.h"

#include "policy/viewcache_record.h"
#include "test_policy_place.h"

static const char content[] = "a\0b\0\nc";

static const struct plan_mount mounts[] = {
	{.kind = MOUNT_DIR, .flags = MOUNT_SYSTEM, .dst = "/run"},
	{.kind = MOUNT_SYMLINK,
	 .flags = MOUNT_SYSTEM,
	 .dst = "/bin",
	 .src = "usr/bin",
	 .src_len = 7},
	{.kind = MOUNT_FILE, .dst = "/etc/x", .src = content, .src_len = sizeof(content) - 1},
	{.kind = MOUNT_FILE, .flags = MOUNT_SYSTEM, .dst = "/etc/empty", .src = "", .src_len = 0},
	{.kind = MOUNT_BIND,
	 .flags = MOUNT_FLAGS_ALL,
	 .dev = UINT64_MAX - 1,
	 .ino = UINT64_MAX - 2,
	 .owner_uid = UINT32_MAX - 1,
	 .owner_gid = 7,
	 .dst = "/opt/tool",
	 .src = "/opt/.tool",
	 .src_len = 10},
	{.kind = MOUNT_MASK, .flags = MOUNT_DIRECTORY, .dst = "/opt/tool/secret"},
	{.kind = MOUNT_PIN, .flags = MOUNT_OPTIONAL, .dst = "/opt/tool/.git/config"},
};

static struct looks looks;
static struct view view, other;
static struct refused refused, again;
static struct buf key, entry;

static void fill(void)
{
	struct stat st;
	char text[64];

	put_dir("d");
	put_file("f", "one");
	put_link("link", "f");
	look_begin(&looks);
	ck_assert_int_eq(look_lstat(at("d"), &st), 0);
	ck_assert_int_eq(look_lstat(at("none"), &st), -1);
	ck_assert_int_gt(look_readlink(at("link"), text, sizeof(text)), 0);
	int fd = look_open(at("f"), O_RDONLY | O_CLOEXEC, &st);
	ck_assert_int_eq(close(fd), 0);
	look_stop();
	/* The first one is the call's own. */
	view.mounts[0] = (struct plan_mount){.kind = MOUNT_DIR, .dst = "/own"};
	memcpy(&view.mounts[1], mounts, sizeof(mounts));
	view.n = 1 + ARRAY_LEN(mounts);
	refused.homes.n = 2;
	refused.homes.v[0] = (struct place){1, 2};
	refused.homes.v[1] = (struct place){UINT64_MAX, 4};
	refused.state.n = 1;
	refused.state.v[0] = (struct place){5, 6};
	refused.state_paths = 2;
	memcpy(refused.state_path[0], "/home/me/state", 15);
	memcpy(refused.state_path[1], "/etc/sandglass", 15);
	ck_assert_int_eq(buf_add(&key, "a key\0of parts", 14), 0);
}

static void encode(void)
{
	struct err e;

	entry = BUF_INIT(MAX_VIEWCACHE_BYTES);
	CK_WORKS(viewcache_encode(&looks, &key, &view, 1, &refused, &entry, &e), e);
}

static void setup(void)
{
	place_setup();
	key = BUF_INIT(65536);
	fill();
	encode();
}

static void teardown(void)
{
	buf_release(&key);
	buf_release(&entry);
	place_close();
}

/* A copy of exactly that many bytes, so that a read behind them is seen. */
static bool decode(const void *bytes, size_t n)
{
	void *copy = malloc(n ? n : 1);

	ck_assert_ptr_nonnull(copy);
	if (n)
		memcpy(copy, bytes, n);
	other.n = 1;
	bool taken = viewcache_decode(copy, n, &key, &other, &again);
	ck_assert(taken || other.n == 1);
	free(copy);
	return taken;
}

static void same_mount(const struct plan_mount *a, const struct plan_mount *b)
{
	ck_assert_uint_eq(a->kind, b->kind);
	ck_assert_uint_eq(a->flags, b->flags);
	ck_assert_uint_eq(a->dev, b->dev);
	ck_assert_uint_eq(a->ino, b->ino);
	ck_assert_uint_eq(a->owner_uid, b->owner_uid);
	ck_assert_uint_eq(a->owner_gid, b->owner_gid);
	ck_assert_str_eq(a->dst, b->dst);
	ck_assert_uint_eq(a->src_len, b->src_len);
	ck_assert_int_eq(a->src != NULL, b->src != NULL);
	if (b->src)
		ck_assert_int_eq(memcmp(a->src, b->src, b->src_len + 1), 0);
}

START_TEST(comes_back)
{
	other.n = 1;
	other.mounts[0].dst = "/before";
	ck_assert(viewcache_decode(entry.p, entry.n, &key, &other, &again));
	ck_assert_uint_eq(other.n, 1 + ARRAY_LEN(mounts));
	ck_assert_str_eq(other.mounts[0].dst, "/before");
	for (size_t i = 0; i < ARRAY_LEN(mounts); i++)
		same_mount(&other.mounts[1 + i], &mounts[i]);
	ck_assert_uint_eq(again.homes.n, 2);
	ck_assert_int_eq(memcmp(again.homes.v, refused.homes.v, 2 * sizeof(struct place)), 0);
	ck_assert_uint_eq(again.state.n, 1);
	ck_assert_int_eq(memcmp(again.state.v, refused.state.v, sizeof(struct place)), 0);
	ck_assert_uint_eq(again.state_paths, 2);
	ck_assert_str_eq(again.state_path[0], "/home/me/state");
	ck_assert_str_eq(again.state_path[1], "/etc/sandglass");
}
END_TEST

START_TEST(nothing_comes_back_too)
{
	struct err e;
	struct buf out = BUF_INIT(MAX_VIEWCACHE_BYTES);
	struct buf none = BUF_INIT(16);

	looks.n = 0;
	refused.homes.n = refused.state.n = refused.state_paths = 0;
	CK_WORKS(viewcache_encode(&looks, &none, &view, view.n, &refused, &out, &e), e);
	other.n = 0;
	ck_assert(viewcache_decode(out.p, out.n, &none, &other, &again));
	ck_assert_uint_eq(other.n, 0);
	ck_assert(!viewcache_decode(out.p, out.n, &key, &other, &again));
	buf_release(&out);
}
END_TEST

/* Each thing that was looked at, changed alone. */
START_TEST(stands_no_longer)
{
	static const struct timespec pause = {.tv_nsec = 30000000};

	(void)nanosleep(&pause, NULL);
	ck_assert(decode(entry.p, entry.n));
	if (_i == 0) {
		ck_assert_int_eq(rename(at("d"), at("d2")), 0);
		put_dir("d");
	} else if (_i == 1) {
		put_file("none", "");
	} else if (_i == 2) {
		put_link("new", "d");
		ck_assert_int_eq(rename(at("new"), at("link")), 0);
	} else {
		put_file("f", "two");
	}
	ck_assert(!decode(entry.p, entry.n));
}
END_TEST

START_TEST(stands_still)
{
	put_file("d/new", "where only the place was looked at");
	put_file("other", "never looked at");
	ck_assert(decode(entry.p, entry.n));
}
END_TEST

START_TEST(another_key)
{
	ck_assert(decode(entry.p, entry.n));
	for (size_t i = 0; i < key.n; i++) {
		key.p[i] ^= 1;
		ck_assert(!decode(entry.p, entry.n));
		key.p[i] ^= 1;
	}
	key.n--;
	ck_assert(!decode(entry.p, entry.n));
	key.n++;
	ck_assert_int_eq(buf_char(&key, '\0'), 0);
	ck_assert(!decode(entry.p, entry.n));
}
END_TEST

START_TEST(every_truncation)
{
	for (size_t n = 0; n < entry.n; n++)
		ck_assert_msg(!decode(entry.p, n), "%zu of %zu bytes", n, entry.n);
	ck_assert_int_eq(buf_char(&entry, '\0'), 0);
	ck_assert(!decode(entry.p, entry.n));
	ck_assert(decode(entry.p, entry.n - 1));
}
END_TEST

START_TEST(every_bit)
{
	for (size_t i = 0; i < entry.n; i++)
		for (unsigned int bit = 0; bit < 8; bit++) {
			entry.p[i] ^= (char)(1u << bit);
			ck_assert_msg(!decode(entry.p, entry.n), "byte %zu bit %u", i, bit);
			entry.p[i] ^= (char)(1u << bit);
		}
	ck_assert(decode(entry.p, entry.n));
}
END_TEST

static struct viewcache_head *head(void)
{
	return (void *)entry.p;
}

static struct look *inputs(void)
{
	return (void *)(head() + 1);
}

static struct viewcache_mount *kept(void)
{
	return (void *)(inputs() + head()->inputs);
}

/* With a sum that fits, so that the sum is not what refuses it. */
static bool decode_sealed(void)
{
	head()->sum = viewcache_sum(head(), entry.p + sizeof(*head()), entry.n - sizeof(*head()));
	return decode(entry.p, entry.n);
}

static void wrong(void *field, uint32_t value)
{
	uint32_t was;

	memcpy(&was, field, sizeof(was));
	memcpy(field, &value, sizeof(value));
	ck_assert_msg(!decode_sealed(), "%u at byte %td", value, (char *)field - entry.p);
	memcpy(field, &was, sizeof(was));
	ck_assert(decode_sealed());
}

/* What is damaged in a way that its sum hides must still stay within bounds. */
START_TEST(wrong_but_sealed)
{
	struct viewcache_head *h = head();
	struct viewcache_mount *k = kept();

	wrong(&h->magic, 0);
	wrong(&h->format, VIEWCACHE_FORMAT + 1);
	wrong(&h->total, h->total + 8);
	wrong(&h->inputs, h->inputs + 1);
	wrong(&h->inputs, MAX_LOOKS + 1);
	wrong(&h->inputs, UINT32_MAX);
	wrong(&h->mounts, UINT32_MAX);
	wrong(&h->homes, MAX_PLACES + 1);
	wrong(&h->states, UINT32_MAX);
	wrong(&h->state_paths, ARRAY_LEN(refused.state_path) + 1);
	wrong(&h->key_len, h->text_len + 1);
	wrong(&h->key_len, h->key_len - 1);
	wrong(&h->text_len, 0);
	wrong(&h->text_len, UINT32_MAX);
	wrong(&h->state_path[0], h->text_len);
	wrong(&h->state_path[1], UINT32_MAX);
	wrong(&inputs()->path, h->text_len);
	wrong(&inputs()->path, UINT32_MAX);
	wrong(&inputs()->kind, LOOK_CONTENT + 1);
	wrong(&k->kind, MOUNT_KINDS);
	wrong(&k->flags, MOUNT_FLAGS_ALL + 1);
	wrong(&k->dst, h->text_len);
	wrong(&k->dst, k->dst + 1); /* no absolute path */
	wrong(&k->src_len, 1);      /* of nothing */
	wrong(&k[1].has_src, 2);
	wrong(&k[1].has_src, 0);
	wrong(&k[1].src, h->text_len);
	wrong(&k[1].src, UINT32_MAX);
	wrong(&k[1].src_len, h->text_len - k[1].src); /* no room for a NUL */
	wrong(&k[1].src_len, UINT32_MAX);
	entry.p[entry.n - 1] = 'x'; /* a text without an end */
	ck_assert(!decode_sealed());
}
END_TEST

/* A state path of more than PATH_TEXT bytes. */
START_TEST(long_state_path)
{
	for (size_t more = 0; more < 2; more++) {
		struct buf text = BUF_INIT(65536);
		while (text.n < PATH_TEXT - 1 + more)
			ck_assert_int_eq(buf_char(&text, 'x'), 0);
		buf_clear(&key);
		ck_assert_int_eq(buf_add(&key, text.p, text.n), 0);
		buf_release(&entry);
		encode();
		head()->state_path[0] = 0; /* the key */
		ck_assert_int_eq(decode_sealed(), more == 0);
		buf_release(&text);
	}
}
END_TEST

START_TEST(view_is_full)
{
	other.n = MAX_PLAN_MOUNTS - ARRAY_LEN(mounts);
	ck_assert(viewcache_decode(entry.p, entry.n, &key, &other, &again));
	other.n = MAX_PLAN_MOUNTS - ARRAY_LEN(mounts) + 1;
	ck_assert(!viewcache_decode(entry.p, entry.n, &key, &other, &again));
	ck_assert_uint_eq(other.n, MAX_PLAN_MOUNTS - ARRAY_LEN(mounts) + 1);
}
END_TEST

START_TEST(too_long_to_keep)
{
	static char big[65536];
	struct buf out = BUF_INIT(MAX_VIEWCACHE_BYTES);
	struct err e;

	for (size_t i = 1; i <= 20; i++)
		view.mounts[i] = (struct plan_mount){.kind = MOUNT_FILE,
						     .dst = "/etc/big",
						     .src = big,
						     .src_len = sizeof(big)};
	view.n = 15;
	CK_WORKS(viewcache_encode(&looks, &key, &view, 1, &refused, &out, &e), e);
	ck_assert(decode(out.p, out.n));
	buf_clear(&out);
	view.n = 21;
	CK_FAILS(viewcache_encode(&looks, &key, &view, 1, &refused, &out, &e), e, ERR_ARG_LIMIT,
		 "too long");
	buf_release(&out);
}
END_TEST

/* What the key is made of. */
struct about {
	struct caller who;
	struct source src;
	struct view_ids ids;
	char *env[8];
};

static struct about about;

static void key_of(struct buf *ret, char name[VIEWCACHE_NAME])
{
	struct err e;

	buf_clear(ret);
	about.who.env = about.env;
	CK_WORKS(viewcache_key(&about.who, &about.src, &about.ids, ret, &e), e);
	viewcache_name(ret, name);
	ck_assert_int_eq(strncmp(name, "view-", 5), 0);
}

static void basis(void)
{
	about = (struct about){
		.who = {.uid = 1, .gid = 2, .home = "/home/me", .cwd = "/"},
		.src = {.given = true, .path = "/srv/p"},
		.ids = {.uid = 3, .gid = 4, .name = "sandglass", .session = "a"},
		.env = {(char *)(uintptr_t) "PATH=/bin", (char *)(uintptr_t) "XDG_CONFIG_HOME=/c",
			(char *)(uintptr_t) "XDG_STATE_HOME=/s",
			(char *)(uintptr_t) "SANDGLASS_HOME=/g", (char *)(uintptr_t) "OTHER=1"},
	};
}

static void change(int which)
{
	static const char *const env[][2] = {
		{"PATH=/bin:/usr/bin", NULL},
		{"XDG_CONFIG_HOME=/d", NULL},
		{"XDG_STATE_HOME=/t", NULL},
		{"SANDGLASS_HOME=/h", NULL},
		{"PATH=", NULL},
		{"SANDGLASS_HOME=", NULL},
	};
	static const int at_env[] = {0, 1, 2, 3, 0, 3};

	if (which < (int)ARRAY_LEN(env)) {
		about.env[at_env[which]] = (char *)(uintptr_t)env[which][0];
		return;
	}
	which -= (int)ARRAY_LEN(env);
	if (which < 4) {
		about.env[which] = (char *)(uintptr_t) "X=";
		return;
	}
	switch (which - 4) {
	case 0:
		about.who.home = "/home/you";
		break;
	case 1:
		about.who.home = NULL;
		break;
	case 2:
		about.who.uid = 9;
		break;
	case 3:
		about.who.gid = 9;
		break;
	case 4:
		about.who.root = true;
		break;
	case 5:
		about.src.given = false;
		break;
	case 6:
		memcpy(about.src.path, "/srv/q", 7);
		break;
	case 7:
		about.ids.uid = 9;
		break;
	case 8:
		about.ids.gid = 9;
		break;
	case 9:
		about.ids.idmap = true;
		break;
	case 10:
		about.ids.name = "other";
		break;
	default:
		about.env[4] = (char *)(uintptr_t) "PATH=/second";
	}
}

#define KEY_CHANGES 21

START_TEST(key_differs)
{
	char names[2][VIEWCACHE_NAME];
	struct buf keys[2] = {BUF_INIT(65536), BUF_INIT(65536)};

	basis();
	key_of(&keys[0], names[0]);
	change(_i);
	key_of(&keys[1], names[1]);
	ck_assert(keys[0].n != keys[1].n || memcmp(keys[0].p, keys[1].p, keys[0].n) != 0);
	ck_assert_str_ne(names[0], names[1]);
	buf_release(&keys[0]);
	buf_release(&keys[1]);
}
END_TEST

/* Two changes are two keys, too: a part does not run into the next one. */
START_TEST(keys_of_all_changes_differ)
{
	struct buf keys[KEY_CHANGES];
	char name[VIEWCACHE_NAME];

	for (int i = 0; i < KEY_CHANGES; i++) {
		keys[i] = BUF_INIT(65536);
		basis();
		change(i);
		key_of(&keys[i], name);
		for (int k = 0; k < i; k++)
			ck_assert_msg(keys[i].n != keys[k].n ||
					      memcmp(keys[i].p, keys[k].p, keys[k].n) != 0,
				      "%d and %d", i, k);
	}
	for (int i = 0; i < KEY_CHANGES; i++)
		buf_release(&keys[i]);
}
END_TEST

/* What the usual part does not depend on. */
START_TEST(key_is_the_same)
{
	char names[2][VIEWCACHE_NAME];
	struct buf keys[2] = {BUF_INIT(65536), BUF_INIT(65536)};

	basis();
	key_of(&keys[0], names[0]);
	about.env[4] = (char *)(uintptr_t) "OTHER=2";
	about.ids.session = "b";
	about.who.cwd = "/srv/p/sub";
	about.src.st.st_mtim.tv_sec = 5;
	key_of(&keys[1], names[1]);
	ck_assert_uint_eq(keys[0].n, keys[1].n);
	ck_assert_int_eq(memcmp(keys[0].p, keys[1].p, keys[0].n), 0);
	ck_assert_str_eq(names[0], names[1]);
	buf_release(&keys[0]);
	buf_release(&keys[1]);
}
END_TEST

START_TEST(key_too_long)
{
	static char path[70000];
	struct buf out = BUF_INIT(65536);
	struct err e;

	memset(path, 'x', sizeof(path) - 1);
	memcpy(path, "PATH=", 5);
	basis();
	about.env[0] = path;
	about.who.env = about.env;
	CK_FAILS(viewcache_key(&about.who, &about.src, &about.ids, &out, &e), e, ERR_ARG_LIMIT,
		 "what the view depends on");
	buf_release(&out);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("policy viewcache");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, comes_back);
	tcase_add_test(c, nothing_comes_back_too);
	tcase_add_loop_test(c, stands_no_longer, 0, 4);
	tcase_add_test(c, stands_still);
	tcase_add_test(c, another_key);
	tcase_add_test(c, every_truncation);
	tcase_add_test(c, every_bit);
	tcase_add_test(c, wrong_but_sealed);
	tcase_add_test(c, long_state_path);
	tcase_add_test(c, view_is_full);
	tcase_add_test(c, too_long_to_keep);
	tcase_add_loop_test(c, key_differs, 0, KEY_CHANGES - 1);
	tcase_add_test(c, keys_of_all_changes_differ);
	tcase_add_test(c, key_is_the_same);
	tcase_add_test(c, key_too_long);
	suite_add_tcase(s, c);
	return suite_run(s);
}
