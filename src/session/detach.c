/* SPDX-License-Identifier: Apache-2.0 */
#include "session/detach.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/base.h"
#include "core/sys.h"

void detach(int *const *mine, size_t n)
{
	static const int kept[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGTSTP};

	(void)setsid();
	(void)chdir("/");
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		(void)sigaction(kept[i],
				&(struct sigaction){.sa_handler =
							    i < 3 || i > 3 ? SIG_IGN : SIG_DFL},
				NULL);
	(void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd <= 2; fd++)
		(void)dup2(null, fd);
	/* All that the caller had open stays the caller's. */
	for (size_t i = 0; i < n; i++)
		if (*mine[i] >= 0)
			*mine[i] = fcntl(*mine[i], F_DUPFD_CLOEXEC, 100 + (int)i);
	for (size_t i = 0; i < n; i++) {
		(void)close(3 + (int)i); /* the caller's, whatever it is */
		if (*mine[i] < 0)
			continue;
		*mine[i] = dup2(*mine[i], 3 + (int)i);
		(void)fcntl(*mine[i], F_SETFD, FD_CLOEXEC);
	}
	(void)sys_close_range(3 + (unsigned int)n, ~0u, 0);
	(void)prctl(PR_SET_NAME, "sandglass-keep", 0, 0, 0);
}
