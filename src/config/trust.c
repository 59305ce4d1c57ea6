/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One small file a record, made beside and renamed, in a directory that is the
 * caller's alone. Its name is the hash of path and content, its text says both
 * again; a record that is not plainly ours says nothing.
 */
#include "config/trust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/path.h"
#include "base/uuid.h"

#define TRUST_DIR "trust"
#define RECORD_BYTES (PATH_TEXT + 256)
#define HEX_TEXT (2 * SHA256_BYTES + 1)
#define MAX_RECORDS 65536

static void hex(const unsigned char digest[SHA256_BYTES], char ret[HEX_TEXT])
{
	for (size_t i = 0; i < SHA256_BYTES; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

static void record_text(const char *path, const unsigned char content[SHA256_BYTES],
			struct buf *ret)
{
	char text[HEX_TEXT];

	hex(content, text);
	(void)buf_printf(ret, "sandglass trust 1\nsha256 %s\npath ", text);
	(void)buf_str(ret, path);
	(void)buf_char(ret, '\n');
}

static void record_name(const struct buf *text, char ret[HEX_TEXT])
{
	unsigned char digest[SHA256_BYTES];

	sha256(text->p, text->n, digest);
	hex(digest, ret);
}

/* The directory if it is a real one of `uid` that nobody else may write; -1 otherwise. */
static int open_dir(const char *state, uid_t uid)
{
	char path[PATH_TEXT];
	struct stat st;
	struct err ignored = {0};

	if (path_join(state, TRUST_DIR, path, sizeof(path), &ignored) < 0)
		return -1;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 &&
	    (fstat(fd, &st) < 0 || st.st_uid != uid || (st.st_mode & (S_IWGRP | S_IWOTH)))) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static bool read_record(int dir, const char *name, uid_t uid, char ret[RECORD_BYTES])
{
	struct stat st;
	AUTO_FD int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != uid ||
	    (st.st_mode & (S_IWGRP | S_IWOTH)))
		return false;
	ssize_t n = RETRY_EINTR(read(fd, ret, RECORD_BYTES - 1));
	ret[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool trust_has(const char *state, uid_t uid, const char *path,
	       const unsigned char content[SHA256_BYTES])
{
	AUTO_BUF text = BUF_INIT(RECORD_BYTES - 1);
	char name[HEX_TEXT];
	char there[RECORD_BYTES];
	AUTO_FD int dir = open_dir(state, uid);

	record_text(path, content, &text);
	if (dir < 0 || text.failed)
		return false;
	record_name(&text, name);
	return read_record(dir, name, uid, there) && strcmp(there, text.p) == 0;
}

int trust_add(const char *state, const char *path, const unsigned char content[SHA256_BYTES],
	      struct err *e)
{
	AUTO_BUF text = BUF_INIT(RECORD_BYTES - 1);
	char dir[PATH_TEXT];
	char name[HEX_TEXT];
	char temp[UUID_TEXT];

	record_text(path, content, &text);
	if (buf_check(&text, "the record", ERR_CONFIG_INVALID, e) < 0 ||
	    path_join(state, TRUST_DIR "/x", dir, sizeof(dir), e) < 0 || uuid4(temp, e) < 0)
		return -1;
	if (!file_make_dirs(dir, 0700))
		return err_sys(e, "make %s", dir);
	AUTO_FD int at = open_dir(state, geteuid());
	if (at < 0)
		return err_set(e, ERR_POLICY_DENIED,
			       "%s/" TRUST_DIR ": must be a directory of your own that nobody else "
			       "may write",
			       state);
	record_name(&text, name);
	/* Trust is in one content: what was trusted before must not come back as that. */
	unsigned int ignored = 0;
	if (trust_remove(state, path, &ignored, e) < 0)
		return -1;
	int fd = openat(at, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, "make a record in %s/" TRUST_DIR, state);
	bool good = write(fd, text.p, text.n) == (ssize_t)text.n && fsync(fd) == 0;
	good = close(fd) == 0 && good;
	if (good && renameat(at, temp, at, name) == 0)
		return 0;
	(void)err_sys(e, "write a record in %s/" TRUST_DIR, state);
	(void)unlinkat(at, temp, 0);
	return -1;
}

static bool is_of(const char *record, const char *path)
{
	const char *at = strstr(record, "\npath ");

	if (strncmp(record, "sandglass trust 1\n", 18) != 0 || !at)
		return false;
	at += strlen("\npath ");
	size_t n = strlen(path);
	return strncmp(at, path, n) == 0 && strcmp(at + n, "\n") == 0;
}

int trust_remove(const char *state, const char *path, unsigned int *ret_removed, struct err *e)
{
	uid_t uid = geteuid();
	int fd = open_dir(state, uid);
	char record[RECORD_BYTES];
	unsigned int removed = 0;
	int rc = 0;

	if (fd < 0) {
		*ret_removed = 0;
		return 0; /* no record at all that would count */
	}
	DIR *d = fdopendir(fd);
	if (!d) {
		(void)close(fd);
		return err_sys(e, "read %s/" TRUST_DIR, state);
	}
	struct dirent *one = NULL;
	for (unsigned int i = 0; i < MAX_RECORDS && (one = readdir(d)) != NULL && rc == 0; i++) {
		if (one->d_name[0] == '.' || !read_record(dirfd(d), one->d_name, uid, record) ||
		    !is_of(record, path))
			continue;
		if (unlinkat(dirfd(d), one->d_name, 0) == 0)
			removed++;
		else
			rc = err_sys(e, "remove a record in %s/" TRUST_DIR, state);
	}
	(void)closedir(d);
	if (rc == 0)
		*ret_removed = removed;
	return rc;
}
