/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass schema`.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/term.h"
#include "cli/verbs.h"
#include "config/embedded.h"
#include "main/verbs.h"

static const char *later_part(const char *name)
{
	return strcmp(name, "manifest") == 0 ? "the tool manifest" : NULL;
}

static int unknown(const char *name)
{
	const char *const *words = schema_usage.words;
	struct err e = {0};
	char shown[128];
	size_t n = 0;

	while (words[n])
		n++;
	(void)err_set(&e, ERR_CONFIG_INVALID, "unknown schema `%s`",
		      term_escape_cut(shown, sizeof(shown), name, strlen(name)));
	const char *near = nearest(name, words, n);
	(void)err_hint(&e, "%s`%s`%s", near ? "did you mean " : "there are `policy`, `result` and ",
		       near ? near : "audit", near ? "?" : "");
	return cli_fail(&e, 2);
}

int main_schema(int argc, char **argv)
{
	struct policy_options o = {.json = false};
	struct err e = {0};
	int first = 0;

	if (opt_parse(schema_usage.options, schema_usage.option_count, argc, argv, &o, &first, &e) <
	    0)
		return cli_fail(&e, 2);
	if (o.help)
		return usage_show(&schema_usage, 2);
	if (argc - first != 1) {
		(void)err_set(&e, ERR_CONFIG_INVALID,
			      "`schema` takes one word: policy, result or audit");
		return cli_fail(&e, 2);
	}
	const char *name = argv[first];
	if (later_part(name)) {
		char title[64];
		(void)snprintf(title, sizeof(title), "schema %s", name);
		return usage_later(title, later_part(name), 2);
	}
	const struct embedded *s = embedded_find(embedded_schemas, name);
	if (!s)
		return unknown(name);
	return cli_write(STDOUT_FILENO, s->text, s->n, &e) < 0 ? cli_fail(&e, 2) : 0;
}
