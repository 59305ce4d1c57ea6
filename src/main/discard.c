/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass discard`.
 */
#include <unistd.h>

#include "audit/audit.h"
#include "base/base.h"
#include "base/json.h"
#include "cli/apply_options.h"
#include "cli/verbs.h"
#include "main/hold.h"
#include "main/review_operands.h"
#include "main/review_verbs.h"
#include "review/discard.h"
#include "run/job.h"

struct verb_state {
	struct caller who;
	char cwd[PATH_TEXT];
	struct apply_options o;
	struct review_operands ops;
	struct review_named named;
	struct hold hold;
	struct discarded done;
};

static int pick_paths(void *self, const struct changes *c, const char *const **ret_paths,
		      size_t *ret_n, struct err *e)
{
	struct verb_state *s = self;

	if (review_name(&s->who, &s->ops, c, &s->named, e) < 0)
		return -1;
	*ret_paths = s->named.p;
	*ret_n = s->named.n;
	return 0;
}

static int note(const struct verb_state *s, struct err *e)
{
	const struct audit_field data[] = {
		{.key = "source", .kind = AUDIT_PATH, .text = s->ops.rec.source},
		{.key = "paths", .kind = AUDIT_UINT, .u = s->done.paths},
		{.key = "recovered",
		 .kind = AUDIT_WORD,
		 .text = s->done.recovered == RECOVERED_NOTHING   ? NULL
			 : s->done.recovered == RECOVERED_FORWARD ? "forward"
								  : "back"},
	};
	if (review_note(&s->who, &s->ops, "discard", data, ARRAY_LEN(data), e) < 0)
		return err_wrap(e, "it was discarded, but is not in the audit log");
	return 0;
}

static int discard(struct verb_state *s, int argc, char **argv, struct err *e)
{
	if (caller_init(&s->who, environ, s->cwd, e) < 0 ||
	    review_operands(&s->who, argc, argv, &s->ops, e) < 0 ||
	    hold_session(s->ops.session, &s->ops.rec, HOLD_CHANGE, &s->hold, e) < 0)
		return -1;
	if (discard_session(s->ops.session, &s->ops.rec, pick_paths, s, &s->done, e) < 0)
		return -1;
	return s->done.paths || s->done.recovered != RECOVERED_NOTHING ? note(s, e) : 0;
}

static int say_json(const struct verb_state *s, const struct err *failed, int status)
{
	AUTO_BUF out = BUF_INIT(65536);
	struct json j = JSON_INIT(&out);
	struct err e = {0};

	json_obj_begin(&j);
	json_kv_uint(&j, "version", 1);
	json_kv_str(&j, "session", s->ops.id[0] ? s->ops.id : NULL);
	json_kv_bool(&j, "ok", status == 0);
	review_error_json(&j, failed);
	json_kv_uint(&j, "discarded", failed ? 0 : s->done.paths);
	json_obj_end(&j);
	if (json_finish(&j, ERR_INTERNAL, &e) < 0)
		return cli_fail(&e, 2);
	(void)buf_char(&out, '\n');
	return cli_write(STDOUT_FILENO, buf_cstr(&out), out.n, &e) < 0 ? cli_fail(&e, 2) : status;
}

static int say_text(const struct verb_state *s, const struct err *failed, int status)
{
	AUTO_BUF out = BUF_INIT(4096);
	struct err e = {0};

	if (review_say_session(&s->ops) < 0)
		return 2;
	if (failed)
		return cli_fail(failed, status);
	(void)buf_printf(&out, "discarded: %zu\n", s->done.paths);
	return cli_write(STDOUT_FILENO, buf_cstr(&out), out.n, &e) < 0 ? cli_fail(&e, 2) : status;
}

int main_discard(int argc, char **argv)
{
	static struct verb_state s;
	struct err e = {0};
	int first = 0;

	s = (struct verb_state){.ops = {.session = -1}, .hold = HOLD_NONE};
	if (opt_parse(discard_usage.options, discard_usage.option_count, argc, argv, &s.o, &first,
		      &e) < 0)
		return cli_fail(&e, 2);
	if (s.o.help)
		return usage_show(&discard_usage, 2);
	int rc = discard(&s, argc - first, argv + first, &e);
	int status = rc == 0 ? 0 : e.code == ERR_NOT_FOUND ? 1 : 2;
	const struct err *failed = rc < 0 ? &e : NULL;
	status = s.o.json ? say_json(&s, failed, status) : say_text(&s, failed, status);
	hold_end(&s.hold);
	review_operands_release(&s.ops);
	review_named_release(&s.named);
	return status;
}
