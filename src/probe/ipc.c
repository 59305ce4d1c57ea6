/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows about keyrings and shared memory, queues and semaphores of the host.
 */
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include "base/base.h"
#include "probe/sys.h"

static void read_key(struct finding *f, const char *what, long id)
{
	char text[64], full[MAX_WHAT];
	long n = syscall(SYS_keyctl, KEYCTL_READ, id, text, sizeof(text) - 1, 0);
	(void)snprintf(full, sizeof(full), "%s read", what);
	tried(f, full, n, BY_FILTER | BY_ABSENCE | BY_FILE);
	if (n > 0) {
		text[n < 63 ? n : 63] = '\0';
		note(f, "%s: %.50s", what, text);
	}
}

static void search_keyring(struct finding *f, const char *what, long ring)
{
	long id = syscall(SYS_keyctl, KEYCTL_SEARCH, ring, "user", arg("key"), 0);
	tried(f, what, id, BY_FILTER | BY_ABSENCE | BY_FILE);
	if (id > 0)
		read_key(f, what, id);
}

static void by_serial(struct finding *f)
{
	if (arg("keyid"))
		read_key(f, "by number", arg_num("keyid", 0));
}

static void row_session(struct finding *f)
{
	search_keyring(f, "session", KEY_SPEC_SESSION_KEYRING);
	search_keyring(f, "process", KEY_SPEC_PROCESS_KEYRING);
	long id = syscall(SYS_request_key, "user", arg("key"), NULL, 0);
	tried(f, "request_key", id, BY_FILTER | BY_ABSENCE | BY_FILE);
	if (id > 0)
		read_key(f, "request_key", id);
	by_serial(f);
}

static void row_user(struct finding *f)
{
	search_keyring(f, "user", KEY_SPEC_USER_KEYRING);
	search_keyring(f, "user session", KEY_SPEC_USER_SESSION_KEYRING);
	by_serial(f);
}

static void row_sysv(struct finding *f)
{
	if (!arg("shmkey") && !arg("msgkey") && !arg("semkey")) {
		cannot(f, "needs --set shmkey=, msgkey= or semkey=");
		return;
	}
	int shm = shmget((key_t)arg_num("shmkey", 0x7ffffff1), 0, 0);
	tried(f, "shmget", shm, BY_ABSENCE | BY_FILE);
	const char *at = shm >= 0 ? shmat(shm, NULL, SHM_RDONLY) : NULL;
	if (at && at != (const char *)-1)
		note(f, "shm: %.40s", at);
	int msg = msgget((key_t)arg_num("msgkey", 0x7ffffff1), 0);
	tried(f, "msgget", msg, BY_ABSENCE | BY_FILE);
	struct {
		long type;
		char text[64];
	} m = {0};
	if (msg >= 0 && msgrcv(msg, &m, sizeof(m.text) - 1, 0, IPC_NOWAIT | MSG_NOERROR) > 0)
		note(f, "msg: %.40s", m.text);
	int sem = semget((key_t)arg_num("semkey", 0x7ffffff1), 0, 0);
	tried(f, "semget", sem, BY_ABSENCE | BY_FILE);
}

static void row_mqueue(struct finding *f)
{
	char text[8192 + 1];
	mqd_t q = mq_open(arg("mq"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	tried(f, "mq_open", (long)q, BY_ABSENCE | BY_FILE);
	if (q == (mqd_t)-1)
		return;
	ssize_t n = mq_receive(q, text, sizeof(text) - 1, NULL);
	if (n > 0) {
		text[n] = '\0';
		note(f, "received %.40s", text);
	}
	(void)mq_close(q);
}

static const struct row rows[] = {
	{"sc-07", "keyring-session", row_session, 0, "key",
	 "a user key in the caller's session keyring (--set key=, keyid=)"},
	{"keyring-user", NULL, row_user, 0, "key", "a user key in the caller's user keyrings"},
	{"sysv", NULL, row_sysv, 0, NULL, "System V memory, queue and semaphore of the host"},
	{"mqueue", NULL, row_mqueue, 0, "mq", "a POSIX queue of the host"},
};
const struct row_table rows_ipc = {rows, ARRAY_LEN(rows)};
