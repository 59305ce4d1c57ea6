/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tries each feature (doctor_features.c), and then a whole sandbox of each kind.
 * Says what is there, and for what is missing how to mend it.
 */
#include "run/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/base.h"
#include "base/json.h"
#include "base/term.h"
#include "run/job.h"
#include "run/policy.h"
#include "store/remove.h"

#define COPIED_VARIABLES 4096
#define STATE_FORM "/tmp/sandglass-doctor-XXXXXX"

/* The real thing: a sandbox without a source that runs /bin/true. */
struct trial {
	const char *isolation;
	bool works;
	char text[2048]; /* what it said instead */
};

struct report_of {
	struct findings features;
	struct trial trials[2];
	struct caller who;
};

/* Our environment, but with a state directory that is gone afterwards, and its policy files or none. */
static char **environment_with(char *state, char *config)
{
	static char *env[COPIED_VARIABLES + 3];
	size_t n = 0;

	for (char **v = environ; *v && n < COPIED_VARIABLES; v++)
		if (strncmp(*v, "SANDGLASS_HOME=", 15) != 0 &&
		    (!config || strncmp(*v, "XDG_CONFIG_HOME=", 16) != 0))
			env[n++] = *v;
	if (config)
		env[n++] = config;
	env[n++] = state;
	env[n] = NULL;
	return env;
}

static bool start(const char *isolation, char **env, char *text, size_t len)
{
	const char *const words[] = {"sandglass",   "run",      "--isolation", isolation,
				     "--no-source", "--mode",   "read-only",   "--quiet",
				     "--read",      "/usr/bin", "--",          "/bin/true",
				     NULL};

	return doctor_spawn("/proc/self/exe", words, env, text, len);
}

/* What was said is several lines, the error last and its hint before it: one line of both. */
static void join_lines(char *text, size_t len)
{
	char said[sizeof(((struct trial *)0)->text)];
	char *last = strrchr(text, '\n');

	if (!last)
		return;
	*last = '\0';
	(void)snprintf(said, sizeof(said), "%s; %s", last + 1, text);
	for (char *at = strchr(said, '\n'); at; at = strchr(at, '\n'))
		*at = ' ';
	(void)snprintf(text, len, "%s", said);
}

/* What the host can do is asked without anybody's policy files; those are looked at apart. */
static void try(struct trial *t)
{
	char state[] = "SANDGLASS_HOME=" STATE_FORM;
	char config[] = "XDG_CONFIG_HOME=" STATE_FORM;
	char *path = strchr(state, '=') + 1;

	t->text[0] = '\0';
	if (!mkdtemp(path)) {
		(void)snprintf(t->text, sizeof(t->text), "/tmp: %s", strerror(errno));
		return;
	}
	memcpy(strchr(config, '=') + 1, path, sizeof(STATE_FORM));
	(void)chmod(path, 0711); /* as root another uid has to get through */
	t->works = start(t->isolation, environment_with(state, config), t->text, sizeof(t->text));
	join_lines(t->text, sizeof(t->text));
	remove_tree(AT_FDCWD, path);
}

/* The files that hold for a call in this directory; a mistake in one is no fault of the host. */
static void look_at_policy(const struct caller *who, struct findings *f)
{
	static struct request req;
	static struct call_policy policy;
	char state[] = "SANDGLASS_HOME=" STATE_FORM;
	char *path = strchr(state, '=') + 1;
	struct finding *found = f->n < MAX_FINDINGS ? &f->v[f->n] : NULL;
	struct source src = {.given = false};
	struct caller with = *who;
	struct err e = {0};

	if (!found || !mkdtemp(path))
		return;
	f->n++;
	*found = (struct finding){.name = "policy_files", .available = true};
	with.env = environment_with(state, NULL);
	req = request_of_nothing();
	if (source_locate(&req, &with, &src, &e) < 0)
		src = (struct source){.given = false}; /* here is no project */
	e = (struct err){0};
	if (policy_load(&policy, &req, &with, &src, &e) < 0) {
		found->available = false;
		(void)snprintf(found->why, sizeof(found->why), "with it nothing runs here: %.900s",
			       e.msg);
		(void)snprintf(found->mend, sizeof(found->mend),
			       "correct the file%s%s; sandglass policy check names all mistakes",
			       e.hint[0] ? "; " : "", e.hint);
	}
	policy_release(&policy);
	remove_tree(AT_FDCWD, path);
}

static bool able(const struct report_of *r)
{
	for (size_t i = 0; i < r->features.n; i++)
		if (r->features.v[i].needed && !r->features.v[i].available)
			return false;
	return r->trials[0].works;
}

static const char *runs_as(const struct report_of *r)
{
	return r->who.root ? "session-uid" : "caller-in-user-namespace";
}

static void write_text_of(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	if (text[0])
		json_text(j, text, strlen(text));
	else
		json_nil(j);
}

static void write_feature(struct json *j, const struct finding *f)
{
	json_key(j, f->name);
	json_obj_begin(j);
	json_kv_bool(j, "available", f->available);
	json_kv_bool(j, "needed", f->needed);
	write_text_of(j, "detail", f->why);
	write_text_of(j, "mend", f->mend);
	for (size_t i = 0; i < f->fact_count; i++) {
		const struct fact *x = &f->facts[i];
		if (x->text)
			write_text_of(j, x->name, x->text);
		else if (x->is_bool)
			json_kv_bool(j, x->name, x->number != 0);
		else
			json_kv_int(j, x->name, x->number);
	}
	json_obj_end(j);
}

static void write_trial(struct json *j, const char *key, const struct trial *t, bool needed)
{
	json_key(j, key);
	json_obj_begin(j);
	json_kv_bool(j, "available", t->works);
	if (needed)
		json_kv_bool(j, "needed", true);
	write_text_of(j, "detail", t->text);
	json_obj_end(j);
}

static void write_json(const struct report_of *r, struct buf *out)
{
	static const char *const later[] = {"gvisor", "microvm", "seatbelt"};
	struct json j = JSON_INIT(out);
	struct utsname u;

	json_obj_begin(&j);
	json_kv_uint(&j, "version", 1);
	json_kv_str(&j, "sandglass", SANDGLASS_VERSION);
	json_kv_str(&j, "kernel", uname(&u) == 0 ? u.release : NULL);
	json_kv_bool(&j, "able", able(r));
	json_kv_str(&j, "runs_as", runs_as(r));
	json_key(&j, "isolation");
	json_obj_begin(&j);
	for (size_t i = 0; i < ARRAY_LEN(r->trials); i++)
		write_trial(&j, r->trials[i].isolation, &r->trials[i], false);
	for (size_t i = 0; i < ARRAY_LEN(later); i++) {
		struct trial t = {.text = "not in this version"};
		write_trial(&j, later[i], &t, false);
	}
	json_obj_end(&j);
	json_key(&j, "features");
	json_obj_begin(&j);
	for (size_t i = 0; i < r->features.n; i++)
		write_feature(&j, &r->features.v[i]);
	write_trial(&j, "sandbox", &r->trials[0], true);
	json_obj_end(&j);
	json_obj_end(&j);
	(void)buf_char(out, '\n');
}

static void put_facts(struct buf *out, const struct finding *f)
{
	for (size_t i = 0; i < f->fact_count; i++) {
		const struct fact *x = &f->facts[i];
		if (x->text) {
			(void)buf_printf(out, " %s ", x->name);
			(void)term_escape(out, x->text, strlen(x->text));
		} else if (!x->is_bool) {
			(void)buf_printf(out, " %s %lld", x->name, (long long)x->number);
		} else if (x->number) {
			(void)buf_printf(out, " %s", x->name);
		}
	}
}

static void put_feature(struct buf *out, const struct finding *f)
{
	(void)buf_printf(out, "%-8s %-26s",
			 f->available ? "yes"
			 : f->needed  ? "MISSING"
				      : "no",
			 f->name);
	put_facts(out, f);
	if (f->why[0]) {
		(void)buf_str(out, f->fact_count ? ": " : " ");
		(void)term_escape(out, f->why, strlen(f->why));
	}
	if (f->mend[0])
		(void)buf_printf(out, "\n%35s to mend: %s", "", f->mend);
	(void)buf_char(out, '\n');
}

static void put_trial(struct buf *out, const struct trial *t, const char *word)
{
	(void)buf_printf(out, "%-8s isolation %-16s %s\n", t->works ? "yes" : word, t->isolation,
			 t->works ? "/bin/true ran in one" : t->text);
}

static void write_text(const struct report_of *r, struct buf *out)
{
	for (size_t i = 0; i < r->features.n; i++)
		put_feature(out, &r->features.v[i]);
	(void)buf_printf(out, "%-8s %-26s %s\n", "", "runs as",
			 r->who.root ? "a session uid of its own, never root"
				     : "you, in a user namespace without capabilities");
	put_trial(out, &r->trials[0], "MISSING");
	put_trial(out, &r->trials[1], "no");
	if (!able(r) && r->trials[1].works)
		(void)buf_str(out,
			      "         until that is mended, --isolation landlock works here and "
			      "keeps less: sandglass-landlock(7)\n");
}

int doctor_write(bool json, struct buf *out, struct err *e)
{
	static struct report_of r = {
		.trials = {{.isolation = "namespace"}, {.isolation = "landlock"}}};
	char cwd[PATH_TEXT];

	if (caller_init(&r.who, environ, cwd, e) < 0)
		return -1;
	doctor_features(&r.who, &r.features);
	look_at_policy(&r.who, &r.features);
	for (size_t i = 0; i < ARRAY_LEN(r.trials); i++)
		try(&r.trials[i]);
	if (json)
		write_json(&r, out);
	else
		write_text(&r, out);
	if (buf_check(out, "the report", ERR_INTERNAL, e) < 0)
		return -1;
	return able(&r) ? 1 : 0;
}
