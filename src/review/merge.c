/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base is what the commit of the session's beginning has at that path; without
 * one it is empty, and everything that both have is marked.
 */
#include "review/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "base/path.h"
#include "review/apply.h"
#include "review/boxed.h"

/* $1 and $2: bytes of the first two files. First a line with the status, then the result. */
static const char merge_script[] =
	"head -c \"$1\" >ours && head -c \"$2\" >base && cat >theirs || exit 1\n"
	"export HOME=\"$PWD\" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null\n"
	"git merge-file -q -L source -L base -L session ours base theirs\n"
	"echo $?\n"
	"exec cat ours\n";

/* $1: commit, $2: path. Nothing if it has no file there. */
static const char base_script[] =
	"export HOME=\"$PWD\" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null\n"
	"git --no-replace-objects -C \"$3\" cat-file blob \"$1:$2\" 2>/dev/null || true\n";

static int empty_file(int *ret, struct err *e)
{
	int fd = memfd_create("sandglass-base", MFD_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "memfd_create");
	*ret = fd;
	return 0;
}

static int base_of(const struct apply *a, const struct change *ch, int *ret, struct err *e)
{
	const char *args[] = {a->rec->head, ch->path, a->rec->source, NULL};
	struct boxed b = {
		.script = base_script,
		.args = args,
		.source = a->rec->source,
		.max_out = MAX_MERGE_BYTES,
	};

	if (!a->rec->head[0])
		return empty_file(ret, e);
	return boxed_run(&b, ret, e);
}

static int64_t size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? -1 : (int64_t)st.st_size;
}

/* The rest of `from` behind `skip` bytes, as a file of its own. */
static int tail_of(int from, off_t skip, int *ret, struct err *e)
{
	char bytes[65536];
	AUTO_FD int fd = -1;

	if (empty_file(&fd, e) < 0)
		return -1;
	for (off_t at = skip;;) {
		ssize_t n = pread(from, bytes, sizeof(bytes), at);
		if (n < 0 || write(fd, bytes, (size_t)n) != n)
			return err_sys(e, "a merge");
		if (n == 0)
			break;
		at += n;
	}
	*ret = TAKE_FD(fd);
	return 0;
}

/* The status that git gave: how many conflicts are marked; more than 127: it cannot merge this. */
static int take_result(int out, struct choice *x, struct err *e)
{
	char line[8];
	ssize_t n = pread(out, line, sizeof(line), 0);
	const char *end = n > 0 ? memchr(line, '\n', (size_t)n) : NULL;
	unsigned int status = 0;

	if (!end)
		return err_set(e, ERR_INTERNAL, "git merge-file said nothing");
	for (const char *p = line; p < end; p++)
		status = status * 10 + (unsigned int)(*p - '0');
	if (status > 127)
		return 0; /* binary: it stays a conflict */
	if (tail_of(out, end - line + 1, &x->content, e) < 0)
		return -1;
	x->merged = status > 0;
	return 0;
}

static int merge_one(const struct apply *a, const struct change *ch, struct choice *x,
		     struct err *e)
{
	char sizes[2][32];
	const char *args[] = {sizes[0], sizes[1], NULL};
	AUTO_FD int base = -1;
	AUTO_FD int out = -1;

	AUTO_FD int ours = change_open(&a->review, &ch->before, e);
	AUTO_FD int theirs = ours < 0 ? -1 : change_open(&a->review, &ch->after, e);
	if (theirs < 0 || base_of(a, ch, &base, e) < 0)
		return -1;
	if (size_of(ours) > MAX_MERGE_BYTES || size_of(theirs) > MAX_MERGE_BYTES)
		return 0;
	(void)snprintf(sizes[0], sizeof(sizes[0]), "%lld", (long long)size_of(ours));
	(void)snprintf(sizes[1], sizeof(sizes[1]), "%lld", (long long)size_of(base));
	const struct boxed_part in[] = {{.fd = ours}, {.fd = base}, {.fd = theirs}};
	struct boxed b = {
		.script = merge_script,
		.args = args,
		.in = in,
		.in_n = ARRAY_LEN(in),
		.max_out = 4 * (uint64_t)MAX_MERGE_BYTES,
	};
	if (boxed_run(&b, &out, e) < 0)
		return -1;
	return take_result(out, x, e);
}

int merge_conflicts(struct apply *a, struct err *e)
{
	for (size_t i = 0; i < a->changes.n; i++) {
		const struct change *ch = &a->changes.v[i];
		if (!apply_is_conflict(a, i) || !S_ISREG(ch->before.mode) ||
		    !S_ISREG(ch->after.mode))
			continue;
		if (merge_one(a, ch, &a->choices[i], e) < 0)
			return err_wrap(e, "merge %s", ch->path);
	}
	return 0;
}
