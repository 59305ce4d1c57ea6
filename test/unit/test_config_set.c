/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files on disk: which may be read, who is trusted, and what layers come to.
 */
#include "config/set.h"

#include "config/embedded.h"
#include "config/file.h"
#include "config/trust.h"
#include "test_policy_place.h"

static struct set set;
static struct policy_inputs in;
static struct policy_where where;
static struct strlist profiles;

static void put_policy(const char *name, const char *text)
{
	put_file(name, text);
	ck_assert_int_eq(chmod(at("%s", name), 0644), 0);
}

static void look(const char *file)
{
	struct source src = {.given = true, .st = stat_of("src")};
	struct err e;

	snprintf(src.path, sizeof(src.path), "%s", at("src"));
	where = (struct policy_where){.uid = getuid(), .home = at("home"), .cwd = place_top};
	snprintf(where.state, sizeof(where.state), "%s", at("state"));
	snprintf(where.user, sizeof(where.user), "%s", at("home/policy.yaml"));
	static char home[PATH_TEXT], source[PATH_TEXT];
	snprintf(home, sizeof(home), "%s", at("home"));
	where.home = home;
	CK_WORKS(policy_inputs_find(&where, &src, file, &profiles, &in, &e), e);
	snprintf(source, sizeof(source), "%s", src.path);
	in.source = source;
	policy_inputs_more(&in, "/proc/self/exe");
}

static int load(const char *file)
{
	set_release(&set);
	look(file);
	return set_load(&set, &in, getuid(), 0);
}

static void setup(void)
{
	place_setup();
	put_dir("src/.sandglass");
	put_dir("home");
	put_dir("state");
	profiles.n = 0;
}

static void fails(const char *file, const char *text)
{
	struct err e = {0};

	ck_assert_int_eq(load(file), -1);
	ck_assert_int_eq(findings_first(&set.findings, &e), -1);
	ck_assert_msg(strstr(e.msg, text) != NULL, "\"%s\" is not in \"%s\"", text, e.msg);
}

#define USER "home/policy.yaml"
#define PROJECT "src/.sandglass/policy.yaml"

START_TEST(files)
{
	put_policy(USER, "version: 1\n");
	ck_assert_int_eq(load(NULL), 0);
	ck_assert_int_eq(chmod(at(USER), 0664), 0);
	fails(NULL, "others may write it");
	ck_assert_int_eq(chmod(at(USER), 0646), 0);
	fails(NULL, "others may write it");
	ck_assert_int_eq(chmod(at(USER), 0644), 0);
	if (geteuid() == 0) {
		ck_assert_int_eq(chown(at(USER), 4711, 4711), 0);
		fails(NULL, "belongs to uid 4711");
		ck_assert_int_eq(chown(at(USER), 0, 0), 0);
	}
	ck_assert_int_eq(truncate(at(USER), 256 << 10), 0);
	fails(NULL, "U+0000");
	ck_assert_int_eq(truncate(at(USER), (256 << 10) + 1), 0);
	fails(NULL, "at most 262144");
	ck_assert_int_eq(unlink(at(USER)), 0);
	put_link(USER, "+src/x");
	fails(NULL, "a link");
	ck_assert_int_eq(unlink(at(USER)), 0);
	ck_assert_int_eq(mkfifo(at(USER), 0644), 0);
	fails(NULL, "a fifo");
	ck_assert_int_eq(unlink(at(USER)), 0);
	put_dir(USER);
	fails(NULL, "a directory");
	ck_assert_int_eq(rmdir(at(USER)), 0);
	/* A project's file may be group-writable, but neither a link nor reached through one. */
	put_policy(PROJECT, "version: 1\n");
	ck_assert_int_eq(chmod(at(PROJECT), 0666), 0);
	ck_assert_int_eq(load(NULL), 0);
	ck_assert_int_eq(rename(at("src/.sandglass"), at("src/real")), 0);
	put_link("src/.sandglass", "real");
	fails(NULL, "a link");
}
END_TEST

static const char wide[] = "version: 1\nextends: [go]\nmode: workspace-write\n"
			   "filesystem: {read: [/data, kept, \"**/x\"], write: [out], hide: [/h]}\n"
			   "environment: {pass: [A], set: {B: c}}\nlimits: {wall: 2h, pids: 7}\n";

START_TEST(untrusted)
{
	put_policy(USER, "version: 1\nmode: read-only\nlimits: {wall: 1h, pids: 9}\n");
	put_policy(PROJECT, wide);
	ck_assert_int_eq(load(NULL), 0);
	ck_assert_uint_eq(set.layer_count, 2); /* no profile */
	ck_assert_int_eq(set.mode, MODE_READ_ONLY);
	ck_assert_uint_eq(set.limit[LIMIT_WALL], 3600000);
	ck_assert_uint_eq(set.limit[LIMIT_PIDS], 7);
	ck_assert_uint_eq(set.narrowed,
			  0); /* below what the user says, so below the default or asked */
	ck_assert_uint_eq(set.env_count, 0);
	ck_assert_uint_eq(set.path_count, 3);
	for (size_t i = 0; i < set.path_count; i++)
		ck_assert(set.paths[i].narrow && set.paths[i].p->access != ACCESS_WRITE);
	ck_assert_uint_eq(set.ignored_count, 7);
	/* Without a user's file the defaults are compared where they are known. */
	ck_assert_int_eq(unlink(at(USER)), 0);
	ck_assert_int_eq(load(NULL), 0);
	ck_assert_uint_eq(set.narrowed, (1u << LIMIT_WALL) | (1u << LIMIT_PIDS));
}
END_TEST

static const char hosts[] = "version: 1\nnetwork: {allow: [a.com], deny: [b.com], local: [80]}\n";

/* A deny counts whoever says it; what opens something, only from who is believed. */
START_TEST(network)
{
	unsigned char digest[SHA256_BYTES];
	struct compiled c;
	struct err e;

	put_policy(USER, "version: 1\nnetwork: {allow: [u.com], deny: [v.com]}\n");
	put_policy(PROJECT, hosts);
	ck_assert_int_eq(load(NULL), 0);
	ck_assert_uint_eq(set.host_count, 3);
	ck_assert_str_eq(set.hosts[0].v->text, "u.com");
	ck_assert_str_eq(set.hosts[2].v->text, "b.com");
	ck_assert_uint_eq(set.ignored_count, 2);
	ck_assert_str_eq(set.ignored[0].key, "network.allow");
	ck_assert_str_eq(set.ignored[1].key, "network.local");
	CK_WORKS(set_compile(&set, "k", 1, &c, &e), e);
	ck_assert_uint_eq(c.host_count, 3);
	ck_assert_uint_eq(c.hosts[2].list, EGRESS_LIST_DENY);
	ck_assert_ptr_nonnull(strstr(c.hosts[2].origin, "project "));
	sha256(hosts, sizeof(hosts) - 1, digest);
	CK_WORKS(trust_add(at("state"), at(PROJECT), digest, &e), e);
	ck_assert_int_eq(load(NULL), 0);
	ck_assert_uint_eq(set.host_count, 5);
	ck_assert_uint_eq(set.ignored_count, 0);
}
END_TEST

START_TEST(trusted)
{
	unsigned char digest[SHA256_BYTES];
	unsigned int removed = 0;
	struct err e;

	put_policy(PROJECT, wide);
	sha256(wide, sizeof(wide) - 1, digest);
	CK_WORKS(trust_add(at("state"), at(PROJECT), digest, &e), e);
	ck_assert_int_eq(load(NULL), 0);
	ck_assert_uint_eq(set.layer_count, 2); /* the profile and the file */
	ck_assert_str_eq(set.layers[0]->file, "profile go");
	ck_assert_uint_eq(set.ignored_count, 0);
	ck_assert_uint_eq(set.limit[LIMIT_WALL], 7200000);
	ck_assert_uint_eq(set.narrowed, 0);
	ck_assert_uint_ge(set.path_count, 5);
	/* For this path and content only. */
	ck_assert(trust_has(at("state"), getuid(), at(PROJECT), digest));
	ck_assert(!trust_has(at("state"), getuid(), at("src/other"), digest));
	digest[0] ^= 1;
	ck_assert(!trust_has(at("state"), getuid(), at(PROJECT), digest));
	digest[0] ^= 1;
	/* Records that others could have made are none. */
	ck_assert_int_eq(chmod(at("state/trust"), 0770), 0);
	ck_assert(!trust_has(at("state"), getuid(), at(PROJECT), digest));
	CK_FAILS(trust_add(at("state"), at(PROJECT), digest, &e), e, ERR_POLICY_DENIED, "your own");
	ck_assert_int_eq(chmod(at("state/trust"), 0700), 0);
	if (geteuid() == 0)
		ck_assert(!trust_has(at("state"), 4711, at(PROJECT), digest));
	CK_WORKS(trust_remove(at("state"), at(PROJECT), &removed, &e), e);
	ck_assert_uint_eq(removed, 1);
	ck_assert(!trust_has(at("state"), getuid(), at(PROJECT), digest));
	CK_WORKS(trust_remove(at("state"), at(PROJECT), &removed, &e), e);
	ck_assert_uint_eq(removed, 0);
}
END_TEST

static const char review[] =
	"version: 1\npromotion: {protected: [p], checks: [{name: a, run: [p]}, {name: b, run: [p]}]}\n"
	"artifacts: [p]\n";

/* What an untrusted file adds can only stop a push; what it takes away does not count. */
START_TEST(promotion)
{
	unsigned char digest[SHA256_BYTES];
	struct err e;

	put_policy(USER,
		   "version: 1\npromotion: {protected: [u], checks: [{name: a, run: [u]}]}\n");
	put_policy(PROJECT, review);
	ck_assert_int_eq(load(NULL), 0);
	ck_assert_uint_eq(set.protected_count, 2);
	ck_assert_str_eq(set.protected[0].v->name, "u");
	ck_assert_str_eq(set.protected[1].v->name, "p");
	ck_assert_uint_eq(set.check_count, 2);
	ck_assert_str_eq(set.checks[0].v->run[0], "u");
	ck_assert_str_eq(set.checks[1].v->name, "b");
	ck_assert_uint_eq(set.artifact_count, 0);
	ck_assert(!set.artifacts_named);
	ck_assert_uint_eq(set.ignored_count, 2);
	sha256(review, strlen(review), digest);
	CK_WORKS(trust_add(where.state, at(PROJECT), digest, &e), e);
	ck_assert_int_eq(load(NULL), 0);
	ck_assert_uint_eq(set.check_count, 2);
	ck_assert_str_eq(set.checks[0].v->run[0], "p");
	ck_assert_uint_eq(set.artifact_count, 1);
	ck_assert(set.artifacts_named);
	ck_assert_uint_eq(set.ignored_count, 0);
}
END_TEST

/* Full access comes from no project, trusted or not, and from no file that lies in one. */
START_TEST(full_access)
{
	static const char text[] = "version: 1\nmode: danger-full-access\n";
	unsigned char digest[SHA256_BYTES];
	struct err e;

	put_policy(PROJECT, text);
	sha256(text, sizeof(text) - 1, digest);
	for (int trust = 0; trust <= 1; trust++) {
		if (trust)
			CK_WORKS(trust_add(at("state"), at(PROJECT), digest, &e), e);
		ck_assert_int_eq(load(NULL), 0);
		ck_assert_int_eq(set.mode, MODE_UNSET);
		ck_assert_uint_eq(set.ignored_count, 1);
		ck_assert_int_eq(set.ignored[0].why, IGNORED_FULL_ACCESS);
	}
	put_policy("src/named.yaml", text);
	ck_assert_int_eq(load(at("src/named.yaml")), 0);
	ck_assert_int_eq(set.mode, MODE_UNSET);
	put_policy("home/named.yaml", text);
	ck_assert_int_eq(load(at("home/named.yaml")), 0);
	ck_assert_int_eq(set.mode, MODE_FULL_ACCESS);
}
END_TEST

START_TEST(order)
{
	put_policy(USER, "version: 1\nextends: [rust]\nlimits: {pids: 1, disk: 1G}\n");
	put_policy("home/named.yaml", "version: 1\nlimits: {pids: 2}\n");
	profiles.v[profiles.n++] = "node";
	ck_assert_int_eq(load(at("home/named.yaml")), 0);
	ck_assert_uint_eq(set.layer_count, 4);
	ck_assert_str_eq(set.layers[0]->file, "profile rust");
	ck_assert_uint_eq(set.layers[0]->layer, LAYER_USER);
	ck_assert_str_eq(set.layers[2]->file, "profile node");
	ck_assert_uint_eq(set.layers[2]->layer, LAYER_PROFILE);
	ck_assert_uint_eq(set.limit[LIMIT_PIDS], 2);
	ck_assert_uint_eq(set.limit[LIMIT_DISK], 1 << 30);
	profiles.v[profiles.n++] = "nodee";
	fails(at("home/named.yaml"), "unknown profile `nodee`");
	profiles.n = 0;
	fails(at("home/gone.yaml"), "No such file");
}
END_TEST

/* Every built-in profile is right, shows only what lies in a home, and holds no secret's place. */
START_TEST(built_in)
{
	static const char *const never[] = {".npmrc",    ".pypirc",      "credentials",
					    ".netrc",    "settings.xml", "gradle.properties",
					    "/id_rsa\0", ".yarnrc",      ".docker",
					    ".aws"};
	size_t count = 0;

	for (const struct embedded *p = embedded_profiles; p->name; p++, count++) {
		profiles.n = 1;
		profiles.v[0] = p->name;
		ck_assert_int_eq(load(NULL), 0);
		ck_assert_uint_eq(set.layer_count, 1);
		for (size_t i = 0; i < set.path_count; i++) {
			const char *written = set.paths[i].p->written;
			ck_assert_msg(strncmp(written, "~/", 2) == 0 && written[2], "%s", written);
			ck_assert_uint_eq(set.paths[i].p->access, ACCESS_READ);
			for (size_t k = 0; k < ARRAY_LEN(never); k++)
				ck_assert_msg(!strstr(written, never[k]) || strstr(written, ".pub"),
					      "%s", written);
		}
	}
	ck_assert_uint_eq(count, 7);
}
END_TEST

/* Each input is in the key. */
START_TEST(key)
{
	AUTO_BUF before = BUF_INIT(MAX_COMPILED_KEY);
	struct err e;

	put_policy(USER, "version: 1\n");
	put_policy(PROJECT, "version: 1\n");
	put_policy("home/named.yaml", "version: 1\n");
	look(at("home/named.yaml"));
	CK_WORKS(policy_inputs_key(&in, &before, &e), e);
	for (unsigned int flip = 0; flip < 5 * 9 + 4; flip++) {
		struct policy_inputs now = in;
		AUTO_BUF after = BUF_INIT(MAX_COMPILED_KEY);
		struct stat *st = &now.in[flip / 9 % 5].st;
		struct strlist more = {.n = 1, .v = {"go"}};
		if (flip < 45 && !now.in[flip / 9].there)
			continue;
		switch (flip < 45 ? flip % 9 : 9 + flip - 45) {
		case 0:
			st->st_dev++;
			break;
		case 1:
			st->st_ino++;
			break;
		case 2:
			st->st_size++;
			break;
		case 3:
			st->st_mtim.tv_sec++;
			break;
		case 4:
			st->st_mtim.tv_nsec++;
			break;
		case 5:
			st->st_ctim.tv_nsec++;
			break;
		case 6:
			st->st_uid++;
			break;
		case 7:
			st->st_mode ^= 1;
			break;
		case 8:
			now.in[flip / 9].there = false;
			break;
		case 9:
			now.uid++;
			break;
		case 10:
			now.home = "/x";
			break;
		case 11:
			now.source = "/x";
			break;
		case 12:
			now.profiles = &more;
			break;
		}
		CK_WORKS(policy_inputs_key(&now, &after, &e), e);
		ck_assert_msg(before.n != after.n || memcmp(before.p, after.p, after.n) != 0,
			      "flip %u is not seen", flip);
	}
	ck_assert(!policy_inputs_settled(&in, (int64_t)in.in[INPUT_USER].st.st_ctim.tv_sec * 1000 +
						      500));
	ck_assert(policy_inputs_settled(&in, INT64_MAX));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("set");
	TCase *c = tcase_create("set");

	tcase_add_checked_fixture(c, setup, place_close);
	tcase_add_test(c, files);
	tcase_add_test(c, untrusted);
	tcase_add_test(c, network);
	tcase_add_test(c, trusted);
	tcase_add_test(c, promotion);
	tcase_add_test(c, full_access);
	tcase_add_test(c, order);
	tcase_add_test(c, built_in);
	tcase_add_test(c, key);
	suite_add_tcase(s, c);
	return suite_run(s);
}
