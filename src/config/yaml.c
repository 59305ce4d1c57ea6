/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the tree from libfyaml's events. What the library lets pass and we do
 * not want is refused here: bytes that are not UTF-8 or not to be seen, aliases,
 * tags, keys that are no words, keys twice.
 */
#include "config/yaml.h"

#include <libfyaml.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

struct build {
	struct arena *arena;
	const char *file;
	struct findings *findings;
	struct node *stack[MAX_YAML_DEPTH];
	const struct node *key[MAX_YAML_DEPTH]; /* of a map: the key whose value is due */
	size_t depth;
	struct node *root;
	size_t nodes;
	bool wrong;
};

static void complain(struct build *b, struct position at, const char *key, const struct err *why)
{
	findings_add(b->findings, false, b->file, at, key, why);
	b->wrong = true;
}

static void say(struct build *b, struct position at, const char *what, const char *hint)
{
	struct err e = {0};

	(void)err_set(&e, ERR_CONFIG_INVALID, "%s", what);
	if (hint)
		(void)err_hint(&e, "%s", hint);
	complain(b, at, "", &e);
}

/* Before the library sees it. */
static bool check_text(struct build *b, const char *p, size_t n)
{
	struct position at = {1, 1};

	for (size_t i = 0; i < n;) {
		uint32_t cp = 0;
		char what[64];
		size_t used = utf8_decode(p + i, n - i, &cp);
		if (!used) {
			(void)snprintf(what, sizeof(what), "byte 0x%02x is not UTF-8",
				       (unsigned char)p[i]);
			say(b, at, what, "save the file as UTF-8");
			return false;
		}
		bool mark = cp == 0xfeff && i == 0; /* a byte order mark is harmless at the start */
		if (cp != '\n' && cp != '\r' && cp != '\t' && !mark && utf8_is_unsafe(cp)) {
			(void)snprintf(what, sizeof(what), "character U+%04X cannot be seen",
				       (unsigned int)cp);
			say(b, at, what, "a policy holds nothing that its reader does not see");
			return false;
		}
		i += used;
		at.column += mark ? 0 : 1;
		if (cp == '\n')
			at = (struct position){at.line + 1, 1};
	}
	return true;
}

static struct position position_of(const struct fy_mark *m)
{
	if (!m || m->line < 0 || m->column < 0)
		return (struct position){1, 1};
	return (struct position){(unsigned int)m->line + 1, (unsigned int)m->column + 1};
}

static bool has_key(struct build *b, const struct node *map, const struct node *key)
{
	for (const struct node *n = map->first; n; n = n->next)
		if (n->key->len == key->len && memcmp(n->key->text, key->text, key->len) == 0) {
			struct err e = {0};
			(void)err_set(&e, ERR_CONFIG_INVALID, "this key is here twice");
			(void)err_hint(&e, "the first one is in line %u", n->key->at.line);
			complain(b, key->at, key->text, &e);
			return true;
		}
	return false;
}

/* Puts a complete or beginning node where it belongs; false if it cannot stand there. */
static bool place(struct build *b, struct node *n)
{
	if (!b->depth) {
		b->root = n;
		return true;
	}
	struct node *in = b->stack[b->depth - 1];
	const struct node **key = &b->key[b->depth - 1];
	if (in->kind == NODE_MAP && !*key) {
		if (n->kind != NODE_SCALAR || !n->len) {
			say(b, n->at, "a key must be a word", NULL);
			return false;
		}
		*key = n;
		return !has_key(b, in, n);
	}
	n->key = in->kind == NODE_MAP ? *key : NULL;
	*key = NULL;
	if (in->last)
		in->last->next = n;
	else
		in->first = n;
	in->last = n;
	in->count++;
	return true;
}

static struct node *make(struct build *b, enum node_kind kind, struct position at)
{
	struct err e = {0};
	struct node *n = ++b->nodes > MAX_YAML_NODES ? NULL : arena_take(b->arena, sizeof(*n), &e);

	if (!n) {
		say(b, at, "too many entries in one file", NULL);
		return NULL;
	}
	n->kind = kind;
	n->at = at;
	return n;
}

static bool begin(struct build *b, enum node_kind kind, struct position at)
{
	struct node *n = make(b, kind, at);

	if (!n)
		return false;
	if (b->depth == MAX_YAML_DEPTH) {
		say(b, at, "nested too deeply", NULL);
		return false;
	}
	if (!place(b, n))
		return false;
	b->stack[b->depth] = n;
	b->key[b->depth++] = NULL;
	return true;
}

static bool scalar(struct build *b, const struct fy_event *ev, struct position at)
{
	struct node *n = make(b, NODE_SCALAR, at);
	struct err e = {0};
	struct fy_token *t = fy_event_get_token((struct fy_event *)(uintptr_t)ev);
	size_t len = 0;
	const char *text = t ? fy_token_get_text(t, &len) : "";

	if (!n)
		return false;
	n->text = arena_text(b->arena, text ? text : "", text ? len : 0, &e);
	n->len = text ? len : 0;
	enum fy_scalar_style style = t ? fy_token_scalar_style(t) : FYSS_PLAIN;
	n->plain = style == FYSS_PLAIN;
	/* The library points behind the quote. What is not there stands at its key. */
	if ((style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED) && n->at.column > 1)
		n->at.column--;
	if (n->plain && !n->len && b->depth && b->key[b->depth - 1])
		n->at = b->key[b->depth - 1]->at;
	if (!n->text || memchr(n->text, 0, n->len) || !utf8_valid(n->text, n->len)) {
		say(b, at, "a text with a NUL, or not UTF-8", NULL);
		return false;
	}
	return place(b, n);
}

/* Aliases make a small file a large one, tags make it do things: neither is a policy. */
static bool is_bare(struct build *b, const void *anchor, const void *tag, struct position at)
{
	if (anchor)
		say(b, at, "anchors (&name) are not used here", "write the value again");
	else if (tag)
		say(b, at, "tags (!name) are not used here", "leave the tag out");
	return !anchor && !tag;
}

static bool take(struct build *b, const struct fy_event *ev, unsigned int *documents)
{
	struct position at = position_of(fy_event_start_mark((struct fy_event *)(uintptr_t)ev));

	switch (ev->type) {
	case FYET_DOCUMENT_START:
		if (++*documents > 1)
			say(b, at, "a second document",
			    "a policy is one document: no `---` within it");
		return *documents == 1;
	case FYET_MAPPING_START:
		return is_bare(b, ev->mapping_start.anchor, ev->mapping_start.tag, at) &&
		       begin(b, NODE_MAP, at);
	case FYET_SEQUENCE_START:
		return is_bare(b, ev->sequence_start.anchor, ev->sequence_start.tag, at) &&
		       begin(b, NODE_LIST, at);
	case FYET_MAPPING_END:
	case FYET_SEQUENCE_END:
		b->depth--;
		return true;
	case FYET_SCALAR:
		return is_bare(b, ev->scalar.anchor, ev->scalar.tag, at) && scalar(b, ev, at);
	case FYET_ALIAS:
		at.column -= at.column > 1; /* the library points behind the sign */
		say(b, at, "aliases (*name) are not used here", "write the value again");
		return false;
	case FYET_NONE:
	case FYET_STREAM_START:
	case FYET_STREAM_END:
	case FYET_DOCUMENT_END:
		return true;
	}
	return false;
}

/* What the library has to say, in its words: they are about YAML and good. */
static void parser_errors(struct build *b, struct fy_diag *diag)
{
	void *at = NULL;
	struct fy_diag_error *one = NULL;
	bool any = false;

	while ((one = fy_diag_errors_iterate(diag, &at)) != NULL) {
		struct position p = {one->line > 0 ? (unsigned int)one->line : 1,
				     one->column > 0 ? (unsigned int)one->column : 1};
		bool tab = one->msg && strstr(one->msg, "tab");
		say(b, p, one->msg ? one->msg : "not YAML", tab ? "indent with spaces" : NULL);
		any = true;
	}
	if (!any)
		say(b, (struct position){1, 1}, "not YAML", NULL);
}

static void parse(struct build *b, struct fy_parser *p, struct fy_diag *diag)
{
	unsigned int documents = 0;
	bool good = true;
	bool over = false;

	while (good && !over) {
		struct fy_event *ev = fy_parser_parse(p);
		if (!ev)
			break;
		over = ev->type == FYET_STREAM_END;
		good = take(b, ev, &documents);
		fy_parser_event_free(p, ev);
	}
	if (good && !over)
		parser_errors(b, diag);
	if (!good)
		b->wrong = true;
}

const struct node *yaml_read(struct arena *a, const char *file, const char *text, size_t n,
			     struct findings *f)
{
	struct build b = {.arena = a, .file = file, .findings = f};
	struct fy_diag_cfg how;

	if (!check_text(&b, text, n))
		return NULL;
	fy_diag_cfg_default(&how);
	how.fp = NULL;
	how.colorize = false;
	struct fy_diag *diag = fy_diag_create(&how);
	if (diag)
		fy_diag_set_collect_errors(diag, true);
	struct fy_parse_cfg cfg = {.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_JSON_NONE |
					    FYPCF_DEFAULT_VERSION_1_2,
				   .diag = diag};
	struct fy_parser *p = diag ? fy_parser_create(&cfg) : NULL;
	if (p && (n == 0 || fy_parser_set_string(p, text, n) == 0)) {
		if (n)
			parse(&b, p, diag);
	} else {
		say(&b, (struct position){1, 1}, "out of memory", NULL);
	}
	if (p)
		fy_parser_destroy(p);
	if (diag)
		fy_diag_destroy(diag);
	if (!b.wrong && !b.root)
		say(&b, (struct position){1, 1}, "the file is empty", "begin with `version: 1`");
	return b.wrong ? NULL : b.root;
}
