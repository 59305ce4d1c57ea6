/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the verbs print.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/term.h"
#include "cli/verbs.h"

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

void cli_die_by(int sig)
{
	sigset_t set;

	(void)sigaction(sig, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, sig);
	(void)raise(sig);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}
