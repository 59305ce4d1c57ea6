/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass policy trust` and `untrust`.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/base.h"
#include "base/term.h"
#include "cli/verbs.h"
#include "config/file.h"
#include "config/trust.h"
#include "main/verbs.h"
#include "policy/resolve.h"
#include "run/job.h"

/* A person decided; that the log cannot tell of it is said, and is no reason to refuse. */
static void record(const struct caller *who, const char *event, const char *path,
		   const unsigned char *sha256)
{
	char hex[AUDIT_HASH_TEXT];
	struct err e = {0};

	if (sha256)
		audit_hex(sha256, SHA256_BYTES, hex);
	const struct audit_field data[] = {
		{.key = "path", .kind = AUDIT_PATH, .text = path},
		{.key = "sha256", .kind = AUDIT_WORD, .text = sha256 ? hex : NULL},
	};
	const struct audit_event v = {.event = event, .data = data, .data_count = ARRAY_LEN(data)};
	if (audit_append(who, &v, 1, AUDIT_SYNC, &e) < 0)
		(void)fprintf(stderr, "sandglass: not enforced: audit (%s)\n", e.msg);
}

static int say(const char *what, const char *path, const unsigned char *sha256)
{
	AUTO_BUF out = BUF_INIT(65536);
	struct err e = {0};

	(void)buf_printf(&out, "%s ", what);
	(void)term_escape(&out, path, strlen(path));
	if (sha256)
		(void)buf_str(&out, " sha256:");
	for (size_t i = 0; sha256 && i < SHA256_BYTES; i++)
		(void)buf_printf(&out, "%02x", sha256[i]);
	(void)buf_char(&out, '\n');
	return cli_write(STDOUT_FILENO, buf_cstr(&out), out.n, &e) < 0 ? cli_fail(&e, 2) : 0;
}

/* What is wrong is not to be trusted: it would be refused at each run. */
static int trust(const struct caller *who, const struct policy_where *where, const char *path,
		 struct err *e)
{
	static struct set s;
	struct policy_file f;
	struct layer l = {.layer = LAYER_PROJECT, .file = path, .trusted = true};
	struct layer_places places = {.home = where->home, .source = "/"};

	int rc = policy_file_read(&s.arena, "", path, FILE_ANY, where->uid, &f, e);
	if (rc < 0)
		(void)err_wrap(e, "%s", path);
	else if (layer_read(&s.arena, &places, f.text, f.n, &l, &s.findings) < 0)
		rc = findings_first(&s.findings, e);
	else
		rc = trust_add(where->state, path, f.sha256, e);
	set_release(&s);
	if (rc < 0)
		return cli_fail(e, 2);
	record(who, "policy.trust", path, f.sha256);
	return say("trusted:", path, f.sha256);
}

static int untrust(const struct caller *who, const struct policy_where *where, const char *path,
		   struct err *e)
{
	unsigned int removed = 0;

	if (trust_remove(where->state, path, &removed, e) < 0)
		return cli_fail(e, 2);
	if (removed) {
		record(who, "policy.untrust", path, NULL);
		return say("no longer trusted:", path, NULL);
	}
	(void)err_set(e, ERR_NOT_FOUND, "%s was not trusted", path);
	return cli_fail(e, 1);
}

int main_trust(const char *file, bool add, char **env)
{
	static const struct places nowhere;
	struct caller who;
	struct policy_where where;
	struct resolved r;
	char cwd[PATH_TEXT];
	char gone[PATH_TEXT];
	struct err e = {0};

	if (caller_init(&who, env, cwd, &e) < 0)
		return cli_fail(&e, 2);
	policy_where(&who, &where);
	if (resolve_path(file, who.cwd, &nowhere, &r, &e) == 0)
		return add ? trust(&who, &where, r.path, &e) : untrust(&who, &where, r.path, &e);
	/* Trust in a file that is gone can be taken back too. */
	AUTO_BUF text = BUF_INIT(2 * PATH_TEXT);
	if (file[0] != '/')
		(void)buf_printf(&text, "%s/", who.cwd ? who.cwd : "");
	(void)buf_str(&text, file);
	if (add || !path_lexical(buf_cstr(&text), gone))
		return cli_fail(&e, 2);
	return untrust(&who, &where, gone, &e);
}
