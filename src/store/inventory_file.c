/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of an inventory: a header, then the arrays as they are in memory, for
 * the machine and the version that wrote it. It lies where no sandbox reaches,
 * yet nothing in it is believed before its bounds are checked.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/base.h"
#include "store/inventory.h"

#define INVENTORY_MAGIC 0x49474c53u /* "SLGI" */
#define INVENTORY_VERSION 3u /* to be raised with every change of what counts, policy/protect.c */

struct header {
	uint32_t magic, version;
	uint32_t dir_size, find_size,
		hit_size; /* of a structure: another build is another format */
	uint32_t classes, places, roles;
	uint32_t dirs, finds, hits, tips, inside, text, patterns, pattern_bytes;
	uint32_t full;
};

/* A name: not empty, ends within the text, without a slash. */
static bool is_name(const struct inventory *inv, uint32_t at)
{
	if (at >= inv->text_count)
		return false;
	const char *p = inv->text + at;
	size_t n = strnlen(p, inv->text_count - at);
	return n > 0 && n < 1024 && n < inv->text_count - at && !memchr(p, '/', n) &&
	       strcmp(p, ".") != 0 && strcmp(p, "..") != 0;
}

static bool is_root_name(const struct inventory *inv)
{
	return inv->dirs[0].name < inv->text_count &&
	       memchr(inv->text + inv->dirs[0].name, 0, inv->text_count - inv->dirs[0].name);
}

static bool check_dir(const struct inventory *inv, uint32_t i)
{
	const struct inventory_dir *d = &inv->dirs[i];

	if (i == 0 ? d->parent != INVENTORY_NONE || !is_root_name(inv)
		   : d->parent >= i || !is_name(inv, d->name))
		return false;
	/* Its subtree lies within its parent's. */
	if (d->size == 0 || d->size > inv->dir_count - i || (i == 0 && d->size != inv->dir_count) ||
	    (i > 0 && i + d->size > d->parent + inv->dirs[d->parent].size))
		return false;
	if (d->find > inv->find_count || d->finds > inv->find_count - d->find ||
	    d->tip > inv->tip_count || d->tips > inv->tip_count - d->tip)
		return false;
	if (d->hit > inv->hit_count || d->hits > inv->hit_count - d->hit)
		return false;
	for (uint32_t f = d->find; f < d->find + d->finds; f++)
		if (inv->finds[f].dir != i)
			return false;
	for (uint32_t f = d->hit; f < d->hit + d->hits; f++)
		if (inv->hits[f].dir != i)
			return false;
	return d->place < PLACES && d->given < ROLES && d->role < ROLES;
}

/* Each directory lies in the subtree of the one that it names as its parent: preorder. */
static bool check_dirs(const struct inventory *inv)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < inv->dir_count; i++)
		if (!check_dir(inv, i))
			return false;
	for (uint32_t i = 1; i < inv->dir_count; i++) {
		while (at != INVENTORY_NONE && i >= at + inv->dirs[at].size)
			at = inv->dirs[at].parent;
		if (inv->dirs[i].parent != at)
			return false;
		at = i;
	}
	return true;
}

static bool check_names(const struct inventory *inv)
{
	for (uint32_t i = 0; i < inv->find_count; i++) {
		const struct inventory_find *f = &inv->finds[i];
		if (f->dir >= inv->dir_count || !is_name(inv, f->name) ||
		    f->class == PROTECT_NONE || f->class >= PROTECT_CLASSES)
			return false;
	}
	for (uint32_t i = 0; i < inv->hit_count; i++)
		if (inv->hits[i].dir >= inv->dir_count || !is_name(inv, inv->hits[i].name))
			return false;
	return true;
}

/* As many texts as are said, each with its end. */
static bool check_patterns(const struct inventory *inv)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < inv->pattern_bytes; i++)
		count += !inv->patterns[i];
	return count == inv->pattern_count &&
	       (!inv->pattern_bytes || !inv->patterns[inv->pattern_bytes - 1]);
}

static bool is_object_id(const struct inventory_oid *tip)
{
	return tip->bytes == 20 || tip->bytes == 32;
}

static bool check(const struct inventory *inv)
{
	if (!check_dirs(inv) || !check_names(inv) || !check_patterns(inv))
		return false;
	for (uint32_t i = 0; i < inv->tip_count; i++)
		if (!is_object_id(&inv->tips[i]))
			return false;
	for (uint32_t i = 0; inv->inside && i < inv->inside_count; i++)
		if (!is_object_id(&inv->inside[i]))
			return false;
	return true;
}

static void *copy(const char **p, size_t n, size_t size)
{
	void *ret = calloc(n + 1, size);

	if (ret && n)
		memcpy(ret, *p, n * size);
	*p += n * size;
	return ret;
}

static bool fits(const struct header *h, size_t n)
{
	size_t want = sizeof(*h) + (size_t)h->dirs * sizeof(struct inventory_dir) +
		      (size_t)h->finds * sizeof(struct inventory_find) +
		      (size_t)h->hits * sizeof(struct inventory_hit) + h->pattern_bytes +
		      ((size_t)h->tips + h->inside) * sizeof(struct inventory_oid) + h->text;

	return h->magic == INVENTORY_MAGIC && h->version == INVENTORY_VERSION &&
	       h->dir_size == sizeof(struct inventory_dir) &&
	       h->find_size == sizeof(struct inventory_find) &&
	       h->hit_size == sizeof(struct inventory_hit) && h->hits <= MAX_INVENTORY_HITS &&
	       h->patterns <= MAX_INVENTORY_PATTERNS &&
	       h->pattern_bytes <= MAX_INVENTORY_PATTERN_BYTES && h->classes == PROTECT_CLASSES &&
	       h->places == PLACES && h->roles == ROLES && h->dirs > 0 &&
	       h->dirs <= MAX_INVENTORY_DIRS && h->finds <= MAX_INVENTORY_FINDS &&
	       h->tips <= MAX_INVENTORY_TIPS && h->inside <= MAX_INVENTORY_INSIDE &&
	       h->text <= MAX_INVENTORY_TEXT && want == n;
}

bool inventory_decode(const void *bytes, size_t n, struct inventory *ret)
{
	struct header h;
	const char *p = bytes;

	*ret = (struct inventory){.read = 0};
	if (n < sizeof(h))
		return false;
	memcpy(&h, p, sizeof(h));
	if (!fits(&h, n))
		return false;
	p += sizeof(h);
	*ret = (struct inventory){.dir_count = h.dirs,
				  .find_count = h.finds,
				  .hit_count = h.hits,
				  .pattern_count = h.patterns,
				  .pattern_bytes = h.pattern_bytes,
				  .tip_count = h.tips,
				  .inside_count = h.inside,
				  .text_count = h.text,
				  .full = h.full & 1u,
				  .inside_full = h.full & 2u,
				  .hits_full = h.full & 4u};
	ret->dirs = copy(&p, h.dirs, sizeof(*ret->dirs));
	ret->finds = copy(&p, h.finds, sizeof(*ret->finds));
	ret->hits = copy(&p, h.hits, sizeof(*ret->hits));
	ret->tips = copy(&p, h.tips, sizeof(*ret->tips));
	if (h.inside) {
		/* Room for all that it may hold: inventory_add_inside() counts on it. */
		ret->inside = malloc(MAX_INVENTORY_INSIDE * sizeof(*ret->inside));
		if (ret->inside)
			memcpy(ret->inside, p, h.inside * sizeof(*ret->inside));
		p += h.inside * sizeof(*ret->inside);
	}
	ret->text = copy(&p, h.text, 1);
	ret->patterns = copy(&p, h.pattern_bytes, 1);
	if (ret->dirs && ret->finds && ret->hits && ret->patterns && ret->tips && ret->text &&
	    (ret->inside || !h.inside) && check(ret))
		return true;
	inventory_release(ret);
	return false;
}

bool inventory_load(int dir, const char *file, struct inventory *ret)
{
	struct stat st;

	*ret = (struct inventory){.read = 0};
	AUTO_FD int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_size <= 0 || st.st_size > 1 << 30)
		return false;
	size_t size = (size_t)st.st_size;
	AUTO_FREE char *bytes = malloc(size);
	for (size_t at = 0; bytes && at < size;) {
		ssize_t n = RETRY_EINTR(read(fd, bytes + at, size - at));
		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return bytes && inventory_decode(bytes, size, ret);
}

static bool write_all(int fd, const char *p, size_t left)
{
	while (left) {
		ssize_t n = write(fd, p, left);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		left -= (size_t)n;
	}
	return true;
}

void inventory_save(int dir, const char *file, const struct inventory *inv)
{
	char temporary[256];
	struct header h = {.magic = INVENTORY_MAGIC,
			   .version = INVENTORY_VERSION,
			   .dir_size = sizeof(*inv->dirs),
			   .find_size = sizeof(*inv->finds),
			   .hit_size = sizeof(*inv->hits),
			   .classes = PROTECT_CLASSES,
			   .places = PLACES,
			   .roles = ROLES,
			   .dirs = inv->dir_count,
			   .finds = inv->find_count,
			   .hits = inv->hit_count,
			   .patterns = inv->pattern_count,
			   .pattern_bytes = inv->pattern_bytes,
			   .tips = inv->tip_count,
			   .inside = inv->inside_count,
			   .text = inv->text_count,
			   .full = inv->full | (inv->inside_full ? 2u : 0u) |
				   (inv->hits_full ? 4u : 0u)};
	struct iovec parts[] = {
		{&h, sizeof(h)},
		{inv->dirs, inv->dir_count * sizeof(*inv->dirs)},
		{inv->finds, inv->find_count * sizeof(*inv->finds)},
		{inv->hits, inv->hit_count * sizeof(*inv->hits)},
		{inv->tips, inv->tip_count * sizeof(*inv->tips)},
		{inv->inside, inv->inside_count * sizeof(*inv->inside)},
		{inv->text, inv->text_count},
		{inv->patterns, inv->pattern_bytes},
	};

	(void)snprintf(temporary, sizeof(temporary), "%s.%d", file, (int)getpid());
	int fd =
		openat(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	bool good = true;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		good = good && write_all(fd, parts[i].iov_base, parts[i].iov_len);
	good = close(fd) == 0 && good;
	if (!good || renameat(dir, temporary, dir, file) < 0)
		(void)unlinkat(dir, temporary, 0);
}
