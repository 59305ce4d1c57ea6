/* SPDX-License-Identifier: Apache-2.0 */
#include "run/beside.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

int beside_find(const char *name, char ret[PATH_TEXT], struct err *e)
{
	char self[PATH_TEXT];
	char dir[PATH_TEXT];

	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n <= 0)
		return err_sys(e, "readlink /proc/self/exe");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	if (path_join(self, name, ret, PATH_TEXT, e) < 0)
		return -1;
	if (access(ret, X_OK) == 0)
		return 0;
	char *slash = strrchr(self, '/');
	*(slash ? slash : self) = '\0';
	if (path_join(self, "libexec/sandglass", dir, sizeof(dir), e) < 0 ||
	    path_join(dir, name, ret, PATH_TEXT, e) < 0)
		return -1;
	if (access(ret, X_OK) == 0)
		return 0;
	(void)err_set(e, ERR_SANDBOX_UNAVAILABLE, "%s is missing", name);
	return err_hint(e, "it belongs beside sandglass or in ../libexec/sandglass: install again");
}

int beside_front(char ret[PATH_TEXT], struct err *e)
{
	static const char *const ways[] = {"sandglass", "../sandglass", "../../bin/sandglass"};
	char self[PATH_TEXT];
	struct stat st;

	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n <= 0)
		return err_sys(e, "readlink /proc/self/exe");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		if (path_join(self, ways[i], ret, PATH_TEXT, e) < 0)
			return -1;
		if (stat(ret, &st) == 0 && S_ISREG(st.st_mode) && access(ret, X_OK) == 0)
			return 0;
	}
	(void)err_set(e, ERR_SANDBOX_UNAVAILABLE, "sandglass is missing");
	return err_hint(e, "it belongs beside sandglass-main or in ../../bin: install again");
}

int beside_no_library(const char *name, struct err *e)
{
	(void)err_set(e, ERR_SANDBOX_UNAVAILABLE,
		      "%s, which reads policy files, cannot load a library that it needs", name);
	return err_hint(
		e, "install libfyaml.so.0, libsqlite3.so.0, libjansson.so.4, libpcre2-8.so.0 and "
		   "libsodium.so.23 (Debian: apt-get install libfyaml0 libsqlite3-0 "
		   "libjansson4 libpcre2-8-0 libsodium23)");
}
