/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setfsuid(2) and not seteuid: a process of the owner could signal and trace one
 * that has its euid. Failing to change over is no state to go on in: abort.
 */
#include "review/owner.h"

#include <assert.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int owner_init(struct owner *ret, bool switches, uid_t uid, gid_t gid, struct err *e)
{
	*ret = (struct owner){.switches = switches, .uid = uid, .gid = gid};
	if (switches && setgroups(0, NULL) < 0)
		return err_sys(e, "give the supplementary groups up");
	return 0;
}

/* Effective capabilities: none, or all that are permitted. */
static void capabilities(bool all)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];

	long rc = syscall(SYS_capget, &head, caps);
	assert(rc == 0);
	for (int i = 0; i < 2; i++)
		caps[i].effective = all ? caps[i].permitted : 0;
	rc = syscall(SYS_capset, &head, caps);
	assert(rc == 0);
}

void owner_enter(const struct owner *o)
{
	if (!o->switches)
		return;
	(void)setfsgid(o->gid);
	(void)setfsuid(o->uid);
	assert(setfsgid((gid_t)-1) == (int)o->gid && setfsuid((uid_t)-1) == (int)o->uid);
	capabilities(false);
}

void owner_leave(const struct owner *o)
{
	if (!o->switches)
		return;
	capabilities(true);
	(void)setfsuid(geteuid());
	(void)setfsgid(getegid());
	assert(setfsuid((uid_t)-1) == (int)geteuid() && setfsgid((gid_t)-1) == (int)getegid());
}

bool owner_become(const struct owner *o)
{
	if (!o->switches)
		return true;
	return setgroups(0, NULL) == 0 && setresgid(o->gid, o->gid, o->gid) == 0 &&
	       setresuid(o->uid, o->uid, o->uid) == 0 &&
	       prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}
