/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows about the kernel's own files: /proc/sys, /proc/kcore, /sys. What is
 * written is what was read, or does nothing.
 */
#include "rows.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/base.h"

#define MAX_DEPTH 8
#define MAX_SHOWN 12

struct walk {
	struct finding *f;
	unsigned int opened, refused;
};

static void open_for_writing(struct walk *w, int dir, const char *name, const char *path)
{
	AUTO_FD int fd = openat(dir, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0) {
		w->refused++;
		return;
	}
	if (w->opened++ < MAX_SHOWN)
		reached(w->f, "%s/%s opens for writing", path, name);
	w->f->escaped = true;
}

/* Depth first, each level with the descriptor of its own directory. */
static void walk_dir(struct walk *w, int parent, const char *name, const char *path, int depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		base_close_fd(&fd);
		return;
	}
	for (struct dirent *d; (d = readdir(dir));) {
		char below[512];
		if (d->d_name[0] == '.')
			continue;
		if (d->d_type == DT_DIR && depth < MAX_DEPTH &&
		    join(below, sizeof(below), path, d->d_name))
			walk_dir(w, fd, d->d_name, below, depth + 1);
		else if (d->d_type == DT_REG)
			open_for_writing(w, fd, d->d_name, path);
	}
	(void)closedir(dir);
}

static void row_proc_sys(struct finding *f)
{
	struct walk w = {.f = f};
	walk_dir(&w, AT_FDCWD, "/proc/sys", "/proc/sys", 0);
	note(f, "%u refused, %u opened", w.refused, w.opened);
	judged(f, "open for writing", w.opened ? 0 : EACCES, w.opened > 0);
	if (w.refused + w.opened == 0)
		note(f, "no file in /proc/sys");
}

static void rewrite(struct finding *f, const char *path)
{
	char value[1024];
	ssize_t n = read_text(path, value, sizeof(value));
	AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0) {
		tried(f, path, -1, BY_FILE);
		return;
	}
	if (n <= 0) {
		tried(f, path, 0, 0); /* opened, that is enough */
		return;
	}
	tried(f, path, write(fd, value, (size_t)n), BY_FILE);
	note(f, "%s written back: %.60s", path, value);
}

static void row_core_pattern(struct finding *f)
{
	static const char *const files[] = {
		"/proc/sys/kernel/core_pattern",      "/proc/sys/kernel/modprobe",
		"/proc/sys/kernel/hotplug",           "/proc/sys/kernel/poweroff_cmd",
		"/proc/sys/vm/overcommit_memory",     "/proc/sys/kernel/pid_max",
		"/proc/sys/user/max_user_namespaces", "/proc/sys/net/ipv4/ip_forward",
	};
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		rewrite(f, files[i]);
}

static void read_one(struct finding *f, const char *path)
{
	char text[256];
	ssize_t n = read_text(path, text, sizeof(text));
	if (n < 0) {
		tried(f, path, -1, BY_FILE);
		return;
	}
	judged(f, path, n > 0 ? 0 : ENODATA, n > 0);
	if (n > 0)
		note(f, "%s: %zd bytes", path, n);
}

static void open_only(struct finding *f, const char *path, int flags)
{
	AUTO_FD int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
	tried(f, path, fd, BY_FILE);
}

static void list_dir(struct finding *f, const char *path)
{
	unsigned int n = 0;
	DIR *dir = opendir(path);
	if (!dir) {
		tried(f, path, -1, BY_FILE);
		return;
	}
	for (struct dirent *d; (d = readdir(dir));)
		n += d->d_name[0] != '.';
	(void)closedir(dir);
	judged(f, path, n ? 0 : ENODATA, n > 0);
}

static void row_kernel_files(struct finding *f)
{
	static const char *const readable[] = {
		"/proc/keys",         "/proc/kallsyms",      "/proc/timer_list",
		"/proc/sched_debug",  "/proc/latency_stats", "/proc/kcore",
		"/proc/kpagecount",   "/proc/vmallocinfo",   "/proc/slabinfo",
		"/proc/pagetypeinfo",
	};
	static const char *const dirs[] = {
		"/sys/firmware", "/sys/kernel", "/sys/fs",    "/sys/module", "/sys/class",
		"/sys/block",    "/sys/dev",    "/proc/acpi", "/proc/scsi",  "/proc/asound",
	};
	for (size_t i = 0; i < ARRAY_LEN(readable); i++)
		read_one(f, readable[i]);
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		list_dir(f, dirs[i]);
	open_only(f, "/proc/kmsg", O_RDONLY); /* reading it would take it from others */
	open_only(f, "/proc/sysrq-trigger", O_WRONLY);
	open_only(f, "/proc/mtrr", O_RDWR);
	open_only(f, "/proc/bus/pci/devices", O_RDWR);
}

/* A program for a machine that is neither of ours (RISC-V, no segments). */
static const unsigned char foreign_elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0,  0,
					      0,    0,   0,   0,   0, 0, 2, 0, 243};

static void row_binfmt(struct finding *f)
{
	open_only(f, "/proc/sys/fs/binfmt_misc/register", O_WRONLY);
	open_only(f, "/proc/sys/fs/binfmt_misc/status", O_WRONLY);
	open_only(f, "/proc/sys/fs/binfmt_misc", O_WRONLY | O_TMPFILE);
	char path[4096], out[64];
	int fd = scratch_file(path, sizeof(path), scratch_dir());
	if (fd < 0)
		return;
	bool made = pwrite(fd, foreign_elf, sizeof(foreign_elf), 0) == sizeof(foreign_elf) &&
		    fchmod(fd, 0700) == 0;
	base_close_fd(&fd);
	const char *const argv[] = {path, NULL};
	if (made)
		note(f, "foreign program: wait status %#x",
		     (unsigned int)run_program(argv, -1, out, sizeof(out)));
	(void)unlink(path);
}

static const struct row rows[] = {
	{"proc-sys-write", NULL, row_proc_sys, 0, NULL,
	 "opens every file below /proc/sys for writing"},
	{"core-pattern", NULL, row_core_pattern, 0, NULL,
	 "writes back core_pattern, modprobe and other settings that run programs"},
	{"ns-13", "kernel-files", row_kernel_files, 0, NULL,
	 "kcore, keys, kallsyms, sysrq-trigger, /sys and the like"},
	{"res-17", "binfmt", row_binfmt, 0, NULL,
	 "binfmt_misc's register file; a program for another machine"},
};
const struct row_table rows_kernel_files = {rows, ARRAY_LEN(rows)};
