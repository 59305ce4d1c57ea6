/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets are made by core's code in a child that enters the session's network
 * namespace, as the keeper, who owns it, may. The child runs nothing and ends at once.
 */
#include "session/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/num.h"
#include "core/core.h"

#define SOCKETS_MS 5000u /* for what takes one */

int session_egress_take(struct session_egress *s, int fd, struct err *e)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	struct stat st;

	if (s->set.n)
		return 0;
	if ((fcntl(fd, F_GET_SEALS) & seals) != seals || fstat(fd, &st) < 0 || st.st_size <= 0 ||
	    st.st_size > (off_t)MAX_EGRESS_BYTES)
		return err_set(e, ERR_INTERNAL, "no file of rules");
	void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return err_sys(e, "the rules");
	int rc = egress_set_decode(bytes, (size_t)st.st_size, &s->set, e);
	(void)munmap(bytes, (size_t)st.st_size);
	return rc;
}

static _Noreturn void be_inside(const struct layers *l, const struct plan *plan, int to)
{
	struct core c = {.p = plan, .has_egress = true};

	if (dup2(to, CORE_FD_CTL) < 0)
		_exit(125);
	if (l->user >= 0 && setns(l->user, CLONE_NEWUSER) < 0)
		core_die(STAGE_EGRESS, errno, "the session's user namespace");
	if (setns(l->net, CLONE_NEWNET) < 0)
		core_die(STAGE_EGRESS, errno, "the session's network");
	wayout_begin(&c);
	wayout_open(&c);
	_exit(c.lost ? 1 : 0);
}

static int failed(const struct report *r, struct err *e)
{
	return err_set(e, ERR_SANDBOX_UNAVAILABLE, "the way out cannot be made: %s: %s", r->text,
		       strerror(r->sys));
}

/* All sockets that the child makes, to the proxy. */
static int pass_sockets(struct session_egress *s, int from, struct err *e)
{
	struct report r;
	int fds[MAX_REPORT_SOCKETS];
	struct pollfd fd = {.fd = from, .events = POLLIN};
	uint64_t until = clock_deadline(clock_mono_ms(), SOCKETS_MS);

	for (;;) {
		size_t n = 0;
		if (poll(&fd, 1, clock_poll_timeout(clock_mono_ms(), until)) == 0 ||
		    !egress_receive(from, &r, fds, &n))
			return err_set(e, ERR_SANDBOX_UNAVAILABLE, "the way out cannot be made");
		if (r.kind == REPORT_FAIL)
			return failed(&r, e);
		bool last = r.status == 0;
		egress_hand_on(&s->out, &r, fds, n);
		if (last)
			return 0;
	}
}

static int make_sockets(struct session_egress *s, const struct layers *l, struct err *e)
{
	struct plan plan = {.n = {.flags = PLAN_EGRESS}};
	int pair[2];
	int status = 0;

	if (egress_plan(&s->set, &plan.egress, e) < 0)
		return -1;
	AUTO_FREE void *prefixes = (void *)(uintptr_t)plan.egress.prefixes;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	pid_t child = fork();
	if (child == 0)
		be_inside(l, &plan, pair[1]);
	(void)close(pair[1]);
	int rc = child < 0 ? err_sys(e, "fork") : pass_sockets(s, pair[0], e);
	(void)close(pair[0]);
	if (child > 0 && RETRY_EINTR(waitpid(child, &status, 0)) == child)
		s->no_redirect = WIFEXITED(status) && WEXITSTATUS(status) == 1;
	return rc;
}

static int wait_for_proxy(struct session_egress *s, struct err *e)
{
	while (!egress_has_failed(&s->out, clock_mono_ms())) {
		struct pollfd fd = {.fd = s->out.ctl, .events = POLLIN};
		(void)poll(&fd, 1, clock_poll_timeout(clock_mono_ms(), s->out.ready_ms));
		if (fd.revents && egress_step(&s->out))
			return 0;
	}
	*e = s->out.failure;
	return -1;
}

int session_egress_ready(struct session_egress *s, const struct layers *l,
			 void (*tell)(void *, const struct egress_event *), void *self,
			 struct err *e)
{
	if (!egress_set_opens(&s->set) || session_egress_fd(s) >= 0)
		return 0;
	session_egress_end(s);
	if (egress_begin(&s->out, &s->set, e) < 0)
		return -1;
	s->began = true;
	s->out.tell = tell;
	s->out.self = self;
	if (make_sockets(s, l, e) == 0 && wait_for_proxy(s, e) == 0)
		return 0;
	session_egress_end(s);
	return -1;
}

bool session_egress_step(struct session_egress *s)
{
	(void)egress_step(&s->out);
	return s->out.ctl >= 0;
}

void session_egress_end(struct session_egress *s)
{
	if (!s->began)
		return;
	egress_stop(&s->out);
	egress_finish(&s->out);
	egress_release(&s->out);
	s->began = false;
}
