/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandglass export`: what is worth keeping of a session, as files. It is written beside its
 * place and moved there when it is complete. The diff is made by `sandglass diff`, in a
 * process of its own; what comes of it is bytes to keep.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/term.h"
#include "cli/promote.h"
#include "cli/verbs.h"
#include "main/child.h"
#include "main/choose.h"
#include "main/hold.h"
#include "main/verbs.h"
#include "policy/state.h"
#include "review/applied.h"
#include "review/artifact.h"
#include "review/branch.h"
#include "review/change.h"
#include "review/commits.h"
#include "store/remove.h"

#define MAX_EXPORT_BYTES ((uint64_t)8 << 30)
#define MAX_SUMMARY_BYTES ((size_t)8 << 20)
#define MAX_SHOWN_LINE 300 /* bytes of one foreign text */
#define MAX_SHOWN_CALLS 1000u
#define RESULT_BYTES 65536u /* of a result that are looked at */

struct export
{
	const struct export_options *o;
	struct chosen session;
	struct hold hold;
	struct set policy;
	struct attend attend;
	struct review review;
	bool reviewed;     /* there are layers to look at */
	const char *layer; /* the source is gone: this is kept as it is; NULL: it is not */
	struct changes changes;
	struct applied applied;
	struct artifacts out;
	char parent[PATH_TEXT]; /* of the place where it goes */
	char place[PATH_TEXT];
	char building[64]; /* its name while it is written; "" it is written at its place */
	struct buf stat;   /* what `diff --stat` said */
	size_t collected;
};

/* Changes that are held; none for a session that has none. */
static int look(struct export *x, struct err *e)
{
	const struct session_record *r = &x->session.rec;

	if (r->writes == SESSION_DIRECT || !r->source[0])
		return 0;
	if (review_open(x->session.dir, r, &x->review, e) < 0 ||
	    applied_read(x->session.dir, &x->applied, e) < 0)
		return -1;
	x->reviewed = true;
	x->review.applied = &x->applied;
	return changes_find(&x->review, &x->changes, e);
}

/* A new directory, or an empty one. */
static int open_given(struct export *x, struct err *e)
{
	size_t count = 0;

	if (mkdir(x->o->output, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "make %s", x->o->output);
	AUTO_FD int dir = open(x->o->output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_sys(e, "open %s", x->o->output);
	char bytes[4096];
	/* Two entries are the directory and what it is in. */
	for (ssize_t n = getdents64(dir, bytes, sizeof(bytes)); n > 0;
	     n = getdents64(dir, bytes, sizeof(bytes)))
		for (ssize_t at = 0; at < n;
		     at += ((struct dirent64 *)(void *)(bytes + at))->d_reclen)
			count++;
	if (count > 2) {
		(void)err_set(e, ERR_CONFLICT, "%s is not empty", x->o->output);
		return err_hint(e, "name a directory that is not there yet");
	}
	(void)snprintf(x->place, sizeof(x->place), "%s", x->o->output);
	x->out.dir = TAKE_FD(dir);
	return 0;
}

static int open_own(struct export *x, struct err *e)
{
	char home[PATH_TEXT];
	char path[PATH_TEXT + 128];
	struct stat st;

	state_home(&x->session.who, home);
	if (path_join(home, "artifacts", x->parent, sizeof(x->parent) - 128, e) < 0 ||
	    path_join(x->parent, x->session.id, x->place, sizeof(x->place), e) < 0)
		return -1;
	if (!file_make_dirs(x->place, 0700))
		return err_sys(e, "make %s", x->parent);
	if (lstat(x->parent, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 0022))
		return err_set(e, ERR_CONFIG_INVALID, "%s is not yours alone to write", x->parent);
	(void)snprintf(x->building, sizeof(x->building), ".%s.new", x->session.id);
	(void)snprintf(path, sizeof(path), "%s/%s", x->parent, x->building);
	AUTO_FD int all = open(x->parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (all < 0)
		return err_sys(e, "open %s", x->parent);
	remove_tree(all, x->building); /* of one that was killed */
	if (mkdirat(all, x->building, 0700) < 0)
		return err_sys(e, "make %s", path);
	x->out.dir = openat(all, x->building, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return x->out.dir < 0 ? err_sys(e, "open %s", path) : 0;
}

/* Heads of the log that were noted before stay. */
static void keep_heads(const struct export *x, int before)
{
	char bytes[4096];

	AUTO_FD int from = openat(before, AUDIT_HEAD_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_FD int to = from < 0 ? -1
				  : openat(x->out.dir, AUDIT_HEAD_FILE,
					   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	for (ssize_t n = to < 0 ? 0 : read(from, bytes, sizeof(bytes)); n > 0;
	     n = read(from, bytes, sizeof(bytes)))
		if (write(to, bytes, (size_t)n) != n)
			return; /* the log itself still has them */
}

/* A file system that cannot exchange names: the old one has the other name for a moment. */
static int put_after(const struct export *x, int all)
{
	char old[64];

	(void)snprintf(old, sizeof(old), ".%s.old", x->session.id);
	remove_tree(all, old);
	if (renameat(all, x->session.id, all, old) < 0 ||
	    renameat(all, x->building, all, x->session.id) < 0)
		return -1;
	remove_tree(all, old);
	return 0;
}

/*
 * One step, whether something was there or not: the name has the old one or the new one, complete.
 * What was there has the other name afterwards, and goes.
 */
static int put_in_place(struct export *x, struct err *e)
{
	if (!x->building[0])
		return 0;
	AUTO_FD int all = open(x->parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (all < 0)
		return err_sys(e, "open %s", x->parent);
	/* All that was written, in whatever directory of it, before it has the name. */
	if (syncfs(x->out.dir) < 0)
		return err_sys(e, "write %s to its disk", x->place);
	bool first = faccessat(all, x->session.id, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
	if (renameat2(all, x->building, all, x->session.id,
		      first ? RENAME_NOREPLACE : RENAME_EXCHANGE) < 0 &&
	    (first || errno != EINVAL || put_after(x, all) < 0))
		return err_sys(e, "rename %s", x->place);
	if (fsync(all) < 0)
		return err_sys(e, "%s", x->parent);
	remove_tree(all, x->building);
	x->building[0] = '\0';
	return 0;
}

/* sandglass-main diff [--stat] ID */
static int run_diff(struct export *x, bool stat, int out, struct err *e)
{
	const char *words[6] = {"sandglass-main", "diff"};
	size_t n = 2;

	if (x->o->at_end)
		words[n++] = "--at-end";
	if (stat)
		words[n++] = "--stat";
	words[n] = x->session.id;
	char *argv[ARRAY_LEN(words)];
	struct child c = {.path = "/proc/self/exe",
			  .argv = argv,
			  .env = x->session.who.env,
			  .in = -1,
			  .out = out,
			  .most_bytes = MAX_EXPORT_BYTES};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		argv[i] = (char *)(uintptr_t)words[i];
	if (child_run(&x->attend, &c, e) < 0)
		return -1;
	if (WIFEXITED(c.status) && WEXITSTATUS(c.status) == 0)
		return 0;
	c.tail[strcspn(c.tail, "\n")] = '\0';
	return err_set(e, ERR_INTERNAL, "the diff could not be made: %s", c.tail);
}

static int export_diff(struct export *x, struct err *e)
{
	char block[65536];
	AUTO_FD int patch = -1;

	if (!x->reviewed)
		return 0;
	if (artifact_create(&x->out, "diff.patch", &patch, e) < 0 ||
	    run_diff(x, false, patch, e) < 0 || artifact_add(&x->out, "diff.patch", patch, e) < 0)
		return -1;
	AUTO_FD int stat = openat(x->out.dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (stat < 0)
		return err_sys(e, "make a file in %s", x->place);
	if (run_diff(x, true, stat, e) < 0 || lseek(stat, 0, SEEK_SET) < 0)
		return -1;
	for (ssize_t n = read(stat, block, sizeof(block)); n > 0;
	     n = read(stat, block, sizeof(block)))
		if (buf_add(&x->stat, block, (size_t)n) < 0)
			break; /* the patch has all of it */
	return 0;
}

/* All objects that the session made, where git could make nothing better of them. */
static int export_objects(struct export *x, struct err *e)
{
	struct err why = {0};
	AUTO_FD int fd = -1;

	if (!commits_has_objects(&x->changes))
		return 0;
	if (artifact_create(&x->out, "objects.tar", &fd, e) < 0)
		return -1;
	if (commits_tar(&x->review, &x->changes, fd, &why) < 0) {
		/* The rest is no worse for it. */
		artifact_note(&x->out, "objects.tar", why.msg);
		(void)unlinkat(x->out.dir, "objects.tar", 0);
		return 0;
	}
	return artifact_add(&x->out, "objects.tar", fd, e);
}

/* What the patch does not hold: commits, as something that git fetches from. */
static int export_commits(struct export *x, struct err *e)
{
	struct commits m = {.bundle = -1};
	struct err why = {0};
	char bytes[65536];
	ssize_t n = 0;
	AUTO_FD int to = -1;

	if (!x->reviewed)
		return 0;
	bool good = commits_find(&x->review, &x->changes, &x->applied, &m, &why) == 0 &&
		    (!m.n || commits_bundle(&x->review, &x->changes, x->out.dir, &m, &why) == 0);
	if (!good)
		artifact_note(&x->out, "commits.bundle", why.msg);
	int bundle = good ? m.bundle : -1;
	struct stat st = {.st_size = 0};
	if (bundle >= 0 && fstat(bundle, &st) < 0)
		st.st_size = 0;
	int rc = 0;
	if (st.st_size > 0) {
		rc = lseek(bundle, 0, SEEK_SET) < 0
			     ? err_sys(e, "the session's commits")
			     : artifact_create(&x->out, "commits.bundle", &to, e);
		while (rc == 0 && (n = read(bundle, bytes, sizeof(bytes))) > 0)
			if (write(to, bytes, (size_t)n) != n)
				rc = err_sys(e, "write commits.bundle");
		if (rc == 0)
			rc = n < 0 ? err_sys(e, "the session's commits")
				   : artifact_add(&x->out, "commits.bundle", to, e);
	} else {
		rc = export_objects(x, e);
	}
	commits_release(&m);
	return rc;
}

static int export_dir(struct export *x, const char *from, const char *name, struct err *e)
{
	char first[16];
	const char *slash = strchr(from, '/');

	/* root/ is the session's own: what is in it may be a link by now. */
	(void)snprintf(first, sizeof(first), "%.*s", slash ? (int)(slash - from) : 15, from);
	AUTO_FD int top =
		openat(x->session.dir, first, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_FD int dir =
		top < 0 || !slash
			? -1
			: openat(top, slash + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (top < 0 || (slash && dir < 0))
		return 0; /* no call was made yet */
	return artifact_copy_dir(&x->out, slash ? dir : top, name, e);
}

static bool is_wanted(const struct export *x, const char *path)
{
	for (size_t i = 0; !x->policy.artifacts_named && default_artifacts[i]; i++)
		if (artifact_matches(default_artifacts[i], path))
			return true;
	for (size_t i = 0; i < x->policy.artifact_count; i++)
		if (artifact_matches(x->policy.artifacts[i].v->name, path))
			return true;
	return false;
}

/* What the session wrote: a report that lay there before is not of it. */
static int export_files(struct export *x, struct err *e)
{
	char name[PATH_TEXT + 8];

	for (size_t i = 0; i < x->changes.n; i++) {
		const struct change *c = &x->changes.v[i];
		struct err why = {0};
		if (c->git || c->masked || !S_ISREG(c->after.mode) || !is_wanted(x, c->path))
			continue;
		if (snprintf(name, sizeof(name), "files/%s", c->path) >= (int)sizeof(name)) {
			artifact_note(&x->out, c->path, "too long a name");
			continue;
		}
		AUTO_FD int fd = change_open(&x->review, &c->after, &why);
		if (fd < 0)
			artifact_note(&x->out, name, why.msg);
		else if (artifact_copy(&x->out, name, fd, e) < 0)
			return -1;
		else
			x->collected++;
	}
	return 0;
}

/*
 * Foreign text in a code block of four blanks: each of its lines is set in, and control
 * characters are shown, so that it is neither markup nor a line of its own.
 */
static void put_code(struct buf *out, const char *text, size_t n)
{
	while (n) {
		const char *end = memchr(text, '\n', n);
		size_t len = end ? (size_t)(end - text) : n;
		(void)buf_str(out, "    ");
		(void)term_escape(out, text, len);
		(void)buf_char(out, '\n');
		len += end != NULL;
		text += len;
		n -= len;
	}
}

static void put_row(struct buf *out, const char *name, const char *value)
{
	char shown[2 * MAX_SHOWN_LINE];

	if (!value[0])
		return;
	(void)buf_printf(out, "    %-10s", name);
	(void)buf_str(out, term_escape_cut(shown, sizeof(shown), value, strlen(value)));
	(void)buf_char(out, '\n');
}

/* The text between two marks of a result; a quote inside a JSON string has a backslash before it. */
static void put_between(struct buf *out, const char *text, const char *from, const char *to)
{
	const char *begin = strstr(text, from);
	const char *end = begin ? strstr(begin, to) : NULL;
	char shown[MAX_SHOWN_LINE + TERM_CAP_MIN];

	if (!end)
		return;
	begin += strlen(from);
	(void)buf_char(out, ' ');
	(void)buf_str(out, term_escape_cut(shown, sizeof(shown), begin, (size_t)(end - begin)));
}

static void put_call(struct buf *out, int dir, const char *name)
{
	AUTO_FREE char *text = calloc(1, RESULT_BYTES + 1);
	AUTO_FD int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (!text || fd < 0 || read(fd, text, RESULT_BYTES) <= 0)
		return;
	(void)buf_printf(out, "    %.36s", name + strlen("results/"));
	put_between(out, text, "\"exit\":", ",\"error\":");
	put_between(out, text, "\"argv\":", ",\"agent_root\":");
	(void)buf_char(out, '\n');
}

static void put_calls(const struct export *x, struct buf *out)
{
	size_t n = 0;

	(void)buf_str(out, "\n## Calls\n\n");
	for (size_t i = 0; i < x->out.n; i++)
		if (strncmp(x->out.v[i].name, "results/", 8) == 0 && n++ < MAX_SHOWN_CALLS)
			put_call(out, x->out.dir, x->out.v[i].name);
	if (!n)
		(void)buf_str(out, "None.\n");
	if (n > MAX_SHOWN_CALLS)
		(void)buf_printf(out, "\nand %zu more, in `results/`\n", n - MAX_SHOWN_CALLS);
}

static void put_session(const struct export *x, struct buf *out)
{
	const struct session_record *r = &x->session.rec;
	char when[CLOCK_TEXT];
	char url[sizeof(r->remote_url)];

	(void)buf_printf(out, "# Session %s\n\n", x->session.id);
	put_row(out, "name", r->name);
	put_row(out, "source", r->source);
	put_row(out, "writes", session_writes_names[r->writes]);
	put_row(out, "began", clock_rfc3339(r->created_ns / 1000000, when));
	put_row(out, "exported", clock_rfc3339(clock_wall_ms(), when));
	put_row(out, "branch", r->branch);
	put_row(out, "commit", r->head);
	put_row(out, "remote", remote_shown(r->remote_url, url, sizeof(url)));
	put_row(out, "policy", r->policy_sha256);
	if (x->hold.unclean)
		put_row(out, "unclean", UNCLEAN_TEXT);
}

static int export_summary(struct export *x, struct err *e)
{
	AUTO_BUF out = BUF_INIT(MAX_SUMMARY_BYTES);

	put_session(x, &out);
	put_calls(x, &out);
	(void)buf_str(&out, "\n## Changes that are held\n\n");
	if (x->layer)
		(void)buf_printf(
			&out,
			"The source is gone, so they cannot be compared with it: `layer/` is what the "
			"session\nheld, as it was (%s).\n",
			x->session.rec.writes == SESSION_COPY
				? "its copy of the project"
				: "an overlay's upper directory; a deleted file is a device 0/0");
	else if (!x->reviewed)
		(void)buf_str(&out, "None are held: writes were direct, or there was no source.\n");
	else if (!x->changes.n)
		(void)buf_str(&out, "None.\n");
	put_code(&out, buf_cstr(&x->stat), x->stat.n);
	(void)buf_printf(&out, "\n## Files\n\n%zu collected by `artifacts` are in `files/`.\n",
			 x->collected);
	if (x->out.left_out_n) {
		(void)buf_printf(&out, "\nLeft out: %zu\n\n", x->out.left_out_n);
		put_code(&out, buf_cstr(&x->out.left_out), x->out.left_out.n);
	}
	return artifact_text(&x->out, "summary.md", &out, e);
}

static int write_files(struct export *x, struct err *e)
{
	char old[PATH_TEXT];

	if (export_diff(x, e) < 0 || export_commits(x, e) < 0 ||
	    export_dir(x, "results", "results", e) < 0 ||
	    export_dir(x, "root/logs", "logs", e) < 0 || export_files(x, e) < 0 ||
	    export_summary(x, e) < 0 || artifact_manifest(&x->out, e) < 0)
		return -1;
	/* Last, so that whatever fails leaves the session as it is. */
	if (x->layer && renameat(x->session.dir, x->layer, x->out.dir, "layer") < 0)
		return err_sys(e, "keep the session's layer");
	memcpy(old, x->place, sizeof(old));
	AUTO_FD int before =
		x->building[0] ? open(old, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	if (before >= 0)
		keep_heads(x, before);
	/* It grows with each event that is to be witnessed, so it is in no manifest. */
	if (audit_head_put(&x->session.who, x->out.dir, e) < 0)
		return -1;
	return fsync(x->out.dir) < 0 ? err_sys(e, "%s", x->place) : 0;
}

static void give_up(struct export *x)
{
	if (!x->building[0])
		return;
	AUTO_FD int all = open(x->parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (all >= 0)
		remove_tree(all, x->building);
}

/* Nothing to compare with: a session ends all the same. */
static bool is_source_gone(const struct session_record *r)
{
	struct stat st;

	return lstat(r->source, &st) < 0 || st.st_dev != r->dev || st.st_ino != r->ino;
}

static int export(struct export *x, const char *id, char **env, struct err *e)
{
	struct err why = {0};

	if (choose_session(id, env, &x->session, e) < 0)
		return -1;
	chosen_tell(&x->session, "export");
	if ((x->o->at_end
		     ? hold_from_keeper(x->session.dir, &x->session.rec, &x->hold, e)
		     : hold_session(x->session.dir, &x->session.rec, HOLD_READ, &x->hold, e)) < 0)
		return -1;
	if (look(x, e) < 0) {
		if (!x->o->at_end || !is_source_gone(&x->session.rec))
			return -1;
		x->layer = x->session.rec.writes == SESSION_COPY ? "copy" : "upper";
		x->reviewed = false;
	}
	if (x->layer ? !file_has_entries(x->session.dir, x->layer) : x->o->at_end && !x->changes.n)
		return 0;
	/* What ends a session does not depend on a policy file that somebody broke meanwhile. */
	if (chosen_policy(&x->session, &x->policy, &why) < 0 && !x->o->at_end) {
		*e = why;
		return -1;
	}
	int rc = attend_begin(&x->attend, e);
	if (rc == 0)
		rc = x->o->output ? open_given(x, e) : open_own(x, e);
	if (rc == 0)
		rc = write_files(x, e);
	if (rc == 0)
		rc = put_in_place(x, e);
	if (rc < 0)
		give_up(x);
	attend_end(&x->attend);
	return rc;
}

static int tell(const struct export *x, struct err *e)
{
	AUTO_BUF out = BUF_INIT((size_t)1 << 20);
	struct json j = JSON_INIT(&out);
	uint64_t bytes = 0;

	if (x->o->at_end)
		return 0;
	for (size_t i = 0; i < x->out.n; i++)
		bytes += x->out.v[i].bytes;
	if (x->hold.unclean && !x->o->json)
		(void)dprintf(STDERR_FILENO, "sandglass: unclean: " UNCLEAN_TEXT "\n");
	if (!x->o->json) {
		(void)term_escape(&out, x->place, strlen(x->place));
		(void)buf_char(&out, '\n');
		return cli_write(STDOUT_FILENO, out.p, out.n, e);
	}
	json_obj_begin(&j);
	json_kv_uint(&j, "version", 1);
	json_kv_str(&j, "session", x->session.id);
	json_key(&j, "path");
	json_text(&j, x->place, strlen(x->place));
	json_kv_uint(&j, "files", x->out.n);
	json_kv_uint(&j, "bytes", bytes);
	json_kv_uint(&j, "changes", x->changes.n);
	json_kv_uint(&j, "left_out", x->out.left_out_n);
	json_kv_bool(&j, "unclean", x->hold.unclean);
	json_obj_end(&j);
	if (json_finish(&j, ERR_INTERNAL, e) < 0 || buf_char(&out, '\n') < 0)
		return -1;
	return cli_write(STDOUT_FILENO, out.p, out.n, e);
}

int main_export(int argc, char **argv)
{
	static struct export x;
	struct export_options o = {.json = false};
	struct err e = {0};
	int first = 0;

	x = (struct export){.o = &o,
			    .hold = HOLD_NONE,
			    .session = {.dir = -1},
			    .review = {.upper = -1, .masks = -1, .source = -1},
			    .out = ARTIFACTS_INIT(-1),
			    .stat = BUF_INIT(MAX_SUMMARY_BYTES / 2)};
	if (opt_parse(export_usage.options, export_usage.option_count, argc, argv, &o, &first, &e) <
	    0)
		return cli_fail(&e, 2);
	if (o.help)
		return usage_show(&export_usage, 2);
	if (argc - first > 1) {
		(void)err_set(&e, ERR_CONFIG_INVALID, "`export` takes one session");
		(void)err_hint(&e, "options come before it");
		return cli_fail(&e, 2);
	}
	int rc = export(&x, first < argc ? argv[first] : NULL, environ, &e);
	if (rc == 0)
		rc = tell(&x, &e);
	buf_release(&x.stat);
	if (x.out.dir >= 0)
		(void)close(x.out.dir);
	artifacts_release(&x.out);
	hold_end(&x.hold);
	changes_release(&x.changes);
	applied_release(&x.applied);
	set_release(&x.policy);
	if (x.reviewed)
		review_close(&x.review);
	chosen_release(&x.session);
	return rc == 0 ? 0 : cli_fail(&e, 2);
}
