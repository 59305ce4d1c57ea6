/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds policy files by their fixed places, with stat(2) only.
 */
#include "policy/inputs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "policy/state.h"

#define ADMIN_DIR "/etc/sandglass"
#define SETTLED_MS 2000

void policy_where(const struct caller *who, struct policy_where *ret)
{
	const char *config = caller_env(who, "XDG_CONFIG_HOME");

	*ret = (struct policy_where){.uid = who->uid, .home = who->home, .cwd = who->cwd};
	state_home(who, ret->state);
	if (config && config[0] == '/')
		(void)snprintf(ret->user, sizeof(ret->user), "%s/sandglass/policy.yaml", config);
	else if (who->home)
		(void)snprintf(ret->user, sizeof(ret->user), "%s/.config/sandglass/policy.yaml",
			       who->home);
}

void policy_input_set(struct policy_input *in, const struct stat *st)
{
	in->there = true;
	in->sys = 0;
	in->st = *st;
}

/* In fixed places a link is not followed: the file itself must lie there. */
static void look(struct policy_input *in, bool named)
{
	struct stat st;

	in->there = false;
	in->sys = 0;
	if (!in->path[0])
		return;
	if ((named ? stat(in->path, &st) : lstat(in->path, &st)) == 0) {
		policy_input_set(in, &st);
	} else if (errno != ENOENT && errno != ENOTDIR) {
		in->there = true;
		in->sys = errno;
		in->st = (struct stat){0};
	}
}

static int check_admin(struct err *e)
{
	static const char *const names[] = {ADMIN_DIR "/policy.yaml", ADMIN_DIR "/managed.yaml"};
	struct stat st;

	if (lstat(ADMIN_DIR, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (lstat(names[i], &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
			continue;
		(void)err_set(e, ERR_UNSUPPORTED,
			      "%s: this version does not read the administrator's policies",
			      names[i]);
		return err_hint(e, "it is never ignored silently: remove it, or wait for the "
				   "version that reads it");
	}
	return 0;
}

static int join(const char *dir, const char *name, char ret[PATH_TEXT], struct err *e)
{
	return path_join(dir, name, ret, PATH_TEXT, e);
}

int policy_inputs_find(const struct policy_where *where, const struct source *src, const char *file,
		       const struct strlist *profiles, struct policy_inputs *ret, struct err *e)
{
	struct policy_input *in = ret->in;

	for (size_t i = 0; i < POLICY_INPUTS; i++) {
		in[i].path[0] = '\0';
		in[i].there = false;
		in[i].sys = 0;
	}
	ret->uid = where->uid;
	ret->home = where->home;
	ret->state = where->state;
	ret->source = src->given ? src->path : NULL;
	ret->profiles = profiles;
	if (check_admin(e) < 0)
		return -1;
	memcpy(in[INPUT_USER].path, where->user, strlen(where->user) + 1);
	if (src->given && join(src->path, ".sandglass/policy.yaml", in[INPUT_PROJECT].path, e) < 0)
		return -1;
	if (file && !file[0])
		return err_set(e, ERR_CONFIG_INVALID, "--policy: empty path");
	if (file && file[0] == '/' && strlen(file) < PATH_TEXT)
		memcpy(in[INPUT_FILE].path, file, strlen(file) + 1);
	else if (file && !where->cwd)
		return err_set(e, ERR_CONFIG_INVALID,
			       "--policy: relative, and the working directory has vanished");
	else if (file && join(file[0] == '/' ? "" : where->cwd, file, in[INPUT_FILE].path, e) < 0)
		return -1;
	for (size_t i = INPUT_USER; i <= INPUT_FILE; i++)
		look(&in[i], i == INPUT_FILE);
	return 0;
}

bool policy_inputs_any(const struct policy_inputs *p)
{
	return p->in[INPUT_USER].there || p->in[INPUT_PROJECT].there || p->in[INPUT_FILE].path[0] ||
	       p->profiles->n;
}

void policy_inputs_more(struct policy_inputs *p, const char *program)
{
	struct stat st;

	(void)snprintf(p->in[INPUT_TRUST].path, PATH_TEXT, "%.4000s/trust", p->state);
	look(&p->in[INPUT_TRUST], false);
	(void)snprintf(p->in[INPUT_PROGRAM].path, PATH_TEXT, "%s", program);
	if (stat(program, &st) == 0)
		policy_input_set(&p->in[INPUT_PROGRAM], &st);
}

static void add_input(struct buf *b, const struct policy_input *in)
{
	const struct stat *st = &in->st;

	(void)buf_str(b, in->path);
	(void)buf_char(b, '\0');
	if (!in->there || in->sys) {
		(void)buf_printf(b, "%d %d;", in->there, in->sys);
		return;
	}
	(void)buf_printf(b, "%llx %llx %llx %llx.%lx %llx.%lx %x %x;",
			 (unsigned long long)st->st_dev, (unsigned long long)st->st_ino,
			 (unsigned long long)st->st_size, (unsigned long long)st->st_mtim.tv_sec,
			 (unsigned long)st->st_mtim.tv_nsec, (unsigned long long)st->st_ctim.tv_sec,
			 (unsigned long)st->st_ctim.tv_nsec, (unsigned int)st->st_uid,
			 (unsigned int)st->st_mode);
}

int policy_inputs_key(const struct policy_inputs *p, struct buf *ret, struct err *e)
{
	(void)buf_printf(ret, SANDGLASS_VERSION " %x ", (unsigned int)p->uid);
	(void)buf_str(ret, p->home ? p->home : "");
	(void)buf_char(ret, '\0');
	(void)buf_str(ret, p->state);
	(void)buf_char(ret, '\0');
	(void)buf_str(ret, p->source ? p->source : "");
	(void)buf_char(ret, '\0');
	for (size_t i = 0; i < p->profiles->n; i++) {
		(void)buf_str(ret, p->profiles->v[i]);
		(void)buf_char(ret, '\0');
	}
	(void)buf_char(ret, '\0');
	for (size_t i = 0; i < POLICY_INPUTS; i++)
		add_input(ret, &p->in[i]);
	return buf_check(ret, "what a policy is made from", ERR_CONFIG_INVALID, e);
}

bool policy_inputs_settled(const struct policy_inputs *p, int64_t now_ms)
{
	for (size_t i = 0; i < POLICY_INPUTS; i++) {
		const struct policy_input *in = &p->in[i];
		if (!in->there)
			continue;
		int64_t changed = (int64_t)in->st.st_ctim.tv_sec * 1000;
		if (in->sys || changed + SETTLED_MS > now_ms)
			return false;
	}
	return true;
}
