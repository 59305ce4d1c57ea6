/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors whose last close the kernel takes its time with: an inotify instance
 * that had watches waits for a grace period (8 ms measured), a mount namespace for
 * all its mounts (0.5 ms). An io_uring that holds them is let go by the kernel's own
 * workers, so nobody waits.
 */
#pragma once

#define MAX_LATER 4

/* From here on the descriptor is the list's. More than MAX_LATER: closed at once. */
void later_close(int fd);
/* All of them. Where there is no io_uring they are simply closed. */
void later_let_go(void);
