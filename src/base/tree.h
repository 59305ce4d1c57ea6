/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descendants of this process where no pid namespace holds them: found by
 * their chains of parents in /proc. With PR_SET_CHILD_SUBREAPER set before the
 * first of them was started, who has lost its parent is a child of this process,
 * so nobody leaves the tree, and without a child there is no descendant.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

typedef void tree_item(void *self, pid_t pid);

/* Calls `each` for every descendant, as soon as it is found. */
void tree_each(tree_item *each, void *self);

/*
 * To every descendant. By pidfd, and only if the chain of parents still leads
 * here once the number cannot be given to a stranger any more.
 */
void tree_signal(int sig);

/* Whether the kernel, and whatever filters its calls, lets tree_signal() work; else errno. */
bool tree_works(void);

/*
 * KILL, until no child is left, at most for `ms`. `reaped` is told each child
 * that ended. False: something cannot be killed now (it waits for a device).
 */
typedef void tree_reaped(void *self, pid_t pid, int status);
bool tree_end(unsigned int ms, tree_reaped *reaped, void *self);
