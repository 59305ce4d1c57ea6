/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /etc: named entries of the host that hold configuration and no secret, and a
 * few files of our own that say who and where the command is.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "policy/look.h"
#include "policy/view.h"

#define MAX_COPY_BYTES 4096 /* a page: one write, one read */

/*
 * In order (strcmp). Taken from the host, read-only, if present. No shadow, gshadow, sudoers, ssh,
 * private keys, network or service configuration. The last part is what
 * programs below /usr link to.
 */
static const char *const entries[] = {
	"alternatives",
	"ant",
	"crypto-policies",
	"fonts",
	"gitconfig",
	"gnutls",
	"gradle",
	"java",
	"ld.so.cache",
	"locale.conf",
	"localtime",
	"lsb-release",
	"man_db.conf",
	"manpath.config",
	"maven",
	"mono",
	"npmrc",
	"os-release",
	"php",
	"pip.conf",
	"pki",
	"protocols",
	"ruby",
	"services",
	"texmf",
};

/* Names that begin so: versions are part of them. */
static const char *const prefixes[] = {"java-", "jvm-", "ld-musl-"};

/* Entries whose own directory is not taken as a whole. */
static const char *const nested[] = {"default/locale", "ssl/certs", "ssl/openssl.cnf"};

static int by_name(const void *key, const void *entry)
{
	return strcmp(key, *(const char *const *)entry);
}

static bool is_listed(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (strncmp(prefixes[i], name, strlen(prefixes[i])) == 0)
			return true;
	return bsearch(name, entries, ARRAY_LEN(entries), sizeof(entries[0]), by_name) != NULL;
}

/* A link of /etc into the system is a link again; from elsewhere the file itself is taken. */
static int add_link(struct view *v, const char *path, struct err *e)
{
	struct places nowhere = {.n = 0};
	struct resolved r;
	struct err ignored = {0};
	uint32_t flags = MOUNT_SYSTEM | MOUNT_OPTIONAL;

	if (resolve_path(path, NULL, &nowhere, &r, &ignored) < 0)
		return 0;
	if (path_is_below("/usr", r.path))
		return view_made(v, MOUNT_SYMLINK, path, r.path, e);
	if (!S_ISREG(r.st.st_mode) && !S_ISDIR(r.st.st_mode))
		return 0;
	return view_bind(v, r.path, path, flags, &r.st, e);
}

/*
 * A small file as a copy in the view: cheaper than a mount. 1: it has to be
 * mounted, being larger, or not for everybody to read (a copy would lose that).
 */
static int copy_small(struct view *v, const char *path, struct err *e)
{
	char text[MAX_COPY_BYTES + 1];

	struct stat st;
	AUTO_FD int fd = look_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, &st);
	if (fd < 0)
		return 0; /* the caller may not read it either */
	if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH))
		return 1;
	ssize_t n = read(fd, text, sizeof(text));
	if (n < 0)
		return 0;
	return n > MAX_COPY_BYTES ? 1 : view_file(v, path, text, (size_t)n, e);
}

static int add_entry(struct view *v, const char *name, unsigned char type, struct err *e)
{
	char path[PATH_TEXT];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/etc/%s", name);
	if (type == DT_UNKNOWN) { /* not every file system tells */
		if (look_lstat(path, &st) < 0)
			return 0;
		type = (unsigned char)IFTODT(st.st_mode);
	}
	if (type == DT_LNK)
		return add_link(v, path, e);
	if (type != DT_REG && type != DT_DIR)
		return 0;
	if (type == DT_REG) {
		int rc = copy_small(v, path, e);
		if (rc != 1)
			return rc;
	}
	return view_bind(v, path, NULL,
			 MOUNT_SYSTEM | MOUNT_OPTIONAL |
				 (type == DT_DIR ? (uint32_t)MOUNT_DIRECTORY : 0),
			 NULL, e);
}

static int add_host_entries(struct view *v, struct err *e)
{
	struct stat st;
	int rc = 0;

	int fd = look_open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, &st);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			(void)close(fd);
		return 0;
	}
	for (struct dirent *d = readdir(dir); d && rc == 0; d = readdir(dir))
		if (is_listed(d->d_name))
			rc = add_entry(v, d->d_name, d->d_type, e);
	(void)closedir(dir);
	for (size_t i = 0; i < sizeof(nested) / sizeof(nested[0]) && rc == 0; i++)
		rc = add_entry(v, nested[i], DT_UNKNOWN, e);
	return rc;
}

int view_add_own(struct view *v, const struct view_ids *ids, struct err *e)
{
	char id[40];
	size_t n = 0;

	for (const char *p = ids->session; *p && n < sizeof(id) - 2; p++)
		if (*p != '-')
			id[n++] = *p;
	id[n++] = '\n';
	id[n] = '\0';
	return view_made(v, MOUNT_FILE, "/etc/machine-id", id, e);
}

static int add_made(struct view *v, const struct view_ids *ids, struct err *e)
{
	char text[1024];

	(void)snprintf(text, sizeof(text),
		       "root:x:0:0:root:/root:/usr/sbin/nologin\n"
		       "%s:x:%u:%u::/sand/home:/bin/bash\n"
		       "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		       ids->name, ids->uid, ids->gid);
	if (view_made(v, MOUNT_FILE, "/etc/passwd", text, e) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), "root:x:0:\n%s:x:%u:\nnogroup:x:65534:\n", ids->name,
		       ids->gid);
	if (view_made(v, MOUNT_FILE, "/etc/group", text, e) < 0)
		return -1;
	if (view_made(v, MOUNT_FILE, "/etc/hostname", "sandglass\n", e) < 0 ||
	    view_made(v, MOUNT_FILE, "/etc/hosts",
		      "127.0.0.1 localhost\n"
		      "::1 localhost ip6-localhost ip6-loopback\n"
		      "127.0.1.1 sandglass\n",
		      e) < 0 ||
	    view_made(v, MOUNT_FILE, "/etc/nsswitch.conf",
		      "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
		      "networks: files\nprotocols: files\nservices: files\nethers: files\n"
		      "rpc: files\n",
		      e) < 0)
		return -1;
	/* Where the network is closed nothing listens there: a look-up fails at once. */
	return view_made(
		v, MOUNT_FILE, "/etc/resolv.conf",
		"# answers for what the policy opens\nnameserver 127.0.0.53\noptions attempts:1 timeout:5\n",
		e);
}

int view_add_etc(struct view *v, const struct view_ids *ids, struct err *e)
{
	if (add_host_entries(v, e) < 0 || add_made(v, ids, e) < 0)
		return -1;
	return view_made(v, MOUNT_SYMLINK, "/etc/mtab", "/proc/self/mounts", e);
}
