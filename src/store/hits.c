/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An inventory remembers the patterns of earlier calls too: then calls with
 * different ones take turns without reading everything anew each time.
 */
#include "store/hits.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include "base/base.h"
#include "policy/maskname.h"

#define GET_FLAGS _IOR('f', 1, long) /* FS_IOC_GETFLAGS, ioctl_iflags(2) */
#define FLAG_CASEFOLD 0x40000000     /* FS_CASEFOLD_FL */

static bool is_folded(int fd)
{
	static const unsigned long types[] = {
		0x4d44,     /* vfat */
		0x2011bab0, /* exfat */
		0x5346544e, /* ntfs */
		0x7366746e, /* ntfs3 */
		0xff534d42, /* cifs */
		0xfe534d42, /* smb2 */
	};
	struct statfs fs;
	int flags = 0;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if ((unsigned long)fs.f_type == types[i])
			return true;
	return ioctl(fd, (int)GET_FLAGS, &flags) == 0 && (flags & FLAG_CASEFOLD);
}

/* ANCHOR//REST, of which the anchor may be empty. */
static int init_one(struct hits_pattern *h, const char *text, const char *root, struct err *e)
{
	const char *rest = strstr(text, "//");
	char anchor[PATH_TEXT];

	if (!rest || (size_t)(rest - text) >= sizeof(anchor))
		return err_set(e, ERR_INTERNAL, "a pattern without an anchor");
	memcpy(anchor, text, (size_t)(rest - text));
	anchor[rest - text] = '\0';
	if (pattern_init(&h->p, anchor, rest + 2, e) < 0)
		return -1;
	const char *at = h->p.anchor;
	h->below = "";
	h->front[0] = '\0';
	if (!at[0] || strcmp(at, root) == 0)
		return 0;
	size_t root_len = strcmp(root, "/") == 0 ? 0 : strlen(root);
	size_t len = strcmp(at, "/") == 0 ? 0 : strlen(at);
	if (path_is_below(root, at))
		h->below = at + root_len + 1;
	else if (path_is_below(at, root))
		memcpy(h->front, root + len + 1, strlen(root + len + 1) + 1);
	else
		h->elsewhere = true;
	return 0;
}

int hits_init(struct hits *h, const struct inventory_root *root, const struct inventory *inv,
	      struct err *e)
{
	const struct inventory_ask *ask = root->ask;

	*h = (struct hits){.fold = is_folded(root->fd),
			   .ino = ask ? ask->ino : NULL,
			   .inos = ask ? ask->inos : 0,
			   .scratch = BUF_INIT(64u << 20)};
	h->v = inv->pattern_count ? calloc(inv->pattern_count, sizeof(*h->v)) : NULL;
	if (inv->pattern_count && !h->v)
		return err_set(e, ERR_INTERNAL, "out of memory");
	const char *text = inv->patterns;
	for (; h->n < inv->pattern_count; h->n++) {
		if (init_one(&h->v[h->n], text, root->path ? root->path : "/", e) < 0)
			return -1;
		text += strlen(text) + 1;
	}
	return 0;
}

void hits_release(struct hits *h)
{
	free(h->v);
	buf_release(&h->scratch);
}

static bool is_quiet(uint8_t place)
{
	return place == PLACE_QUIET || place == PLACE_GIT || place == PLACE_NAMED;
}

static bool is_match(struct hits *h, const struct hits_pattern *p, const struct hits_name *n)
{
	const char *dir = n->dir;
	size_t below = strlen(p->below);

	if (p->elsewhere || (is_quiet(n->place) && !p->p.quiet) || (p->p.tree && n->type != DT_DIR))
		return false;
	if (below) {
		if (strncmp(dir, p->below, below) != 0 || (dir[below] && dir[below] != '/'))
			return false;
		dir += below + (dir[below] == '/');
	}
	if (p->front[0]) {
		buf_clear(&h->scratch);
		if (buf_str(&h->scratch, p->front) < 0 ||
		    (dir[0] && (buf_char(&h->scratch, '/') < 0 || buf_str(&h->scratch, dir) < 0)))
			return true; /* too long to say: hidden */
		dir = buf_cstr(&h->scratch);
	}
	return pattern_match(&p->p, dir, n->name, h->fold);
}

static bool is_wanted(const struct hits *h, uint64_t ino)
{
	size_t from = 0;
	size_t to = h->inos;

	while (from < to) {
		size_t mid = from + (to - from) / 2;
		if (h->ino[mid] == ino)
			return true;
		if (h->ino[mid] < ino)
			from = mid + 1;
		else
			to = mid;
	}
	return false;
}

uint64_t hits_bits(struct hits *h, const struct hits_name *n)
{
	static const uint64_t named[] = {[MASK_NAME_NONE] = 0,
					 [MASK_NAME_DOTENV] = INVENTORY_DOTENV,
					 [MASK_NAME_SECRET] = INVENTORY_SECRET,
					 [MASK_NAME_SNIFF] = INVENTORY_SNIFF};
	uint64_t bits = is_wanted(h, n->ino) ? INVENTORY_WANTED : 0;

	if (!is_quiet(n->place) && (n->type == DT_REG || n->type == DT_LNK))
		bits |= named[mask_name(n->own, n->name)];
	for (uint32_t i = 0; i < h->n; i++)
		if (is_match(h, &h->v[i], n))
			bits |= INVENTORY_PATTERN(i);
	return bits;
}

bool hits_enter(const struct hits *h, const char *name)
{
	if (!protect_is_quiet(name))
		return false;
	for (uint32_t i = 0; i < h->n; i++)
		if (!h->v[i].elsewhere && h->v[i].p.quiet &&
		    (pattern_names(&h->v[i].p, name) || h->v[i].below[0]))
			return true;
	return false;
}

static const char *find(const struct inventory *inv, const char *text, uint32_t *ret)
{
	const char *at = inv->patterns;

	for (uint32_t i = 0; i < inv->pattern_count; i++, at += strlen(at) + 1)
		if (strcmp(at, text) == 0) {
			*ret = i;
			return at;
		}
	return NULL;
}

uint64_t inventory_pattern(const struct inventory *inv, const char *text)
{
	uint32_t i = 0;

	return find(inv, text, &i) ? INVENTORY_PATTERN(i) : 0;
}

bool hits_have(const struct inventory *old, const struct inventory_ask *ask)
{
	uint32_t k = 0;

	for (uint32_t i = 0; ask && i < ask->patterns; i++)
		if (!find(old, ask->pattern[i], &k))
			return false;
	return !old->hits_full;
}

static bool add(struct inventory *inv, const char *text)
{
	size_t n = strlen(text) + 1;
	uint32_t k = 0;

	if (find(inv, text, &k))
		return true;
	char *more = realloc(inv->patterns, inv->pattern_bytes + n);
	if (!more)
		return false;
	inv->patterns = more;
	memcpy(more + inv->pattern_bytes, text, n);
	inv->pattern_bytes += (uint32_t)n;
	inv->pattern_count++;
	return true;
}

bool hits_merge(struct inventory *inv, const struct inventory *old, const struct inventory_ask *ask)
{
	uint32_t asked = ask ? ask->patterns : 0;
	size_t bytes = old ? old->pattern_bytes : 0;
	const char *at = old ? old->patterns : NULL;

	for (uint32_t i = 0; i < asked; i++)
		bytes += strlen(ask->pattern[i]) + 1;
	/* Too many by now, or too many hits: those of earlier calls are forgotten. */
	bool keep = old && !old->hits_full && bytes <= MAX_INVENTORY_PATTERN_BYTES &&
		    (old->pattern_count + asked <= MAX_INVENTORY_PATTERNS || hits_have(old, ask));
	for (uint32_t i = 0; keep && i < old->pattern_count; i++, at += strlen(at) + 1)
		if (!add(inv, at))
			return false;
	for (uint32_t i = 0; i < asked; i++)
		if (!add(inv, ask->pattern[i]))
			return false;
	return true;
}
