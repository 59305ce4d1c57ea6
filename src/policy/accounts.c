/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/accounts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/num.h"
#include "policy/look.h"

/* name:password:uid:gid:comment:home:shell */
enum { FIELD_NAME, FIELD_UID = 2, FIELD_HOME = 5, FIELDS = 7 };

void accounts_parse(char *text, bool (*each)(void *self, const struct account *a), void *self)
{
	struct err ignored = {0};

	for (char *line = text; *line;) {
		char *end = line + strcspn(line, "\n");
		char *next = *end ? end + 1 : end;
		char *field[FIELDS] = {NULL};
		size_t n = 0;
		uint64_t uid = 0;

		*end = '\0';
		for (char *p = line; p && n < FIELDS; n++) {
			field[n] = p;
			p = strchr(p, ':');
			if (p)
				*p++ = '\0';
		}
		if (n > FIELD_HOME &&
		    num_parse(field[FIELD_UID], 0, UINT32_MAX, &uid, &ignored) == 0 &&
		    !each(self,
			  &(struct account){field[FIELD_NAME], field[FIELD_HOME], (uint32_t)uid}))
			return;
		line = next;
	}
}

void accounts_each(bool (*each)(void *self, const struct account *a), void *self)
{
	struct stat st;

	AUTO_FD int fd = look_open("/etc/passwd", O_RDONLY | O_CLOEXEC, &st);
	if (fd < 0 || st.st_size <= 0 || st.st_size > MAX_PASSWD_BYTES)
		return;
	AUTO_FREE char *text = malloc((size_t)st.st_size + 1);
	ssize_t n = text ? read(fd, text, (size_t)st.st_size) : -1;
	if (n <= 0)
		return;
	text[n] = '\0';
	accounts_parse(text, each, self);
}
