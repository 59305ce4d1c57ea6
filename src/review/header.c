/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What git cannot carry, a line each: "# kind: "path"". The paths are quoted as
 * git does, so every line is printable ASCII, and none can be taken for a part
 * of the patch.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/sha256.h"
#include "review/commits.h"
#include "review/gitname.h"
#include "review/patch.h"

#define MAX_HEADER_LINE (4 * PATH_TEXT + 512)
#define HASH_BYTES 65536u

struct header {
	const struct patch *p;
	struct sink *out;
	struct buf line;
	uint64_t hashed; /* so far; a file of any size costs a session nothing */
};

static const char *type_name(mode_t mode)
{
	return S_ISREG(mode)    ? "file"
	       : S_ISDIR(mode)  ? "directory"
	       : S_ISLNK(mode)  ? "link"
	       : S_ISFIFO(mode) ? "fifo"
	       : S_ISSOCK(mode) ? "socket"
	       : S_ISCHR(mode)  ? "character device"
	       : S_ISBLK(mode)  ? "block device"
				: "nothing";
}

static int end_line(struct header *h, const char *path, struct err *e)
{
	(void)buf_str(&h->line, ": ");
	(void)gitname_quote(&h->line, path);
	(void)buf_char(&h->line, '\n');
	int rc = buf_check(&h->line, "a line of the header", ERR_INTERNAL, e);
	if (rc == 0)
		rc = sink_write(h->out, h->line.p, h->line.n, e);
	buf_clear(&h->line);
	return rc;
}

static const char *verb_of(const struct change *c)
{
	return !c->before.mode ? "added" : !c->after.mode ? "removed" : "changed";
}

/* Something of the patch lies in the directory, so applying makes or removes it. */
static bool is_implied(const struct patch *p, size_t i)
{
	const struct change *dir = &p->c->v[i];
	char below[PATH_TEXT + 1];

	(void)snprintf(below, sizeof(below), "%s/", dir->path);
	size_t n = strlen(below);
	for (size_t at = changes_seek(p->c, below); at < p->c->n; at++) {
		const struct change *c = &p->c->v[at];
		if (strncmp(c->path, below, n) != 0)
			break;
		const struct change_side *s = dir->after.mode ? &c->after : &c->before;
		if (p->notes[at].why == PATCH_IN && (S_ISREG(s->mode) || S_ISLNK(s->mode)))
			return true;
	}
	return false;
}

/* The bits that git would give it, whatever the umask is. */
static bool mode_is_usual(const struct change_side *s)
{
	mode_t bits = s->mode & 07777 & ~(mode_t)0022;

	if (S_ISLNK(s->mode) || !s->mode)
		return true;
	return S_ISDIR(s->mode) ? bits == 0755 : bits == 0644 || bits == 0755;
}

static int put_mode(struct header *h, const struct change *c, struct err *e)
{
	const mode_t all = 07777;
	mode_t was = c->before.mode & all;
	mode_t is = c->after.mode & all;

	if (!c->after.mode || S_ISLNK(c->after.mode))
		return 0;
	if (!c->before.mode || (c->before.mode & S_IFMT) != (c->after.mode & S_IFMT)) {
		if (mode_is_usual(&c->after))
			return 0;
		(void)buf_printf(&h->line, "# mode %04o", is);
		return end_line(h, c->path, e);
	}
	/* git carries 0644 to 0755 and back. */
	bool executable = S_ISREG(c->after.mode) && mode_is_usual(&c->before) &&
			  mode_is_usual(&c->after) && (was & 0022) == (is & 0022);
	if (was == is || executable)
		return 0;
	(void)buf_printf(&h->line, "# mode %04o to %04o", was, is);
	return end_line(h, c->path, e);
}

static int put_directory(struct header *h, size_t i, struct err *e)
{
	const struct change *c = &h->p->c->v[i];
	bool was = S_ISDIR(c->before.mode);
	bool is = S_ISDIR(c->after.mode);

	if (was != is && !is_implied(h->p, i)) {
		(void)buf_printf(&h->line, "# directory %s", is ? "added" : "removed");
		if (end_line(h, c->path, e) < 0)
			return -1;
	}
	return is ? put_mode(h, c, e) : 0;
}

/* As much as was there when the list was made; "" if all of them are too much, or it cannot be read. */
static void hash_of(struct header *head, const struct change_side *s,
		    char ret[2 * SHA256_BYTES + 1])
{
	struct err ignored = {0};
	unsigned char sum[SHA256_BYTES];
	char bytes[HASH_BYTES];
	struct sha256 h;

	ret[0] = '\0';
	if (!S_ISREG(s->mode) || s->size > MAX_PATCH_HASHED - head->hashed)
		return;
	head->hashed += s->size;
	AUTO_FD int fd = change_open(head->p->r, s, &ignored);
	if (fd < 0)
		return;
	sha256_init(&h);
	for (uint64_t left = s->size; left;) {
		size_t n = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
		ssize_t some = RETRY_EINTR(read(fd, bytes, n));
		if (some <= 0)
			return;
		sha256_add(&h, bytes, (size_t)some);
		left -= (uint64_t)some;
	}
	sha256_end(&h, sum);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", sum[i]);
}

static int put_large(struct header *h, const struct change *c, struct err *e)
{
	char sum[2 * SHA256_BYTES + 1] = "";
	const struct change_side *s = c->after.mode ? &c->after : &c->before;

	if (c->after.mode)
		hash_of(h, s, sum);
	(void)buf_printf(&h->line, "# too large, %s, %" PRIu64 " bytes%s%s", verb_of(c), s->size,
			 sum[0] ? ", sha256 " : "", sum);
	return end_line(h, c->path, e);
}

static int put_change(struct header *h, size_t i, struct err *e)
{
	static const char *const kinds[] = {
		[PATCH_GIT] = "git directory",
		[PATCH_MASKED] = "masked",
		[PATCH_NAME] = "a name that git refuses",
		[PATCH_UNREAD] = "could not be read",
	};
	const struct change *c = &h->p->c->v[i];
	enum patch_why why = h->p->notes[i].why;

	switch (why) {
	case PATCH_IN:
		if (!S_ISDIR(c->before.mode) && !S_ISDIR(c->after.mode))
			return put_mode(h, c, e);
		return put_directory(h, i, e) < 0 ? -1
		       : S_ISREG(c->after.mode)   ? put_mode(h, c, e)
						  : 0;
	case PATCH_DIRECTORY:
		return put_directory(h, i, e);
	case PATCH_LARGE:
		return put_large(h, c, e);
	case PATCH_SPECIAL:
		break;
	case PATCH_GIT:
	case PATCH_MASKED:
	case PATCH_NAME:
	case PATCH_UNREAD:
		(void)buf_printf(&h->line, "# %s, %s %s", kinds[why], verb_of(c),
				 type_name(c->after.mode ? c->after.mode : c->before.mode));
		return end_line(h, c->path, e);
	}
	return 0;
}

static bool is_special(mode_t mode)
{
	return mode && !S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode);
}

static int put_all(struct header *h, size_t i, struct err *e)
{
	const struct change *c = &h->p->c->v[i];
	enum patch_why why = h->p->notes[i].why;

	if (put_change(h, i, e) < 0)
		return -1;
	if ((why == PATCH_IN || why == PATCH_SPECIAL || why == PATCH_DIRECTORY) &&
	    (is_special(c->before.mode) || is_special(c->after.mode))) {
		bool after = is_special(c->after.mode);
		(void)buf_printf(&h->line, "# special file %s, %s", after ? "added" : "removed",
				 type_name(after ? c->after.mode : c->before.mode));
		if (end_line(h, c->path, e) < 0)
			return -1;
	}
	if (h->p->notes[i].shrank) {
		(void)buf_str(&h->line, "# changed while it was read");
		if (end_line(h, c->path, e) < 0)
			return -1;
	}
	if (!c->conflict)
		return 0;
	(void)buf_str(&h->line, "# conflict, the source changed there too");
	return end_line(h, c->path, e);
}

static int put_rest(struct header *h, const struct changes *c, struct err *e)
{
	if (c->deep) {
		(void)buf_printf(&h->line, "# %zu directories too deep to list, the first",
				 c->deep);
		if (end_line(h, c->deep_at, e) < 0)
			return -1;
	}
	if (!c->unread)
		return 0;
	(void)buf_printf(&h->line, "# %zu directories could not be read, the first", c->unread);
	return end_line(h, c->unread_at, e);
}

int patch_header(const struct patch *p, struct sink *out, struct err *e)
{
	struct header h = {.p = p, .out = out, .line = BUF_INIT(MAX_HEADER_LINE)};
	int rc = 0;
	size_t objects = 0;

	for (size_t i = 0; i < p->c->n && rc == 0; i++) {
		if (commits_is_of_objects(&p->c->v[i]))
			objects += S_ISREG(p->c->v[i].after.mode);
		else
			rc = put_all(&h, i, e);
	}
	if (rc == 0 && objects) {
		(void)buf_printf(&h.line, "# git directory, %zu new objects or packs", objects);
		rc = end_line(&h, ".git/objects", e);
	}
	if (rc == 0)
		rc = put_rest(&h, p->c, e);
	buf_release(&h.line);
	return rc;
}
