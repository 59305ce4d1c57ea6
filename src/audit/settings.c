/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/settings.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit/place.h"
#include "base/base.h"
#include "base/num.h"

#define SETTINGS "settings"
#define SETTINGS_TEXT 128
#define FORM "identity %s\nkept %s\n"

static void format(const struct audit_settings *s, char ret[SETTINGS_TEXT])
{
	char kept[NUM_TEXT];

	(void)snprintf(ret, SETTINGS_TEXT, FORM, s->pseudonyms ? "pseudonym" : "plain",
		       s->kept_ms == LIMIT_NONE ? "none" : duration_format(s->kept_ms, kept));
}

static int parse(const char *text, struct audit_settings *ret, struct err *e)
{
	char identity[16];
	char kept[NUM_TEXT];
	char again[SETTINGS_TEXT];
	struct err ignored = {0};

	if (sscanf(text, "identity %15s kept %47s", identity, kept) == 2 &&
	    duration_parse(kept, &ret->kept_ms, &ignored) == 0) {
		ret->pseudonyms = strcmp(identity, "pseudonym") == 0;
		format(ret, again);
		if (strcmp(again, text) == 0)
			return 0;
	}
	(void)err_set(e, ERR_CONFIG_INVALID, "audit log: the file `" SETTINGS "` is damaged");
	return err_hint(e, "remove it: the next call with your policy makes it anew");
}

int audit_settings_read(int dir, struct audit_settings *ret, struct err *e)
{
	char text[SETTINGS_TEXT + 1];
	struct err why = {0};

	AUTO_FD int fd = audit_file_open(dir, SETTINGS, O_RDONLY, &why);
	if (fd < 0 && why.sys == ENOENT) {
		*ret = (struct audit_settings){.kept_ms = AUDIT_KEPT_MS};
		return 0;
	}
	ssize_t n = fd < 0 ? -1 : pread(fd, text, SETTINGS_TEXT, 0);
	if (fd < 0)
		*e = why;
	if (n < 0)
		return fd < 0 ? -1 : err_sys(e, "audit log: " SETTINGS);
	text[n] = '\0';
	return parse(text, ret, e);
}

int audit_settings_put(const struct caller *who, const struct audit_settings *s, struct err *e)
{
	const char *temporary = SETTINGS ".new";
	char text[SETTINGS_TEXT];
	struct audit_settings now;
	struct err ignored = {0};

	AUTO_AUDIT_PLACE p = AUDIT_PLACE_NONE;
	bool usual = !s->pseudonyms && s->kept_ms == AUDIT_KEPT_MS;
	/* Nothing is made for what is so anyway. */
	if (usual && audit_place_open(who, false, &p, &ignored) < 0 &&
	    ignored.code == ERR_NOT_FOUND)
		return 0;
	if (p.dir < 0 && audit_place_open(who, true, &p, e) < 0)
		return -1;
	if (audit_settings_read(p.dir, &now, &ignored) == 0 && now.pseudonyms == s->pseudonyms &&
	    now.kept_ms == s->kept_ms)
		return 0;
	if (audit_place_lock(&p, e) < 0)
		return -1;
	format(s, text);
	(void)unlinkat(p.dir, temporary, 0); /* of one that was killed */
	AUTO_FD int fd = audit_file_open(p.dir, temporary, O_WRONLY | O_CREAT | O_EXCL, e);
	if (fd < 0)
		return -1;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fsync(fd) < 0 ||
	    renameat(p.dir, temporary, p.dir, SETTINGS) < 0)
		return err_sys(e, "audit log: " SETTINGS);
	return 0;
}
