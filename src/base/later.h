/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closing a descriptor whose release takes the kernel long, without waiting for it.
 */
#pragma once

/*
 * Closes `fd`. An inotify instance that had watches waits, on its last close or
 * in the exit of its last holder, for a grace period of the kernel: 8 ms and
 * more here. A ring of io_uring(7) that holds it too lets it go in a kernel
 * worker instead (about 40 µs in all). Where there is no io_uring it is a plain
 * close.
 */
void later_close(int fd);
