/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows about what is in the view: files of the host that must not be there,
 * places that must not be writable, programs that must not gain anything.
 */
#include "rows.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "probe/sys.h"

#define MAX_WALK 400000u
#define MAX_SHOWN 8u
#define FLIP_MS 400
#define HANDLE_MAX 128

static void read_secret(struct finding *f, const char *what, const char *path)
{
	char text[64];
	ssize_t n = read_text(path, text, sizeof(text));
	tried(f, what, n, BY_FILE);
	if (n > 0)
		note(f, "%s: %.50s", what, text);
}

static void by_links(struct finding *f, const char *secret)
{
	char link_path[PATH_MAX];
	if (!scratch_path(link_path, sizeof(link_path), "."))
		return;
	if (symlink(secret, link_path) == 0) {
		read_secret(f, "symlink", link_path);
		(void)unlink(link_path);
	}
	long rc = link(secret, link_path);
	tried(f, "hard link", rc, BY_FILE);
	if (rc == 0) {
		read_secret(f, "hard link read", link_path);
		(void)unlink(link_path);
	}
}

static void row_read(struct finding *f)
{
	static const char *const fronts[] = {
		"",
		"/proc/self/root",
		"/proc/1/root",
		"/proc/self/cwd/..",
		"/proc/self/task/../root",
		"/proc/1/cwd",
		"../../../../../../../../../../../..",
		"/sand/workspace/../../../../..",
	};
	const char *secret = arg("secret");
	char path[PATH_MAX];
	for (size_t i = 0; i < ARRAY_LEN(fronts); i++) {
		int n = snprintf(path, sizeof(path), "%s%s", fronts[i], secret);
		if (n > 0 && (size_t)n < sizeof(path))
			read_secret(f, i ? fronts[i] : "direct", path);
	}
	by_links(f, secret);
	struct stat st;
	tried(f, "stat", stat(secret, &st), BY_FILE);
}

static void row_write(struct finding *f)
{
	const char *dir = arg("outdir");
	char path[PATH_MAX], link_path[PATH_MAX];
	static const char *const fronts[] = {"", "/proc/self/root", "/proc/1/root",
					     "../../../../../../../../../../.."};
	for (size_t i = 0; i < ARRAY_LEN(fronts); i++) {
		int n = snprintf(path, sizeof(path), "%s%s/sandglass-probe.out", fronts[i], dir);
		if (n < 0 || (size_t)n >= sizeof(path))
			continue;
		AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		tried(f, i ? fronts[i] : "direct", fd, BY_FILE);
	}
	if (scratch_path(link_path, sizeof(link_path), ".") && symlink(dir, link_path) == 0) {
		if (join(path, sizeof(path), link_path, "sandglass-probe.out")) {
			AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
			tried(f, "symlink", fd, BY_FILE);
		}
		(void)unlink(link_path);
	}
}

/* The path of an open changes while the call runs. */
static void row_flip(struct finding *f)
{
	static const char harmless[] = "/dev/null";
	struct stat st, plain;
	char *path =
		mmap(NULL, PATH_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (path == MAP_FAILED || stat(harmless, &plain) < 0)
		return;
	pid_t flipper = fork();
	if (flipper < 0)
		return;
	long until = now_ms() + FLIP_MS;
	if (flipper == 0) {
		while (now_ms() < until + 100) {
			(void)snprintf(path, PATH_MAX, "%s", arg("secret"));
			(void)memcpy(path, harmless, sizeof(harmless));
		}
		_exit(0);
	}
	unsigned int opens = 0, hits = 0;
	for (; now_ms() < until; opens++) {
		AUTO_FD int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
			hits++;
	}
	(void)waitpid(flipper, NULL, 0);
	note(f, "%u opens, %u reached the other file", opens, hits);
	judged(f, "openat", hits ? 0 : ENOENT, hits > 0);
}

static bool may_write(const char *path)
{
	static const char *const own[] = {"/sand",       "/tmp",     "/var/tmp",   "/dev/shm",
					  "/dev/mqueue", "/dev/pts", "/workspace", "/proc"};
	static char cwd[PATH_MAX];
	if (!cwd[0] && !getcwd(cwd, sizeof(cwd)))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(own) + 1; i++) {
		const char *top = i < ARRAY_LEN(own) ? own[i] : cwd;
		size_t n = strlen(top);
		if (strncmp(path, top, n) == 0 && (path[n] == '/' || path[n] == '\0'))
			return true;
	}
	return arg("rw") && strncmp(path, arg("rw"), strlen(arg("rw"))) == 0;
}

/* One path for the whole walk, so that its depth costs no stack. */
struct search {
	struct finding *f;
	unsigned int seen, writable;
	char path[PATH_MAX];
};

/* An unnamed file changes no directory. Where there is none, the kernel's word counts. */
static void test_dir(struct search *s, int fd)
{
	s->seen++;
	if (faccessat(fd, ".", W_OK, AT_EACCESS) < 0)
		return;
	int made = openat(fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (made < 0 && errno != EOPNOTSUPP && errno != EISDIR)
		return;
	base_close_fd(&made);
	if (s->writable++ < MAX_SHOWN)
		reached(s->f, "%s is writable", s->path[0] ? s->path : "/");
	s->f->escaped = true;
}

static void search_dir(struct search *s, int parent, const char *name, size_t len)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		base_close_fd(&fd);
		return;
	}
	test_dir(s, fd);
	for (struct dirent *d;
	     s->seen < MAX_WALK && s->writable < MAX_SHOWN && (d = readdir(dir));) {
		size_t n = strlen(d->d_name);
		if (d->d_type != DT_DIR || strcmp(d->d_name, ".") == 0 ||
		    strcmp(d->d_name, "..") == 0 || len + n + 2 > sizeof(s->path))
			continue;
		s->path[len] = '/';
		(void)memcpy(&s->path[len + 1], d->d_name, n + 1);
		if (!may_write(s->path))
			search_dir(s, fd, d->d_name, len + 1 + n);
		s->path[len] = '\0';
	}
	(void)closedir(dir);
}

static void row_writable(struct finding *f)
{
	struct search s = {.f = f};
	search_dir(&s, AT_FDCWD, "/", 0);
	note(f, "%u directories, %u writable", s.seen, s.writable);
	judged(f, "find / -writable", s.writable ? 0 : EROFS, s.writable > 0);
}

struct handle {
	struct file_handle head;
	unsigned char bytes[HANDLE_MAX];
};

static void open_handle(struct finding *f, const char *what, int mount_fd, const char *path,
			int flags)
{
	union {
		struct handle h;
		unsigned char raw[sizeof(struct handle)];
	} u = {0};
	struct file_handle *fh = (struct file_handle *)u.raw;
	int mount_id;
	fh->handle_bytes = HANDLE_MAX;
	if (name_to_handle_at(mount_fd, path, fh, &mount_id, flags) < 0) {
		/* Guess it, as the first of these exploits did: inode 2, any generation. */
		static const uint32_t guess[2] = {2, 0};
		fh->handle_bytes = sizeof(guess);
		fh->handle_type = 1;
		(void)memcpy(fh->f_handle, guess, sizeof(guess));
	}
	AUTO_FD int fd = open_by_handle_at(mount_fd, fh, O_RDONLY | O_CLOEXEC);
	tried(f, what, fd, BY_FILTER);
}

static void row_handle(struct finding *f)
{
	const char *const dirs[] = {"/", scratch_dir(), "."};
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		AUTO_FD int fd = open(dirs[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			open_handle(f, dirs[i], fd, ".", 0);
	}
	/* A process, which newer kernels let everybody open again by its handle. */
	AUTO_FD int pidfd = (int)syscall(NR_pidfd_open, getpid(), 0);
	if (pidfd >= 0)
		open_handle(f, "pidfd", pidfd, "", AT_EMPTY_PATH);
}

static void row_shared_places(struct finding *f)
{
	static const char *const dirs[] = {"/dev/shm", "/tmp", "/var/tmp"};
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		char path[PATH_MAX];
		if (join(path, sizeof(path), dirs[i], arg("shm")))
			read_secret(f, dirs[i], path);
		if (arg("leave") && join(path, sizeof(path), dirs[i], arg("leave"))) {
			AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
			note(f, "left %s: %s", path, errno_text(fd < 0 ? errno : 0));
		}
	}
}

static void row_suid(struct finding *f)
{
	const char *const argv[] = {arg("suid"), "--ids", NULL};
	char out[256];
	if (access(arg("suid"), F_OK) < 0) {
		cannot(f, "%s: %s", arg("suid"), errno_text(errno));
		return;
	}
	int status = run_program(argv, -1, out, sizeof(out));
	if (status != 0)
		judged(f, "exec", EPERM, false);
	else
		judge_ids(f, "exec", out);
}

static void row_memfd_exec(struct finding *f)
{
	static char copy[1 << 20];
	const char *const argv[] = {"probe", "--ids", NULL};
	char out[256];
	AUTO_FD int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	AUTO_FD int fd = memfd_create("probe", 0);
	if (exe < 0 || fd < 0) {
		cannot(f, "no memfd or no own program: %s", errno_text(errno));
		return;
	}
	for (ssize_t n; (n = read(exe, copy, sizeof(copy))) > 0;)
		if (write(fd, copy, (size_t)n) != n)
			return;
	(void)run_program(argv, fd, out, sizeof(out));
	judge_ids(f, "memfd", out);
	const char *const loader[] = {"/lib64/ld-linux-x86-64.so.2", "/bin/cat",
				      "/proc/self/status", NULL};
	char status[8192];
	if (access(loader[0], X_OK) == 0 && run_program(loader, -1, status, sizeof(status)) == 0)
		judged(f, "ld.so", 0,
		       !strstr(status, "NoNewPrivs:\t1") || !strstr(status, "Seccomp:\t2"));
}

/* Programs that run programs: the boundary must hold for what they start. */
static void row_interpreters(struct finding *f)
{
	static const char *const commands[][8] = {
		{"find", "/", "-maxdepth", "0", "-exec", "cat", "/proc/self/status", ";"},
		{"awk", "BEGIN{system(\"cat /proc/self/status\")}"},
		{"sh", "-c", "exec cat /proc/self/status"},
		{"perl", "-e", "exec 'cat', '/proc/self/status'"},
		{"tar", "-cf", "/dev/null", "--checkpoint=1",
		 "--checkpoint-action=exec=cat /proc/self/status", "/etc/passwd"},
		{"env", "-i", "/bin/cat", "/proc/self/status"},
	};
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		const char *argv[9] = {NULL};
		char status[8192];
		(void)memcpy(argv, commands[i], sizeof(commands[i]));
		(void)run_program(argv, -1, status, sizeof(status));
		if (!strstr(status, "CapEff:"))
			continue; /* not installed */
		judged(f, argv[0], 0,
		       !strstr(status, "NoNewPrivs:\t1") || !strstr(status, "Seccomp:\t2") ||
			       !strstr(status, "CapEff:\t0000000000000000"));
	}
}

static const struct row rows[] = {
	{"fs-read", NULL, row_read, 0, "secret", "a host file outside of the view, by many paths"},
	{"fs-write", NULL, row_write, 0, "outdir", "a new file in a host directory"},
	{"sc-08", "path-flip", row_flip, 0, "secret", "the path changes during the call"},
	{"fs-08", "writable", row_writable, 0, NULL,
	 "every writable directory that is not its own"},
	{"fs-09", "handle", row_handle, 0, NULL,
	 "open_by_handle_at of a mount's root and a process"},
	{"fs-20", "shared-places", row_shared_places, 0, "shm",
	 "a host file in /dev/shm, /tmp and /var/tmp"},
	{"fs-11", "suid-exec", row_suid, 0, "suid", "runs a set-id program"},
	{"fs-23", "memfd-exec", row_memfd_exec, 0, NULL, "runs itself from a memfd, cat by ld.so"},
	{"fs-24", "interpreters", row_interpreters, 0, NULL,
	 "commands run by find, awk, tar, perl and env"},
};
const struct row_table rows_view = {rows, ARRAY_LEN(rows)};
