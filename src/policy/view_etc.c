/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /etc: named entries of the host that hold configuration and no secret, and a
 * few files of our own that say who and where the command is.
 */
#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/view.h"

/*
 * Taken from the host, read-only, if present. No shadow, gshadow, sudoers, ssh,
 * private keys, network or service configuration. The last part is what
 * programs below /usr link to.
 */
static const char *const entries[] = {
	"alternatives",
	"bash.bashrc",
	"bash_completion.d",
	"ca-certificates",
	"ca-certificates.conf",
	"crypto-policies",
	"debian_version",
	"default/locale",
	"environment",
	"ethertypes",
	"fonts",
	"gai.conf",
	"gitattributes",
	"gitconfig",
	"gnutls",
	"groff",
	"gss",
	"host.conf",
	"inputrc",
	"issue",
	"ld.so.cache",
	"ld.so.conf",
	"ld.so.conf.d",
	"locale.alias",
	"locale.conf",
	"locale.gen",
	"localtime",
	"login.defs",
	"lsb-release",
	"magic",
	"magic.mime",
	"mailcap",
	"manpath.config",
	"man_db.conf",
	"mime.types",
	"nanorc",
	"networks",
	"npmrc",
	"os-release",
	"papersize",
	"pip.conf",
	"pki",
	"profile",
	"profile.d",
	"protocols",
	"rpc",
	"screenrc",
	"services",
	"shells",
	"skel",
	"ssl/certs",
	"ssl/openssl.cnf",
	"terminfo",
	"timezone",
	"tmux.conf",
	"vim",
	"wgetrc",
	"xattr.conf",
	"xdg",
	"zsh",
	"OpenCL",
	"R",
	"X11",
	"emacs",
	"glvnd",
	"gnucobol",
	"gtk-2.0",
	"gtk-3.0",
	"java",
	"libnl",
	"libnl-3",
	"matplotlibrc",
	"maven",
	"gradle",
	"ant",
	"mono",
	"mpi",
	"openmpi",
	"perl",
	"php",
	"python",
	"ruby",
	"sgml",
	"texmf",
	"vulkan",
	"xml",
	"drirc",
	"nvidia",
	"ImageMagick-6",
	"ImageMagick-7",
	"fpc.cfg",
};

static const char *const patterns[] = {"java-*",    "python3*", "jvm-*", "ld-musl-*",
				       "fpc-*.cfg", "lua*",     "ghc*",  "node*"};

static int add_patterns(struct view *v, struct err *e)
{
	DIR *dir = opendir("/etc");
	char path[PATH_TEXT];
	int rc = 0;

	if (!dir)
		return 0;
	for (struct dirent *d = readdir(dir); d && rc == 0; d = readdir(dir)) {
		bool match = false;
		for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
			match |= fnmatch(patterns[i], d->d_name, FNM_PERIOD) == 0;
		(void)snprintf(path, sizeof(path), "/etc/%s", d->d_name);
		if (match)
			rc = view_bind(v, path, NULL, MOUNT_OPTIONAL, NULL, e);
	}
	(void)closedir(dir);
	return rc;
}

/* A link of /etc into the view is a link again; else the file itself is taken. */
static int add_entry(struct view *v, const char *name, struct err *e)
{
	struct places nowhere = {.n = 0};
	struct resolved r;
	struct err ignored = {0};
	char path[PATH_TEXT];

	(void)snprintf(path, sizeof(path), "/etc/%s", name);
	if (resolve_path(path, NULL, &nowhere, &r, &ignored) < 0 ||
	    !(S_ISREG(r.st.st_mode) || S_ISDIR(r.st.st_mode)))
		return 0;
	if (path_is_below("/usr", r.path))
		return view_made(v, MOUNT_SYMLINK, path, r.path, e);
	return view_bind(v, r.path, path, MOUNT_OPTIONAL, NULL, e);
}

static int add_own(struct view *v, const struct view_ids *ids, struct err *e)
{
	char text[1024];
	char id[40];
	size_t n = 0;

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
	for (const char *p = ids->session; *p && n < sizeof(id) - 2; p++)
		if (*p != '-')
			id[n++] = *p;
	id[n++] = '\n';
	id[n] = '\0';
	if (view_made(v, MOUNT_FILE, "/etc/machine-id", id, e) < 0 ||
	    view_made(v, MOUNT_FILE, "/etc/hostname", "sandglass\n", e) < 0 ||
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
	/* Nothing listens there: a look-up fails at once, not after a timeout. */
	return view_made(
		v, MOUNT_FILE, "/etc/resolv.conf",
		"# the network is closed\nnameserver 127.0.0.53\noptions attempts:1 timeout:1\n",
		e);
}

int view_add_etc(struct view *v, const struct view_ids *ids, struct err *e)
{
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (add_entry(v, entries[i], e) < 0)
			return -1;
	if (add_patterns(v, e) < 0 || add_own(v, ids, e) < 0)
		return -1;
	return view_made(v, MOUNT_SYMLINK, "/etc/mtab", "/proc/self/mounts", e);
}
