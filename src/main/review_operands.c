/* SPDX-License-Identifier: Apache-2.0 */
#include "main/review_operands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/verbs.h"
#include "policy/source.h"
#include "review/choice.h"
#include "session/lease.h"

/* A word that can only be a path. */
static bool is_path(const char *word)
{
	return strchr(word, '/') || strcmp(word, ".") == 0 || strcmp(word, "..") == 0;
}

/* The newest of the source around the working directory, or else of what is above that. */
static int find_last(const struct caller *who, char ret[UUID_TEXT], struct err *e)
{
	struct request req = request_of_nothing();
	struct source src;
	char path[PATH_TEXT];
	struct err above = {0};

	if (source_locate(&req, who, &src, e) < 0)
		return -1;
	if (session_find(who, "@last", src.given ? src.path : NULL, ret, e) == 0)
		return 0;
	if (!src.given || e->code != ERR_NOT_FOUND)
		return -1;
	memcpy(path, src.path, sizeof(path));
	for (char *slash = strrchr(path, '/'); slash && slash != path; slash = strrchr(path, '/')) {
		*slash = '\0';
		if (session_find(who, "@last", path, ret, &above) == 0)
			return 0;
	}
	return -1;
}

static int find(const struct caller *who, const char *word, char ret[UUID_TEXT], struct err *e)
{
	return strcmp(word, "@last") == 0 ? find_last(who, ret, e)
					  : session_find(who, word, NULL, ret, e);
}

int review_operands(const struct caller *who, int argc, char **argv, struct review_operands *ret,
		    struct err *e)
{
	int skip = 0;

	*ret = (struct review_operands){.session = -1, .found = true};
	if (argc && !is_path(argv[0])) {
		struct err why = {0};
		int rc = find(who, argv[0], ret->id, &why);
		bool meant = argv[0][0] == '@' || uuid_valid(argv[0]);
		if (rc < 0 && (meant || why.code != ERR_NOT_FOUND)) {
			*e = why;
			return -1;
		}
		ret->found = rc < 0;
		skip = rc == 0;
	}
	if (ret->found && find(who, "@last", ret->id, e) < 0)
		return -1;
	ret->n = (size_t)(argc - skip);
	ret->paths = calloc(ret->n + 1, sizeof(*ret->paths));
	if (!ret->paths)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < ret->n; i++)
		ret->paths[i] = argv[(size_t)skip + i];
	if (session_open(who, ret->id, &ret->session, e) < 0 ||
	    session_read(ret->session, &ret->rec, e) < 0)
		return -1;
	if (lease_is_unclean(ret->session))
		(void)dprintf(STDERR_FILENO, "sandglass: " LEASE_UNCLEAN "\n");
	return 0;
}

void review_operands_release(struct review_operands *o)
{
	base_close_fd(&o->session);
	session_record_release(&o->rec);
	free(o->paths);
}

int review_path(const struct caller *who, const struct session_record *rec, const char *text,
		bool from_source, char ret[PATH_TEXT], struct err *e)
{
	char joined[2 * PATH_TEXT];
	char path[PATH_TEXT];
	const char *base = from_source ? rec->source : who->cwd ? who->cwd : "";

	if (strlen(text) >= PATH_TEXT)
		return err_set(e, ERR_CONFIG_INVALID, "a path is too long");
	(void)snprintf(joined, sizeof(joined), "%s%s%s", text[0] == '/' ? "" : base,
		       text[0] == '/' ? "" : "/", text);
	if (!path_lexical(joined, path) || !path_is_below(rec->source, path)) {
		(void)err_set(e, ERR_CONFIG_INVALID, "it is not in the session's source, %s",
			      rec->source);
		return err_wrap(e, "%s", text);
	}
	size_t n = strlen(rec->source);
	memmove(ret, path + n + (path[n] == '/'), strlen(path + n) + (path[n] != '/'));
	return 0;
}

int review_name(const struct caller *who, const struct review_operands *ops,
		const struct changes *c, struct review_named *ret, struct err *e)
{
	ret->v = calloc(ops->n + 1, sizeof(*ret->v));
	ret->p = calloc(ops->n + 1, sizeof(*ret->p));
	if (!ret->v || !ret->p)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (ret->n = 0; ret->n < ops->n; ret->n++) {
		struct err ignored = {0};
		char *path = ret->v[ret->n];
		size_t from = 0;
		size_t to = 0;
		bool here =
			review_path(who, &ops->rec, ops->paths[ret->n], false, path, &ignored) == 0;
		if (here)
			choices_below(c, path, &from, &to);
		if (!here || (from == to && !changes_get(c, path))) {
			if (review_path(who, &ops->rec, ops->paths[ret->n], true, path, e) < 0)
				return -1;
		}
		ret->p[ret->n] = path;
	}
	return 0;
}

void review_named_release(struct review_named *n)
{
	free(n->v);
	free((void *)n->p);
}

int review_say_session(const struct review_operands *ops)
{
	AUTO_BUF out = BUF_INIT(1024);
	struct err e = {0};

	if (!ops->found || !ops->id[0])
		return 0;
	(void)buf_printf(&out, "session %s%s%s\n", ops->id, ops->rec.name[0] ? " " : "",
			 ops->rec.name);
	return cli_write(STDERR_FILENO, buf_cstr(&out), out.n, &e);
}

int review_note(const struct caller *who, const struct review_operands *ops, const char *event,
		const struct audit_field *data, size_t n, struct err *e)
{
	const char *policy = ops->rec.policy_sha256;
	const struct audit_event one = {.event = event,
					.session = ops->id,
					.policy_sha256 = policy[0] ? policy : NULL,
					.data = data,
					.data_count = n};

	return audit_append(who, &one, 1, AUDIT_SYNC, e);
}

void review_error_json(struct json *j, const struct err *failed)
{
	json_key(j, "error");
	if (!failed) {
		json_nil(j);
		return;
	}
	json_obj_begin(j);
	json_kv_str(j, "code", err_code_name(failed->code));
	json_kv_str(j, "kind", err_kind_name(err_code_kind(failed->code)));
	json_kv_str(j, "message", failed->msg);
	json_kv_str(j, "hint", failed->hint[0] ? failed->hint : NULL);
	json_obj_end(j);
}
