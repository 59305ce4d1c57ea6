/* SPDX-License-Identifier: Apache-2.0 */
#include "base/later.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <linux/io_uring.h>

#include "base/base.h"

static int held[MAX_LATER];
static unsigned int count;

void later_close(int fd)
{
	if (count == MAX_LATER)
		(void)close(fd);
	else
		held[count++] = fd;
}

void later_let_go(void)
{
	struct io_uring_params params = {.flags = 0};

	if (!count)
		return;
	AUTO_FD int ring = (int)syscall(SYS_io_uring_setup, 1, &params);
	if (ring >= 0)
		(void)syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, held, count);
	while (count)
		(void)close(held[--count]); /* not the last ones; the ring's end lets them go */
}
