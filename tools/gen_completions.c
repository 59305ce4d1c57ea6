/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a shell's completions: a template with @TABLE@ where the verbs and
 * options of the program go, from the very tables that it parses with. Options,
 * choices and verbs of later parts are left out. An option without help fails.
 * usage: gen_completions bash|zsh|fish TEMPLATE
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/verbs.h"

#define MAX_TEMPLATE ((size_t)1 << 20)
#define MARK "@TABLE@\n"

/* What completes the value of an option. */
enum kind { KIND_FREE, KIND_WORDS, KIND_FILE, KIND_DIR, KIND_ENV };

/* A verb with the words that lead to it: "policy check". */
struct path {
	const struct usage *usage; /* NULL: the top, whose sub-verbs are all verbs */
	char words[128];
};

struct shell {
	const char *name;
	void (*begin)(struct buf *out);
	void (*verb)(struct buf *out, const struct path *p);
	void (*end)(struct buf *out);
};

static bool bad;

static void complain(const char *what, const char *about)
{
	(void)fprintf(stderr, "gen_completions: %s: %s\n", about, what);
	bad = true;
}

/* Options that are offered, with the name that is typed. */
static bool offered(const struct opt *o)
{
	if (!o->later && (!o->help || !o->help[0]))
		complain("an option without help", o->name ? o->name : "-?");
	return !o->later;
}

static enum kind kind_of(const struct opt *o)
{
	if (o->choices)
		return KIND_WORDS;
	if (o->kind == OPT_FLAG || !o->arg)
		return KIND_FREE;
	if (strcmp(o->arg, "DIR") == 0)
		return KIND_DIR;
	if (strcmp(o->arg, "FILE") == 0 || strcmp(o->arg, "PATH") == 0)
		return KIND_FILE;
	if (strcmp(o->arg, "NAME[=VALUE]") == 0)
		return KIND_ENV;
	return KIND_FREE;
}

/* The i-th spelling, the short one first; NULL if there is no more. */
static const char *spelling(const struct opt *o, int i, char ret[72])
{
	if (o->short_name && i-- == 0)
		(void)snprintf(ret, 72, "-%c", o->short_name);
	else if (o->name && i == 0)
		(void)snprintf(ret, 72, "--%s", o->name);
	else
		return NULL;
	return ret;
}

static void choices(struct buf *out, const struct opt *o, const char *between)
{
	const char *before = "";

	for (size_t i = 0; o->choices[i]; i++) {
		if (o->choices_later && o->choices_later[i])
			continue;
		(void)buf_printf(out, "%s%s", before, o->choices[i]);
		before = between;
	}
}

static void words(struct buf *out, const char *const *list, const char *between)
{
	for (size_t i = 0; list[i]; i++)
		(void)buf_printf(out, "%s%s", i ? between : "", list[i]);
}

/* Text inside single quotes of a shell, `special` with a backslash before it. */
static void quoted(struct buf *out, const char *text, const char *special)
{
	for (const char *p = text; *p; p++) {
		if (*p == '\'')
			(void)buf_str(out, "'\\''");
		else if (strchr(special, *p))
			(void)buf_printf(out, "\\%c", *p);
		else
			(void)buf_char(out, *p);
	}
}

/* The sub-verbs of a path, one after the other; NULL behind the last. */
static const struct usage *sub_of(const struct path *p, size_t *i)
{
	const struct usage *const *subs = NULL;

	if (!p->usage) {
		while (*i < verb_count && !verbs[*i].usage)
			(*i)++;
		return *i < verb_count ? verbs[(*i)++].usage : NULL;
	}
	subs = (const struct usage *const *)p->usage->subs;
	while (subs && subs[*i] && subs[*i]->later)
		(*i)++;
	return subs && subs[*i] ? subs[(*i)++] : NULL;
}

/* bash: two functions with a case for each verb, and for each option with a value. */

static void bash_begin(struct buf *out)
{
	(void)buf_str(out, "_sandglass_verb() {\n\tsubs=\n\tcase $1 in\n");
}

static void bash_list(struct buf *out, const struct path *p, const char *name,
		      bool (*takes)(const struct opt *))
{
	char text[72];
	const char *before = "";

	(void)buf_printf(out, "\t\t%s='", name);
	for (size_t i = 0; i < p->usage->option_count; i++) {
		const struct opt *o = &p->usage->options[i];

		if (!offered(o) || !takes(o))
			continue;
		for (int k = 0; spelling(o, k, text); k++, before = " ")
			(void)buf_printf(out, "%s%s", before, text);
	}
	(void)buf_str(out, "'\n");
}

static bool is_flag(const struct opt *o)
{
	return o->kind == OPT_FLAG;
}

static bool is_valued(const struct opt *o)
{
	return o->kind != OPT_FLAG;
}

static bool is_list(const struct opt *o)
{
	return o->kind == OPT_LIST;
}

static const char *operand_name(enum operand o)
{
	switch (o) {
	case OPERAND_NONE:
		return "";
	case OPERAND_COMMAND:
		return "command";
	case OPERAND_FILE:
		return "file";
	case OPERAND_WORD:
		return "word";
	case OPERAND_VERB:
		return "verb";
	}
	return "";
}

static void bash_verb(struct buf *out, const struct path *p)
{
	const struct usage *sub;
	size_t i = 0;
	const char *before = "";

	(void)buf_printf(out, "\t'%s')\n\t\tsubs='", p->words);
	for (; (sub = sub_of(p, &i)); before = "\n")
		(void)buf_printf(out, "%s%s", before, sub->name);
	(void)buf_str(out, "'\n");
	if (p->usage) {
		bash_list(out, p, "flags", is_flag);
		bash_list(out, p, "valued", is_valued);
		bash_list(out, p, "many", is_list);
		(void)buf_printf(out, "\t\toperand=%s\n\t\tchoices='",
				 operand_name(p->usage->operand));
		if (p->usage->words)
			words(out, p->usage->words, "\n");
		(void)buf_str(out, "'\n");
	}
	(void)buf_str(out, "\t\t;;\n");
}

static void bash_value(struct buf *out, const struct path *p, const struct opt *o)
{
	static const char *const names[] = {"", "words", "file", "dir", "env"};
	char text[72];

	for (int k = 0; spelling(o, k, text); k++) {
		(void)buf_printf(out, "\t'%s %s') kind=%s values='", p->words, text,
				 names[kind_of(o)]);
		if (o->choices)
			choices(out, o, "\n");
		(void)buf_str(out, "' ;;\n");
	}
}

static void walk(struct buf *out, const struct path *p,
		 void (*each)(struct buf *out, const struct path *p))
{
	const struct usage *sub;
	size_t i = 0;

	each(out, p);
	while ((sub = sub_of(p, &i))) {
		struct path below = {.usage = sub};

		if (snprintf(below.words, sizeof(below.words), "%s%s%s", p->words,
			     p->words[0] ? " " : "", sub->name) >= (int)sizeof(below.words))
			complain("too long", sub->name);
		walk(out, &below, each);
	}
}

static void bash_values(struct buf *out, const struct path *p)
{
	for (size_t i = 0; p->usage && i < p->usage->option_count; i++)
		if (offered(&p->usage->options[i]) && is_valued(&p->usage->options[i]))
			bash_value(out, p, &p->usage->options[i]);
}

static void bash_end(struct buf *out)
{
	(void)buf_str(out, "\tesac\n}\n\n_sandglass_option() {\n\tcase \"$1 $2\" in\n");
	walk(out, &(struct path){0}, bash_values);
	(void)buf_str(out, "\tesac\n}\n\n");
}

/* zsh: a function for each verb, `_sandglass_policy_check`. */

static void zsh_name(struct buf *out, const struct path *p)
{
	(void)buf_str(out, "_sandglass_of_");
	for (const char *c = p->words; *c; c++)
		(void)buf_char(out, *c == ' ' ? '_' : *c);
}

static void zsh_action(struct buf *out, const struct opt *o)
{
	switch (kind_of(o)) {
	case KIND_WORDS:
		(void)buf_char(out, '(');
		choices(out, o, " ");
		(void)buf_char(out, ')');
		return;
	case KIND_FILE:
		(void)buf_str(out, "_files");
		return;
	case KIND_DIR:
		(void)buf_str(out, "_files -/");
		return;
	case KIND_ENV:
		(void)buf_str(out, "_parameters -g \"*export*\"");
		return;
	case KIND_FREE:
		(void)buf_char(out, ' ');
		return;
	}
}

static void zsh_option(struct buf *out, const struct opt *o)
{
	char text[72];

	for (int k = 0; spelling(o, k, text); k++) {
		(void)buf_str(out, " \\\n\t\t'");
		if (o->kind == OPT_LIST)
			(void)buf_char(out, '*');
		else if (o->short_name && o->name)
			(void)buf_printf(out, "(-%c --%s)", o->short_name, o->name);
		(void)buf_str(out, text);
		if (is_valued(o) && text[1] == '-')
			(void)buf_char(out, '=');
		(void)buf_char(out, '[');
		quoted(out, o->help, "[]:\\");
		(void)buf_char(out, ']');
		if (is_valued(o)) {
			(void)buf_char(out, ':');
			quoted(out, o->arg, ":\\");
			(void)buf_char(out, ':');
			zsh_action(out, o);
		}
		(void)buf_char(out, '\'');
	}
}

static void zsh_list(struct buf *out, const struct path *p)
{
	const struct usage *sub;
	size_t i = 0;

	(void)buf_printf(out, "\t('%s')\n\t\tsubs=(\n", p->words);
	while ((sub = sub_of(p, &i))) {
		(void)buf_printf(out, "\t\t\t'%s:", sub->name);
		quoted(out, sub->summary, "");
		(void)buf_str(out, "'\n");
	}
	(void)buf_str(out, "\t\t)\n\t\t;;\n");
}

static void zsh_begin(struct buf *out)
{
	(void)buf_str(out, "_sandglass_subs() {\n\tcase $1 in\n");
	walk(out, &(struct path){0}, zsh_list);
	(void)buf_str(out, "\tesac\n}\n\n");
}

static void zsh_operand(struct buf *out, const struct usage *u)
{
	switch (u->operand) {
	case OPERAND_NONE:
		return;
	case OPERAND_COMMAND:
		(void)buf_str(out, " \\\n\t\t'(-)1:command: _sandglass_command'"
				   " \\\n\t\t'*::argument: _sandglass_arguments'");
		return;
	case OPERAND_FILE:
		(void)buf_str(out, " \\\n\t\t'*:FILE:_files'");
		return;
	case OPERAND_WORD:
		(void)buf_str(out, " \\\n\t\t'1:word:(");
		words(out, u->words, " ");
		(void)buf_str(out, ")'");
		return;
	case OPERAND_VERB:
		(void)buf_str(out, " \\\n\t\t'*:: : _sandglass_help_of'");
		return;
	}
}

static void zsh_verb(struct buf *out, const struct path *p)
{
	if (!p->usage)
		return;
	zsh_name(out, p);
	(void)buf_str(out, "() {\n\tlocal -A opt_args\n\t_arguments -S -A '-*'");
	for (size_t k = 0; k < p->usage->option_count; k++)
		if (offered(&p->usage->options[k]))
			zsh_option(out, &p->usage->options[k]);
	zsh_operand(out, p->usage);
	(void)buf_str(out, "\n}\n\n");
}

static void nothing(struct buf *out)
{
	(void)out;
}

/* fish: a line for each option of each verb. */

static void fish_subs(struct buf *out, const struct path *p)
{
	const struct usage *sub;
	size_t i = 0;

	(void)buf_printf(out, "\t\tcase '%s'\n", p->words);
	while ((sub = sub_of(p, &i)))
		(void)buf_printf(out, "\t\t\techo %s\n", sub->name);
}

static void fish_valued(struct buf *out, const struct path *p)
{
	char text[72];

	if (!p->usage)
		return;
	(void)buf_printf(out, "\t\tcase '%s'\n", p->words);
	for (size_t i = 0; i < p->usage->option_count; i++) {
		const struct opt *o = &p->usage->options[i];

		if (!offered(o) || !is_valued(o))
			continue;
		for (int k = 0; spelling(o, k, text); k++)
			(void)buf_printf(out, "\t\t\techo %s\n", text);
	}
}

static void fish_begin(struct buf *out)
{
	(void)buf_str(out, "function __sandglass_subs\n\tswitch \"$argv[1]\"\n");
	walk(out, &(struct path){0}, fish_subs);
	(void)buf_str(out, "\tend\nend\n\nfunction __sandglass_valued\n\tswitch \"$argv[1]\"\n");
	walk(out, &(struct path){0}, fish_valued);
	(void)buf_str(out, "\tend\nend\n\ncomplete -c sandglass -f\n");
}

static void fish_option(struct buf *out, const struct path *p, const struct opt *o)
{
	char text[72];

	(void)buf_printf(out, "complete -c sandglass -n \"__sandglass_at '%s'", p->words);
	for (int k = 0; o->kind != OPT_LIST && spelling(o, k, text); k++)
		(void)buf_printf(out, " %s", text);
	(void)buf_char(out, '"');
	if (o->short_name)
		(void)buf_printf(out, " -s %c", o->short_name);
	if (o->name)
		(void)buf_printf(out, " -l %s", o->name);
	switch (kind_of(o)) {
	case KIND_WORDS:
		(void)buf_str(out, " -x -a '");
		choices(out, o, " ");
		(void)buf_char(out, '\'');
		break;
	case KIND_FILE:
		(void)buf_str(out, " -r -F");
		break;
	case KIND_DIR:
		(void)buf_str(out, " -x -a '(__fish_complete_directories)'");
		break;
	case KIND_ENV:
		(void)buf_str(out, " -x -a '(set -nx)'");
		break;
	case KIND_FREE:
		(void)buf_str(out, is_valued(o) ? " -x" : "");
		break;
	}
	(void)buf_str(out, " -d '");
	quoted(out, o->help, "\\");
	(void)buf_str(out, "'\n");
}

static void fish_operand(struct buf *out, const struct path *p)
{
	const struct usage *u = p->usage;

	if (u->operand == OPERAND_NONE)
		return;
	(void)buf_printf(out, "complete -c sandglass -n \"__sandglass_in '%s'\"", p->words);
	if (u->operand == OPERAND_FILE)
		(void)buf_str(out, " -F");
	else if (u->operand == OPERAND_COMMAND)
		(void)buf_str(out, " -x -a '(__sandglass_command)'");
	else if (u->operand == OPERAND_VERB)
		(void)buf_str(out, " -x -a '(__sandglass_help_of)'");
	if (u->operand == OPERAND_WORD) {
		(void)buf_str(out, " -x -a '");
		words(out, u->words, " ");
		(void)buf_char(out, '\'');
	}
	(void)buf_char(out, '\n');
}

static void fish_verb(struct buf *out, const struct path *p)
{
	const struct usage *sub;
	size_t i = 0;

	while ((sub = sub_of(p, &i))) {
		(void)buf_printf(out, "complete -c sandglass -n \"__sandglass_at '%s'\" -a %s -d '",
				 p->words, sub->name);
		quoted(out, sub->summary, "\\");
		(void)buf_str(out, "'\n");
	}
	for (size_t k = 0; p->usage && k < p->usage->option_count; k++)
		if (offered(&p->usage->options[k]))
			fish_option(out, p, &p->usage->options[k]);
	if (p->usage)
		fish_operand(out, p);
}

static const struct shell shells[] = {
	{"bash", bash_begin, bash_verb, bash_end},
	{"zsh", zsh_begin, zsh_verb, nothing},
	{"fish", fish_begin, fish_verb, nothing},
};

int main(int argc, char **argv)
{
	static char template[MAX_TEMPLATE];
	AUTO_BUF out = BUF_INIT(MAX_TEMPLATE);
	const struct shell *shell = NULL;

	for (size_t i = 0; argc == 3 && i < ARRAY_LEN(shells); i++)
		if (strcmp(shells[i].name, argv[1]) == 0)
			shell = &shells[i];
	FILE *file = shell ? fopen(argv[2], "re") : NULL;
	if (!file)
		return complain("usage: gen_completions bash|zsh|fish TEMPLATE", "no"), 2;
	template[fread(template, 1, sizeof(template) - 1, file)] = '\0';
	(void)fclose(file);
	char *mark = strstr(template, MARK);
	if (!mark)
		return complain("no line " MARK, argv[2]), 2;
	(void)buf_add(&out, template, (size_t)(mark - template));
	shell->begin(&out);
	walk(&out, &(struct path){0}, shell->verb);
	shell->end(&out);
	(void)buf_str(&out, mark + sizeof(MARK) - 1);
	if (out.failed)
		complain("too long", shell->name);
	if (fwrite(buf_cstr(&out), 1, out.n, stdout) != out.n || fflush(stdout) != 0)
		complain("stdout", shell->name);
	return bad ? 1 : 0;
}
