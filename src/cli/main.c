/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandglass: finds the verb in the table and runs it.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/nearest.h"
#include "base/term.h"
#include "cli/verbs.h"
#include "run/stdio.h"

int cli_write(int fd, const char *p, size_t n, struct err *e)
{
	while (n) {
		ssize_t done = RETRY_EINTR(write(fd, p, n));
		if (done < 0)
			return err_sys(e, "write");
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

int cli_fail(const struct err *e, int status)
{
	AUTO_BUF line = BUF_INIT(8192);
	struct err ignored = {0};

	if (e->hint[0]) {
		(void)buf_str(&line, "hint: ");
		(void)term_escape(&line, e->hint, strlen(e->hint));
		(void)buf_char(&line, '\n');
	}
	(void)buf_printf(&line, "sandglass: %s: ", err_code_name(e->code));
	(void)term_escape(&line, e->msg, strlen(e->msg));
	(void)buf_char(&line, '\n');
	if (cli_write(STDERR_FILENO, buf_cstr(&line), line.n, &ignored) < 0)
		return status; /* stderr is gone: nobody to tell */
	return status;
}

static int unknown(const char *name)
{
	struct err e = {0};
	const char *names[64];
	char shown[128];

	for (size_t i = 0; i < verb_count; i++)
		names[i] = verbs[i].name;
	const char *near = nearest(name, names, verb_count);
	(void)err_set(&e, ERR_CONFIG_INVALID, "unknown verb `%s`",
		      term_escape_cut(shown, sizeof(shown), name, strlen(name)));
	if (near)
		(void)err_hint(&e, "did you mean `%s`?", near);
	else
		(void)err_hint(
			&e, "`sandglass help` lists the verbs; a command is `sandglass run CMD`");
	return cli_fail(&e, 2);
}

/* `call` and `session exec` run something: their own failures have the statuses of `run`. */
static bool is_call(int argc, char **argv)
{
	return strcmp(argv[1], "call") == 0 ||
	       (strcmp(argv[1], "session") == 0 && argc > 2 && strcmp(argv[2], "exec") == 0);
}

int main(int argc, char **argv)
{
	/* Descriptors that our caller forgot are no business of anybody below us. */
	(void)syscall(436 /* close_range */, 3u, ~0u, 0u);
	struct cli cli = {.env = environ, .closed = stdio_fill()};
	const char *name = argc > 1 ? argv[1] : "help";

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	if (strcmp(name, "--version") == 0)
		name = "version";
	for (size_t i = 0; i < verb_count; i++) {
		if (strcmp(verbs[i].name, name) != 0)
			continue;
		if (verbs[i].run)
			return verbs[i].run(&cli, argc - 2, argv + 2);
		struct err e = {0};
		(void)err_set(&e, ERR_UNSUPPORTED, "`%s` is not in this version (it comes with %s)",
			      name, verbs[i].later);
		return cli_fail(&e, is_call(argc, argv) ? 125 : 2);
	}
	return unknown(name);
}
