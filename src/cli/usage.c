/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help and errors about verbs, from their descriptions.
 */
#include "cli/usage.h"

#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/nearest.h"
#include "base/term.h"
#include "cli/verbs.h"

#define VERB_ROOM 64
#define LIST_COLUMNS 80

const struct opt help_options[] = {
	{.name = "help",
	 .short_name = 'h',
	 .kind = OPT_FLAG,
	 .off = offsetof(struct help_options, help),
	 .help = "this text"},
};
const size_t help_option_count = ARRAY_LEN(help_options);

const struct usage *usage_sub(const struct usage *u, const char *name)
{
	for (size_t i = 0; u->subs && u->subs[i]; i++)
		if (strcmp(u->subs[i]->name, name) == 0)
			return u->subs[i];
	return NULL;
}

static void list_subs(const struct usage *u, struct buf *out)
{
	if (!u->subs)
		return;
	for (size_t i = 0; u->subs[i]; i++)
		if (!u->subs[i]->later)
			(void)buf_printf(out, "  %-10s %s\n", u->subs[i]->name,
					 u->subs[i]->summary);
	const char *names[VERB_ROOM];
	size_t n = 0;
	for (size_t i = 0; u->subs[i] && n < VERB_ROOM; i++)
		if (u->subs[i]->later)
			names[n++] = u->subs[i]->name;
	usage_list_later(names, n, out);
	(void)buf_char(out, '\n');
}

void usage_list_later(const char *const *names, size_t n, struct buf *out)
{
	size_t at = HELP_LINE_MAX;

	if (n)
		(void)buf_str(out, "\nnot in this version:");
	for (size_t i = 0; i < n; i++) {
		if (at + 1 + strlen(names[i]) > LIST_COLUMNS) {
			(void)buf_str(out, "\n ");
			at = 1;
		}
		(void)buf_printf(out, " %s", names[i]);
		at += 1 + strlen(names[i]);
	}
	if (n)
		(void)buf_char(out, '\n');
}

int usage_help(const struct usage *u, struct buf *out)
{
	for (size_t i = 0; u->synopsis[i]; i++)
		(void)buf_printf(out, "%s sandglass %s\n", i == 0 ? "usage:" : "      ",
				 u->synopsis[i]);
	(void)buf_char(out, '\n');
	if (u->about)
		(void)buf_printf(out, "%s\n\n", u->about);
	list_subs(u, out);
	(void)opt_help(out, u->options, u->option_count);
	if (u->status)
		(void)buf_printf(out, "\n%s\n", u->status);
	return out->failed ? -1 : 0;
}

int usage_show(const struct usage *u, int failed)
{
	AUTO_BUF out = BUF_INIT(65536);
	struct err e = {0};

	(void)usage_help(u, &out); /* what fails is the buffer, which is checked */
	if (buf_check(&out, "the help", ERR_INTERNAL, &e) < 0 ||
	    cli_write(STDOUT_FILENO, out.p, out.n, &e) < 0)
		return cli_fail(&e, failed);
	return 0;
}

int usage_unknown(const struct usage *u, const char *name)
{
	struct err e = {0};
	const char *names[VERB_ROOM];
	size_t n = 0;
	char shown[128];

	for (; u->subs && u->subs[n] && n < VERB_ROOM; n++)
		names[n] = u->subs[n]->name;
	const char *near = nearest(name, names, n);
	(void)err_set(&e, ERR_CONFIG_INVALID, "unknown verb `%s %s`", u->name,
		      term_escape_cut(shown, sizeof(shown), name, strlen(name)));
	if (near)
		(void)err_hint(&e, "did you mean `%s %s`?", u->name, near);
	else
		(void)err_hint(&e, "`sandglass help %s` lists its verbs", u->name);
	return cli_fail(&e, 2);
}

int usage_later(const char *name, const char *later, int status)
{
	struct err e = {0};

	(void)err_set(&e, ERR_UNSUPPORTED, "`%s` is not in this version (it comes with %s)", name,
		      later);
	return cli_fail(&e, status);
}
