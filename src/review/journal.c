/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan is a text: a head, then for each operation a line of numbers, a blank,
 * the path and a NUL. Only its writer, who is its reader, has access to it.
 */
#include "review/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/num.h"
#include "review/names.h"
#include "store/remove.h"

#define PLAN "plan"
#define DONE "done"
#define BACK "back"
#define REFS "refs"
#define HEAD "sandglass-journal 1"
#define NODE_NUMBERS 6
#define OP_NUMBERS (2 + 2 * NODE_NUMBERS)

int journal_open(int session, const char *name, struct journal *ret, struct err *e)
{
	*ret = (struct journal){.dir = -1};
	if (mkdirat(session, name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "make the session's journal");
	AUTO_FD int dir = openat(session, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return err_sys(e, "the session's journal");
	if (flock(dir, LOCK_EX | LOCK_NB) < 0) {
		(void)err_set(e, ERR_BUSY, "another apply or discard of this session is under way");
		return err_hint(e, "try again when it has ended");
	}
	ret->dir = TAKE_FD(dir);
	return 0;
}

void journal_close(struct journal *j)
{
	base_close_fd(&j->dir);
	free(j->ops);
	free(j->bytes);
	while (j->kept_n)
		free(j->kept[--j->kept_n]);
	free(j->kept);
	*j = (struct journal){.dir = -1};
}

/* Numbers of an op in their order on disk. */
static void numbers_of_node(const struct node *n, uint64_t v[NODE_NUMBERS])
{
	v[0] = n->mode;
	v[1] = n->dev;
	v[2] = n->ino;
	v[3] = n->size;
	v[4] = (uint64_t)n->mtime_ns;
	v[5] = (uint64_t)n->ctime_ns;
}

static struct node node_of_numbers(const uint64_t v[NODE_NUMBERS])
{
	return (struct node){
		.mode = (mode_t)v[0],
		.dev = v[1],
		.ino = v[2],
		.size = v[3],
		.mtime_ns = (int64_t)v[4],
		.ctime_ns = (int64_t)v[5],
	};
}

static void put_op(struct buf *out, const struct op *op)
{
	uint64_t v[OP_NUMBERS] = {op->kind, op->mode};

	numbers_of_node(&op->old, v + 2);
	numbers_of_node(&op->made, v + 2 + NODE_NUMBERS);
	for (size_t i = 0; i < OP_NUMBERS; i++)
		(void)buf_printf(out, "%llu ", (unsigned long long)v[i]);
	(void)buf_add(out, op->path, strlen(op->path) + 1);
}

static bool take_numbers(char **at, uint64_t *v, size_t n)
{
	struct err ignored = {0};

	for (size_t i = 0; i < n; i++) {
		char *end = strchr(*at, ' ');
		if (!end)
			return false;
		*end = '\0';
		if (num_parse(*at, 0, UINT64_MAX, &v[i], &ignored) < 0)
			return false;
		*at = end + 1;
	}
	return true;
}

static bool take_op(struct journal *j, char *at)
{
	uint64_t v[OP_NUMBERS];

	if (!take_numbers(&at, v, OP_NUMBERS) || v[0] >= OP_KINDS ||
	    (!beneath_is_clean(at) && (v[0] != OP_NOTE || strcmp(at, JOURNAL_TOP) != 0)))
		return false;
	struct op op = {
		.kind = (uint8_t)v[0],
		.mode = (uint32_t)v[1],
		.path = at,
		.old = node_of_numbers(v + 2),
		.made = node_of_numbers(v + 2 + NODE_NUMBERS),
	};
	return journal_add(j, &op);
}

/* "sandglass-journal 1\0TAG READY\0", then the ops. */
static bool decode(struct journal *j, size_t n)
{
	size_t at = sizeof(HEAD);

	if (n < at + JOURNAL_TAG + 2 || memcmp(j->bytes, HEAD, sizeof(HEAD)) != 0 ||
	    j->bytes[n - 1])
		return false;
	if (strlen(j->bytes + at) != JOURNAL_TAG + 1 ||
	    strspn(j->bytes + at, "0123456789abcdef") != JOURNAL_TAG - 1)
		return false;
	memcpy(j->tag, j->bytes + at, JOURNAL_TAG - 1);
	j->tag[JOURNAL_TAG - 1] = '\0';
	j->ready = j->bytes[at + JOURNAL_TAG] == '1';
	at += JOURNAL_TAG + 2;
	while (at < n) {
		size_t len = strlen(j->bytes + at);
		if (!take_op(j, j->bytes + at))
			return false;
		at += len + 1;
	}
	return true;
}

void journal_sweep(const struct journal *j)
{
	int fd = openat(j->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	for (struct dirent *at = d ? readdir(d) : NULL; at; at = readdir(d))
		if (strncmp(at->d_name, JOURNAL_TRASH, sizeof(JOURNAL_TRASH) - 1) == 0 ||
		    strncmp(at->d_name, REMOVE_GONE, sizeof(REMOVE_GONE) - 1) == 0)
			remove_tree(j->dir, at->d_name);
	if (d)
		(void)closedir(d);
	else
		base_close_fd(&fd);
}

static bool is_there(const struct journal *j, const char *name)
{
	return faccessat(j->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int journal_read(struct journal *j, struct err *e)
{
	struct stat st;

	j->n = 0;
	AUTO_FD int fd = openat(j->dir, PLAN, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		journal_sweep(j);
		return journal_end(j, e); /* marks that a kill left are for no plan */
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "the session's journal");
	size_t n = (size_t)st.st_size;
	free(j->bytes);
	j->bytes = st.st_size > 0 && n <= MAX_JOURNAL_BYTES ? malloc(n) : NULL;
	j->done = is_there(j, DONE);
	j->back = is_there(j, BACK);
	if (j->bytes && read(fd, j->bytes, n) == (ssize_t)n && decode(j, n))
		return 0;
	j->n = 0;
	return err_set(e, ERR_INTERNAL, "the session's journal is not as it was written");
}

void journal_pending(int session, const char *name, char ret[JOURNAL_TAG])
{
	char head[sizeof(HEAD) + JOURNAL_TAG - 1];

	ret[0] = '\0';
	AUTO_FD int dir = openat(session, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_FD int fd = dir < 0 ? -1 : openat(dir, PLAN, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || read(fd, head, sizeof(head)) != (ssize_t)sizeof(head) ||
	    memcmp(head, HEAD, sizeof(HEAD)) != 0)
		return;
	memcpy(ret, head + sizeof(HEAD), JOURNAL_TAG - 1);
	ret[JOURNAL_TAG - 1] = '\0';
}

static int make_tag(struct journal *j, struct err *e)
{
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return err_sys(e, "getrandom");
	(void)snprintf(j->tag, sizeof(j->tag), "%016llx", (unsigned long long)random);
	return 0;
}

int journal_write(struct journal *j, bool ready, struct err *e)
{
	AUTO_BUF out = BUF_INIT(MAX_JOURNAL_BYTES);

	if (!j->tag[0] && make_tag(j, e) < 0)
		return -1;
	(void)buf_add(&out, HEAD, sizeof(HEAD));
	(void)buf_printf(&out, "%s %d", j->tag, ready);
	(void)buf_char(&out, '\0');
	for (size_t i = 0; i < j->n; i++)
		put_op(&out, &j->ops[i]);
	if (buf_check(&out, "the session's journal", ERR_ARG_LIMIT, e) < 0)
		return -1;
	AUTO_FD int fd = openat(j->dir, PLAN ".new",
				O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, out.p, out.n) != (ssize_t)out.n || fsync(fd) < 0 ||
	    renameat(j->dir, PLAN ".new", j->dir, PLAN) < 0 || fsync(j->dir) < 0)
		return err_sys(e, "write the session's journal");
	j->ready = ready;
	return 0;
}

static int mark(struct journal *j, const char *name, struct err *e)
{
	AUTO_FD int fd = openat(j->dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || fsync(j->dir) < 0)
		return err_sys(e, "write the session's journal");
	return 0;
}

int journal_mark_back(struct journal *j, struct err *e)
{
	if (mark(j, BACK, e) < 0)
		return -1;
	j->back = true;
	return 0;
}

int journal_mark_done(struct journal *j, struct err *e)
{
	if (mark(j, DONE, e) < 0)
		return -1;
	j->done = true;
	return 0;
}

int journal_end(struct journal *j, struct err *e)
{
	/* The plan first: a mark without one says nothing, but a plan without its mark would lie. */
	if (unlinkat(j->dir, PLAN, 0) < 0 && errno != ENOENT)
		return err_sys(e, "end the session's journal");
	if (fsync(j->dir) < 0)
		return err_sys(e, "end the session's journal");
	(void)unlinkat(j->dir, PLAN ".new", 0);
	(void)unlinkat(j->dir, DONE, 0);
	(void)unlinkat(j->dir, BACK, 0);
	j->n = 0;
	j->tag[0] = '\0';
	j->ready = j->back = j->done = false;
	return fsync(j->dir) < 0 ? err_sys(e, "end the session's journal") : 0;
}

int journal_put_refs(const struct journal *j, const char *text, size_t n, struct err *e)
{
	AUTO_FD int fd = openat(j->dir, REFS ".new",
				O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, n) != (ssize_t)n || fsync(fd) < 0 ||
	    renameat(j->dir, REFS ".new", j->dir, REFS) < 0 || fsync(j->dir) < 0)
		return err_sys(e, "write the session's journal");
	return 0;
}

char *journal_take_refs(const struct journal *j)
{
	struct stat st;
	AUTO_FD int fd = openat(j->dir, REFS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > (off_t)MAX_JOURNAL_BYTES)
		return NULL;
	char *text = calloc(1, (size_t)st.st_size + 1);
	if (text && read(fd, text, (size_t)st.st_size) == (ssize_t)st.st_size)
		return text;
	free(text);
	return NULL;
}

void journal_drop_refs(const struct journal *j)
{
	(void)unlinkat(j->dir, REFS ".new", 0);
	if (unlinkat(j->dir, REFS, 0) == 0)
		(void)fsync(j->dir);
}

bool journal_add(struct journal *j, const struct op *op)
{
	if (j->n == j->cap) {
		size_t cap = j->cap ? 2 * j->cap : 64;
		struct op *ops = cap <= 2 * (size_t)MAX_JOURNAL_OPS
					 ? realloc(j->ops, cap * sizeof(*ops))
					 : NULL;
		if (!ops)
			return false;
		j->ops = ops;
		j->cap = cap;
	}
	j->ops[j->n++] = *op;
	return true;
}

bool journal_keep(struct journal *j, char *path)
{
	char **v = realloc(j->kept, (j->kept_n + 1) * sizeof(*v));

	if (!v)
		return false;
	j->kept = v;
	j->kept[j->kept_n++] = path;
	return true;
}

static int by_path(const void *a, const void *b)
{
	const struct op *x = a;
	const struct op *y = b;
	int order = strcmp(x->path, y->path);

	return order ? order : (int)x->kind - (int)y->kind;
}

void journal_sort(struct journal *j)
{
	if (j->n)
		qsort(j->ops, j->n, sizeof(*j->ops), by_path);
}

struct op *journal_find(const struct journal *j, enum op_kind kind, const char *path)
{
	struct op key = {.kind = (uint8_t)kind, .path = path};

	return j->n ? bsearch(&key, j->ops, j->n, sizeof(key), by_path) : NULL;
}

void journal_temp(const struct journal *j, size_t i, char ret[JOURNAL_TEMP])
{
	(void)snprintf(ret, JOURNAL_TEMP, JOURNAL_PREFIX "%s-%zu", j->tag, i);
}
