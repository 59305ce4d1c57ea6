/* SPDX-License-Identifier: Apache-2.0 */
#include "review/gitname.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

int gitname_quote(struct buf *out, const char *path)
{
	int rc = buf_char(out, '"');

	for (const unsigned char *p = (const unsigned char *)path; *p && rc == 0; p++) {
		if (*p == '"' || *p == '\\')
			rc = buf_printf(out, "\\%c", *p);
		else if (*p == '\n')
			rc = buf_str(out, "\\n");
		else if (*p == '\t')
			rc = buf_str(out, "\\t");
		else if (*p < 0x20 || *p >= 0x7f)
			rc = buf_printf(out, "\\%03o", (unsigned int)*p);
		else
			rc = buf_char(out, (char)*p);
	}
	return rc < 0 ? -1 : buf_char(out, '"');
}

/* After a name that NTFS takes for another: what it does not look at, then the end. */
static bool is_ntfs_end(const char *p)
{
	p += strspn(p, " .");
	return *p == '\0' || *p == '/' || *p == '\\' || *p == ':';
}

static bool is_dotgit(const char *p)
{
	return (strncasecmp(p, ".git", 4) == 0 && is_ntfs_end(p + 4)) ||
	       (strncasecmp(p, "git~1", 5) == 0 && is_ntfs_end(p + 5));
}

/* Also the short names that NTFS makes: "gitmod~1", "gi7eba~1". Wider than git's own rule. */
static bool is_dotgitmodules(const char *p)
{
	return strncasecmp(p, ".gitmodules", 11) == 0 || strncasecmp(p, "gitmod~", 7) == 0 ||
	       strncasecmp(p, "gi7e", 4) == 0;
}

bool gitname_refused(const char *path, bool link)
{
	for (const char *p = path; *p;) {
		if (is_dotgit(p) || (link && is_dotgitmodules(p)))
			return true;
		p += strcspn(p, "/\\");
		p += *p != '\0';
	}
	return false;
}
