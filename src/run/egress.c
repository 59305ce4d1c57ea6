/* SPDX-License-Identifier: Apache-2.0 */
#include "run/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/num.h"
#include "egress/limit.h"
#include "egress/secret.h"
#include "run/beside.h"

#define FD_SAFE (EGRESS_FD_SPENT + 3) /* ours stay above the numbers that it is given */
#define LAST_WORDS_MS 500u            /* after the end of a call */
#define MAX_STEP_EVENTS 64            /* then others have their turn */
#define FIRST_ROWS 8u

/* What core calls its sockets is what the proxy calls them. */
_Static_assert((int)SOCKET_DNS_UDP == (int)EGRESS_DNS_UDP &&
		       (int)SOCKET_DNS_TCP == (int)EGRESS_DNS_TCP &&
		       (int)SOCKET_HTTP == (int)EGRESS_HTTP &&
		       (int)SOCKET_SOCKS == (int)EGRESS_SOCKS &&
		       (int)SOCKET_REDIRECT4 == (int)EGRESS_REDIRECT4 &&
		       (int)SOCKET_REDIRECT6 == (int)EGRESS_REDIRECT6 &&
		       (int)SOCKET_LOCAL == (int)EGRESS_LOCAL &&
		       sizeof(struct report_socket) == sizeof(struct egress_listener),
	       "one table of sockets");

const char *egress_op_name(enum egress_op op)
{
	return op == EGRESS_RESOLVE ? "dns" : "connect";
}

/* Above what the proxy gets, so that dup2() takes none of them away. */
static int high(int fd)
{
	return file_fd_above(fd, FD_SAFE);
}

static int write_set(int fd, const struct egress_set *set, struct err *e)
{
	AUTO_BUF bytes = BUF_INIT(MAX_EGRESS_BYTES);

	if (egress_set_encode(set, &bytes, e) < 0)
		return -1;
	for (size_t at = 0; at < bytes.n;) {
		ssize_t n = write(fd, bytes.p + at, bytes.n - at);
		if (n < 0)
			return err_sys(e, "write the rules");
		at += (size_t)n;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0 ||
	    lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, "seal the rules");
	return 0;
}

static int add_fds(posix_spawn_file_actions_t *acts, int set, int ctl, int secrets, int spent)
{
	int rc = posix_spawn_file_actions_addopen(acts, 0, "/dev/null", O_RDWR, 0);

	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(acts, 0, 1);
#ifndef SANDGLASS_SANITIZED /* whose reports have to be seen */
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(acts, 0, 2);
#endif
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(acts, set, EGRESS_FD_SET);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(acts, ctl, EGRESS_FD_CONTROL);
	/* In any case: a descriptor of our caller's could stand there. */
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(acts, secrets < 0 ? 0 : secrets,
						      EGRESS_FD_SECRETS);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(acts, spent < 0 ? 0 : spent, EGRESS_FD_SPENT);
	return rc;
}

/* In a session of its own: no key of the caller's terminal is for it. */
static int spawn_proxy(struct egress *g, int set, int ctl, const struct egress_files *files,
		       struct err *e)
{
	char *argv[] = {(char *)(uintptr_t) "sandglass-proxy", NULL};
	char *envp[] = {NULL};
	char path[PATH_TEXT];
	posix_spawn_file_actions_t acts;
	posix_spawnattr_t attr;
	sigset_t all;
	sigset_t none;

	if (beside_find("sandglass-proxy", path, e) < 0)
		return -1;
	if (posix_spawn_file_actions_init(&acts) != 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (posix_spawnattr_init(&attr) != 0) {
		(void)posix_spawn_file_actions_destroy(&acts);
		return err_set(e, ERR_INTERNAL, "out of memory");
	}
	(void)sigfillset(&all);
	(void)sigemptyset(&none);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
						      POSIX_SPAWN_SETSID);
	(void)posix_spawnattr_setsigdefault(&attr, &all);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	int rc = add_fds(&acts, set, ctl, files->secrets, files->spent);
	if (rc == 0)
		rc = posix_spawn(&g->pid, path, &acts, &attr, argv, envp);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&acts);
	if (rc == 0)
		return 0;
	g->pid = 0;
	return err_set(e, ERR_SANDBOX_UNAVAILABLE, "%s cannot be started: %s", path, strerror(rc));
}

int egress_plan(const struct egress_set *set, struct plan_egress *ret, struct err *e)
{
	_Static_assert(MAX_EGRESS_LOCALS <= MAX_PLAN_PORTS && MAX_EGRESS_RULES <= MAX_PLAN_PREFIXES,
		       "the plan has room for all rules");
	struct plan_prefix *v = calloc(set->n + 1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < set->n; i++) {
		const struct egress_rule *r = &set->v[i].rule;
		struct plan_prefix p = {.family = r->addr.family, .bits = r->bits};
		bool known = false;
		if (!egress_rule_opens(r) || r->kind != EGRESS_PREFIX)
			continue;
		memcpy(p.addr, r->addr.b, sizeof(p.addr));
		for (unsigned int bit = p.bits; bit < 8 * sizeof(p.addr); bit++)
			p.addr[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
		for (size_t k = 0; k < n; k++)
			known |= memcmp(&v[k], &p, sizeof(p)) == 0;
		if (!known)
			v[n++] = p;
	}
	*ret = (struct plan_egress){.prefixes = v, .prefix_count = n};
	ret->port_count = egress_set_locals(set, ret->ports);
	return 0;
}

int egress_file(const struct egress_set *set, struct err *e)
{
	AUTO_FD int fd = high(memfd_create("rules", MFD_CLOEXEC | MFD_ALLOW_SEALING));

	if (fd < 0)
		return err_sys(e, "memfd_create");
	return write_set(fd, set, e) < 0 ? -1 : TAKE_FD(fd);
}

bool egress_receive(int fd, struct report *ret, int *ret_fds, size_t *ret_n)
{
	struct iovec iov = {.iov_base = ret, .iov_len = sizeof(*ret)};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(MAX_REPORT_SOCKETS * sizeof(int))];
	} control;
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};

	ssize_t n = RETRY_EINTR(recvmsg(fd, &m, MSG_CMSG_CLOEXEC));
	const struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);
	*ret_n = 0;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		*ret_n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(ret_fds, CMSG_DATA(c), *ret_n * sizeof(int));
	}
	if (n == sizeof(*ret) && (ret->kind == REPORT_EGRESS || ret->kind == REPORT_FAIL)) {
		if (ret->kind == REPORT_FAIL)
			ret->text[sizeof(ret->text) - 1] = '\0';
		return true;
	}
	for (size_t i = 0; i < *ret_n; i++)
		(void)close(ret_fds[i]);
	return false;
}

int egress_begin(struct egress *g, const struct egress_set *set, const struct egress_files *files,
		 struct err *e)
{
	int pair[2];

	*g = (struct egress){.set = set, .ctl = -1};
	AUTO_FD int fd = egress_file(set, e);
	if (fd < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	AUTO_FD int mine = high(pair[0]);
	AUTO_FD int theirs = high(pair[1]);
	AUTO_FD int given =
		files->secrets < 0 ? -1 : fcntl(files->secrets, F_DUPFD_CLOEXEC, FD_SAFE);
	if (mine < 0 || theirs < 0 || (files->secrets >= 0 && given < 0))
		return err_sys(e, "descriptors");
	const struct egress_files safe = {.secrets = given, .spent = files->spent};
	if (spawn_proxy(g, fd, theirs, &safe, e) < 0)
		return -1;
	g->ctl = TAKE_FD(mine);
	g->ready_ms = clock_deadline(clock_mono_ms(), EGRESS_READY_MS);
	return 0;
}

/* It is gone. Before it has listened that is a failure, after the call it is what was asked for. */
static void lose(struct egress *g)
{
	(void)close(g->ctl);
	g->ctl = -1;
	if (g->over)
		return;
	if (g->ready_ms == LIMIT_NONE)
		g->died = true;
	if (g->died || g->failure.code != ERR_NONE)
		return;
	(void)err_set(&g->failure, ERR_SANDBOX_UNAVAILABLE,
		      "sandglass-proxy ended before it listened");
	(void)err_hint(
		&g->failure,
		"it needs libuv.so.1, libcares.so.2, libssl.so.3 and libcrypto.so.3 (Debian: "
		"apt-get install libuv1 libc-ares2 libssl3); see `sandglass doctor`");
}

static bool send_sockets(int ctl, const void *table, size_t bytes, const int *fds, size_t n)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)table, .iov_len = bytes};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE((1 + MAX_EGRESS_ORDER) * sizeof(int))];
	} control = {.room = {0}};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, n * sizeof(int));
	}
	return RETRY_EINTR(sendmsg(ctl, &m, MSG_NOSIGNAL)) == (ssize_t)bytes;
}

void egress_hand_on(struct egress *g, const struct report *r, const int *fds, size_t n)
{
	static const char end = 0;

	if (g->ctl >= 0 && (size_t)r->status == n && n <= MAX_REPORT_SOCKETS) {
		bool sent = n ? send_sockets(g->ctl, r->text, n * sizeof(struct egress_listener),
					     fds, n)
			      : send_sockets(g->ctl, &end, sizeof(end), NULL, 0);
		if (!sent)
			lose(g);
	}
	for (size_t i = 0; i < n; i++)
		(void)close(fds[i]);
}

int egress_order(struct egress *g, const struct egress_order *o, const struct egress_set *set,
		 const int *fds, struct err *e)
{
	int all[1 + MAX_EGRESS_ORDER];
	size_t n = 0;

	AUTO_FD int rules = set ? egress_file(set, e) : -1;
	if (set && rules < 0)
		return -1;
	if (set)
		all[n++] = rules;
	for (uint32_t i = 0; i < o->count; i++)
		all[n++] = fds[i];
	if (g->ctl >= 0 && send_sockets(g->ctl, o, sizeof(*o), all, n))
		return 0;
	return err_set(e, ERR_SANDBOX_UNAVAILABLE, "the session's proxy takes no orders");
}

static void count(struct egress_rows *rows, const struct egress_row *row)
{
	for (size_t i = 0; i < rows->n; i++) {
		struct egress_row *r = &rows->v[i];
		if (r->op == row->op && strcmp(r->said.target, row->said.target) == 0 &&
		    strcmp(r->said.rule, row->said.rule) == 0) {
			r->count += row->count;
			return;
		}
	}
	if (row->op == EGRESS_RESOLVE && rows->names == MAX_EGRESS_TOLD / 2) {
		rows->more += row->count;
		return;
	}
	if (rows->n == rows->room && rows->n < MAX_EGRESS_TOLD) {
		size_t room = rows->room ? 2 * rows->room : FIRST_ROWS;
		struct egress_row *more = realloc(rows->v, room * sizeof(*more));
		if (more) {
			rows->v = more;
			rows->room = room;
		}
	}
	if (rows->n == rows->room) {
		rows->more += row->count;
		return;
	}
	rows->names += row->op == EGRESS_RESOLVE;
	rows->v[rows->n++] = *row;
}

/* Of a proxy of another build, or of one that somebody has taken over: counted as nothing. */
static bool is_event(const struct egress_event *v)
{
	return v->kind < EGRESS_EVENT_KINDS && v->how < EGRESS_HOWS && v->reason < EGRESS_WHYS &&
	       v->port <= UINT16_MAX && v->rule >= -1 &&
	       (v->rule < 0 || (size_t)v->rule < MAX_EGRESS_RULES) &&
	       memchr(v->host, 0, sizeof(v->host)) && memchr(v->address, 0, sizeof(v->address)) &&
	       memchr(v->method, 0, sizeof(v->method)) && memchr(v->path, 0, sizeof(v->path));
}

void egress_note(struct egress *g, const struct egress_event *v)
{
	struct egress_row row = {.op = v->how == EGRESS_BY_DNS ? EGRESS_RESOLVE : EGRESS_CONNECT,
				 .how = (enum egress_how)v->how,
				 .reason = (enum egress_reason)v->reason,
				 .count = egress_times(v)};

	if (!is_event(v))
		return;
	if (g->tell) {
		g->tell(g->self, v);
		return;
	}
	switch ((enum egress_event_kind)v->kind) {
	case EGRESS_ALLOW:
	case EGRESS_DENY:
		egress_say(g->set, row.reason, v->rule, v->host, v->port, v->address, &row.said);
		count(v->kind == EGRESS_ALLOW ? &g->allowed : &g->denied, &row);
		break;
	case EGRESS_CLOSE:
	case EGRESS_BYTES:
		g->up += v->up;
		g->down += v->down;
		break;
	case EGRESS_MORE:
		g->denied.more += row.count;
		break;
	case EGRESS_DIED:
		g->died = true;
		break;
	case EGRESS_REQUEST:
		asked_note(&g->requests, g->set, v);
		break;
	case EGRESS_SECRET:
		asked_note(&g->used, g->set, v);
		break;
	case EGRESS_FAIL:
		egress_say(g->set, row.reason, v->rule, v->host, v->port, v->address, &row.said);
		count(&g->failed, &row);
		break;
	case EGRESS_READY:
	case EGRESS_DONE:
	case EGRESS_EVENT_KINDS:
		break;
	}
}

static void take_authority(struct egress *g, const struct egress_ca *ca)
{
	if (g->authority || ca->magic != EGRESS_CA_MAGIC || ca->n == 0 ||
	    ca->n >= sizeof(ca->pem) || strnlen(ca->pem, sizeof(ca->pem)) != ca->n)
		return;
	g->authority = strdup(ca->pem);
}

/* Whether there was one. */
static bool take_one(struct egress *g, bool *ret_ready)
{
	union {
		struct egress_event v;
		struct egress_ca ca;
	} got;

	ssize_t n = RETRY_EINTR(recv(g->ctl, &got, sizeof(got), MSG_DONTWAIT | MSG_TRUNC));
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0) {
		lose(g);
		return false;
	}
	if (n == sizeof(got.ca)) {
		take_authority(g, &got.ca);
		return true;
	}
	if (n != sizeof(got.v))
		return true;
	struct egress_event v = got.v;
	if (v.kind == EGRESS_READY && g->ready_ms != LIMIT_NONE) {
		g->ready_ms = LIMIT_NONE;
		*ret_ready = true;
	}
	egress_note(g, &v);
	return true;
}

bool egress_step(struct egress *g)
{
	bool ready = false;

	for (int i = 0; i < MAX_STEP_EVENTS && g->ctl >= 0 && take_one(g, &ready); i++)
		;
	return ready;
}

int egress_await_authority(struct egress *g, struct err *e)
{
	if (!egress_set_inspects(g->set))
		return 0;
	while (!g->authority && g->ctl >= 0 && !egress_has_failed(g, clock_mono_ms())) {
		struct pollfd fd = {.fd = g->ctl, .events = POLLIN};
		if (poll(&fd, 1, clock_poll_timeout(clock_mono_ms(), g->ready_ms)) > 0)
			(void)take_one(g, &(bool){false});
	}
	if (g->authority)
		return 0;
	*e = g->failure;
	return e->code == ERR_NONE ? err_set(e, ERR_SANDBOX_UNAVAILABLE,
					     "sandglass-proxy made no certificate for inspection")
				   : -1;
}

bool egress_has_failed(struct egress *g, uint64_t now_ms)
{
	if (g->failure.code == ERR_NONE && g->ready_ms != LIMIT_NONE && now_ms >= g->ready_ms)
		(void)err_set(&g->failure, ERR_SANDBOX_UNAVAILABLE,
			      "sandglass-proxy did not listen within %us", EGRESS_READY_MS / 1000);
	return g->failure.code != ERR_NONE;
}

void egress_stop(struct egress *g)
{
	g->over = true;
	if (g->set && g->ctl >= 0)
		(void)shutdown(g->ctl, SHUT_WR);
}

void egress_finish(struct egress *g)
{
	uint64_t until = clock_deadline(clock_mono_ms(), LAST_WORDS_MS);

	if (!g->set)
		return;
	g->over = true;
	while (g->ctl >= 0 && clock_mono_ms() < until) {
		struct pollfd fd = {.fd = g->ctl, .events = POLLIN};
		if (poll(&fd, 1, clock_poll_timeout(clock_mono_ms(), until)) > 0)
			(void)egress_step(g);
	}
	if (g->ctl >= 0)
		(void)close(g->ctl);
	g->ctl = -1;
	if (!g->pid)
		return;
	/* What has said its last word is on its way out; a KILL changes nothing for it. */
	(void)kill(g->pid, SIGKILL);
	(void)RETRY_EINTR(waitpid(g->pid, NULL, 0));
	g->pid = 0;
}

void egress_release(struct egress *g)
{
	free(g->authority);
	g->authority = NULL;
	free(g->denied.v);
	free(g->allowed.v);
	free(g->failed.v);
	asked_release(&g->requests);
	asked_release(&g->used);
	g->denied = g->allowed = g->failed = (struct egress_rows){.v = NULL};
}
