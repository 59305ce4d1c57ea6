/* SPDX-License-Identifier: Apache-2.0 */
#include "run/sockets.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The granted tree that the socket at `path` lies in is masked there, by its canonical name. */
static int mask_if_granted(struct view *v, const struct source *src, const char *path,
			   struct err *e)
{
	struct places nowhere = {.n = 0};
	struct resolved r;
	struct err ignored = {0};
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode) ||
	    resolve_path(path, NULL, &nowhere, &r, &ignored) < 0)
		return 0;
	bool granted = src->given && path_is_below(src->path, r.path);
	for (size_t i = 0; i < v->grant_count; i++)
		granted |= path_is_below(v->grants[i].path, r.path);
	if (!granted)
		return 0;
	int rc = view_made(v, MOUNT_MASK, r.path, NULL, e);
	if (rc == 0)
		v->mounts[v->n - 1].flags = MOUNT_OPTIONAL; /* its owner may remove it any time */
	return rc;
}

/* A relative name says nothing about its directory: the granted roots are tried. */
static int mask_named(struct view *v, const struct source *src, const char *name, struct err *e)
{
	char path[2 * PATH_TEXT];

	if (name[0] == '/')
		return mask_if_granted(v, src, name, e);
	if (src->given) {
		(void)snprintf(path, sizeof(path), "%s/%s", src->path, name);
		if (mask_if_granted(v, src, path, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < v->grant_count; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", v->grants[i].path, name);
		if (mask_if_granted(v, src, path, e) < 0)
			return -1;
	}
	return 0;
}

int sockets_mask(struct view *v, const struct source *src, struct err *e)
{
	char line[PATH_TEXT];
	int rc = 0;

	if (!src->given && !v->grant_count)
		return 0;
	FILE *f = fopen("/proc/net/unix", "re");
	if (!f)
		return 0;
	while (rc == 0 && fgets(line, sizeof(line), f)) {
		/* Num RefCount Protocol Flags Type St Inode Path (proc_net(5)); @ is abstract. */
		int at = 0;
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %n", &at) == EOF || !at ||
		    !line[at] || line[at] == '@')
			continue;
		rc = mask_named(v, src, line + at, e);
	}
	(void)fclose(f);
	return rc;
}
