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
#include "store/sessionnet.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define SOCKETS_MS 5000u /* for what takes one */
#define ORDER_MS 5000u   /* likewise */
#define TELL_MS 400u /* for what nobody waits for longer: the front has 500 ms at a call's end */

static int read_set(int fd, struct egress_set *ret, struct err *e)
{
	struct stat st;

	if ((fcntl(fd, F_GET_SEALS) & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size <= 0 ||
	    st.st_size > (off_t)MAX_EGRESS_BYTES)
		return err_set(e, ERR_INTERNAL, "no file of rules");
	void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return err_sys(e, "the rules");
	int rc = egress_set_decode(bytes, (size_t)st.st_size, ret, e);
	(void)munmap(bytes, (size_t)st.st_size);
	return rc;
}

static void move(struct egress_set *to, struct egress_set *from)
{
	egress_set_release(to);
	*to = *from;
	*from = (struct egress_set){0};
}

/* What the session was made with, and then what was added. */
static int compose(const struct session_egress *s, const struct egress_set *net,
		   struct egress_set *ret, struct err *e)
{
	AUTO_EGRESS_SET all = {0};

	if (egress_set_copy(&s->base, &all, e) < 0 || egress_set_join(&all, net, e) < 0)
		return -1;
	move(ret, &all);
	return 0;
}

int session_egress_take(struct session_egress *s, int fd, struct err *e)
{
	AUTO_EGRESS_SET net = {0};

	if (s->known || fd < 0)
		return 0;
	if (read_set(fd, &s->base, e) < 0 || session_net_read(s->dir, &net, e) < 0 ||
	    compose(s, &net, &s->set, e) < 0) {
		egress_set_release(&s->base);
		return -1;
	}
	s->known = true;
	s->generation++;
	return 0;
}

static bool is_sealed(int fd)
{
	return fd >= 0 && (fcntl(fd, F_GET_SEALS) & SEALS) == SEALS;
}

int session_egress_secrets(struct session_egress *s, int *secrets, int *values, struct err *e)
{
	if (s->secrets >= 0 || *secrets < 0)
		return 0;
	if (!is_sealed(*secrets) || !is_sealed(*values))
		return err_set(e, ERR_INTERNAL, "no files of secrets");
	/* One that runs has placeholders only: the next call gets another. */
	session_egress_end(s);
	s->secrets = TAKE_FD(*secrets);
	s->values = TAKE_FD(*values);
	return 0;
}

static _Noreturn void be_inside(const struct layers *l, const struct plan *plan, int to, bool more)
{
	struct core c = {.p = plan, .has_egress = true};

	if (dup2(to, CORE_FD_CTL) < 0)
		_exit(125);
	if (l->user >= 0 && setns(l->user, CLONE_NEWUSER) < 0)
		core_die(STAGE_EGRESS, errno, "the session's user namespace");
	if (setns(l->net, CLONE_NEWNET) < 0)
		core_die(STAGE_EGRESS, errno, "the session's network");
	if (more) {
		wayout_more(&c);
	} else {
		wayout_begin(&c);
		wayout_open(&c);
	}
	_exit(c.lost ? 1 : 0);
}

static int failed(const struct report *r, struct err *e)
{
	return err_set(e, ERR_SANDBOX_UNAVAILABLE, "the way out cannot be made: %s: %s", r->text,
		       strerror(r->sys));
}

/* Sockets for what is new in the rules, until the proxy gets them with those. */
struct gathered {
	struct egress_order order;
	int fds[MAX_EGRESS_ORDER];
};

static bool gather(struct gathered *g, const struct report *r, const int *fds, size_t n)
{
	bool fits = (size_t)r->status == n && n <= MAX_EGRESS_ORDER - g->order.count;

	for (size_t i = 0; i < n && !fits; i++)
		(void)close(fds[i]);
	if (!fits)
		return false;
	memcpy(g->order.v + g->order.count, r->text, n * sizeof(g->order.v[0]));
	memcpy(g->fds + g->order.count, fds, n * sizeof(int));
	g->order.count += (uint32_t)n;
	return true;
}

static void release(struct gathered *g)
{
	for (uint32_t i = 0; i < g->order.count; i++)
		(void)close(g->fds[i]);
	g->order.count = 0;
}

/* All sockets that the child makes: to the proxy, or kept for later. */
static int pass_sockets(struct session_egress *s, int from, struct gathered *keep, struct err *e)
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
		if (!keep)
			egress_hand_on(&s->out, &r, fds, n);
		else if (!gather(keep, &r, fds, n))
			return err_set(e, ERR_INTERNAL, "sockets of another number");
		if (last)
			return 0;
	}
}

static int make_sockets(struct session_egress *s, const struct layers *l, const struct plan *plan,
			struct gathered *keep, struct err *e)
{
	int pair[2];
	int status = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	pid_t child = fork();
	if (child == 0)
		be_inside(l, plan, pair[1], keep != NULL);
	(void)close(pair[1]);
	int rc = child < 0 ? err_sys(e, "fork") : pass_sockets(s, pair[0], keep, e);
	(void)close(pair[0]);
	if (child > 0 && RETRY_EINTR(waitpid(child, &status, 0)) == child && !keep)
		s->no_redirect = WIFEXITED(status) && WEXITSTATUS(status) == 1;
	return rc;
}

/* All that the rules need, for a proxy that begins. */
static int make_all(struct session_egress *s, const struct layers *l, struct err *e)
{
	struct plan plan = {.n = {.flags = PLAN_EGRESS}};

	if (egress_plan(&s->set, &plan.egress, e) < 0)
		return -1;
	AUTO_FREE void *prefixes = (void *)(uintptr_t)plan.egress.prefixes;
	s->port_count = plan.egress.port_count;
	memcpy(s->ports, plan.egress.ports, s->port_count * sizeof(s->ports[0]));
	return make_sockets(s, l, &plan, NULL, e);
}

static bool has_port(const struct session_egress *s, uint16_t port)
{
	for (size_t i = 0; i < s->port_count; i++)
		if (s->ports[i] == port)
			return true;
	return false;
}

/* Routes, and sockets for the ports that have none; a route that is there stays. */
static int make_more(struct session_egress *s, const struct layers *l, const struct egress_set *set,
		     struct gathered *ret, struct err *e)
{
	struct plan plan = {.n = {.flags = PLAN_EGRESS}};
	size_t n = 0;

	if (egress_plan(set, &plan.egress, e) < 0)
		return -1;
	AUTO_FREE void *prefixes = (void *)(uintptr_t)plan.egress.prefixes;
	for (size_t i = 0; i < plan.egress.port_count; i++)
		if (!has_port(s, plan.egress.ports[i]))
			plan.egress.ports[n++] = plan.egress.ports[i];
	plan.egress.port_count = n;
	if (n == 0 && plan.egress.prefix_count == 0)
		return 0;
	if (s->port_count + n > MAX_EGRESS_LOCALS)
		return err_set(e, ERR_CONFIG_INVALID,
			       "more than %u ports of the host's loopback since the session's "
			       "network was opened",
			       MAX_EGRESS_LOCALS);
	return make_sockets(s, l, &plan, ret, e);
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

/* An order is carried out: what is said from now on is of the new rules. */
static void hear(void *self, const struct egress_event *v)
{
	struct session_egress *s = self;
	struct egress_event said = *v;

	if (v->kind != EGRESS_DONE) {
		said.generation = s->generation;
		s->tell(s->self, &said);
		return;
	}
	if (v->id != s->number)
		return;
	s->number = 0;
	if (!s->changes)
		return;
	s->changes = false;
	move(&s->set, &s->next);
	s->generation++;
}

static void say_end(struct session_egress *s)
{
	const struct egress_event died = {.kind = EGRESS_DIED,
					  .rule = -1,
					  .generation = s->generation};

	s->tell(s->self, &died);
}

/* Until what was ordered is carried out. False: it is not. */
static bool settle(struct session_egress *s, unsigned int ms)
{
	uint64_t until = clock_deadline(clock_mono_ms(), ms);

	while (s->number && s->out.ctl >= 0 && clock_mono_ms() < until) {
		struct pollfd fd = {.fd = s->out.ctl, .events = POLLIN};
		if (poll(&fd, 1, clock_poll_timeout(clock_mono_ms(), until)) > 0)
			session_egress_step(s);
	}
	return !s->number;
}

static uint32_t next_number(void)
{
	static uint32_t last;

	return ++last ? last : ++last;
}

void session_egress_tell(struct session_egress *s, enum egress_order_kind what)
{
	struct egress_order o = {.kind = what, .number = next_number()};
	struct err ignored = {0}; /* a proxy that is gone is heard of */

	if (session_egress_fd(s) < 0 || !settle(s, TELL_MS))
		return;
	s->number = o.number;
	if (egress_order(&s->out, &o, NULL, NULL, &ignored) < 0)
		s->number = 0;
	else if (what != EGRESS_ORDER_RESET)
		(void)settle(s, TELL_MS);
}

/* It was said before the proxy listened. */
static int keep_authority(struct session_egress *s, struct err *e)
{
	const char *pem = s->out.authority;

	if (!egress_set_inspects(&s->set))
		return 0;
	if (!pem)
		return err_set(e, ERR_SANDBOX_UNAVAILABLE,
			       "sandglass-proxy made no certificate for inspection");
	AUTO_FD int fd = memfd_create("authority", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || write(fd, pem, strlen(pem)) != (ssize_t)strlen(pem) ||
	    fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) < 0)
		return err_sys(e, "the certificate for inspection");
	s->authority = TAKE_FD(fd);
	return 0;
}

int session_egress_ready(struct session_egress *s, const struct layers *l, struct err *e)
{
	/* One that does not answer is none. */
	if (session_egress_fd(s) >= 0 && settle(s, ORDER_MS))
		return 0;
	session_egress_end(s);
	if (!egress_set_opens(&s->set))
		return 0;
	/* What was spent is the session's, whatever becomes of this proxy. */
	AUTO_FD int spent = session_net_spent(s->dir, e);
	if (spent < 0)
		return -1;
	const struct egress_files files = {.secrets = s->secrets, .spent = spent};
	if (egress_begin(&s->out, &s->set, &files, e) < 0)
		return -1;
	s->began = true;
	s->out.tell = hear;
	s->out.self = s;
	if (make_all(s, l, e) == 0 && wait_for_proxy(s, e) == 0 && keep_authority(s, e) == 0)
		return 0;
	session_egress_end(s);
	return -1;
}

static bool has_rule(const struct egress_set *s, const struct egress_entry *r)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].rule.list == r->rule.list && strcmp(s->v[i].text, r->text) == 0)
			return true;
	return false;
}

/* What was added before, unless it is to go, and `more`, each once. */
static int read_net(const struct session_egress *s, int more, bool anew, struct egress_set *ret,
		    struct err *e)
{
	AUTO_EGRESS_SET net = {0};
	AUTO_EGRESS_SET new = {0};

	if (read_set(more, &new, e) < 0 || (!anew && session_net_read(s->dir, &net, e) < 0))
		return -1;
	/* Without an authority from the beginning no command of it believes one. */
	if (egress_set_inspects(&new) && !egress_set_inspects(&s->base)) {
		(void)err_set(e, ERR_CONFIG_INVALID,
			      "a rule by method and path needs a session that inspects, and this "
			      "one does not");
		return err_hint(e, "session new with network.inspect or such a rule in its policy; "
				   "or a rule for the whole host");
	}
	for (size_t i = 0; i < new.n; i++) {
		const struct egress_entry *r = &new.v[i];
		if (!has_rule(&net, r) &&
		    egress_set_add(&net, (enum egress_list)r->rule.list, r->text, r->origin, e) < 0)
			return -1;
	}
	move(ret, &net);
	return 0;
}

/* Hands the rules to the proxy that runs, and waits until they hold. */
static int hand_over(struct session_egress *s, struct gathered *g, struct err *e)
{
	bool good = settle(s, ORDER_MS);

	g->order.kind = EGRESS_ORDER_RULES;
	s->number = g->order.number = next_number();
	s->changes = true;
	if (good && egress_order(&s->out, &g->order, &s->next, g->fds, e) < 0)
		return -1;
	for (uint32_t i = 0; i < g->order.count; i++)
		if (!has_port(s, (uint16_t)g->order.v[i].port))
			s->ports[s->port_count++] = (uint16_t)g->order.v[i].port;
	if (good && settle(s, ORDER_MS))
		return 0;
	return err_set(e, ERR_SANDBOX_UNAVAILABLE,
		       "the session's proxy did not take the rules, and was ended: nothing of the "
		       "session reaches anything until its next call begins");
}

int session_egress_change(struct session_egress *s, const struct layers *l, int more, bool anew,
			  struct err *e)
{
	AUTO_EGRESS_SET net = {0};
	struct gathered g = {.order = {.count = 0}};
	bool runs = session_egress_fd(s) >= 0;

	if (!s->known)
		return err_set(e, ERR_INTERNAL, "the session's own rules are not known");
	if (read_net(s, more, anew, &net, e) < 0 || compose(s, &net, &s->next, e) < 0)
		return -1;
	if ((runs && make_more(s, l, &s->next, &g, e) < 0) ||
	    session_net_write(s->dir, &net, e) < 0) {
		release(&g);
		return -1;
	}
	if (!runs) {
		move(&s->set, &s->next);
		s->generation++;
		return session_egress_ready(s, l, e);
	}
	int rc = hand_over(s, &g, e);
	release(&g);
	if (rc == 0)
		return 0;
	move(&s->set, &s->next);
	s->generation++;
	session_egress_end(s);
	say_end(s);
	return -1;
}

void session_egress_step(struct session_egress *s)
{
	if (session_egress_fd(s) < 0)
		return;
	(void)egress_step(&s->out);
	if (s->out.ctl < 0)
		say_end(s);
}

void session_egress_end(struct session_egress *s)
{
	if (!s->began)
		return;
	egress_stop(&s->out);
	egress_finish(&s->out);
	egress_release(&s->out);
	base_close_fd(&s->authority);
	s->authority = -1;
	s->began = s->changes = false;
	s->number = 0;
}
