/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's terminal on stdin, while the command has one of its own: raw, so
 * that every key reaches the command's; given back at every end and stop.
 */
#pragma once

#include <stdbool.h>
#include <termios.h>

struct terminal {
	struct termios saved; /* as the caller has it, while `raw` */
	bool raw;
};

/* False: it belongs to another job now; reading it or changing it is not for us. */
bool terminal_is_ours(int fd);

/* Another program of our job reads it key by key: a pager behind a pipe. */
bool terminal_is_keyed(int fd);

/*
 * Whether a terminal at stdin, with other outputs, is to be read by lines only. Not
 * if it gave keys before us, unless the one behind a pipe has been quicker than we.
 */
bool terminal_is_by_line(void);

/* A description of its own, which never blocks; the caller's is shared with the shell. -1: none. */
int terminal_reopen(int fd);

/* In the foreground: raw, and `pty` has the window's size. Else nothing. */
void terminal_enter(struct terminal *t, int pty);
void terminal_leave(struct terminal *t);

/* Gives the command's terminal the size and the settings (erase, UTF-8, …) of the caller's. */
void terminal_copy_size(int pty);
void terminal_copy_settings(int pty);

/*
 * Stops this process, with `job` the whole job, as Ctrl-Z at the terminal would,
 * until somebody continues it. False: there is nobody who could, so it did not.
 */
bool terminal_stop(bool job);
