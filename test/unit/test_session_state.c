/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database of ids and living sessions: what is handed out once, what it is made anew
 * from, and what is refused.
 */
#include "session/state.h"

#include <sqlite3.h>
#include <sys/wait.h>

#include "test_policy_place.h"

#define ID_1 "11111111-1111-4111-8111-111111111111"
#define ID_2 "22222222-2222-4222-8222-222222222222"
#define ID_3 "33333333-3333-4333-8333-333333333333"

static char *env[2];
static char home[PATH_TEXT + 32];

static struct caller somebody(void)
{
	(void)snprintf(home, sizeof(home), "SANDGLASS_HOME=%s", at("state"));
	env[0] = home;
	return caller_of(place_top, env);
}

static struct state *opened(void)
{
	struct caller who = somebody();
	struct state *s = NULL;
	struct err e = {0};

	CK_WORKS(state_open(&who, &s, &e), e);
	return s;
}

static void open_fails(enum err_code code, const char *text)
{
	struct caller who = somebody();
	struct state *s = NULL;
	struct err e = {0};

	ck_assert_int_eq(state_open(&who, &s, &e), -1);
	ck_assert_int_eq(e.code, code);
	ck_assert_msg(strstr(e.msg, text), "%s", e.msg);
	ck_assert_ptr_null(s);
}

static struct state_session named(const char *name)
{
	struct state_session as = {.caller_uid = 1000, .created_ns = 5, .lease_end_ns = 77};

	(void)snprintf(as.name, sizeof(as.name), "%s", name);
	(void)snprintf(as.source, sizeof(as.source), "/src/\xff%s", name);
	return as;
}

static void takes(struct state *s, const char *id, const char *name)
{
	struct state_session as = named(name);
	char got[UUID_TEXT];
	struct err e = {0};

	CK_WORKS(state_new_id(s, id, &as, got, &e), e);
	ck_assert(uuid_valid(got));
	if (id)
		ck_assert_str_eq(got, id);
}

static void refuses(struct state *s, const char *id, const char *name, enum err_code code)
{
	struct state_session as = named(name);
	char got[UUID_TEXT] = "untouched";
	struct err e = {0};

	ck_assert_int_eq(state_new_id(s, id, &as, got, &e), -1);
	ck_assert_msg(e.code == code, "%s: %s", err_code_name(e.code), e.msg);
	ck_assert_str_eq(got, "untouched");
	ck_assert_str_ne(e.hint, "");
}

static struct state_list listed(struct state *s)
{
	struct state_list l = {.v = NULL};
	struct err e = {0};

	CK_WORKS(state_list(s, &l, &e), e);
	return l;
}

static size_t count(struct state *s)
{
	struct state_list l = listed(s);
	size_t n = l.n;

	state_list_release(&l);
	return n;
}

static void ends(struct state *s, const char *id)
{
	struct err e = {0};

	CK_WORKS(state_gone(s, id, &e), e);
}

START_TEST(made_where_there_is_none)
{
	struct state *s = opened();

	ck_assert_ptr_null(state_note(s));
	ck_assert_uint_eq(count(s), 0);
	ck_assert_uint_eq(stat_of("state").st_mode & 07777, 0700);
	ck_assert_uint_eq(stat_of("state/state.db").st_mode & 07777, 0600);
	ck_assert_uint_eq(stat_of("state/state.db-wal").st_mode & 07777, 0600);
	state_close(s);
	state_close(NULL);
}
END_TEST

START_TEST(kept_between_opens)
{
	struct state *s = opened();
	struct err e = {0};

	takes(s, ID_1, "one");
	CK_WORKS(state_set(s, ID_1, SESSION_PAUSED, STATE_NEVER, &e), e);
	CK_WORKS(state_set_usage(s, ID_1, 4096, 3, &e), e);
	state_close(s);
	s = opened();
	struct state_list l = listed(s);
	ck_assert_uint_eq(l.n, 1);
	ck_assert_str_eq(l.v[0].id, ID_1);
	ck_assert_str_eq(l.v[0].name, "one");
	ck_assert_str_eq(l.v[0].source, "/src/\xffone");
	ck_assert_uint_eq(l.v[0].caller_uid, 1000);
	ck_assert_int_eq(l.v[0].created_ns, 5);
	ck_assert_int_eq(l.v[0].lease_end_ns, STATE_NEVER);
	ck_assert_int_eq(l.v[0].state, SESSION_PAUSED);
	ck_assert_uint_eq(l.v[0].bytes, 4096);
	ck_assert_uint_eq(l.v[0].inodes, 3);
	state_list_release(&l);
	state_close(s);
}
END_TEST

START_TEST(an_id_is_used_once)
{
	struct state *s = opened();

	takes(s, ID_1, "");
	refuses(s, ID_1, "", ERR_CONFLICT);
	ends(s, ID_1);
	ck_assert_uint_eq(count(s), 0);
	refuses(s, ID_1, "", ERR_CONFLICT);
	ends(s, ID_1); /* twice is no error */
	state_close(s);
	s = opened();
	refuses(s, ID_1, "", ERR_CONFLICT);
	takes(s, ID_2, ""); /* control */
	takes(s, NULL, "");
	state_close(s);
}
END_TEST

START_TEST(a_name_has_one_bearer)
{
	struct state *s = opened();

	takes(s, ID_1, "name");
	refuses(s, ID_2, "name", ERR_CONFLICT);
	takes(s, ID_2, "Name"); /* and the id was not used up */
	ends(s, ID_1);
	takes(s, ID_3, "name");
	takes(s, NULL, "");
	takes(s, NULL, "");
	state_close(s);
}
END_TEST

START_TEST(so_many_of_one_user)
{
	struct state *s = opened();
	struct state_session other = named("");
	char got[UUID_TEXT];
	struct err e = {0};

	takes(s, ID_1, "");
	for (unsigned int i = 1; i < MAX_LIVING_SESSIONS; i++)
		takes(s, NULL, "");
	refuses(s, ID_2, "", ERR_BUSY);
	other.caller_uid = 1001;
	CK_WORKS(state_new_id(s, NULL, &other, got, &e), e);
	ends(s, ID_1);
	takes(s, ID_2, "");
	refuses(s, NULL, "", ERR_BUSY);
	state_close(s);
}
END_TEST

START_TEST(what_is_no_id)
{
	static const char *const bad[] = {"", "1111", "11111111-1111-4111-8111-11111111111A",
					  ID_1 "1", "../../../../../../../../../../../../"};
	struct state *s = opened();

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		refuses(s, bad[i], "", ERR_CONFIG_INVALID);
	state_close(s);
}
END_TEST

START_TEST(what_does_not_live_is_not_set)
{
	struct state *s = opened();
	struct err e = {0};

	takes(s, ID_1, "");
	CK_WORKS(state_set(s, ID_1, SESSION_ACTIVE, 1, &e), e); /* control */
	ck_assert_int_eq(state_set(s, ID_2, SESSION_ACTIVE, 1, &e), -1);
	ck_assert_int_eq(e.code, ERR_NOT_FOUND);
	ends(s, ID_1);
	ck_assert_int_eq(state_set_usage(s, ID_1, 1, 1, &e), -1);
	ck_assert_int_eq(e.code, ERR_NOT_FOUND);
	state_close(s);
}
END_TEST

static void by_hand(const char *text)
{
	sqlite3 *db = NULL;

	put_dir("state");
	ck_assert_int_eq(sqlite3_open(at("state/state.db"), &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	ck_assert_int_eq(chmod(at("state/state.db"), 0600), 0);
}

/* As version 1 wrote it: this text stays when the schema changes. */
#define VERSION_1                                                                                 \
	"CREATE TABLE ids(id TEXT PRIMARY KEY NOT NULL, used_ns INTEGER NOT NULL) WITHOUT ROWID;" \
	"CREATE TABLE sessions(id TEXT PRIMARY KEY NOT NULL REFERENCES ids(id),"                  \
	" name TEXT NOT NULL, source BLOB NOT NULL, caller_uid INTEGER NOT NULL,"                 \
	" created_ns INTEGER NOT NULL, lease_end_ns INTEGER NOT NULL, state TEXT NOT NULL,"       \
	" bytes INTEGER NOT NULL DEFAULT 0, inodes INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;"    \
	"CREATE UNIQUE INDEX sessions_name ON sessions(name) WHERE name <> '';"                   \
	"INSERT INTO ids VALUES('" ID_1 "', 1), ('" ID_2 "', 2);"                                 \
	"INSERT INTO sessions VALUES('" ID_2 "', 'two', x'2f73', 7, 2, 3, 'unclean', 9, 8);"

START_TEST(version_1_is_read)
{
	by_hand(VERSION_1 "PRAGMA user_version = 1");
	struct state *s = opened();
	struct state_list l = listed(s);

	ck_assert_ptr_null(state_note(s));
	ck_assert_uint_eq(l.n, 1);
	ck_assert_str_eq(l.v[0].id, ID_2);
	ck_assert_str_eq(l.v[0].name, "two");
	ck_assert_str_eq(l.v[0].source, "/s");
	ck_assert_int_eq(l.v[0].state, SESSION_UNCLEAN);
	state_list_release(&l);
	refuses(s, ID_1, "", ERR_CONFLICT);
	refuses(s, ID_3, "two", ERR_CONFLICT);
	state_close(s);
}
END_TEST

START_TEST(a_newer_version_is_refused)
{
	by_hand(VERSION_1 "PRAGMA user_version = 2");
	open_fails(ERR_UNSUPPORTED, "is of version 2, this sandglass knows 1");
	ck_assert_int_ne(access(at("state/state.db.corrupt"), F_OK), 0);
	by_hand("PRAGMA user_version = 1"); /* control: it was that number */
	state_close(opened());
}
END_TEST

static void put_record(const char *id, const char *name)
{
	struct session_record r = {.uid = 20001,
				   .caller_uid = 7,
				   .created_ns = 11,
				   .ttl_ms = 1,
				   .max_ms = 2};
	struct err e = {0};

	(void)snprintf(r.id, sizeof(r.id), "%s", id);
	(void)snprintf(r.name, sizeof(r.name), "%s", name);
	(void)snprintf(r.source, sizeof(r.source), "/src");
	char path[128];
	(void)snprintf(path, sizeof(path), "state/sessions/%s", id);
	put_dir(path);
	int dir = open(at("%s", path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir, 0);
	CK_WORKS(session_write(dir, &r, &e), e);
	ck_assert_int_eq(close(dir), 0);
}

static void is_made_anew(struct state *s)
{
	struct state_list l = listed(s);

	ck_assert_ptr_nonnull(state_note(s));
	ck_assert_ptr_nonnull(strstr(state_note(s), "state.db.corrupt"));
	ck_assert_int_eq(access(at("state/state.db.corrupt"), F_OK), 0);
	ck_assert_uint_eq(l.n, 1);
	ck_assert_str_eq(l.v[0].id, ID_1);
	ck_assert_str_eq(l.v[0].name, "one");
	ck_assert_uint_eq(l.v[0].caller_uid, 7);
	ck_assert_int_eq(l.v[0].created_ns, 11);
	ck_assert_int_eq(l.v[0].lease_end_ns, 2000011);
	ck_assert_int_eq(l.v[0].state, SESSION_UNCLEAN);
	state_list_release(&l);
	refuses(s, ID_1, "", ERR_CONFLICT);
	refuses(s, ID_2, "", ERR_CONFLICT);
	refuses(s, ID_3, "one", ERR_CONFLICT);
	takes(s, ID_3, "");
}

static void put_traces(void)
{
	put_record(ID_1, "one");
	put_dir("state/artifacts/" ID_2);
	put_dir("state/artifacts/not-an-id");
}

START_TEST(damaged_and_made_anew)
{
	put_traces();
	put_file("state/state.db", "this is no database, and long enough to be looked at: "
				   "it has to have a hundred bytes for that, and now it has.");
	ck_assert_int_eq(chmod(at("state/state.db"), 0600), 0);
	struct state *s = opened();
	is_made_anew(s);
	state_close(s);
	s = opened();
	ck_assert_ptr_null(state_note(s));
	state_close(s);
}
END_TEST

/* Zeroes over all pages but the first: what opening looks at is as it was. */
START_TEST(damage_met_by_an_operation)
{
	static const char zeroes[65536];
	struct state *s = opened();

	takes(s, ID_1, "one");
	state_close(s);
	put_traces();
	s = opened();
	int fd = open(at("state/state.db"), O_WRONLY | O_CLOEXEC);
	struct stat st = stat_of("state/state.db");
	ck_assert_int_gt(st.st_size, 4096);
	ck_assert_int_eq(pwrite(fd, zeroes, (size_t)st.st_size - 4096, 4096), st.st_size - 4096);
	ck_assert_int_eq(close(fd), 0);
	takes(s, NULL, "");
	ck_assert_ptr_nonnull(state_note(s));
	ck_assert_uint_eq(count(s), 2);
	refuses(s, ID_2, "", ERR_CONFLICT);
	state_close(s);
}
END_TEST

/* Nothing was lost, but the sessions' directories are still there. */
START_TEST(removed_and_made_anew)
{
	put_traces();
	struct state *s = opened();
	struct state_list l = listed(s);

	ck_assert_uint_eq(l.n, 1);
	state_list_release(&l);
	refuses(s, ID_2, "", ERR_CONFLICT);
	state_close(s);
}
END_TEST

START_TEST(two_records_of_one_name)
{
	put_record(ID_1, "one");
	put_record(ID_2, "one");
	struct state *s = opened();
	struct state_list l = listed(s);

	ck_assert_uint_eq(l.n, 2);
	ck_assert_int_eq((l.v[0].name[0] != 0) + (l.v[1].name[0] != 0), 1);
	state_list_release(&l);
	state_close(s);
}
END_TEST

START_TEST(others_may_not_write)
{
	state_close(opened()); /* control */
	ck_assert_int_eq(chmod(at("state"), 0770), 0);
	open_fails(ERR_CONFIG_INVALID, "not yours alone");
	ck_assert_int_eq(chmod(at("state"), 0700), 0);
	ck_assert_int_eq(chmod(at("state/state.db"), 0620), 0);
	open_fails(ERR_CONFIG_INVALID, "only its owner");
	ck_assert_int_eq(unlink(at("state/state.db")), 0);
	put_link("state/state.db", "+elsewhere");
	open_fails(ERR_INTERNAL, "open");
	ck_assert_int_ne(access(at("elsewhere"), F_OK), 0);
}
END_TEST

/* Each child takes what it gets; the sum is what there is to have. */
START_TEST(many_at_once)
{
	enum { CHILDREN = 6, EACH = 10 };
	int won = 0;

	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();
		ck_assert_int_ge(pid, 0);
		if (pid > 0)
			continue;
		struct caller who = somebody();
		struct state *s = NULL;
		struct err e = {0};
		int got = 0;
		if (state_open(&who, &s, &e) < 0)
			_exit(99);
		for (int k = 0; k < EACH; k++) {
			struct state_session as = named("");
			char id[UUID_TEXT];
			char want[UUID_TEXT];
			(void)snprintf(want, sizeof(want), "11111111-1111-4111-8111-%012d", k);
			got += state_new_id(s, want, &as, id, &e) == 0;
		}
		state_close(s);
		_exit(got);
	}
	for (int i = 0; i < CHILDREN; i++) {
		int status = 0;
		ck_assert_int_gt(wait(&status), 0);
		ck_assert(WIFEXITED(status) && WEXITSTATUS(status) <= EACH);
		won += WEXITSTATUS(status);
	}
	ck_assert_int_eq(won, EACH);
	struct state *s = opened();
	ck_assert_uint_eq(count(s), EACH);
	state_close(s);
}
END_TEST

START_TEST(file_systems_of_the_network)
{
	ck_assert(state_fs_is_network(0x6969, "nfs4"));
	ck_assert(state_fs_is_network(0xff534d42, "cifs"));
	ck_assert(state_fs_is_network(0xfe534d42, "smb3"));
	ck_assert(state_fs_is_network(0x01021997, "9p"));
	ck_assert(state_fs_is_network(0x65735546, "fuse.sshfs"));
	ck_assert(!state_fs_is_network(0x65735546, "fuse.bindfs"));
	ck_assert(!state_fs_is_network(0x65735546, "fuseblk"));
	ck_assert(!state_fs_is_network(0xef53, "ext4"));
	ck_assert(!state_fs_is_network(0xef53, "fuse.sshfs"));
	ck_assert(!state_fs_is_network(0x01021994, "tmpfs"));
	ck_assert(!state_fs_is_network(0x794c7630, "overlay"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("session/state");
	TCase *c = tcase_create("state");

	tcase_add_checked_fixture(c, place_setup, place_close);
	tcase_add_test(c, made_where_there_is_none);
	tcase_add_test(c, kept_between_opens);
	tcase_add_test(c, an_id_is_used_once);
	tcase_add_test(c, a_name_has_one_bearer);
	tcase_add_test(c, so_many_of_one_user);
	tcase_add_test(c, what_is_no_id);
	tcase_add_test(c, what_does_not_live_is_not_set);
	tcase_add_test(c, version_1_is_read);
	tcase_add_test(c, a_newer_version_is_refused);
	tcase_add_test(c, damaged_and_made_anew);
	tcase_add_test(c, damage_met_by_an_operation);
	tcase_add_test(c, removed_and_made_anew);
	tcase_add_test(c, two_records_of_one_name);
	tcase_add_test(c, others_may_not_write);
	tcase_add_test(c, many_at_once);
	tcase_add_test(c, file_systems_of_the_network);
	suite_add_tcase(s, c);
	return suite_run(s);
}
