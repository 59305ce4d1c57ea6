/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A value is copied once, from a mapped file into memory that is wiped when it is released.
 */
#include "run/secretkeep.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file.h"
#include "policy/secret.h"
#include "run/keep.h"

#define FD_SAFE 8
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

bool secrets_wanted(const struct request *req)
{
	return egress_set_opens(&req->egress) && (req->secret_count || req->secret.n);
}

static int put(int fd, const char *text, struct err *e)
{
	size_t n = strlen(text) + 1;

	return write(fd, text, n) == (ssize_t)n ? 0 : err_sys(e, "write the secrets");
}

static int values_file(const struct secret_values *v, struct err *e)
{
	AUTO_FD int fd =
		file_fd_above(memfd_create("values", MFD_CLOEXEC | MFD_ALLOW_SEALING), FD_SAFE);

	if (fd < 0)
		return err_sys(e, "memfd_create");
	for (size_t i = 0; i < v->n; i++)
		if (put(fd, v->name[i], e) < 0 || put(fd, v->raw[i], e) < 0)
			return -1;
	if (fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) < 0)
		return err_sys(e, "seal the secrets");
	return TAKE_FD(fd);
}

static int read_pair(const char **at, const char *end, struct secret_values *ret)
{
	const char *name = *at;
	const char *raw = memchr(name, 0, (size_t)(end - name));

	raw = raw ? raw + 1 : end;
	const char *last = memchr(raw, 0, (size_t)(end - raw));
	if (!last || ret->n == MAX_EGRESS_SECRETS)
		return -1;
	ret->name[ret->n] = strdup(name);
	ret->raw[ret->n] = strdup(raw);
	ret->n++;
	*at = last + 1;
	return ret->name[ret->n - 1] && ret->raw[ret->n - 1] ? 0 : -1;
}

int secrets_values_read(int fd, struct secret_values *ret, struct err *e)
{
	struct stat st;
	int rc = 0;

	*ret = (struct secret_values){.n = 0};
	if ((fcntl(fd, F_GET_SEALS) & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size <= 0 ||
	    st.st_size > (off_t)MAX_SECRETS_BYTES)
		return err_set(e, ERR_INTERNAL, "no values of secrets");
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return err_sys(e, "the values of secrets");
	const char *at = p;
	const char *end = at + st.st_size;
	while (rc == 0 && at < end)
		rc = read_pair(&at, end, ret);
	(void)munmap(p, (size_t)st.st_size);
	if (rc == 0)
		return 0;
	secrets_release(ret);
	return err_set(e, ERR_INTERNAL, "no values of secrets");
}

/* What the keeper has; -1 in *ret: nothing yet. `fds`: what it is to have then. */
static int ask(int ctl, const int *fds, size_t n, int *ret, struct err *e)
{
	struct keep_request q = {.kind = KEEP_SECRETS};
	struct keep_answer a;
	int got[KEEP_FDS];

	if (keep_ask_with(ctl, &q, fds, n, &a, got, e) < 0)
		return -1;
	*ret = got[0];
	return 0;
}

static int make_files(const struct secret_values *v, struct secret_files *ret, struct err *e)
{
	ret->rendered = secrets_file(&v->rendered, e);
	ret->values = ret->rendered < 0 ? -1 : values_file(v, e);
	return ret->values < 0 ? -1 : 0;
}

void secrets_files_close(struct secret_files *f)
{
	base_close_fd(&f->rendered);
	base_close_fd(&f->values);
	f->rendered = f->values = -1;
}

int secrets_fetch_files(const struct request *req, const struct caller *who, const char *session,
			struct secret_files *ret, struct err *e)
{
	struct secret_values v = {.n = 0};

	*ret = (struct secret_files){-1, -1};
	if (!secrets_wanted(req))
		return 0;
	if (secrets_fetch(req, who, session, &v, e) < 0)
		return -1;
	int rc = v.n ? make_files(&v, ret, e) : 0;
	secrets_release(&v);
	if (rc < 0)
		secrets_files_close(ret);
	return rc;
}

int secrets_of_session(int ctl, const struct request *req, const struct caller *who,
		       const char *session, struct secret_values *ret, struct err *e)
{
	struct secret_files fetched;
	int kept = -1;

	if (!secrets_wanted(req))
		return 0;
	if (ask(ctl, NULL, 0, &kept, e) < 0)
		return -1;
	if (kept < 0) {
		if (secrets_fetch_files(req, who, session, &fetched, e) < 0)
			return -1;
		const int both[] = {fetched.rendered, fetched.values};
		int rc = fetched.values < 0 ? 0 : ask(ctl, both, ARRAY_LEN(both), &kept, e);
		secrets_files_close(&fetched);
		if (rc < 0 || kept < 0)
			return rc;
	}
	int rc = secrets_values_read(kept, ret, e);
	base_close_fd(&kept);
	return rc;
}
