/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every change is one transaction. What says that an id or a name is taken is an index of
 * the database, so two processes cannot both be told yes. A lock file orders those who open,
 * since making, migrating and mending are for one at a time.
 */
#include "session/state.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file.h"
#include "policy/state.h"
#include "session/state_parts.h"

#define BUSY_MS 10000 /* how long one waits for another's transaction */

const char *const session_state_names[] = {"created", "active",    "paused", "expired",
					   "unclean", "destroyed", NULL};

/* What brings a database from version i to i + 1. */
static const char *const migrations[STATE_VERSION] = {
	"CREATE TABLE ids(id TEXT PRIMARY KEY NOT NULL, used_ns INTEGER NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE sessions("
	" id TEXT PRIMARY KEY NOT NULL REFERENCES ids(id),"
	" name TEXT NOT NULL,"
	" source BLOB NOT NULL,"
	" caller_uid INTEGER NOT NULL,"
	" created_ns INTEGER NOT NULL,"
	" lease_end_ns INTEGER NOT NULL,"
	" state TEXT NOT NULL,"
	" bytes INTEGER NOT NULL DEFAULT 0,"
	" inodes INTEGER NOT NULL DEFAULT 0"
	") WITHOUT ROWID;"
	"CREATE UNIQUE INDEX sessions_name ON sessions(name) WHERE name <> '';",
};

struct state {
	sqlite3 *db;
	struct caller who;
	char home[PATH_TEXT];
	char path[PATH_TEXT];
	bool damaged; /* what SQLite said last */
	const char *note;
};

/* Turns what SQLite says into an err, and remembers whether it was that the file is damaged. */
static int fail(struct state *s, int rc, const char *what, struct err *e)
{
	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		(void)err_set(e, ERR_BUSY, "%s: another process has %s", what, s->path);
		return err_hint(e, "try again");
	case SQLITE_FULL:
		return err_set(e, ERR_DISK_LIMIT, "%s: no space for %s", what, s->path);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		s->damaged = true;
		return err_set(e, ERR_INTERNAL, "%s: %s is damaged", what, s->path);
	default:
		return err_set(e, ERR_INTERNAL, "%s: %s: %s", what, s->path,
			       s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc));
	}
}

static int run(struct state *s, const char *text, struct err *e)
{
	int rc = sqlite3_exec(s->db, text, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : fail(s, rc, "state", e);
}

static void finish(sqlite3_stmt *const *st)
{
	(void)sqlite3_finalize(*st);
}

#define AUTO_STMT __attribute__((cleanup(finish))) sqlite3_stmt

/* A statement with its values: of `kinds` t is a text, b a text kept as bytes, i an int64_t. */
static int prepare(struct state *s, sqlite3_stmt **ret, struct err *e, const char *text,
		   const char *kinds, ...)
{
	va_list ap;

	int rc = sqlite3_prepare_v2(s->db, text, -1, ret, NULL);
	va_start(ap, kinds);
	for (int i = 1; rc == SQLITE_OK && *kinds; i++, kinds++) {
		if (*kinds == 'i') {
			rc = sqlite3_bind_int64(*ret, i, va_arg(ap, int64_t));
			continue;
		}
		const char *p = va_arg(ap, const char *);
		rc = *kinds == 't' ? sqlite3_bind_text(*ret, i, p, -1, SQLITE_STATIC)
				   : sqlite3_bind_blob(*ret, i, p, (int)strlen(p), SQLITE_STATIC);
	}
	va_end(ap);
	return rc == SQLITE_OK ? 0 : fail(s, rc, "state", e);
}

/* Runs a statement that gives no rows. SQLITE_CONSTRAINT is left to the caller, as 1. */
static int step(struct state *s, sqlite3_stmt *st, struct err *e)
{
	int rc = sqlite3_step(st);

	if (rc == SQLITE_DONE)
		return 0;
	return (rc & 0xff) == SQLITE_CONSTRAINT ? 1 : fail(s, rc, "state", e);
}

/* The first column of the first row. */
static int number(struct state *s, const char *text, int64_t *ret, struct err *e)
{
	AUTO_STMT *st = NULL;

	if (prepare(s, &st, e, text, "") < 0)
		return -1;
	int rc = sqlite3_step(st);
	if (rc != SQLITE_ROW)
		return fail(s, rc, "state", e);
	*ret = sqlite3_column_int64(st, 0);
	return 0;
}

static int insert(struct state *s, const struct state_session *as, struct err *e)
{
	AUTO_STMT *st = NULL;

	if (prepare(s, &st, e,
		    "INSERT INTO sessions(id, name, source, caller_uid, created_ns, lease_end_ns,"
		    " state) VALUES(?, ?, ?, ?, ?, ?, ?)",
		    "ttbiiit", as->id, as->name, as->source, (int64_t)as->caller_uid,
		    as->created_ns, as->lease_end_ns, session_state_names[as->state]) < 0)
		return -1;
	return step(s, st, e);
}

static int insert_id(struct state *s, const char *id, int64_t used_ns, struct err *e)
{
	AUTO_STMT *st = NULL;

	if (prepare(s, &st, e, "INSERT INTO ids(id, used_ns) VALUES(?, ?)", "ti", id, used_ns) < 0)
		return -1;
	return step(s, st, e);
}

/* One of those that left traces; what is there already stays as it is. */
static int found(void *self, const struct state_session *as, bool lives, struct err *e)
{
	struct state *s = self;
	struct state_session nameless = *as;

	if (insert_id(s, as->id, as->created_ns, e) < 0)
		return -1;
	if (!lives)
		return 0;
	int rc = insert(s, as, e);
	if (rc != 1)
		return rc;
	nameless.name[0] = '\0'; /* two with one name: the second goes by its id */
	return insert(s, &nameless, e) < 0 ? -1 : 0;
}

static int migrate_from(struct state *s, int64_t version, struct err *e)
{
	char text[64];

	for (int64_t i = version; i < STATE_VERSION; i++)
		if (run(s, migrations[i], e) < 0)
			return -1;
	if (version == 0 && state_traces(&s->who, found, s, e) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), "PRAGMA user_version = %d", STATE_VERSION);
	return run(s, text, e);
}

static int migrate(struct state *s, struct err *e)
{
	struct err ignored = {0};
	int64_t version = 0;

	if (number(s, "PRAGMA user_version", &version, e) < 0)
		return -1;
	if (version == STATE_VERSION)
		return 0;
	if (version > STATE_VERSION || version < 0) {
		(void)err_set(e, ERR_UNSUPPORTED, "%s is of version %lld, this sandglass knows %d",
			      s->path, (long long)version, STATE_VERSION);
		return err_hint(e, "use the newer sandglass, or another SANDGLASS_HOME");
	}
	if (run(s, "BEGIN IMMEDIATE", e) < 0)
		return -1;
	if (migrate_from(s, version, e) == 0 && run(s, "COMMIT", e) == 0)
		return 0;
	(void)run(s, "ROLLBACK", &ignored);
	return -1;
}

/* The schema is checked too: a file that is a database but not ours fails here. */
static int set_up(struct state *s, struct err *e)
{
	int64_t ignored = 0;

	(void)sqlite3_extended_result_codes(s->db, 1);
	(void)sqlite3_busy_timeout(s->db, BUSY_MS);
	(void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	if (run(s, "PRAGMA cell_size_check = ON", e) < 0 ||
	    run(s, "PRAGMA journal_mode = WAL", e) < 0 ||
	    run(s, "PRAGMA synchronous = NORMAL", e) < 0 || migrate(s, e) < 0)
		return -1;
	return number(s, "SELECT count(*) FROM sessions", &ignored, e);
}

/* Made by ourselves, so that it is nobody else's whatever the umask. */
static int open_file(struct state *s, struct err *e)
{
	struct stat st;

	AUTO_FD int fd =
		open(s->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "open %s", s->path);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 0022))
		return err_set(e, ERR_CONFIG_INVALID,
			       "%s is no file that only its owner, you, may write", s->path);
	return 0;
}

static void close_db(struct state *s)
{
	(void)sqlite3_close(s->db);
	s->db = NULL;
}

static int open_db(struct state *s, struct err *e)
{
	s->damaged = false;
	if (open_file(s, e) < 0)
		return -1;
	int rc =
		sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc != SQLITE_OK)
		return fail(s, rc, "open", e);
	return set_up(s, e);
}

static int set_aside_one(struct state *s, const char *suffix, struct err *e)
{
	char from[PATH_TEXT + 8];
	char to[PATH_TEXT + 16];

	(void)snprintf(from, sizeof(from), "%s%s", s->path, suffix);
	(void)snprintf(to, sizeof(to), "%s.corrupt%s", s->path, suffix);
	(void)unlink(to); /* of an earlier one */
	if (rename(from, to) < 0 && errno != ENOENT)
		return err_sys(e, "rename %s", from);
	return 0;
}

/* The file goes last: a kill in between leaves a database without its log, to be put aside again. */
static int set_aside(struct state *s, struct err *e)
{
	close_db(s);
	if (set_aside_one(s, "-shm", e) < 0 || set_aside_one(s, "-wal", e) < 0 ||
	    set_aside_one(s, "", e) < 0)
		return -1;
	s->note = "state.db was damaged and made anew from the sessions' records; the old one is "
		  "state.db.corrupt beside it";
	return 0;
}

static int lock_home(const struct state *s, int *ret_fd, struct err *e)
{
	char path[PATH_TEXT + 16];

	(void)snprintf(path, sizeof(path), "%s/state.lock", s->home);
	AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0 || RETRY_EINTR(flock(fd, LOCK_EX)) < 0)
		return err_sys(e, "lock %s", path);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Opened, and if an operation met damage before, sound by now: another process may have mended it. */
static int open_sound(struct state *s, bool met, struct err *e)
{
	int64_t sound = 1;

	if (open_db(s, e) < 0)
		return -1;
	if (met && number(s, "SELECT quick_check = 'ok' FROM pragma_quick_check(1)", &sound, e) < 0)
		return -1;
	return sound ? 0 : fail(s, SQLITE_CORRUPT, "state", e);
}

static int open_or_mend(struct state *s, struct err *e)
{
	struct err first = {0};

	AUTO_FD int lock = -1;
	bool met = s->damaged;
	if (lock_home(s, &lock, e) < 0)
		return -1;
	close_db(s);
	if (open_sound(s, met, &first) == 0)
		return 0;
	if (!s->damaged) {
		*e = first;
		return -1;
	}
	return set_aside(s, e) < 0 ? -1 : open_db(s, e);
}

static int find_home(struct state *s, struct err *e)
{
	struct stat st;

	state_home(&s->who, s->home);
	if (path_join(s->home, "state.db", s->path, sizeof(s->path) - 16, e) < 0)
		return -1;
	if (!file_make_dirs(s->path, 0700))
		return err_sys(e, "make %s", s->home);
	if (stat(s->home, &st) < 0)
		return err_sys(e, "%s", s->home);
	if (st.st_uid != geteuid() || (st.st_mode & 0022)) {
		(void)err_set(e, ERR_CONFIG_INVALID, "%s is not yours alone to write", s->home);
		return err_hint(e,
				"give it to yourself: chmod go-w, or name another SANDGLASS_HOME");
	}
	return state_check_fs(s->home, e);
}

int state_open(const struct caller *who, struct state **ret, struct err *e)
{
	struct state *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(e, ERR_INTERNAL, "out of memory");
	s->who = *who;
	if (find_home(s, e) < 0 || open_or_mend(s, e) < 0) {
		state_close(s);
		return -1;
	}
	*ret = s;
	return 0;
}

void state_close(struct state *s)
{
	if (!s)
		return;
	close_db(s);
	free(s);
}

const char *state_note(const struct state *s)
{
	return s->note;
}

typedef int operation(struct state *s, void *arg, struct err *e);

static int attempt(struct state *s, operation *op, void *arg, bool durable, struct err *e)
{
	struct err ignored = {0};

	if (durable && run(s, "PRAGMA synchronous = FULL", e) < 0)
		return -1;
	int rc = run(s, "BEGIN IMMEDIATE", e);
	if (rc == 0) {
		rc = op(s, arg, e);
		if (rc == 0)
			rc = run(s, "COMMIT", e);
		if (rc != 0 && !sqlite3_get_autocommit(s->db))
			(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	}
	if (durable)
		(void)run(s, "PRAGMA synchronous = NORMAL", &ignored);
	return rc;
}

/* Damage is met only where one looks, so an operation may be the first to see it. */
static int transact(struct state *s, operation *op, void *arg, bool durable, struct err *e)
{
	struct err first = {0};
	int rc = attempt(s, op, arg, durable, &first);

	if (rc != 0 && s->damaged)
		return open_or_mend(s, e) < 0 ? -1 : attempt(s, op, arg, durable, e);
	if (rc != 0)
		*e = first;
	return rc;
}

static int check_count(struct state *s, uint32_t uid, struct err *e)
{
	AUTO_STMT *st = NULL;

	if (prepare(s, &st, e, "SELECT count(*) FROM sessions WHERE caller_uid = ?", "i",
		    (int64_t)uid) < 0)
		return -1;
	int rc = sqlite3_step(st);
	if (rc != SQLITE_ROW)
		return fail(s, rc, "state", e);
	if (sqlite3_column_int64(st, 0) < MAX_LIVING_SESSIONS)
		return 0;
	(void)err_set(e, ERR_BUSY, "%d sessions live, as many as one user may have",
		      MAX_LIVING_SESSIONS);
	return err_hint(e, "`sandglass session list` shows them, `session destroy` ends one");
}

static int new_id(struct state *s, void *arg, struct err *e)
{
	const struct state_session *as = arg;

	if (check_count(s, as->caller_uid, e) < 0)
		return -1;
	int rc = insert_id(s, as->id, as->created_ns, e);
	if (rc == 1) {
		(void)err_set(e, ERR_CONFLICT, "the id %s was used before", as->id);
		return err_hint(e, "an id is used once: leave --id away, or take another one");
	}
	if (rc == 0)
		rc = insert(s, as, e);
	if (rc == 1) {
		(void)err_set(e, ERR_CONFLICT, "a living session has the name `%s`", as->name);
		return err_hint(e, "destroy it first, or take another name");
	}
	return rc;
}

int state_new_id(struct state *s, const char *wanted, const struct state_session *as,
		 char ret_id[UUID_TEXT], struct err *e)
{
	struct state_session in = *as;

	if (wanted && !uuid_valid(wanted)) {
		(void)err_set(e, ERR_CONFIG_INVALID, "`%s` is no lower-case UUID", wanted);
		return err_hint(e, "`uuidgen -r` makes one; without --id one is made");
	}
	if (wanted)
		memcpy(in.id, wanted, UUID_TEXT);
	else if (uuid4(in.id, e) < 0)
		return -1;
	in.state = SESSION_CREATED;
	if (transact(s, new_id, &in, true, e) < 0)
		return -1;
	memcpy(ret_id, in.id, UUID_TEXT);
	return 0;
}

/* Runs a change of one row; NOT_FOUND if there is none. */
static int change_one(struct state *s, sqlite3_stmt *st, const char *id, struct err *e)
{
	int rc = step(s, st, e);

	if (rc == 0 && sqlite3_changes(s->db) == 0)
		return err_set(e, ERR_NOT_FOUND, "no session %s", id);
	return rc;
}

static int set(struct state *s, void *arg, struct err *e)
{
	const struct state_session *to = arg;
	AUTO_STMT *st = NULL;

	if (prepare(s, &st, e, "UPDATE sessions SET state = ?, lease_end_ns = ? WHERE id = ?",
		    "tit", session_state_names[to->state], to->lease_end_ns, to->id) < 0)
		return -1;
	return change_one(s, st, to->id, e);
}

int state_set(struct state *s, const char *id, enum session_state state, int64_t lease_end_ns,
	      struct err *e)
{
	struct state_session to = {.state = state, .lease_end_ns = lease_end_ns};

	(void)snprintf(to.id, sizeof(to.id), "%s", id);
	return transact(s, set, &to, false, e);
}

static int set_usage(struct state *s, void *arg, struct err *e)
{
	const struct state_session *to = arg;
	AUTO_STMT *st = NULL;

	if (prepare(s, &st, e, "UPDATE sessions SET bytes = ?, inodes = ? WHERE id = ?", "iit",
		    (int64_t)to->bytes, (int64_t)to->inodes, to->id) < 0)
		return -1;
	return change_one(s, st, to->id, e);
}

int state_set_usage(struct state *s, const char *id, uint64_t bytes, uint64_t inodes, struct err *e)
{
	struct state_session to = {.bytes = bytes, .inodes = inodes};

	(void)snprintf(to.id, sizeof(to.id), "%s", id);
	return transact(s, set_usage, &to, false, e);
}

static int gone(struct state *s, void *arg, struct err *e)
{
	AUTO_STMT *st = NULL;

	if (prepare(s, &st, e, "DELETE FROM sessions WHERE id = ?", "t", (const char *)arg) < 0)
		return -1;
	return step(s, st, e);
}

int state_gone(struct state *s, const char *id, struct err *e)
{
	char text[UUID_TEXT];

	(void)snprintf(text, sizeof(text), "%s", id);
	return transact(s, gone, text, true, e);
}

/* A text of the row, false if it is longer than what we would have put there. */
static bool take_text(sqlite3_stmt *st, int column, char *ret, size_t cap)
{
	const void *p = sqlite3_column_blob(st, column);
	size_t n = (size_t)sqlite3_column_bytes(st, column);

	if (n >= cap || (n && !p))
		return false;
	if (n)
		memcpy(ret, p, n);
	ret[n] = '\0';
	return true;
}

static bool take_row(sqlite3_stmt *st, struct state_session *ret)
{
	char name[32];

	*ret = (struct state_session){.state = SESSION_STATES};
	if (!take_text(st, 0, ret->id, sizeof(ret->id)) || !uuid_valid(ret->id) ||
	    !take_text(st, 1, ret->name, sizeof(ret->name)) ||
	    !take_text(st, 2, ret->source, sizeof(ret->source)) ||
	    !take_text(st, 6, name, sizeof(name)))
		return false;
	for (unsigned int i = 0; i < SESSION_STATES; i++)
		if (strcmp(name, session_state_names[i]) == 0)
			ret->state = (enum session_state)i;
	ret->caller_uid = (uint32_t)sqlite3_column_int64(st, 3);
	ret->created_ns = sqlite3_column_int64(st, 4);
	ret->lease_end_ns = sqlite3_column_int64(st, 5);
	ret->bytes = (uint64_t)sqlite3_column_int64(st, 7);
	ret->inodes = (uint64_t)sqlite3_column_int64(st, 8);
	return ret->state != SESSION_STATES;
}

static int list(struct state *s, void *arg, struct err *e)
{
	struct state_list *to = arg;
	AUTO_STMT *st = NULL;
	int rc = SQLITE_DONE;

	to->n = 0;
	if (prepare(s, &st, e,
		    "SELECT id, name, source, caller_uid, created_ns, lease_end_ns, state, bytes,"
		    " inodes FROM sessions ORDER BY created_ns, id",
		    "") < 0)
		return -1;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		struct state_session *more = reallocarray(to->v, to->n + 1, sizeof(*to->v));
		if (!more)
			return err_set(e, ERR_INTERNAL, "out of memory");
		to->v = more;
		if (!take_row(st, &to->v[to->n++]))
			return fail(s, SQLITE_CORRUPT, "state", e);
	}
	return rc == SQLITE_DONE ? 0 : fail(s, rc, "state", e);
}

int state_list(struct state *s, struct state_list *ret, struct err *e)
{
	struct state_list l = {.v = NULL};

	if (transact(s, list, &l, false, e) < 0) {
		state_list_release(&l);
		return -1;
	}
	*ret = l;
	return 0;
}

void state_list_release(struct state_list *l)
{
	free(l->v);
	*l = (struct state_list){.v = NULL};
}
