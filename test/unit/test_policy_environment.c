/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment: what is passed, what is set, and that nothing else is.
 */
#include "policy/environment.h"

#include "test_policy_place.h"

static struct environment built;

static const char *value(const char *name)
{
	const char *found = NULL;
	size_t n = strlen(name);

	for (size_t i = 0; i < built.n; i++)
		if (strncmp(built.v[i], name, n) == 0 && built.v[i][n] == '=') {
			ck_assert_msg(!found, "%s twice", name);
			found = built.v[i] + n + 1;
		}
	return found;
}

static int build(const struct request *req, const struct caller *who, struct err *e)
{
	environment_release(&built);
	int rc = environment_build(&built, req, who, "/sand", "SESSION", "CALL", e);
	ck_assert_ptr_null(built.v[built.n]);
	return rc;
}

/* The variable has that value, or with NULL is not there. */
static void is(const char *name, const char *want)
{
	const char *got = value(name);

	if (!want || !got)
		ck_assert_msg(got == want, "%s is %s, not %s", name, got, want);
	else
		ck_assert_str_eq(got, want);
}

static char *hostile[] = {(char *)"PATH=/usr/bin:/bin",
			  (char *)"LANG=de_DE.UTF-8",
			  (char *)"LC_TIME=C",
			  (char *)"LC_=odd",
			  (char *)"TERM=xterm",
			  (char *)"TZ=Europe/Berlin",
			  (char *)"COLORTERM=truecolor",
			  (char *)"NO_COLOR=",
			  (char *)"HOME=/home/me",
			  (char *)"USER=me",
			  (char *)"LOGNAME=me",
			  (char *)"SHELL=/bin/zsh",
			  (char *)"SSH_AUTH_SOCK=/run/user/1000/agent",
			  (char *)"AWS_SECRET_ACCESS_KEY=s3cret",
			  (char *)"GITHUB_TOKEN=s3cret",
			  (char *)"LD_PRELOAD=/tmp/evil.so",
			  (char *)"LD_LIBRARY_PATH=/tmp",
			  (char *)"BASH_ENV=/tmp/evil",
			  (char *)"ENV=/tmp/evil",
			  (char *)"LANGUAGE=de",
			  (char *)"LCX=1",
			  (char *)"PATHX=1",
			  (char *)"TMPDIR=/tmp/mine",
			  (char *)"XDG_RUNTIME_DIR=/run/user/1000",
			  (char *)"XDG_CACHE_HOME=/home/me/.cache",
			  (char *)"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus",
			  (char *)"SANDGLASS=7",
			  (char *)"SANDGLASS_HOME=/x",
			  (char *)"SANDGLASS_DEPTH_LEFT=99",
			  (char *)"AGENT_ROOT=/x",
			  (char *)"SESSION_ID=x",
			  (char *)"no equals sign",
			  (char *)"=odd",
			  NULL};

START_TEST(allowlist)
{
	static const char *const want[][2] = {
		{"PATH", "/usr/bin:/bin"},
		{"LANG", "de_DE.UTF-8"},
		{"LC_TIME", "C"},
		{"LC_", "odd"},
		{"TERM", "xterm"},
		{"TZ", "Europe/Berlin"},
		{"COLORTERM", "truecolor"},
		{"NO_COLOR", ""},
		{"HOME", "/sand/home"},
		{"TMPDIR", "/sand/tmp"},
		{"XDG_CACHE_HOME", "/sand/cache"},
		{"AGENT_ROOT", "/sand"},
		{"SANDGLASS", "1"},
		{"SESSION_ID", "SESSION"},
		{"SANDGLASS_CALL", "CALL"},
		{"SANDGLASS_DEPTH_LEFT", "3"},
	};
	struct request req = request_of_nothing();
	struct caller who = caller_of("/home/me", hostile);
	struct err e;

	CK_WORKS(build(&req, &who, &e), e);
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		is(want[i][0], want[i][1]);
	ck_assert_uint_eq(built.n, ARRAY_LEN(want));
}
END_TEST

START_TEST(nothing_to_pass)
{
	struct request req = request_of_nothing();
	struct caller who = caller_of(NULL, NULL);
	struct err e;

	CK_WORKS(build(&req, &who, &e), e);
	is("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
	is("LANG", NULL);
	is("HOME", "/sand/home");
	ck_assert_uint_eq(built.n, 9);
}
END_TEST

START_TEST(named)
{
	struct request req = request_of_nothing();
	struct caller who = caller_of("/home/me", hostile);
	struct err e;

	req.env.v[req.env.n++] = "GITHUB_TOKEN";
	req.env.v[req.env.n++] = "NOT_THERE";
	req.env.v[req.env.n++] = "LANGUAGE=";
	req.env.v[req.env.n++] = "A_1=b=c\nd";
	req.env.v[req.env.n++] = "PATH=/only";
	req.env.v[req.env.n++] = "A_1=again";
	CK_WORKS(build(&req, &who, &e), e);
	is("GITHUB_TOKEN", "s3cret");
	is("NOT_THERE", NULL);
	is("LANGUAGE", "");
	is("A_1", "again");
	is("PATH", "/only");
	is("AWS_SECRET_ACCESS_KEY", NULL);
}
END_TEST

/* What says where the command is cannot be given another value. */
START_TEST(ours_win)
{
	static const char *const given[] = {"HOME=/x",           "TMPDIR=/x",
					    "XDG_CACHE_HOME=/x", "AGENT_ROOT=/x",
					    "SANDGLASS=0",       "SESSION_ID=x",
					    "SANDGLASS_CALL=x",  "SANDGLASS_DEPTH_LEFT=99"};
	struct request req = request_of_nothing();
	struct caller who = caller_of("/home/me", NULL);
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(given); i++) {
		req.env.n = 1;
		req.env.v[0] = given[i];
		CK_FAILS(build(&req, &who, &e), e, ERR_CONFIG_INVALID, "sets this one itself");
	}
	req.env.n = 0;
	CK_WORKS(build(&req, &who, &e), e);
	is("HOME", "/sand/home");
	is("TMPDIR", "/sand/tmp");
	is("XDG_CACHE_HOME", "/sand/cache");
	is("AGENT_ROOT", "/sand");
	is("SANDGLASS", "1");
	is("SESSION_ID", "SESSION");
	is("SANDGLASS_CALL", "CALL");
	is("SANDGLASS_DEPTH_LEFT", "3");
	ck_assert_uint_eq(built.n, 9);
}
END_TEST

START_TEST(bad_names)
{
	static const char *const bad[] = {"",           "=x",  "1A",    "A B",  "A-B=1",
					  "\xc3\xa4=1", "A.B", "A\n=1", " A=1", "A;B"};
	static const char *const good[] = {"A", "_", "a1", "_9=", "Z_z_0=x"};
	char name[300];
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad) + ARRAY_LEN(good); i++) {
		struct request req = request_of_nothing();
		struct caller who = caller_of("/home/me", NULL);
		bool fine = i >= ARRAY_LEN(bad);
		req.env.v[req.env.n++] = fine ? good[i - ARRAY_LEN(bad)] : bad[i];
		if (fine)
			CK_WORKS(build(&req, &who, &e), e);
		else
			CK_FAILS(build(&req, &who, &e), e, ERR_CONFIG_INVALID,
				 "not a variable's name");
	}
	memset(name, 'N', sizeof(name));
	for (size_t n = 255; n <= 256; n++) {
		struct request req = request_of_nothing();
		struct caller who = caller_of("/home/me", NULL);
		memcpy(name + n, "=v", 3);
		req.env.v[req.env.n++] = name;
		if (n == 255)
			CK_WORKS(build(&req, &who, &e), e);
		else
			CK_FAILS(build(&req, &who, &e), e, ERR_CONFIG_INVALID,
				 "not a variable's name");
		name[n] = 'N';
	}
}
END_TEST

/* 512 in all: what the caller has of LC_ counts too. */
START_TEST(limit_of_count)
{
	static char text[MAX_ENV][24];
	static char *vars[MAX_ENV + 1];
	struct request req = request_of_nothing();
	struct err e;
	size_t fit = MAX_ENV - 9; /* PATH and eight of ours */

	for (size_t n = fit; n <= fit + 1; n++) {
		for (size_t i = 0; i < n; i++) {
			snprintf(text[i], sizeof(text[i]), "LC_%zu=x", i);
			vars[i] = text[i];
		}
		vars[n] = NULL;
		struct caller who = caller_of("/home/me", vars);
		if (n == fit) {
			CK_WORKS(build(&req, &who, &e), e);
			ck_assert_uint_eq(built.n, MAX_ENV);
		} else {
			CK_FAILS(build(&req, &who, &e), e, ERR_ARG_LIMIT, "more than 512");
		}
	}
}
END_TEST

START_TEST(toolchain_roots)
{
	static const struct {
		const char *path, *rustup, *pyenv, *volta;
	} rows[] = {
		{"PATH=/usr/bin", NULL, NULL, NULL},
		{"PATH=/home/me/.cargo/bin:/usr/bin", "/home/me/.rustup", NULL, NULL},
		{"PATH=/usr/bin:/home/me/.pyenv/shims", NULL, "/home/me/.pyenv", NULL},
		{"PATH=/usr/bin:/home/me/.volta/bin:/x", NULL, NULL, "/home/me/.volta"},
		{"PATH=/home/me/.cargo/binary:/home/me/.pyenvs:/home/you/.volta/bin", NULL, NULL,
		 NULL},
		{"PATH=/home/me/.cargo", NULL, NULL, NULL},
		{"PATH=x/home/me/.pyenv/shims", NULL, NULL, NULL},
	};
	struct request req = request_of_nothing();
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *vars[] = {(char *)(uintptr_t)rows[i].path, NULL};
		struct caller who = caller_of("/home/me", vars);
		CK_WORKS(build(&req, &who, &e), e);
		is("RUSTUP_HOME", rows[i].rustup);
		is("PYENV_ROOT", rows[i].pyenv);
		is("VOLTA_HOME", rows[i].volta);
	}
}
END_TEST

/* Without a boundary there is no /sand; still nothing is passed that was not named. */
START_TEST(full_access)
{
	struct request req = request_of_nothing();
	struct caller who = caller_of("/home/me", hostile);
	struct err e;

	req.mode = MODE_FULL_ACCESS;
	CK_WORKS(build(&req, &who, &e), e);
	is("HOME", "/home/me");
	is("TMPDIR", NULL);
	is("AGENT_ROOT", NULL);
	is("SANDGLASS", "1");
	is("SESSION_ID", "SESSION");
	is("AWS_SECRET_ACCESS_KEY", NULL);
	is("LD_PRELOAD", NULL);
	who.home = NULL;
	CK_WORKS(build(&req, &who, &e), e);
	is("HOME", NULL);
}
END_TEST

static void close_env(void)
{
	environment_release(&built);
}

int main(void)
{
	Suite *s = suite_create("policy environment");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, NULL, close_env);
	tcase_add_test(c, allowlist);
	tcase_add_test(c, nothing_to_pass);
	tcase_add_test(c, named);
	tcase_add_test(c, ours_win);
	tcase_add_test(c, bad_names);
	tcase_add_test(c, limit_of_count);
	tcase_add_test(c, toolchain_roots);
	tcase_add_test(c, full_access);
	suite_add_tcase(s, c);
	return suite_run(s);
}
