/* SPDX-License-Identifier: Apache-2.0 */
#include "store/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file.h"
#include "base/num.h"
#include "policy/state.h"

const char *const session_writes_names[] = {"direct", "overlay", "copy", NULL};

/* The record: "key=value" texts, each ended by NUL, in the order of this table. */
enum kind { KIND_TEXT, KIND_U32, KIND_U64, KIND_I64, KIND_BOOL };

struct field {
	const char *key;
	enum kind kind;
	size_t off, size;
};

#define FIELD(name, kind)                                           \
	{                                                           \
#name, kind, offsetof(struct session_record, name), \
			sizeof(((struct session_record *)0)->name)  \
	}

static const struct field fields[] = {
	FIELD(id, KIND_TEXT),        FIELD(name, KIND_TEXT),       FIELD(source, KIND_TEXT),
	FIELD(dev, KIND_U64),        FIELD(ino, KIND_U64),         FIELD(owner_uid, KIND_U32),
	FIELD(owner_gid, KIND_U32),  FIELD(uid, KIND_U32),         FIELD(gid, KIND_U32),
	FIELD(caller_uid, KIND_U32), FIELD(root, KIND_BOOL),       FIELD(writes, KIND_U32),
	FIELD(created_ns, KIND_I64), FIELD(base_ns, KIND_I64),     FIELD(copied_ns, KIND_I64),
	FIELD(ttl_ms, KIND_U64),     FIELD(max_ms, KIND_U64),      FIELD(disk_bytes, KIND_U64),
	FIELD(inodes, KIND_U64),     FIELD(head, KIND_TEXT),       FIELD(branch, KIND_TEXT),
	FIELD(remote, KIND_TEXT),    FIELD(remote_url, KIND_TEXT), FIELD(policy_sha256, KIND_TEXT),
};

#define VERSION "version=1"
#define OPTION "option="

int session_home(const struct caller *who, char ret[PATH_TEXT], struct err *e)
{
	char home[PATH_TEXT];

	state_home(who, home);
	return path_join(home, "sessions", ret, PATH_TEXT, e);
}

static void put_field(const struct session_record *r, const struct field *f, struct buf *out)
{
	const char *at = (const char *)r + f->off;
	uint32_t small = 0;
	uint64_t large = 0;
	bool yes = false;

	(void)buf_printf(out, "%s=", f->key);
	switch (f->kind) {
	case KIND_TEXT:
		(void)buf_str(out, at);
		break;
	case KIND_U32:
		memcpy(&small, at, sizeof(small));
		(void)buf_printf(out, "%u", small);
		break;
	case KIND_U64:
	case KIND_I64:
		memcpy(&large, at, sizeof(large));
		(void)buf_printf(out, "%llu", (unsigned long long)large);
		break;
	case KIND_BOOL:
		memcpy(&yes, at, sizeof(yes));
		(void)buf_str(out, yes ? "1" : "0");
		break;
	}
	(void)buf_char(out, '\0');
}

int session_encode(const struct session_record *r, struct buf *out, struct err *e)
{
	(void)buf_add(out, VERSION, sizeof(VERSION));
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		put_field(r, &fields[i], out);
	for (size_t i = 0; i < r->option_count; i++) {
		(void)buf_str(out, OPTION);
		(void)buf_add(out, r->options[i], strlen(r->options[i]) + 1);
	}
	return buf_check(out, "the session's record", ERR_CONFIG_INVALID, e);
}

static bool take_number(const struct field *f, const char *text, char *at)
{
	struct err ignored = {0};
	uint64_t most = f->kind == KIND_BOOL  ? 1
			: f->kind == KIND_U32 ? UINT32_MAX
			: f->kind == KIND_I64 ? INT64_MAX
					      : UINT64_MAX;
	uint64_t large = 0;

	if (num_parse(text, 0, most, &large, &ignored) < 0)
		return false;
	uint32_t small = (uint32_t)large;
	bool yes = large != 0;
	if (f->kind == KIND_BOOL)
		memcpy(at, &yes, sizeof(yes));
	else if (f->kind == KIND_U32)
		memcpy(at, &small, sizeof(small));
	else
		memcpy(at, &large, sizeof(large));
	return true;
}

static bool take_field(const struct field *f, const char *text, struct session_record *ret)
{
	char *at = (char *)ret + f->off;
	size_t key = strlen(f->key);

	if (strncmp(text, f->key, key) != 0 || text[key] != '=')
		return false;
	text += key + 1;
	if (f->kind != KIND_TEXT)
		return take_number(f, text, at);
	if (strlen(text) >= f->size)
		return false;
	memcpy(at, text, strlen(text) + 1);
	return true;
}

static bool take_options(char *bytes, size_t n, size_t at, struct session_record *ret)
{
	size_t count = 0;

	for (size_t i = at; i < n; i += strlen(bytes + i) + 1)
		count++;
	ret->options = calloc(count + 1, sizeof(*ret->options));
	if (!ret->options)
		return false;
	for (; at < n; at += strlen(bytes + at) + 1) {
		if (strncmp(bytes + at, OPTION, sizeof(OPTION) - 1) != 0)
			return false;
		ret->options[ret->option_count++] = bytes + at + sizeof(OPTION) - 1;
	}
	return true;
}

static bool decode(struct session_record *ret, size_t n)
{
	size_t at = sizeof(VERSION);

	if (n < at || memcmp(ret->bytes, VERSION, sizeof(VERSION)) != 0 || ret->bytes[n - 1])
		return false;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if (at >= n || !take_field(&fields[i], ret->bytes + at, ret))
			return false;
		at += strlen(ret->bytes + at) + 1;
	}
	return take_options(ret->bytes, n, at, ret) && uuid_valid(ret->id) &&
	       ret->writes <= SESSION_COPY && (!ret->source[0] || path_is_clean(ret->source)) &&
	       ret->uid != 0;
}

int session_decode(const char *bytes, size_t n, struct session_record *ret, struct err *e)
{
	*ret = (struct session_record){.bytes = malloc(n + 1)};
	if (!ret->bytes)
		return err_set(e, ERR_INTERNAL, "out of memory");
	memcpy(ret->bytes, bytes, n);
	ret->bytes[n] = '\0';
	if (n <= MAX_SESSION_RECORD && decode(ret, n))
		return 0;
	session_record_release(ret);
	return err_set(e, ERR_INTERNAL, "a session's record is not as it was written");
}

void session_record_release(struct session_record *r)
{
	free(r->options);
	free(r->bytes);
	r->options = NULL;
	r->bytes = NULL;
	r->option_count = 0;
}

int session_open(const struct caller *who, const char *id, int *ret_dir, struct err *e)
{
	char home[PATH_TEXT];
	char path[PATH_TEXT + UUID_TEXT];
	struct stat st;

	if (session_home(who, home, e) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/%s", home, id);
	AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 0022))
		return err_set(e, ERR_NOT_FOUND, "no session %s", id);
	*ret_dir = TAKE_FD(fd);
	return 0;
}

static void read_base(int dir, struct session_record *ret)
{
	char text[64];
	long long base = 0;
	long long copied = 0;

	if (!file_read_text(dir, SESSION_BASE, text, sizeof(text)) ||
	    sscanf(text, "%lld %lld", &base, &copied) != 2)
		return;
	ret->base_ns = base;
	ret->copied_ns = copied;
}

int session_read(int dir, struct session_record *ret, struct err *e)
{
	struct stat st;

	*ret = (struct session_record){.bytes = NULL};
	AUTO_FD int fd = openat(dir, SESSION_RECORD, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT ? err_set(e, ERR_NOT_FOUND, "the session has no record")
				       : err_sys(e, "the session's record");
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > MAX_SESSION_RECORD)
		return err_set(e, ERR_INTERNAL, "a session's record is not as it was written");
	AUTO_FREE char *bytes = malloc((size_t)st.st_size);
	if (!bytes)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (read(fd, bytes, (size_t)st.st_size) != (ssize_t)st.st_size)
		return err_sys(e, "read the session's record");
	if (session_decode(bytes, (size_t)st.st_size, ret, e) < 0)
		return -1;
	read_base(dir, ret);
	return 0;
}

int session_write_base(int dir, const struct session_record *r, struct err *e)
{
	char text[64];

	int n = snprintf(text, sizeof(text), "%lld %lld\n", (long long)r->base_ns,
			 (long long)r->copied_ns);
	AUTO_FD int fd = openat(dir, SESSION_BASE ".new",
				O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, (size_t)n) != n || fsync(fd) < 0 ||
	    renameat(dir, SESSION_BASE ".new", dir, SESSION_BASE) < 0)
		return err_sys(e, "write when the session began anew");
	return 0;
}

int session_write(int dir, const struct session_record *r, struct err *e)
{
	AUTO_BUF bytes = BUF_INIT(MAX_SESSION_RECORD);

	if (session_encode(r, &bytes, e) < 0)
		return -1;
	AUTO_FD int fd = openat(dir, SESSION_RECORD ".new",
				O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, bytes.p, bytes.n) != (ssize_t)bytes.n || fsync(fd) < 0)
		return err_sys(e, "write the session's record");
	if (linkat(dir, SESSION_RECORD ".new", dir, SESSION_RECORD, 0) < 0)
		return err_sys(e, "the session's record");
	(void)unlinkat(dir, SESSION_RECORD ".new", 0);
	return fsync(dir) < 0 ? err_sys(e, "the session's directory") : 0;
}

bool session_is_kept(int dir)
{
	AUTO_FD int fd = openat(dir, SESSION_LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
}

/* What is known of the one that fits best so far. */
struct search {
	const char *text, *source;
	bool last;
	char id[UUID_TEXT];
	int64_t created_ns;
	unsigned int found;
};

static void look_at(struct search *s, const struct session_record *r)
{
	bool fits = s->last ? !s->source || !s->source[0] || strcmp(r->source, s->source) == 0
		    : r->name[0] && strcmp(r->name, s->text) == 0
			    ? true
			    : strlen(s->text) >= SESSION_ID_MIN &&
				      strncmp(r->id, s->text, strlen(s->text)) == 0;

	if (!fits)
		return;
	s->found++;
	if (s->found > 1 && (!s->last || r->created_ns < s->created_ns))
		return;
	memcpy(s->id, r->id, UUID_TEXT);
	s->created_ns = r->created_ns;
}

static void look_through(const struct caller *who, const char *home, struct search *s)
{
	struct session_record r;
	struct err ignored = {0};
	DIR *d = opendir(home);

	for (struct dirent *at = d ? readdir(d) : NULL; at; at = readdir(d)) {
		AUTO_FD int dir = -1;
		if (!uuid_valid(at->d_name) || session_open(who, at->d_name, &dir, &ignored) < 0 ||
		    session_read(dir, &r, &ignored) < 0)
			continue;
		look_at(s, &r);
		session_record_release(&r);
	}
	if (d)
		(void)closedir(d);
}

int session_find(const struct caller *who, const char *text, const char *source,
		 char ret_id[UUID_TEXT], struct err *e)
{
	struct search s = {.text = text, .source = source, .last = strcmp(text, "@last") == 0};
	char home[PATH_TEXT];

	if (uuid_valid(text)) {
		AUTO_FD int dir = -1;
		memcpy(ret_id, text, UUID_TEXT);
		return session_open(who, text, &dir, e);
	}
	if (session_home(who, home, e) < 0)
		return -1;
	look_through(who, home, &s);
	if (s.found > 1 && !s.last) {
		(void)err_set(e, ERR_CONFLICT, "`%s` may be one of %u sessions", text, s.found);
		return err_hint(e, "name more of the id; `sandglass session list` shows them");
	}
	if (!s.found) {
		(void)(s.last ? err_set(e, ERR_NOT_FOUND, "no session%s%s",
					source && source[0] ? " of " : "", source ? source : "")
			      : err_set(e, ERR_NOT_FOUND, "no session `%s`", text));
		return err_hint(e, "`sandglass session list` shows what there is");
	}
	memcpy(ret_id, s.id, UUID_TEXT);
	return 0;
}
