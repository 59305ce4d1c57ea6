/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a row found. Lives in memory shared with the first process, which reads
 * it when the row's process is gone; nothing here allocates.
 */
#include "probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/term.h"

static const struct {
	int err;
	const char *name;
} errno_names[] = {
	{EPERM, "EPERM"},
	{ENOENT, "ENOENT"},
	{ESRCH, "ESRCH"},
	{EINTR, "EINTR"},
	{EIO, "EIO"},
	{ENXIO, "ENXIO"},
	{E2BIG, "E2BIG"},
	{ENOEXEC, "ENOEXEC"},
	{EBADF, "EBADF"},
	{ECHILD, "ECHILD"},
	{EAGAIN, "EAGAIN"},
	{ENOMEM, "ENOMEM"},
	{EACCES, "EACCES"},
	{EFAULT, "EFAULT"},
	{EBUSY, "EBUSY"},
	{EEXIST, "EEXIST"},
	{EXDEV, "EXDEV"},
	{ENODEV, "ENODEV"},
	{ENOTDIR, "ENOTDIR"},
	{EISDIR, "EISDIR"},
	{EINVAL, "EINVAL"},
	{ENFILE, "ENFILE"},
	{EMFILE, "EMFILE"},
	{ENOTTY, "ENOTTY"},
	{ETXTBSY, "ETXTBSY"},
	{EFBIG, "EFBIG"},
	{ENOSPC, "ENOSPC"},
	{ESPIPE, "ESPIPE"},
	{EROFS, "EROFS"},
	{EPIPE, "EPIPE"},
	{ERANGE, "ERANGE"},
	{ENOSYS, "ENOSYS"},
	{ELOOP, "ELOOP"},
	{ENODATA, "ENODATA"},
	{EOVERFLOW, "EOVERFLOW"},
	{ENOTSOCK, "ENOTSOCK"},
	{EPROTOTYPE, "EPROTOTYPE"},
	{EPROTONOSUPPORT, "EPROTONOSUPPORT"},
	{ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"},
	{EOPNOTSUPP, "EOPNOTSUPP"},
	{EAFNOSUPPORT, "EAFNOSUPPORT"},
	{EADDRNOTAVAIL, "EADDRNOTAVAIL"},
	{ENETDOWN, "ENETDOWN"},
	{ENETUNREACH, "ENETUNREACH"},
	{ECONNRESET, "ECONNRESET"},
	{ETIMEDOUT, "ETIMEDOUT"},
	{ECONNREFUSED, "ECONNREFUSED"},
	{EHOSTUNREACH, "EHOSTUNREACH"},
	{EINPROGRESS, "EINPROGRESS"},
	{ESTALE, "ESTALE"},
	{EDQUOT, "EDQUOT"},
	{ENOKEY, "ENOKEY"},
};

const char *errno_text(int err)
{
	if (err == 0)
		return "done";
	for (size_t i = 0; i < ARRAY_LEN(errno_names); i++)
		if (errno_names[i].err == err)
			return errno_names[i].name;
	return strerror(err);
}

static const struct {
	enum refusal by;
	int errs[12]; /* up to the first 0 */
} refusal_sets[] = {
	{BY_FILTER, {EPERM, ENOSYS}},
	{BY_FILE, {EACCES, EPERM, EROFS, ENOENT, ENOTDIR, ELOOP, ENXIO, ENODEV, EXDEV}},
	{BY_LIMIT, {EAGAIN, EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT}},
	{BY_NET,
	 {EACCES, EPERM, ECONNREFUSED, ENETUNREACH, EHOSTUNREACH, ETIMEDOUT, EADDRNOTAVAIL,
	  EAFNOSUPPORT, EPROTONOSUPPORT, ESOCKTNOSUPPORT, ENETDOWN}},
	{BY_ABSENCE, {ENOENT, ESRCH, ENOKEY}},
	{BY_TYPE, {EBADF, EINVAL, ENOTTY, EOPNOTSUPP}},
	{BY_BUSY, {EBUSY, ETXTBSY}},
};

static bool is_refusal(int err, unsigned int refusals)
{
	for (size_t i = 0; i < ARRAY_LEN(refusal_sets); i++) {
		if (!(refusals & refusal_sets[i].by))
			continue;
		for (size_t j = 0; j < ARRAY_LEN(refusal_sets[i].errs); j++)
			if (refusal_sets[i].errs[j] == err)
				return true;
	}
	return false;
}

void judged(struct finding *f, const char *what, int err, bool escaped)
{
	if (escaped)
		f->escaped = true;
	if (f->attempts < MAX_TRIES) {
		struct attempt *a = &f->list[f->attempts];
		(void)snprintf(a->what, sizeof(a->what), "%s", what);
		a->err = err;
		a->escaped = escaped;
	}
	f->attempts++;
}

void tried(struct finding *f, const char *what, long rc, unsigned int refusals)
{
	int err = rc < 0 ? errno : 0;
	judged(f, what, err, err == 0 || !is_refusal(err, refusals));
}

__attribute__((format(printf, 2, 0))) static void add_note(struct finding *f, const char *fmt,
							   va_list ap)
{
	char raw[512], safe[1024];
	int n = vsnprintf(raw, sizeof(raw), fmt, ap);
	if (n < 0)
		return;
	size_t len = (size_t)n < sizeof(raw) ? (size_t)n : sizeof(raw) - 1;
	(void)term_escape_cut(safe, sizeof(safe), raw, len);
	n = snprintf(f->note + f->note_len, sizeof(f->note) - f->note_len, "%s%s",
		     f->note_len ? "; " : "", safe);
	if (n > 0 && f->note_len + (size_t)n < sizeof(f->note))
		f->note_len += (size_t)n;
	f->note[f->note_len] = '\0'; /* what does not fit is dropped as a whole */
}

void note(struct finding *f, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	add_note(f, fmt, ap);
	va_end(ap);
}

void reached(struct finding *f, const char *fmt, ...)
{
	va_list ap;
	f->escaped = true;
	va_start(ap, fmt);
	add_note(f, fmt, ap);
	va_end(ap);
}

void cannot(struct finding *f, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(f->why, sizeof(f->why), fmt, ap);
	va_end(ap);
}

bool expect(struct finding *f, const char *what, bool cond)
{
	int err = cond ? 0 : errno;
	judged(f, what, err, !cond);
	if (!cond)
		f->broken = true;
	return cond;
}

enum verdict finding_verdict(const struct finding *f, const struct row *row)
{
	bool works = row->flags & ROW_WORKS;
	if (f->escaped || f->broken)
		return works ? VERDICT_BROKEN : VERDICT_ESCAPED;
	if (f->why[0] || f->attempts == 0)
		return VERDICT_INCONCLUSIVE;
	return works ? VERDICT_WORKS : VERDICT_SAFE;
}

const char *verdict_name(enum verdict v)
{
	static const char *const names[] = {"safe", "ESCAPED", "inconclusive", "works", "BROKEN"};
	return names[v];
}
