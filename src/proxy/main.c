/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandglass-proxy: the only way out of a sandbox. Takes the rules (descriptor 3)
 * and listening sockets (descriptor 4), confines itself, and serves until
 * descriptor 4 is closed. Started by sandglass, not by people.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/base.h"
#include "proxy/ca.h"
#include "proxy/confine.h"
#include "proxy/proxy.h"
#include "proxy/rules.h"

/* Descriptors beside connections: listeners, resolver, loop. */
#define OTHER_FDS 200u
#define STATUS_FAILED 125
#define WANTED_SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)

static int read_set(struct egress_set *ret, struct err *e)
{
	int seals = fcntl(EGRESS_FD_SET, F_GET_SEALS);
	int wanted = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;

	if (seals < 0 || (seals & wanted) != wanted)
		return err_set(
			e, ERR_INTERNAL,
			"descriptor 3 is no sealed set of rules: sandglass starts this program");
	int rc = rules_read(EGRESS_FD_SET, ret, e);
	(void)close(EGRESS_FD_SET);
	return rc;
}

static bool take_order(void *self, const struct egress_order *o, const int *fds)
{
	struct err ignored = {0}; /* nobody could read it */

	return rules_order(self, o, fds, &ignored) == 0;
}

/* Descriptor 5, which is no file with seals where there are no secrets. */
static int read_secrets(struct egress_secrets *ret, struct err *e)
{
	struct stat st;
	int seals = fcntl(EGRESS_FD_SECRETS, F_GET_SEALS);

	if (seals < 0)
		return 0;
	if ((seals & WANTED_SEALS) != WANTED_SEALS || fstat(EGRESS_FD_SECRETS, &st) < 0 ||
	    st.st_size <= 0 || st.st_size > (off_t)MAX_SECRETS_BYTES)
		return err_set(e, ERR_INTERNAL, "descriptor 5 holds no secrets");
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, EGRESS_FD_SECRETS, 0);
	if (p == MAP_FAILED)
		return err_sys(e, "descriptor 5");
	int rc = egress_secrets_decode(p, (size_t)st.st_size, ret, e);
	(void)munmap(p, (size_t)st.st_size);
	(void)close(EGRESS_FD_SECRETS);
	return rc;
}

/* As many descriptors as may be: two for each connection. Returns how many connections that is. */
static size_t raise_limit(void)
{
	struct rlimit now;
	struct rlimit want = {OTHER_FDS + 2 * MAX_CONNECTIONS, OTHER_FDS + 2 * MAX_CONNECTIONS};

	if (setrlimit(RLIMIT_NOFILE, &want) < 0 && getrlimit(RLIMIT_NOFILE, &now) == 0) {
		now.rlim_cur = now.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &now); /* what is there is read below */
	}
	if (getrlimit(RLIMIT_NOFILE, &now) < 0 || now.rlim_cur <= OTHER_FDS + 2)
		return 1;
	size_t most = (size_t)(now.rlim_cur - OTHER_FDS) / 2;
	return most < MAX_CONNECTIONS ? most : MAX_CONNECTIONS;
}

static int by_number(const void *a, const void *b)
{
	const int *x = a;
	const int *y = b;

	return (*x > *y) - (*x < *y);
}

static int keep_only(const struct control_table *t, struct err *e)
{
	int keep[MAX_LISTENERS + 1] = {EGRESS_FD_CONTROL};

	memcpy(keep + 1, t->fds, t->n * sizeof(int));
	qsort(keep, t->n + 1, sizeof(int), by_number);
	return confine_descriptors(keep, (int)t->n + 1, e);
}

/* Signals of a terminal are for sandglass, which closes descriptor 4 when it is done. */
static void ignore_signals(void)
{
	static const int ignored[] = {SIGPIPE, SIGINT, SIGQUIT, SIGHUP, SIGTSTP, SIGTTOU, SIGTTIN};
	struct sigaction sa = {.sa_handler = SIG_IGN};

	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		(void)sigaction(ignored[i], &sa, NULL);
}

/*
 * Rules that ask for inspection: an authority of this sandbox's own, and the host's to check
 * servers. Its certificate is said before the listeners come: it has to be in the sandbox.
 */
static int make_authority(struct proxy *px, struct err *e)
{
	static struct egress_ca said = {.magic = EGRESS_CA_MAGIC};

	if (!egress_set_inspects(&px->set))
		return 0;
	if (ca_new(&px->ca, e) < 0 || tls_ways_new(px->ca, &px->ways, e) < 0)
		return -1;
	said.n = (uint32_t)ca_pem(px->ca, said.pem, sizeof(said.pem));
	if (said.n == 0)
		return err_set(e, ERR_INTERNAL, "the authority's certificate is too long");
	return control_send_ca(EGRESS_FD_CONTROL, &said, e);
}

static int set_up(struct proxy *px, struct control_table *t, int parent, struct err *e)
{
	uint64_t seed = 0;

	px->most = raise_limit();
	if (read_set(&px->set, e) < 0 || read_secrets(&px->secrets, e) < 0 ||
	    limits_take(px, EGRESS_FD_SPENT, e) < 0 || make_authority(px, e) < 0 ||
	    control_read_table(EGRESS_FD_CONTROL, t, e) < 0 || keep_only(t, e) < 0)
		return -1;
	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return err_sys(e, "getrandom");
	px->scratch = malloc(MAX_RELAY_BYTES);
	if (!px->scratch || uv_loop_init(&px->loop) < 0)
		return err_set(e, ERR_INTERNAL, "no memory for the loop");
	limits_begin(px);
	if (names_init(&px->names, seed, e) < 0 || resolver_new(&px->loop, &px->resolver, e) < 0)
		return -1;
	/* No foreign byte was read up to here, and none is without this. */
	if (confine(parent, e) < 0)
		return -1;
	if (control_start(&px->control, &px->loop, EGRESS_FD_CONTROL, e) < 0)
		return -1;
	px->control.order = take_order;
	px->control.self = px;
	return listen_start(px, t->v, t->fds, t->n, e);
}

int main(int argc, char **argv)
{
	static struct proxy px;
	static struct control_table table;
	struct egress_event ready = {.kind = EGRESS_READY, .rule = -1};
	struct err e = {.code = ERR_NONE};
	int parent = getppid();

	(void)argv;
	ignore_signals();
	if (argc > 1)
		(void)err_set(&e, ERR_INTERNAL, "no arguments: sandglass starts this program");
	if (argc > 1 || set_up(&px, &table, parent, &e) < 0) {
		(void)fprintf(stderr, "sandglass-proxy: %s: %s\n", err_code_name(e.code), e.msg);
		return STATUS_FAILED;
	}
	control_send(&px.control, &ready);
	(void)uv_run(&px.loop, UV_RUN_DEFAULT);
	conn_close_all(&px);
	control_finish(&px.control);
	return 0; /* the kernel closes what is open */
}
