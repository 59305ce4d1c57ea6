/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Git lists the paths in a sandbox; a file is named here as git would name it, so that
 * neither git's filters nor its attributes have a say in what is the same.
 */
#include "review/unseen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/sha1.h"
#include "base/sha256.h"
#include "base/term.h"
#include "review/beneath.h"
#include "review/layer.h"

#define SHA1_TEXT 40
#define GITLINK "160000"
#define LINK "120000"

/* One of both, by how long the names of the repository are. */
struct hash {
	bool is_256;
	struct sha1 a;
	struct sha256 b;
};

static void hash_add(struct hash *h, const void *p, size_t n)
{
	if (h->is_256)
		sha256_add(&h->b, p, n);
	else
		sha1_add(&h->a, p, n);
}

static void hash_begin(struct hash *h, bool is_256, uint64_t size)
{
	char head[32];

	*h = (struct hash){.is_256 = is_256};
	sha1_init(&h->a);
	sha256_init(&h->b);
	int n = snprintf(head, sizeof(head), "blob %llu", (unsigned long long)size);
	hash_add(h, head, (size_t)n + 1);
}

static void hash_end(struct hash *h, char ret[COMMITS_OID])
{
	unsigned char raw[SHA256_BYTES];
	size_t n = h->is_256 ? SHA256_BYTES : SHA1_BYTES;

	if (h->is_256)
		sha256_end(&h->b, raw);
	else
		sha1_end(&h->a, raw);
	for (size_t i = 0; i < n; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", raw[i]);
}

static bool hash_file(struct unseen *u, int fd, bool is_256, char ret[COMMITS_OID])
{
	char bytes[65536];
	struct stat st;
	struct hash h;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_size > MAX_UNSEEN_HASHED - u->hashed)
		return false;
	u->hashed += (uint64_t)st.st_size;
	hash_begin(&h, is_256, (uint64_t)st.st_size);
	for (off_t at = 0; at < st.st_size;) {
		ssize_t n = pread(fd, bytes, sizeof(bytes), at);
		if (n <= 0)
			return false;
		hash_add(&h, bytes, (size_t)n);
		at += n;
	}
	hash_end(&h, ret);
	return true;
}

static void hash_text(const char *text, size_t n, bool is_256, char ret[COMMITS_OID])
{
	struct hash h;

	hash_begin(&h, is_256, n);
	hash_add(&h, text, n);
	hash_end(&h, ret);
}

/* What the session has there. */
struct view {
	const struct review *r;
	const struct changes *c;
	struct unseen *u;
};

/* "" with true: nothing is there. False: it could not be compared. */
static bool name_changed(const struct view *v, const struct change_side *s, bool is_256,
			 char ret[COMMITS_OID])
{
	char target[MAX_LINK_TEXT];
	struct err ignored = {0};

	if (S_ISLNK(s->mode)) {
		ssize_t n = change_readlink(v->r, s, target, &ignored);
		if (n >= 0)
			hash_text(target, (size_t)n, is_256, ret);
		return n >= 0;
	}
	if (!S_ISREG(s->mode))
		return true;
	AUTO_FD int fd = change_open(v->r, s, &ignored);
	return fd >= 0 && hash_file(v->u, fd, is_256, ret);
}

static bool name_of_source(const struct view *v, const char *path, bool is_256,
			   char ret[COMMITS_OID])
{
	char target[MAX_LINK_TEXT];
	const char *last = NULL;
	struct stat st;

	if (beneath_stat(v->r->source, path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR;
	if (S_ISLNK(st.st_mode)) {
		AUTO_FD int dir = beneath_parent(v->r->source, path, &last);
		ssize_t n = dir < 0 ? -1 : readlinkat(dir, last, target, sizeof(target));
		if (n >= 0)
			hash_text(target, (size_t)n, is_256, ret);
		return n >= 0;
	}
	if (!S_ISREG(st.st_mode))
		return true;
	AUTO_FD int fd = beneath_open(v->r->source, path, O_RDONLY | O_NONBLOCK);
	return fd >= 0 && hash_file(v->u, fd, is_256, ret);
}

/* Whether the files show what the branch has at that path; `oid` "": it has nothing there. */
static bool is_shown(const struct view *v, const char *path, const char *oid, bool is_256)
{
	char is[COMMITS_OID] = "";

	if (!beneath_is_clean(path))
		return false;
	const struct change *ch = changes_get(v->c, path);
	bool known =
		ch ? name_changed(v, &ch->after, is_256, is) : name_of_source(v, path, is_256, is);
	return known && strcmp(is, oid) == 0;
}

static int add(struct unseen *u, const char *ref, const char *path, struct err *e)
{
	if (u->n == MAX_UNSEEN) {
		u->more++;
		return 0;
	}
	struct unseen_path *v = u->n % 64 ? u->v : realloc(u->v, (u->n + 64) * sizeof(*v));
	if (!v)
		return err_set(e, ERR_INTERNAL, "out of memory");
	u->v = v;
	v[u->n] = (struct unseen_path){.ref = strdup(ref), .path = strdup(path)};
	if (!v[u->n].ref || !v[u->n].path) {
		free(v[u->n].ref);
		free(v[u->n].path);
		return err_set(e, ERR_INTERNAL, "out of memory");
	}
	u->n++;
	return 0;
}

/* Of ":MODE MODE OID OID LETTER", the second of both; false: it is not such a line. */
static bool take_entry(const char *text, char mode[7], char oid[COMMITS_OID])
{
	char letter;
	char before[COMMITS_OID];

	return sscanf(text, ":%*6s %6s %64[0-9a-f] %64[0-9a-f] %c", mode, before, oid, &letter) ==
		       4 &&
	       strlen(before) == strlen(oid);
}

/* A path that a branch has other than before; oid "": it has nothing there. */
typedef int entry_item(void *self, const char *ref, const char *path, const char *oid, bool is_256,
		       struct err *e);

/* Submodules are left out. What `item` returns ends it, if it is not 0. */
static int each_entry(const char *text, size_t n, entry_item *item, void *self, struct err *e)
{
	const char *ref = "";
	char mode[7];
	char oid[COMMITS_OID];
	int rc = 0;

	for (const char *p = text; p < text + n && rc == 0; p += strlen(p) + 1) {
		if (strncmp(p, "ref ", 4) == 0) {
			ref = p + 4;
			continue;
		}
		const char *path = p + strlen(p) + 1;
		if (path >= text + n || !take_entry(p, mode, oid))
			return err_set(e, ERR_INTERNAL,
				       "git's list of the session's commits cannot be read");
		p = path;
		bool is_256 = strlen(oid) > SHA1_TEXT;
		if (strspn(oid, "0") == strlen(oid))
			oid[0] = '\0';
		if (strcmp(mode, GITLINK) != 0)
			rc = item(self, ref, path, oid, is_256, e);
	}
	return rc;
}

static int judge(void *self, const char *ref, const char *path, const char *oid, bool is_256,
		 struct err *e)
{
	const struct view *v = self;

	return is_shown(v, path, oid, is_256) ? 0 : add(v->u, ref, path, e);
}

static int refuse_masked(void *self, const char *ref, const char *path, const char *oid,
			 bool is_256, struct err *e)
{
	const struct view *v = self;
	char shown[2 * ERR_MSG_MAX];

	(void)is_256;
	if (!oid[0] || !layer_masked(v->r, path))
		return 0;
	(void)err_set(e, ERR_POLICY_DENIED,
		      "a commit of %s has %s, which is masked: what it says there is not the file",
		      ref, term_escape_cut(shown, sizeof(shown), path, strlen(path)));
	return err_hint(e, "nothing was changed; in the session: git rm --cached -f and git commit "
			   "--amend; or apply paths, without commits");
}

static int read_all(int fd, char **ret, size_t *ret_n, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "the list of the session's commits");
	char *text = calloc(1, (size_t)st.st_size + 1);
	if (!text)
		return err_set(e, ERR_INTERNAL, "out of memory");
	*ret = text;
	*ret_n = (size_t)st.st_size;
	return pread(fd, text, (size_t)st.st_size, 0) == st.st_size
		       ? 0
		       : err_sys(e, "the list of the session's commits");
}

int unseen_find(const struct review *r, const struct changes *c, const struct applied *applied,
		int scratch, struct unseen *ret, struct err *e)
{
	struct commits m = {.bundle = -1};
	struct view v = {.r = r, .c = c, .u = ret};
	AUTO_FREE char *text = NULL;
	AUTO_FD int list = -1;
	size_t n = 0;

	*ret = (struct unseen){.n = 0};
	int rc = commits_find(r, c, applied, &m, e);
	if (rc == 0 && m.n) {
		rc = commits_list(r, c, scratch, &m, MAX_UNSEEN_LIST, &list, e);
		if (rc == 0)
			rc = read_all(list, &text, &n, e);
		if (rc == 0)
			rc = each_entry(text, n, judge, &v, e);
	}
	commits_release(&m);
	return rc;
}

int unseen_check_masked(const struct review *r, const struct changes *c, const struct commits *m,
			int scratch, struct err *e)
{
	struct view v = {.r = r, .c = c};
	AUTO_FREE char *text = NULL;
	size_t n = 0;

	if (r->masks < 0 || !m->n)
		return 0;
	AUTO_FD int list = -1;
	if (commits_list(r, c, scratch, m, MAX_UNSEEN_LIST, &list, e) < 0 ||
	    read_all(list, &text, &n, e) < 0)
		return -1;
	return each_entry(text, n, refuse_masked, &v, e);
}

void unseen_release(struct unseen *u)
{
	for (size_t i = 0; i < u->n; i++) {
		free(u->v[i].ref);
		free(u->v[i].path);
	}
	free(u->v);
	*u = (struct unseen){.n = 0};
}
