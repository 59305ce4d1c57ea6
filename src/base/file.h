/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files of /proc, /sys and the cgroup filesystems, read or written whole
 * with one call, as these want it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Reads up to len - 1 bytes of `path` (below the open directory `dir`, or
 * AT_FDCWD) and ends them with a NUL; len is at least 1. The count read; 0 with
 * an empty text if the file is empty or cannot be read (errno says why not).
 */
size_t file_read_text(int dir, const char *path, char *ret, size_t len);

/* Like mkdir -p for what holds `path`, with that mode for what is new. `path` is as before afterwards. */
bool file_make_dirs(char *path, unsigned int mode);

/* The directory `name` of `dir`, no link, is there and has an entry. */
bool file_has_entries(int dir, const char *name);

/* Writes the text to a file that is there. 0, or -1 with errno. */
int file_write_text(const char *path, const char *text);

/*
 * A descriptor whose number is `least` or more: fd itself, or a copy (close-on-exec) in
 * its place, fd closed. -1 with errno if fd is -1 or there is no room.
 */
int file_fd_above(int fd, int least);
