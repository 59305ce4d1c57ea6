/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of what a database can be made anew, and where it may lie.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/num.h"
#include "policy/state.h"
#include "session/state_parts.h"

#define NS_PER_MS INT64_C(1000000)
#define FUSE_MAGIC 0x65735546ul
#define MAX_MOUNT_LINE 8192

/* linux/magic.h has few of them. Their locks and shared memory do not hold between machines. */
static const unsigned long network_magics[] = {
	0x6969ul,     /* nfs */
	0xff534d42ul, /* cifs */
	0xfe534d42ul, /* smb2 */
	0x517bul,     /* smbfs */
	0x01021997ul, /* 9p: among others Windows' drives in WSL */
	0x00c36400ul, /* ceph */
	0x5346414ful, /* afs */
	0x6b414653ul, /* kafs */
	0x73757245ul, /* coda */
	0x0bd00bd0ul, /* lustre */
	0x786f4256ul, /* VirtualBox' shared folders */
	0xbacbacbcul, /* VMware's */
};

static const char *const network_types[] = {
	"fuse.sshfs",    "fuse.rclone",     "fuse.s3fs", "fuse.gcsfuse", "fuse.glusterfs",
	"fuse.davfs",    "fuse.curlftpfs",  "fuse.ceph", "fuse.juicefs", "fuse.vmhgfs-fuse",
	"fuse.smbnetfs", "fuse.gvfsd-fuse", "fuse.mfs",  "fuse.goofys",  "fuse.blobfuse2",
};

bool state_fs_is_network(unsigned long magic, const char *type)
{
	for (size_t i = 0; i < ARRAY_LEN(network_magics); i++)
		if (magic == network_magics[i])
			return true;
	for (size_t i = 0; magic == FUSE_MAGIC && i < ARRAY_LEN(network_types); i++)
		if (strcmp(type, network_types[i]) == 0)
			return true;
	return false;
}

/* The type of the mount of that device; "" if it is not found. */
static void type_of(dev_t dev, char ret[64])
{
	char line[MAX_MOUNT_LINE];
	char want[64];

	ret[0] = '\0';
	FILE *f = fopen("/proc/self/mountinfo", "re");
	(void)snprintf(want, sizeof(want), " %u:%u ", major(dev), minor(dev));
	while (f && fgets(line, sizeof(line), f)) {
		const char *type = strstr(line, " - ");
		if (!strstr(line, want) || !type)
			continue;
		(void)snprintf(ret, 64, "%.*s", (int)strcspn(type + 3, " "), type + 3);
		break;
	}
	if (f)
		(void)fclose(f);
}

int state_check_fs(const char *path, struct err *e)
{
	char type[64] = "";
	struct statfs fs;
	struct stat st;

	if (statfs(path, &fs) < 0 || stat(path, &st) < 0)
		return err_sys(e, "%s", path);
	unsigned long magic = (unsigned long)fs.f_type & 0xfffffffful;
	type_of(st.st_dev, type);
	if (!state_fs_is_network(magic, type))
		return 0;
	(void)err_set(e, ERR_UNSUPPORTED, "%s is on a file system of the network%s%s", path,
		      type[0] ? ": " : "", type);
	return err_hint(e, "set SANDGLASS_HOME to a directory on a disk of this machine");
}

static int64_t lease_end(const struct session_record *r)
{
	/* The keeper knows better and says so; until then it is not over too early. */
	if (r->max_ms >= (uint64_t)((INT64_MAX - r->created_ns) / NS_PER_MS))
		return STATE_NEVER;
	return r->created_ns + (int64_t)r->max_ms * NS_PER_MS;
}

static int trace_session(const struct caller *who, const char *id, state_found *found, void *self,
			 struct err *e)
{
	struct state_session as = {.created_ns = clock_wall_ms() * NS_PER_MS,
				   .state = SESSION_UNCLEAN};
	struct session_record r;
	struct err ignored = {0};

	memcpy(as.id, id, UUID_TEXT);
	AUTO_FD int dir = -1;
	if (session_open(who, id, &dir, &ignored) < 0 || session_read(dir, &r, &ignored) < 0 ||
	    strcmp(r.id, id) != 0)
		return found(self, &as, false, e);
	memcpy(as.name, r.name, sizeof(as.name));
	memcpy(as.source, r.source, sizeof(as.source));
	as.caller_uid = r.caller_uid;
	as.created_ns = r.created_ns;
	as.lease_end_ns = lease_end(&r);
	as.state = session_is_kept(dir) ? SESSION_ACTIVE : SESSION_UNCLEAN;
	session_record_release(&r);
	return found(self, &as, true, e);
}

static int trace_id(const struct caller *who, const char *id, state_found *found, void *self,
		    struct err *e)
{
	struct state_session as = {.created_ns = clock_wall_ms() * NS_PER_MS};

	(void)who;
	memcpy(as.id, id, UUID_TEXT);
	return found(self, &as, false, e);
}

int state_traces(const struct caller *who, state_found *found, void *self, struct err *e)
{
	static const struct {
		const char *name;
		int (*trace)(const struct caller *, const char *, state_found *, void *,
			     struct err *);
	} places[] = {
		{"sessions", trace_session},
		{"artifacts", trace_id},
		{"quarantine", trace_id},
	};
	char home[PATH_TEXT];
	char path[PATH_TEXT + 16];
	int rc = 0;

	state_home(who, home);
	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(places); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", home, places[i].name);
		DIR *d = opendir(path);
		for (struct dirent *at = d ? readdir(d) : NULL; rc == 0 && at; at = readdir(d))
			if (uuid_valid(at->d_name))
				rc = places[i].trace(who, at->d_name, found, self, e);
		if (d)
			(void)closedir(d);
	}
	return rc;
}
