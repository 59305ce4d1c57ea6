/* SPDX-License-Identifier: Apache-2.0 */
#include "base/later.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <linux/io_uring.h>

#include "base/base.h"

void later_close(int fd)
{
	struct io_uring_params params = {.flags = 0};

	AUTO_FD int ring = (int)syscall(SYS_io_uring_setup, 1, &params);
	if (ring >= 0)
		(void)syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &fd, 1);
	(void)close(fd); /* not the last one; the ring's end lets it go, by itself */
}
