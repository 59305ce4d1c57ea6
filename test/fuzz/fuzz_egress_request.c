/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: rules about requests. The input is lines; `+`, `-`, `?` and `^` begin a
 * rule of allow, deny, inspect and push, `!` a request to h.com: METHOD TARGET. What is
 * allowed was allowed by a rule that says so in every reading of the path, and git
 * writes nothing without a grant.
 */
#include "egress/path.h"
#include "egress/set.h"

#include "fuzz_base.h"

static void check_path(const char *target, size_t n)
{
	struct egress_path p;
	struct egress_path again;

	if (egress_path_read(target, n, &p))
		return;
	FUZZ_CHECK(p.text[0] == '/' && !strstr(p.text, "//") && !strstr(p.slashes, "//"));
	FUZZ_CHECK(!strstr(p.slashes, "/../") && !strstr(p.slashes, "/./"));
	FUZZ_CHECK(!strpbrk(p.text, "\\?# "));
	/* What is canonical stays what it is. */
	FUZZ_CHECK(!egress_path_read(p.text, strlen(p.text), &again));
	FUZZ_CHECK(strcmp(p.text, again.text) == 0);
	FUZZ_CHECK(egress_path_match("/**", 3, p.text, false));
	if (!strchr(p.text, '*')) {
		/* Allowed it is only with its parameters and without. */
		FUZZ_CHECK(egress_path_match(p.text, strlen(p.text), p.text, false) ||
			   strstr(p.text, ";") || strstr(p.text, "%3B"));
		FUZZ_CHECK(egress_path_match(p.text, strlen(p.text), p.text, true));
	}
}

/* What git itself asks for: that is the end of the path. */
static bool is_receive_pack(const char *target)
{
	static const char end[] = "/git-receive-pack";
	size_t n = strcspn(target, "?");

	return n >= strlen(end) && memcmp(target + n - strlen(end), end, strlen(end)) == 0;
}

static void ask(const struct egress_set *s, const char *line)
{
	const char *target = strchr(line, ' ');
	const struct host h = {.kind = HOST_NAME, .text = "h.com"};
	bool granted = false;
	struct egress_said said;

	if (!target)
		return;
	size_t method = (size_t)(target - line);
	size_t n = strlen(++target);
	check_path(target, n);
	struct egress_verdict v = egress_match_request(s, &h, 443, line, method, target, n);
	FUZZ_CHECK(v.allow == (v.reason == EGRESS_WHY_RULE) && v.rule < (int)s->n);
	FUZZ_CHECK(!v.allow || (v.rule >= 0 && egress_rule_opens(&s->v[v.rule].rule)));
	FUZZ_CHECK(!v.allow || egress_match_name(s, &h, 443).allow);
	for (size_t i = 0; i < s->n; i++)
		granted |= s->v[i].rule.list == EGRESS_LIST_PUSH;
	FUZZ_CHECK(!v.allow || !v.push || granted);
	FUZZ_CHECK(!v.allow || v.push || !is_receive_pack(target));
	egress_say(s, v.reason, v.rule, h.text, 443, "", &said);
	fuzz_check_line(said.target, sizeof(said.target));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char marks[EGRESS_LISTS + 1] = "-+=?^~";
	struct egress_set s = {0};
	struct err e = {0};
	char *text = fuzz_string(data, size);
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *mark = strchr(marks, line[0]);
		if (line[0] == '!')
			ask(&s, line + 1);
		else if (mark && egress_set_add(&s, (enum egress_list)(mark - marks), line + 1,
						"fuzz", &e) < 0)
			FUZZ_CHECK(e.code == ERR_CONFIG_INVALID);
	}
	egress_set_release(&s);
	free(text);
	return 0;
}
