/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is hidden in this call: what rules name, what patterns match, what usual
 * projects keep secrets in and git does not track, and what was masked before
 * and has another name by now. Opens files to look for keys in them; changes
 * nothing but the list of mounts.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/term.h"
#include "policy/gitid.h"
#include "policy/maskname.h"
#include "policy/pattern.h"
#include "run/guard_parts.h"

#define SHOWN 512
#define MAX_HELD 256u /* masked files that are held open, to see where they are at the end */

static int no_memory(struct err *e)
{
	return err_set(e, ERR_INTERNAL, "out of memory");
}

/* Directories that a sandbox may write: no link in them leads anywhere. */
static void writable_places(const struct guard *g, struct places *ret)
{
	ret->n = 0;
	if (g->src->given)
		(void)places_add(ret, &g->src->st);
	for (size_t i = 0; i < g->view->grant_count; i++)
		if (g->view->grants[i].write)
			(void)places_add(ret, &g->view->grants[i].st);
}

/* ANCHOR//REST of a pattern, with the anchor as it is on disk. */
static int anchor_pattern(struct guard *g, const char *text, char **ret, struct err *e)
{
	static struct pattern ignored; /* 9 KiB; only to see whether it is one */
	AUTO_BUF out = BUF_INIT(2 * PATH_TEXT);
	char front[PATH_TEXT];
	struct places writable;
	struct resolved r = {.path = ""};
	size_t n = pattern_split(text);

	if (strncmp(text, "**/", 3) != 0) {
		if (n >= sizeof(front))
			return err_set(e, ERR_CONFIG_INVALID, "pattern: too long");
		memcpy(front, n ? text : ".", n ? n : 1);
		front[n ? n : 1] = '\0';
		writable_places(g, &writable);
		if (resolve_path(front, g->who->cwd, &writable, &r, e) < 0)
			return err_wrap(e, "pattern");
	}
	if (pattern_init(&ignored, r.path, text + n, e) < 0)
		return -1;
	(void)buf_printf(&out, "%s//%s", r.path, text + n);
	*ret = buf_take(&out);
	return *ret ? 0 : err_set(e, ERR_CONFIG_INVALID, "pattern: too long");
}

/* What nothing may hide: then there would be nothing to work in. */
static int check_hidden(const struct guard *g, const struct resolved *r, struct err *e)
{
	char shown[SHOWN];

	if (strcmp(r->path, "/") != 0 && !(g->src->given && strcmp(r->path, g->src->path) == 0))
		return 0;
	(void)err_set(e, ERR_CONFIG_INVALID, "--hide %s: nothing would be left to work in",
		      term_escape_cut(shown, sizeof(shown), r->path, strlen(r->path)));
	return err_hint(e, "name what is to be hidden in it");
}

/* One thing that was asked for. */
struct asked {
	const char *text;
	const char *origin; /* of a file, NULL: an option */
	uint8_t layer;
	bool hide, narrow;
};

static int resolve_rule(struct guard *g, const struct asked *a, const char *text,
			struct mask_rule *rule, struct err *e)
{
	struct places writable;
	struct resolved r;

	if (rule->pattern) {
		if (g->masks.ask.patterns == MAX_INVENTORY_PATTERNS)
			return err_set(e, ERR_CONFIG_INVALID, "more than %u patterns",
				       MAX_INVENTORY_PATTERNS);
		if (anchor_pattern(g, text, &rule->text, e) < 0)
			return -1;
		g->masks.patterns[g->masks.ask.patterns++] = rule->text;
		return 0;
	}
	writable_places(g, &writable);
	if (resolve_path(text, a->origin ? NULL : g->who->cwd, &writable, &r, e) < 0 ||
	    check_hidden(g, &r, e) < 0)
		return -1;
	rule->is_dir = S_ISDIR(r.st.st_mode);
	rule->text = strdup(r.path);
	return rule->text ? 0 : no_memory(e);
}

static int add_rule(struct guard *g, const struct asked *a, struct err *e)
{
	struct mask_rule *rule = &g->masks.rules[g->masks.rule_count];
	char home[2 * PATH_TEXT];
	char front[2 * PATH_TEXT];
	const char *text = a->text;

	if (strncmp(text, "~/", 2) == 0 && g->who->home) {
		if ((size_t)snprintf(home, sizeof(home), "%s%s", g->who->home, text + 1) >=
		    sizeof(home))
			return err_set(e, ERR_CONFIG_INVALID, "path: too long");
		text = home;
	}
	/* All that is in a directory is the directory, however much it is. */
	size_t split = pattern_split(text);
	bool all = split > 1 && strspn(text + split, "*/") == strlen(text + split);
	if (a->hide && all && pattern_is(text)) {
		(void)snprintf(front, sizeof(front), "%.*s", (int)split, text);
		text = front;
	}
	*rule = (struct mask_rule){.hide = a->hide,
				   .narrow = a->narrow,
				   .layer = a->layer,
				   .pattern = pattern_is(text),
				   .told = strdup(a->text)};
	struct err why;
	int rc = rule->told ? resolve_rule(g, a, text, rule, &why) : no_memory(&why);
	bool absent = rc < 0 && (why.sys == ENOENT || why.sys == ENOTDIR || why.sys == EACCES);
	g->masks.rule_count += rc == 0;
	if (rc == 0)
		return 0;
	free(rule->told);
	free(rule->text);
	if (absent && a->origin) /* what a file names need not be there */
		return 0;
	*e = why;
	return err_wrap(e, "%s", a->origin ? a->origin : a->hide ? "--hide" : "--read");
}

int masks_begin(struct guard *g, const struct request *req, struct err *e)
{
	struct masks *m = &g->masks;

	m->ask.pattern = m->patterns;
	m->rules = calloc(req->hide.n + req->read.n + req->rule_count + 1, sizeof(*m->rules));
	if (!m->rules)
		return no_memory(e);
	for (size_t i = 0; i < req->hide.n + req->read.n; i++) {
		bool hide = i < req->hide.n;
		const char *text = hide ? req->hide.v[i] : req->read.v[i - req->hide.n];
		struct asked a = {.text = text, .layer = LAYER_OPTION, .hide = hide};
		if ((hide || pattern_is(text)) && add_rule(g, &a, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < req->rule_count; i++) {
		const struct path_rule *r = &req->rules[i];
		struct asked a = {r->path, r->origin, r->layer, r->access == ACCESS_HIDE,
				  r->narrow};
		if ((a.hide || (r->pattern && r->access == ACCESS_READ)) && add_rule(g, &a, e) < 0)
			return -1;
	}
	return 0;
}

bool masks_have_rules(const struct guard *g)
{
	return g->masks.rule_count > 0;
}

static void free_mask(struct mask *m)
{
	free(m->path);
	free(m->rule);
	if (m->fd >= 0)
		(void)close(m->fd);
}

static void clear_list(struct masks *m)
{
	for (size_t i = 0; i < m->n; i++)
		free_mask(&m->v[i]);
	m->n = 0;
	nameset_release(&m->at);
	for (size_t i = 0; i < m->known_count; i++)
		m->known[i].found = false;
}

void masks_release(struct guard *g)
{
	struct masks *m = &g->masks;

	clear_list(m);
	for (size_t i = 0; i < m->rule_count; i++) {
		free(m->rules[i].text);
		free(m->rules[i].told);
	}
	for (size_t i = 0; i < m->known_count; i++) {
		free(m->known[i].rule);
		free(m->known[i].path);
	}
	free(m->rules);
	free(m->known);
	free(m->inos);
	free(m->v);
	nameset_release(&m->inside);
	nameset_release(&m->held);
}

/*
 * A grant of the very path, of a layer at least; one of a directory above it does
 * not lift anything, nor does one of a file that can only narrow.
 */
static bool is_shown(const struct guard *g, const char *path, unsigned int layer)
{
	for (size_t i = 0; i < g->view->grant_count; i++) {
		const struct grant *gr = &g->view->grants[i];
		if (!gr->linked && !gr->narrow && gr->layer >= layer && strcmp(gr->path, path) == 0)
			return true;
	}
	return false;
}

/* A rule of an earlier call holds on only as long as somebody asks for it. */
static bool is_in_force(const struct guard *g, const char *rule)
{
	if (strcmp(rule, MASK_RULE_ENV) == 0 || strcmp(rule, MASK_RULE_SECRET) == 0)
		return true;
	for (size_t i = 0; i < g->masks.rule_count; i++) {
		const struct mask_rule *r = &g->masks.rules[i];
		const char *kind = r->pattern ? MASK_RULE_PATTERN : MASK_RULE_HIDE;
		if (r->hide && strncmp(rule, kind, strlen(kind)) == 0 &&
		    strcmp(rule + strlen(kind), r->text) == 0)
			return true;
	}
	return false;
}

/* Once for each path; what comes first counts. NULL: it is there, or no memory (*ret_good). */
static struct mask *add_mask(struct guard *g, const char *path, const char *kind, const char *rest,
			     bool *ret_good)
{
	struct masks *m = &g->masks;
	AUTO_BUF rule = BUF_INIT(4 * PATH_TEXT);

	*ret_good = true;
	if (nameset_get(&m->at, path, NULL))
		return NULL;
	*ret_good = false;
	if (m->n == m->cap) {
		size_t cap = m->cap ? m->cap * 2 : 16;
		struct mask *more = realloc(m->v, cap * sizeof(*more));
		if (!more)
			return NULL;
		m->v = more;
		m->cap = cap;
	}
	(void)buf_printf(&rule, "%s%s", kind, rest);
	struct mask *new = &m->v[m->n];
	*new = (struct mask){.path = strdup(path), .rule = buf_take(&rule), .fd = -1};
	if (!new->path || !new->rule || !nameset_put(&m->at, path, (uint32_t)m->n)) {
		free_mask(new);
		return NULL;
	}
	m->n++;
	*ret_good = true;
	return new;
}

/* Fills in which file it is. False: it is gone. */
static bool identify(struct mask *m, struct stat *ret)
{
	if (!masked_identity(AT_FDCWD, m->path, ret, &m->born_ns))
		return false;
	m->dev = ret->st_dev;
	m->ino = ret->st_ino;
	m->dir = S_ISDIR(ret->st_mode);
	return true;
}

static bool add_literals(struct guard *g)
{
	bool good = true;

	for (size_t i = 0; i < g->masks.rule_count && good; i++) {
		const struct mask_rule *r = &g->masks.rules[i];
		struct stat st;
		if (!r->hide || r->pattern || is_shown(g, r->text, r->layer + 1u))
			continue; /* for the same path the higher layer counts */
		struct mask *m = add_mask(g, r->text, MASK_RULE_HIDE, r->text, &good);
		if (!m)
			continue;
		m->asked = true;
		m->dir = r->is_dir;
		(void)identify(m, &st);
	}
	return good;
}

/* The hits of one root, with what their bits mean there. */
struct sorting {
	struct guard *g;
	struct guard_root *r;
	uint64_t *bits;       /* of each rule */
	struct nameset check; /* default masks: absolute path → whether git tracks it */
	bool good;
};

static const struct mask_rule *rule_of(const struct sorting *s, uint64_t bits, bool hide)
{
	const struct mask_rule *best = NULL;

	for (size_t i = 0; i < s->g->masks.rule_count; i++) {
		const struct mask_rule *r = &s->g->masks.rules[i];
		if ((s->bits[i] & bits) && r->hide == hide && !(r->narrow && !hide) &&
		    (!best || r->layer > best->layer))
			best = r;
	}
	return best;
}

static void take_known(struct sorting *s, const char *path, struct mask_known *k)
{
	struct guard *g = s->g;
	struct stat st;

	if (!k || !is_in_force(g, k->rule) || is_shown(g, path, LAYER_BUILT_IN) ||
	    is_shown(g, k->path, LAYER_BUILT_IN))
		return;
	k->found = true;
	struct mask *m = add_mask(g, path, k->rule, "", &s->good);
	if (!m)
		return;
	m->empty = strcmp(k->rule, MASK_RULE_ENV) == 0;
	m->hint = m->empty || strcmp(k->rule, MASK_RULE_SECRET) == 0;
	m->asked = !m->hint;
	(void)identify(m, &st);
	if (m->dir)
		m->empty = false;
	/* What git has been told to track by a person is tracked, wherever it is. */
	if (m->hint && s->r && s->r->alone && !s->r->killed)
		s->good &= nameset_put(&s->check, path, 0);
}

static bool is_secret(const char *path)
{
	char text[MASK_SNIFF_BYTES];
	struct stat st;

	AUTO_FD int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	ssize_t n = RETRY_EINTR(pread(fd, text, sizeof(text), 0));
	return n > 0 && mask_sniff(text, (size_t)n);
}

static void take_hit(struct sorting *s, const struct inventory_hit *h, const char *path)
{
	struct guard *g = s->g;
	const struct mask_rule *rule = rule_of(s, h->bits, true);
	int64_t born = 0;
	struct stat st;

	const struct mask_rule *shown = rule_of(s, h->bits, false);

	if (is_shown(g, path, rule ? rule->layer : LAYER_BUILT_IN) ||
	    (shown && (!rule || shown->layer > rule->layer)))
		return;
	if (rule) {
		struct mask *m = add_mask(g, path, MASK_RULE_PATTERN, rule->text, &s->good);
		if (!m)
			return;
		m->asked = true;
		m->dir = h->type == DT_DIR;
		(void)identify(m, &st);
		return;
	}
	if ((h->bits & INVENTORY_WANTED) && masked_identity(AT_FDCWD, path, &st, &born)) {
		struct mask_known *k = masked_find(g, st.st_dev, st.st_ino, born);
		if (k)
			take_known(s, path, k);
	}
	uint64_t bits = h->bits & (INVENTORY_DOTENV | INVENTORY_SECRET | INVENTORY_SNIFF);
	if (!bits || ((h->bits & INVENTORY_SNIFF) && !is_secret(path)))
		return;
	bool env = h->bits & INVENTORY_DOTENV;
	struct mask *m = add_mask(g, path, env ? MASK_RULE_ENV : MASK_RULE_SECRET, "", &s->good);
	if (!m)
		return;
	m->empty = env;
	m->hint = true;
	(void)identify(m, &st);
	s->good &= nameset_put(&s->check, path, 0);
}

static void take_root(struct sorting *s)
{
	const struct inventory *inv = &s->r->before;
	AUTO_BUF path = BUF_INIT(64u << 20);

	for (size_t i = 0; i < s->g->masks.rule_count; i++)
		s->bits[i] = s->g->masks.rules[i].pattern
				     ? inventory_pattern(inv, s->g->masks.rules[i].text)
				     : 0;
	for (uint32_t i = 0; i < inv->hit_count && s->good; i++) {
		guard_put_dir(s->r, inv, inv->hits[i].dir, &path);
		(void)buf_printf(&path, "/%s", inv->text + inv->hits[i].name);
		if (!path.failed && path.n < MAX_PLAN_PATH)
			take_hit(s, &inv->hits[i], buf_cstr(&path));
		else
			guard_lose(s->g, "masks-of-long-paths");
	}
}

/* Where no scan goes (below node_modules), a file is where it was when the last call ended. */
static void take_forgotten(struct sorting *s)
{
	struct masks *m = &s->g->masks;

	for (size_t i = 0; i < m->known_count; i++) {
		struct mask_known *k = &m->known[i];
		int64_t born = 0;
		struct stat st;
		if (k->found || nameset_get(&m->at, k->path, NULL))
			continue;
		s->r = guard_root_of(s->g, k->path);
		if (s->r && masked_identity(AT_FDCWD, k->path, &st, &born) &&
		    masked_find(s->g, st.st_dev, st.st_ino, born) == k)
			take_known(s, k->path, k);
	}
}

static bool is_visible(const struct guard *g, const char *path)
{
	if (view_covers(g->view, path))
		return true;
	for (size_t i = 0; i < g->view->n; i++)
		if (strcmp(g->view->mounts[i].dst, path) == 0)
			return true;
	return false;
}

/* What a masked link leads to is masked too. */
static void take_target(struct sorting *s, const struct mask *link)
{
	static const struct places nowhere;
	struct resolved r;
	struct err ignored = {0};
	char *rule = strdup(link->rule);
	bool empty = link->empty;
	bool hint = link->hint;
	bool asked = link->asked;

	if (!rule || resolve_path(link->path, NULL, &nowhere, &r, &ignored) < 0 ||
	    (hint && !guard_root_of(s->g, r.path)) || /* the system's, or granted as it is */
	    !is_visible(s->g, r.path) || is_shown(s->g, r.path, LAYER_BUILT_IN) ||
	    !(S_ISREG(r.st.st_mode) || (asked && S_ISDIR(r.st.st_mode)))) {
		free(rule);
		return;
	}
	struct mask *m = add_mask(s->g, r.path, rule, "", &s->good);
	free(rule);
	if (!m)
		return;
	m->empty = empty && !S_ISDIR(r.st.st_mode);
	m->hint = hint;
	m->asked = asked;
	(void)identify(m, &r.st);
	if (hint)
		s->good &= nameset_put(&s->check, r.path, 0);
}

static void take_targets(struct sorting *s)
{
	struct stat st;

	for (size_t i = 0; i < s->g->masks.n && s->good; i++)
		if (lstat(s->g->masks.v[i].path, &st) == 0 && S_ISLNK(st.st_mode))
			take_target(s, &s->g->masks.v[i]);
}

/* What git tracks is no secret by default. */
static void drop_tracked(struct sorting *s)
{
	struct masks *m = &s->g->masks;
	uint32_t tracked = 0;
	size_t n = 0;

	struct nameset known = {.n = 0}; /* that were masked in an earlier call */

	if (!s->check.n)
		return;
	for (size_t i = 0; i < m->n; i++)
		if (masked_find(s->g, m->v[i].dev, m->v[i].ino, m->v[i].born_ns))
			s->good &= nameset_put(&known, m->v[i].path, 1);
	masked_tracked(s->g, &s->check, &known);
	nameset_release(&known);
	nameset_release(&m->at);
	for (size_t i = 0; i < m->n; i++) {
		tracked = 0;
		(void)nameset_get(&s->check, m->v[i].path, &tracked);
		if (tracked) {
			free_mask(&m->v[i]);
			continue;
		}
		s->good &= nameset_put(&m->at, m->v[i].path, (uint32_t)n);
		m->v[n++] = m->v[i];
	}
	m->n = n;
}

static bool decide(struct guard *g)
{
	struct sorting s = {.g = g, .good = true};

	clear_list(&g->masks);
	s.bits = calloc(g->masks.rule_count + 1, sizeof(*s.bits));
	s.good = s.bits && add_literals(g);
	for (size_t i = 0; i < g->root_count && s.good; i++) {
		s.r = &g->roots[i];
		take_root(&s);
	}
	take_forgotten(&s);
	take_targets(&s);
	drop_tracked(&s);
	nameset_release(&s.check);
	free(s.bits);
	return s.good;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * A file with several names that was not masked before: its other names may be
 * anywhere, so that everything has to be looked at once.
 */
static bool need_names(struct guard *g)
{
	struct masks *m = &g->masks;
	struct stat st;
	bool need = false;

	for (size_t i = 0; i < m->n; i++) {
		const struct mask *k = &m->v[i];
		if (k->dir || lstat(k->path, &st) < 0 || st.st_nlink < 2 || S_ISDIR(st.st_mode) ||
		    masked_find(g, k->dev, k->ino, k->born_ns))
			continue;
		masked_remember(g, k);
		uint64_t *more = realloc(m->inos, (m->ask.inos + 1) * sizeof(*more));
		if (!more)
			continue;
		more[m->ask.inos++] = st.st_ino;
		m->inos = more;
		need = true;
	}
	if (need)
		qsort(m->inos, m->ask.inos, sizeof(*m->inos), by_number);
	m->ask.ino = m->inos;
	return need;
}

/* Names of a masked file that lie where nobody looked: if they are granted, they show it. */
static void count_names(struct guard *g)
{
	struct masks *m = &g->masks;
	struct stat st;

	for (size_t i = 0; i < m->n; i++) {
		nlink_t names = 0;
		if (m->v[i].dir || lstat(m->v[i].path, &st) < 0 || st.st_nlink < 2)
			continue;
		for (size_t k = 0; k < m->n; k++)
			names += m->v[k].dev == st.st_dev && m->v[k].ino == st.st_ino;
		if (names < st.st_nlink)
			guard_lose(g, "masks-of-hard-links");
	}
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct mask *)a)->path, ((const struct mask *)b)->path);
}

/* The directory that holds all that a rule matches. */
static void common_dir(const struct masks *m, const char *rule, char ret[PATH_TEXT])
{
	ret[0] = '\0';
	for (size_t i = 0; i < m->n; i++) {
		const char *path = m->v[i].path;
		if (strcmp(m->v[i].rule, rule) != 0)
			continue;
		if (!ret[0])
			(void)snprintf(ret, PATH_TEXT, "%s", path);
		size_t n = 0;
		size_t slash = 0;
		for (; ret[n] && ret[n] == path[n]; n++)
			slash = ret[n] == '/' ? n : slash;
		ret[slash] = '\0';
	}
}

static int too_many(const struct guard *g, struct err *e)
{
	const struct masks *m = &g->masks;
	const char *worst = m->v[0].rule; /* there are too many: there is a first */
	char dir[PATH_TEXT];
	char shown[SHOWN];
	size_t most = 0;

	for (size_t i = 0; i < m->n; i++) {
		size_t n = 0;
		for (size_t k = i; k < m->n; k++)
			n += strcmp(m->v[i].rule, m->v[k].rule) == 0;
		if (n > most) {
			most = n;
			worst = m->v[i].rule;
		}
		if (n > m->n / 2)
			break;
	}
	common_dir(m, worst, dir);
	const char *what = strstr(worst, "//");
	for (size_t i = 0; what && i < m->rule_count; i++)
		if (strcmp(m->rules[i].text, worst + strlen(MASK_RULE_PATTERN)) == 0)
			what = m->rules[i].told;
	if (!what)
		what = "what is masked by default";
	(void)err_set(e, ERR_CONFIG_INVALID,
		      "pattern too broad: %s matches %zu paths, at most %u "
		      "can be masked",
		      term_escape_cut(shown, sizeof(shown), what, strlen(what)), most, MAX_MASKS);
	return err_hint(e, "hide the directory as a whole: --hide %s",
			term_escape_cut(shown, sizeof(shown), dir, strlen(dir)));
}

/* The place of the source or of a grant strictly below a directory, that holds a path. */
static bool is_let_in(const struct guard *g, const char *dir, const char *path)
{
	size_t n = strlen(dir);

	if (g->src->given && strlen(g->src->path) > n && path_is_below(dir, g->src->path) &&
	    (!path || path_is_below(g->src->path, path)))
		return true;
	for (size_t i = 0; i < g->view->grant_count; i++) {
		const char *grant = g->view->grants[i].path;
		if (!g->view->grants[i].narrow && strlen(grant) > n && path_is_below(dir, grant) &&
		    (!path || path_is_below(grant, path)))
			return true;
	}
	return false;
}

/* What is granted below a hidden directory lies over its cover. */
static int let_in(struct guard *g, const char *dir, uint32_t write, struct err *e)
{
	size_t n = strlen(dir);

	if (g->src->given && strlen(g->src->path) > n && path_is_below(dir, g->src->path) &&
	    view_bind(g->view, g->src->path, NULL, write | g->idmap, &g->src->st, e) < 0)
		return -1;
	for (size_t i = 0; i < g->view->grant_count; i++) {
		const struct grant *gr = &g->view->grants[i];
		if (!gr->narrow && strlen(gr->path) > n && path_is_below(dir, gr->path) &&
		    view_bind(g->view, gr->path, NULL, (gr->write ? MOUNT_WRITE : 0u) | g->idmap,
			      &gr->st, e) < 0)
			return -1;
	}
	return 0;
}

static int put(struct guard *g, struct mask *m, struct err *e)
{
	bool way = m->dir && is_let_in(g, m->path, NULL);
	uint32_t flags = m->empty ? MOUNT_EMPTY : 0u;

	if (view_mask(g->view, m->path, flags | (way ? (uint32_t)MOUNT_WAY : 0), e) < 0)
		return -1;
	m->mount = (uint32_t)g->view->n - 1;
	return way ? let_in(g, m->path, g->read_only ? 0 : MOUNT_WRITE, e) : 0;
}

/* In order of their paths, so that a directory comes before what lies in it and is left out. */
static int put_all(struct guard *g, struct err *e)
{
	struct masks *m = &g->masks;
	const char *dir = NULL;
	size_t n = 0;

	if (m->n)
		qsort(m->v, m->n, sizeof(*m->v), by_path);
	nameset_release(&m->at);
	for (size_t i = 0; i < m->n; i++) {
		bool in =
			dir && path_is_below(dir, m->v[i].path) && !is_let_in(g, dir, m->v[i].path);
		if (in || !is_visible(g, m->v[i].path)) {
			free_mask(&m->v[i]);
			continue;
		}
		m->v[n] = m->v[i];
		dir = m->v[n].dir ? m->v[n].path : dir;
		n++;
	}
	m->n = n;
	if (n > MAX_MASKS)
		return too_many(g, e);
	for (size_t i = 0; i < n; i++) {
		if (put(g, &m->v[i], e) < 0)
			return -1;
		if (!nameset_put(&m->at, m->v[i].path, (uint32_t)i))
			return no_memory(e);
		masked_remember(g, &m->v[i]);
		if (i < MAX_HELD && guard_root_of(g, m->v[i].path))
			m->v[i].fd = open(m->v[i].path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	}
	return 0;
}

uint64_t masks_read_bits(const struct guard *g, const struct inventory *inv)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < g->masks.rule_count; i++)
		if (!g->masks.rules[i].hide)
			bits |= inventory_pattern(inv, g->masks.rules[i].text);
	return bits;
}

/* The work tree that a path is in, the innermost; NULL: none that is known. */
static const char *work_of(const struct guard *g, const char *path)
{
	const char *found = NULL;

	for (size_t i = 0; i < g->repo_count; i++) {
		const char *work = g->repos[i].work;
		if (work[0] && path_is_below(work, path) && strcmp(work, path) != 0 &&
		    (!found || strlen(work) > strlen(found)))
			found = work;
	}
	return found;
}

/* `git add -A` inside takes no cover for a file: it would be committed in the file's place. */
static int tell_git(const struct guard *g, struct err *e)
{
	AUTO_BUF text = BUF_INIT(MAX_PLAN_FILE);

	for (size_t i = 0; i < g->masks.n; i++) {
		const char *path = g->masks.v[i].path;
		const char *work = work_of(g, path);
		/* Each character may take two; what finds no room is not worth a call that fails. */
		if (work && text.n + 2 * strlen(path) + 2 < MAX_PLAN_FILE)
			gitid_put_ignored(path + strlen(work) + 1, &text);
	}
	return text.n ? gitid_ignore(g->view, &text, e) : 0;
}

int masks_add(struct guard *g, struct err *e)
{
	if (!decide(g))
		return no_memory(e);
	if (g->masks.n && need_names(g)) {
		g->masks.ask.all = true;
		int rc = guard_scan_again(g, e);
		g->masks.ask.all = false;
		if (rc < 0)
			return -1;
		if (!decide(g))
			return no_memory(e);
	}
	if (!g->masks.n)
		return 0;
	if (put_all(g, e) < 0)
		return -1;
	count_names(g);
	return tell_git(g, e);
}

bool guard_masked(const struct guard *g, size_t i, struct guard_mask *ret)
{
	if (i >= g->masks.n)
		return false;
	const struct mask *m = &g->masks.v[i];
	*ret = (struct guard_mask){guard_shown(g, m->path), m->empty, m->asked};
	return true;
}

void guard_put_rules(const struct guard *g, struct buf *out)
{
	for (size_t i = 0; i < g->masks.rule_count; i++) {
		const struct mask_rule *r = &g->masks.rules[i];
		(void)buf_printf(out, "%s %s\n", r->hide ? "hide" : "read", r->text);
	}
}

void guard_hint_masks(struct guard *g)
{
	AUTO_BUF hint = BUF_INIT(16384);
	const struct mask *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < g->masks.n; i++) {
		const struct mask *m = &g->masks.v[i];
		first = m->hint && !first ? m : first;
		n += m->hint;
	}
	if (!first)
		return;
	(void)buf_printf(&hint, "%s %s inside, since it may hold secrets and git does not track it",
			 guard_shown(g, first->path),
			 first->empty ? "reads as empty" : "is unreadable");
	if (n > 1)
		(void)buf_printf(&hint, " (and %zu more like it)", n - 1);
	(void)buf_printf(&hint, "; if the command needs it: --read %s",
			 guard_as_option(g, first->path));
	guard_deny(g, first->path, buf_cstr(&hint), (unsigned int)n);
	if (g->denial_count) {
		g->denials[g->denial_count - 1].op = "read";
		g->denials[g->denial_count - 1].rule = "mask";
	}
}
