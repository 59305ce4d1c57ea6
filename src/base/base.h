/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleanup attributes and small helpers that every layer may use.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline void base_close_fd(const int *fd)
{
	if (*fd >= 0) {
		int saved = errno;
		(void)close(*fd); /* opened for reading or already checked by the owner */
		errno = saved;
	}
}

static inline void base_free_ptr(void *p)
{
	free(*(void **)p);
}

#define AUTO_FD __attribute__((cleanup(base_close_fd)))
#define AUTO_FREE __attribute__((cleanup(base_free_ptr)))

/* Hands the value over and leaves the variable empty. */
#define TAKE(p)                         \
	({                              \
		typeof(p) taken_ = (p); \
		(p) = NULL;             \
		taken_;                 \
	})
#define TAKE_FD(fd)                \
	({                         \
		int taken_ = (fd); \
		(fd) = -1;         \
		taken_;            \
	})

/* Repeats a call that a signal interrupted. */
#define RETRY_EINTR(expr)                              \
	({                                             \
		typeof(expr) rc_;                      \
		do {                                   \
			rc_ = (expr);                  \
		} while (rc_ == -1 && errno == EINTR); \
		rc_;                                   \
	})
