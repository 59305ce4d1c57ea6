/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one thing that is read for it is what the host's distribution calls itself.
 */
#include "run/mirror.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "policy/mirror.h"

#define RELEASE_BYTES 4096 /* os-release(5): a few hundred bytes */

static void read_release(char ret[RELEASE_BYTES])
{
	AUTO_FD int fd = open("/etc/os-release", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? 0 : read(fd, ret, RELEASE_BYTES - 1);

	ret[n < 0 ? 0 : n] = '\0';
}

int mirror_add_files(struct view *v, const struct egress_set *set, struct err *e)
{
	char release[RELEASE_BYTES];

	if (!set->counts[EGRESS_LIST_MIRROR])
		return 0;
	read_release(release);
	for (size_t i = 0; i < set->n; i++)
		for (size_t k = 0; set->v[i].rule.list == EGRESS_LIST_MIRROR; k++) {
			AUTO_BUF text = BUF_INIT(8192);
			const char *path = mirror_file(&set->v[i], k, release, &text);
			if (!path)
				break;
			if (buf_check(&text, "a mirror's file", ERR_INTERNAL, e) < 0 ||
			    view_file(v, path, text.p, text.n, e) < 0)
				return -1;
		}
	return 0;
}
