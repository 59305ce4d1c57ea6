/* SPDX-License-Identifier: Apache-2.0 */
#include "run/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/num.h"
#include "run/terminal.h"

#define VEOF_BYTE 4 /* Ctrl-D, as new terminals have it */
#define AGAIN_MS 500u

bool relay_init(struct relay *r, int from, int to, struct capture *capture)
{
	struct stat st;

	*r = (struct relay){.from = from, .to = to, .capture = capture, .chunk = PIPE_BUF};
	/* A file never blocks for long; poll(2) promises PIPE_BUF for all others. */
	if (to >= 0 && fstat(to, &st) == 0 && S_ISREG(st.st_mode))
		r->chunk = RELAY_BYTES;
	r->data = malloc(RELAY_BYTES);
	return r->data != NULL;
}

/* What is kept of the command's output. */
static void keep(void *self, const char *p, size_t n)
{
	struct relay *r = self;

	if (r->log)
		call_log_add(r->log, p, n);
	if (r->capture)
		capture_add(r->capture, p, n);
}

void relay_end(struct relay *r)
{
	censor_end(&r->hide, keep, r);
	if (r->from > 2)
		(void)close(r->from);
	r->from = -1;
	if (r->close_to && r->to > 2) {
		(void)close(r->to);
		r->to = -1;
	}
}

static bool is_away(const struct relay *r)
{
	return r->from_terminal &&
	       (!terminal_is_ours(r->from) || (r->by_line && terminal_is_keyed(r->from)));
}

uint64_t relay_say_end(struct relay *r, uint64_t now_ms)
{
	if (!r->again_ms || r->to < 0)
		return LIMIT_NONE;
	if (r->again_ms == 1)
		r->again_ms = now_ms + AGAIN_MS;
	if (now_ms >= r->again_ms) {
		r->again_ms = now_ms + AGAIN_MS;
		if (r->n == r->at) {
			r->at = 0;
			r->n = 1;
			r->data[0] = VEOF_BYTE;
		}
	}
	return r->again_ms;
}

size_t relay_poll(struct relay *r, struct pollfd *fds)
{
	if (r->n > r->at) {
		fds[0] = (struct pollfd){.fd = r->to, .events = POLLOUT};
		return 1;
	}
	r->away = r->from >= 0 && is_away(r);
	if (r->from < 0 || r->away)
		return 0;
	fds[0] = (struct pollfd){.fd = r->from, .events = POLLIN};
	return 1;
}

static void drain(struct relay *r)
{
	size_t left = r->n - r->at;
	ssize_t n = write(r->to, r->data + r->at, left < r->chunk ? left : r->chunk);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) { /* nobody reads any more: the writer learns it as from a pipe */
		r->at = r->n = 0;
		r->gone = !r->is_input;
		relay_end(r);
		return;
	}
	r->at += (size_t)n;
	if (r->at == r->n)
		r->at = r->n = 0;
}

static void fill(struct relay *r, bool hung_up)
{
	/* It may have become somebody else's since we asked to wait. */
	if (is_away(r))
		return;
	ssize_t n = read(r->from, r->data, RELAY_BYTES);

	if (n < 0 && (errno == EAGAIN || errno == EINTR || (errno == EIO && is_away(r))))
		return;
	if (n <= 0) { /* end of file; EIO is how a pty says it */
		r->gone = r->from_terminal && hung_up;
		relay_end(r);
		if (r->to_pty) { /* ends an open line first, then the input (termios(3), VEOF) */
			r->n = r->last && r->last != '\n' ? 2 : 1;
			memset(r->data, VEOF_BYTE, r->n);
			r->again_ms = 1;
		}
		return;
	}
	r->last = r->data[n - 1];
	if (r->log || r->capture)
		censor_feed(&r->hide, r->data, (size_t)n, keep, r);
	if (r->capture)
		return;
	r->at = 0;
	r->n = (size_t)n;
}

void relay_step(struct relay *r, const struct pollfd *fds, size_t n)
{
	if (n && fds[0].revents) {
		if (r->n > r->at)
			drain(r);
		else
			fill(r, fds[0].revents & POLLHUP);
	}
}

void relay_release(struct relay *r)
{
	r->close_to = true;
	relay_end(r);
	free(r->data);
	r->data = NULL;
}
