/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why it is safe: what the session wrote is read as data here (names and values of refs,
 * copied objects); git reads it in a sandbox; the bundle that comes out is taken in with
 * fsck. git in the source's repository runs no hook, no fsmonitor, no filter and no
 * transport, and has the owner's rights and an environment of ours.
 */
#include "review/commits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/nameset.h"
#include "base/term.h"
#include "review/beneath.h"
#include "review/boxed.h"
#include "review/branch.h"
#include "review/refs.h"

#define HEADS ".git/refs/heads/"
#define OBJECTS ".git/objects/"
#define PACKED ".git/packed-refs"
#define MAX_PACKED_BYTES (64u << 20)
#define TAR_BLOCK 512u
#define MAX_REFS_TEXT (16u << 20)
#define SAID_TEXT 300 /* of git's last line, escaped */

/* Values of packed refs: name → place in `text`. */
struct packed {
	char *text;
	struct nameset names; /* refs/heads/… → offset of the value */
};

static char *read_all(int fd, size_t most)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size > most)
		return NULL;
	char *text = malloc((size_t)st.st_size + 1);
	ssize_t n = text ? pread(fd, text, (size_t)st.st_size, 0) : -1;
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

/* Lines "OID NAME"; comments and peeled values are skipped. */
static void parse_packed(struct packed *p)
{
	for (char *line = p->text; line && *line;) {
		char *end = strchr(line, '\n');
		if (end)
			*end = '\0';
		char *blank = strchr(line, ' ');
		if (blank && refs_is_oid(line, (size_t)(blank - line))) {
			*blank = '\0';
			if (strncmp(blank + 1, "refs/heads/", 11) == 0)
				(void)nameset_put(&p->names, blank + 1, (uint32_t)(line - p->text));
		}
		line = end ? end + 1 : NULL;
	}
}

static const char *packed_value(const struct packed *p, const char *name)
{
	uint32_t at = 0;

	return p->text && nameset_get(&p->names, name, &at) ? p->text + at : NULL;
}

static void packed_release(struct packed *p)
{
	nameset_release(&p->names);
	free(p->text);
}

struct finder {
	const struct review *r;
	const struct changes *c;
	const struct applied *applied;
	struct packed source, session;
	struct commits *m;
};

/* A loose ref's value. False: there is none. */
static bool loose(int fd, char ret[COMMITS_OID])
{
	AUTO_FREE char *text = read_all(fd, 4096);
	size_t n = text ? strcspn(text, "\n") : 0;

	if (!n || !refs_is_oid(text, n))
		return false;
	memcpy(ret, text, n);
	ret[n] = '\0';
	return true;
}

static bool take_packed(const struct packed *p, const char *name, char ret[COMMITS_OID])
{
	const char *value = packed_value(p, name);

	if (value)
		(void)snprintf(ret, COMMITS_OID, "%s", value);
	return value != NULL;
}

static bool source_value(const struct finder *f, const char *name, char ret[COMMITS_OID])
{
	AUTO_FREE char *path = NULL;

	if (asprintf(&path, ".git/%s", name) < 0)
		return false;
	AUTO_FD int fd = beneath_open(f->r->source, path, O_RDONLY | O_NONBLOCK);
	return loose(fd, ret) || take_packed(&f->source, name, ret);
}

static bool session_value(const struct finder *f, const char *name, char ret[COMMITS_OID])
{
	struct err ignored = {0};
	AUTO_FREE char *path = NULL;

	if (asprintf(&path, ".git/%s", name) < 0)
		return false;
	const struct change *ch = changes_get(f->c, path);
	if (ch && !ch->after.mode)
		return take_packed(&f->session, name, ret);
	AUTO_FD int fd =
		ch ? (S_ISREG(ch->after.mode) ? change_open(f->r, &ch->after, &ignored) : -1)
		   : beneath_open(f->r->source, path, O_RDONLY | O_NONBLOCK);
	return loose(fd, ret) || take_packed(&f->session, name, ret);
}

/* Somebody but us wrote the ref in the source since the session began. */
static bool is_moved(const struct finder *f, const char *name)
{
	AUTO_FREE char *path = NULL;
	struct stat st;

	if (asprintf(&path, ".git/%s", name) < 0)
		return true;
	if (beneath_stat(f->r->source, path, &st) < 0 &&
	    beneath_stat(f->r->source, PACKED, &st) < 0)
		return false;
	int64_t ctime_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
	const struct applied_entry *x = applied_find(f->applied, path);
	if (x && x->dev == st.st_dev && x->ino == st.st_ino && x->ctime_ns == ctime_ns)
		return false;
	return ctime_ns >= f->r->rec->base_ns;
}

static int add_ref(struct finder *f, const char *name, struct err *e)
{
	struct moved_ref ref = {.name = NULL};
	struct err odd = {0};

	for (size_t i = 0; i < f->m->n; i++)
		if (strcmp(f->m->v[i].name, name) == 0)
			return 0;
	if (!session_value(f, name, ref.after)) /* deleted, or no commit: it stays */
		return 0;
	if (!source_value(f, name, ref.before))
		memset(ref.before, '0', strlen(ref.after));
	if (strcmp(ref.before, ref.after) == 0)
		return 0;
	if (branch_check(name + strlen("refs/heads/"), &odd) < 0) {
		f->m->odd++;
		return 0;
	}
	if (f->m->n == MAX_MOVED_REFS)
		return err_set(e, ERR_ARG_LIMIT, "more than %u branches were moved",
			       MAX_MOVED_REFS);
	ref.conflict = is_moved(f, name);
	ref.name = strdup(name);
	struct moved_ref *v = realloc(f->m->v, (f->m->n + 1) * sizeof(*v));
	if (!v || !ref.name) {
		free(ref.name);
		return err_set(e, ERR_INTERNAL, "out of memory");
	}
	f->m->v = v;
	f->m->v[f->m->n++] = ref;
	return 0;
}

static int add_all(struct finder *f, struct err *e)
{
	for (size_t i = changes_seek(f->c, HEADS); i < f->c->n; i++) {
		const struct change *ch = &f->c->v[i];
		if (strncmp(ch->path, HEADS, sizeof(HEADS) - 1) != 0)
			break;
		if (!S_ISDIR(ch->after.mode) && !S_ISDIR(ch->before.mode) &&
		    add_ref(f, ch->path + strlen(".git/"), e) < 0)
			return -1;
	}
	if (!changes_get(f->c, PACKED))
		return 0;
	for (size_t i = 0; i < f->session.names.cap; i++)
		if (f->session.names.v[i] && add_ref(f, f->session.names.v[i], e) < 0)
			return -1;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct moved_ref *)a)->name, ((const struct moved_ref *)b)->name);
}

/* Which of them HEAD of the source names. */
static void find_head(struct finder *f)
{
	AUTO_FD int fd = beneath_open(f->r->source, ".git/HEAD", O_RDONLY | O_NONBLOCK);
	AUTO_FREE char *text = read_all(fd, 4096);

	if (!text || strncmp(text, "ref: ", 5) != 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	for (size_t i = 0; i < f->m->n; i++) {
		if (strcmp(f->m->v[i].name, text + 5) != 0)
			continue;
		f->m->has_head = true;
		f->m->head = i;
	}
}

int commits_find(const struct review *r, const struct changes *c, const struct applied *applied,
		 struct commits *ret, struct err *e)
{
	struct finder f = {.r = r, .c = c, .applied = applied, .m = ret};
	struct err ignored = {0};

	*ret = (struct commits){.bundle = -1};
	AUTO_FD int git = beneath_open(r->source, ".git", O_PATH | O_DIRECTORY);
	if (git < 0)
		return 0;
	AUTO_FD int packed = beneath_open(r->source, PACKED, O_RDONLY | O_NONBLOCK);
	f.source.text = read_all(packed, MAX_PACKED_BYTES);
	const struct change *ch = changes_get(c, PACKED);
	AUTO_FD int theirs =
		ch && S_ISREG(ch->after.mode) ? change_open(r, &ch->after, &ignored) : -1;
	f.session.text = read_all(ch ? theirs : packed, MAX_PACKED_BYTES);
	parse_packed(&f.source);
	parse_packed(&f.session);
	int rc = add_all(&f, e);
	packed_release(&f.source);
	packed_release(&f.session);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_name);
	find_head(&f);
	return rc;
}

void commits_release(struct commits *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->v[i].name);
	free(m->v);
	base_close_fd(&m->bundle);
	*m = (struct commits){.bundle = -1};
}

/* XX/HEX, or pack/pack-HEX.pack and .idx: what git itself would have written. */
static bool is_object(const char *name)
{
	size_t hex = strspn(name, "0123456789abcdef");

	if (hex == 2 && name[2] == '/')
		return strspn(name + 3, "0123456789abcdef") == strlen(name + 3) &&
		       (strlen(name + 3) == 38 || strlen(name + 3) == 62);
	if (strncmp(name, "pack/pack-", 10) != 0)
		return false;
	const char *end = name + 10 + strspn(name + 10, "0123456789abcdef");
	return refs_is_oid(name + 10, (size_t)(end - name - 10)) &&
	       (strcmp(end, ".pack") == 0 || strcmp(end, ".idx") == 0);
}

/* One member of a tar file (POSIX ustar). */
static bool tar_add(int out, const char *name, int fd)
{
	char head[TAR_BLOCK] = {0};
	char bytes[65536];
	struct stat st;
	unsigned int sum = 0;

	if (fstat(fd, &st) < 0 || st.st_size >= (off_t)1 << 33 || strlen(name) >= 100)
		return false;
	(void)snprintf(head, 100, "%s", name);
	(void)snprintf(head + 100, 8, "0000644");
	(void)snprintf(head + 108, 8, "0000000");
	(void)snprintf(head + 116, 8, "0000000");
	(void)snprintf(head + 124, 12, "%011llo", (unsigned long long)st.st_size);
	(void)snprintf(head + 136, 12, "00000000000");
	memset(head + 148, ' ', 8);
	head[156] = '0';
	memcpy(head + 257, "ustar\00000", 8);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += (unsigned char)head[i];
	(void)snprintf(head + 148, 8, "%06o", sum);
	if (write(out, head, TAR_BLOCK) != TAR_BLOCK)
		return false;
	for (off_t at = 0; at < st.st_size;) {
		ssize_t n = pread(fd, bytes, sizeof(bytes), at);
		if (n <= 0 || write(out, bytes, (size_t)n) != n)
			return false;
		at += n;
	}
	size_t rest = (size_t)st.st_size % TAR_BLOCK;
	memset(head, 0, TAR_BLOCK);
	return !rest || write(out, head, TAR_BLOCK - rest) == (ssize_t)(TAR_BLOCK - rest);
}

static bool is_new_object(const struct change *ch)
{
	return S_ISREG(ch->after.mode) && !ch->before.mode && is_object(ch->path + strlen(OBJECTS));
}

static bool is_below_objects(const struct change *ch)
{
	return strncmp(ch->path, OBJECTS, sizeof(OBJECTS) - 1) == 0;
}

bool commits_is_of_objects(const struct change *ch)
{
	const char *name = ch->path + sizeof(OBJECTS) - 1;

	if (!is_below_objects(ch) || ch->before.mode)
		return false;
	return S_ISDIR(ch->after.mode) ? strlen(name) == 2 && strspn(name, "0123456789abcdef") == 2
				       : is_new_object(ch);
}

bool commits_has_objects(const struct changes *c)
{
	for (size_t i = changes_seek(c, OBJECTS); i < c->n && is_below_objects(&c->v[i]); i++)
		if (is_new_object(&c->v[i]))
			return true;
	return false;
}

int commits_tar(const struct review *r, const struct changes *c, int out, struct err *e)
{
	uint64_t all = 0;

	/* By size, not by what they take up: holes are written out. */
	for (size_t i = changes_seek(c, OBJECTS); i < c->n && is_below_objects(&c->v[i]); i++)
		if (is_new_object(&c->v[i]) && (c->v[i].after.size > MAX_BUNDLE_BYTES ||
						(all += c->v[i].after.size) > MAX_BUNDLE_BYTES))
			return err_set(e, ERR_DISK_LIMIT,
				       "the session's objects are more than %llu MiB",
				       (unsigned long long)(MAX_BUNDLE_BYTES >> 20));
	for (size_t i = changes_seek(c, OBJECTS); i < c->n && is_below_objects(&c->v[i]); i++) {
		const struct change *ch = &c->v[i];
		const char *name = ch->path + strlen(OBJECTS);
		if (!is_new_object(ch))
			continue;
		AUTO_FD int fd = change_open(r, &ch->after, e);
		if (fd < 0)
			return -1;
		if (!tar_add(out, name, fd))
			return err_sys(e, "copy the session's objects");
	}
	char end[2 * TAR_BLOCK] = {0};
	return write(out, end, sizeof(end)) == (ssize_t)sizeof(end)
		       ? 0
		       : err_sys(e, "copy the session's objects");
}

/*
 * $1: object format, $2: the source's objects, $3: a commit that it has, or "", then
 * NAME BEFORE AFTER…
 */
#define OBJECTS_SCRIPT                                                                       \
	"format=$1 objects=$2 has=$3 && shift 3 && cd \"$(mktemp -d)\" || exit 1\n"          \
	"export HOME=\"$PWD\" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null LC_ALL=C\n"  \
	"git init -q --bare --object-format=\"$format\" t && cd t || exit 1\n"               \
	"tar -x -C objects -f - && printf '%s\\n' \"$objects\" >objects/info/alternates || " \
	"exit 1\n"

static const char bundle_script[] = OBJECTS_SCRIPT
	"names= not=\n"
	"while [ $# -gt 2 ]; do\n"
	"	git update-ref \"$1\" \"$3\" || exit 1\n"
	"	names=\"$names $1\"\n"
	"	shift 3\n"
	"done\n"
	"if [ -n \"$has\" ] && git cat-file -e \"$has^{commit}\"; then not=\"--not $has\"; fi\n"
	"git bundle create -q b $names $not 2>said || grep -q 'empty bundle' said || exit 1\n"
	"[ ! -f b ] || exec cat b\n";

/*
 * For each branch "ref NAME", and as diff-tree says it what became of the tree before. A few
 * trees can stand for more files than there is memory: five seconds and 1 GiB are for the largest
 * of repositories.
 */
static const char list_script[] = OBJECTS_SCRIPT
	"ulimit -t 5 -v 1048576\n"
	"none=$(git hash-object -t tree -w --stdin </dev/null) || exit 1\n"
	"while [ $# -gt 2 ]; do\n"
	"	before=$2\n"
	"	case $before in *[!0]*) ;; *) before=${has:-$none} ;; esac\n"
	"	git cat-file -e \"$before^{tree}\" 2>said || before=$none\n"
	"	printf 'ref %s\\0' \"$1\"\n"
	"	git diff-tree -r -z --no-renames --no-ext-diff \"$before\" \"$3\" || exit 1\n"
	"	shift 3\n"
	"done\n";

/* A script over the session's objects and those of the source; returns what it printed. */
static int over_objects(const struct review *r, const struct changes *c, int scratch,
			const struct commits *m, const char *script, uint64_t most, struct err *e)
{
	AUTO_FREE char *objects = NULL;
	int out = -1;
	AUTO_FREE const char **args = calloc(4 + 3 * m->n + 1, sizeof(*args));
	AUTO_FD int tar = openat(scratch, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	if (!args || asprintf(&objects, "%s/.git/objects", r->rec->source) < 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (tar < 0)
		return err_sys(e, "a file for the session's objects");
	if (commits_tar(r, c, tar, e) < 0)
		return -1;
	size_t n = 0;
	args[n++] = strlen(m->v[0].after) == 64 ? "sha256" : "sha1";
	args[n++] = objects;
	args[n++] = r->rec->head;
	for (size_t i = 0; i < m->n; i++) {
		args[n++] = m->v[i].name;
		args[n++] = m->v[i].before;
		args[n++] = m->v[i].after;
	}
	const struct boxed_part in = {.fd = tar};
	struct boxed b = {
		.script = script,
		.args = args,
		.source = r->rec->source,
		.in = &in,
		.in_n = 1,
		.max_out = most,
	};
	return boxed_run(&b, &out, e) < 0 ? -1 : out;
}

int commits_bundle(const struct review *r, const struct changes *c, int scratch, struct commits *m,
		   struct err *e)
{
	m->bundle = over_objects(r, c, scratch, m, bundle_script, MAX_BUNDLE_BYTES, e);
	return m->bundle < 0 ? -1 : 0;
}

int commits_list(const struct review *r, const struct changes *c, int scratch,
		 const struct commits *m, uint64_t most, int *ret_out, struct err *e)
{
	*ret_out = over_objects(r, c, scratch, m, list_script, most, e);
	return *ret_out < 0 ? -1 : 0;
}

/* Before each command of git's in the source's repository. */
static const char *const quiet[] = {
	"git",
	"--no-replace-objects",
	"--git-dir=.git",
	"--work-tree=.",
	"-c",
	"core.hooksPath=/dev/null",
	"-c",
	"core.fsmonitor=false",
	"-c",
	"core.alternateRefsCommand=",
	"-c",
	"core.attributesFile=/dev/null",
	"-c",
	"gc.auto=0",
	"-c",
	"maintenance.auto=false",
	"-c",
	"submodule.recurse=false",
	"-c",
	"protocol.allow=never",
	"-c",
	"log.showSignature=false",
};

static char *const quiet_env[] = {
	(char *)(uintptr_t) "PATH=/usr/local/bin:/usr/bin:/bin",
	(char *)(uintptr_t) "HOME=/nonexistent",
	(char *)(uintptr_t) "LC_ALL=C",
	(char *)(uintptr_t) "GIT_CONFIG_NOSYSTEM=1",
	(char *)(uintptr_t) "GIT_CONFIG_GLOBAL=/dev/null",
	(char *)(uintptr_t) "GIT_ATTR_NOSYSTEM=1",
	(char *)(uintptr_t) "GIT_TERMINAL_PROMPT=0",
	(char *)(uintptr_t) "GIT_NO_LAZY_FETCH=1",
	NULL,
};

/* The system's, by its whole path: a name would be looked for where a session may have written. */
static const char *const gits[] = {"/usr/local/bin/git", "/usr/bin/git", "/bin/git"};

/* In the child. */
static _Noreturn void become_git(const struct review *r, const struct owner *owner, int in, int err,
				 const char *const *argv)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	bool ready = null >= 0 && dup2(in >= 0 ? in : null, 0) == 0 && dup2(null, 1) == 1 &&
		     dup2(err >= 0 ? err : null, 2) == 2 && fchdir(r->source) == 0 &&
		     owner_become(owner);
	for (size_t i = 0; ready && i < ARRAY_LEN(gits); i++)
		(void)execve(gits[i], (char *const *)(uintptr_t)argv, quiet_env);
	_exit(127);
}

/* Of what git said the last line that names a fault, else the last one; safe to show, "" nothing. */
static void last_line(int fd, char ret[SAID_TEXT])
{
	char text[4096];
	struct stat st;

	ret[0] = '\0';
	off_t from = fd < 0 || fstat(fd, &st) < 0           ? -1
		     : st.st_size > (off_t)sizeof(text) - 1 ? st.st_size - (off_t)sizeof(text) + 1
							    : 0;
	ssize_t n = from < 0 ? 0 : pread(fd, text, sizeof(text) - 1, from);
	text[n > 0 ? n : 0] = '\0';
	const char *best = "";
	char *rest = text;
	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
		bool names = strncmp(line, "fatal: ", 7) == 0 || strncmp(line, "error: ", 7) == 0;
		bool named = strncmp(best, "fatal: ", 7) == 0 || strncmp(best, "error: ", 7) == 0;
		if (*line && (names || !named))
			best = line;
	}
	(void)term_escape_cut(ret, SAID_TEXT, best, strlen(best));
}

/* git in the source's repository. Its exit status, and what it said last; -1 with e. */
static int run_git(const struct review *r, const struct owner *owner, int in,
		   const char *const *more, char ret_said[SAID_TEXT], struct err *e)
{
	size_t n = ARRAY_LEN(quiet);
	size_t count = 0;
	int status = 0;

	while (more[count])
		count++;
	AUTO_FREE const char **argv = calloc(n + count + 1, sizeof(*argv));
	if (!argv)
		return err_set(e, ERR_INTERNAL, "out of memory");
	memcpy(argv, quiet, sizeof(quiet));
	memcpy(argv + n, more, count * sizeof(*more));
	AUTO_FD int err = memfd_create("sandglass-git", MFD_CLOEXEC);
	pid_t pid = fork();
	if (pid == 0)
		become_git(r, owner, in, err, argv);
	if (pid < 0 || RETRY_EINTR(waitpid(pid, &status, 0)) < 0)
		return err_sys(e, "start git");
	last_line(err, ret_said);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* A bundle is lines, an empty one, and a pack (gitformat-bundle(5)): where that begins. */
static off_t pack_at(int bundle)
{
	struct stat st;
	char bytes[4096];
	char last = '\0';

	if (fstat(bundle, &st) < 0)
		return -1;
	for (off_t at = 0; at < st.st_size;) {
		ssize_t n = pread(bundle, bytes, sizeof(bytes), at);
		for (ssize_t i = 0; i < n; i++) {
			if (last == '\n' && bytes[i] == '\n')
				return at + i + 1;
			last = bytes[i];
		}
		if (n <= 0)
			break;
		at += n;
	}
	return -1;
}

/* All that the new values lead to is there. */
static int check_connected(const struct review *r, const struct owner *owner,
			   const struct commits *m, struct err *e)
{
	size_t n = 0;

	AUTO_FREE const char **argv = calloc(m->n + 8, sizeof(*argv));
	if (!argv)
		return err_set(e, ERR_INTERNAL, "out of memory");
	argv[n++] = "rev-list";
	argv[n++] = "--objects";
	argv[n++] = "--quiet";
	for (size_t i = 0; i < m->n; i++)
		argv[n++] = m->v[i].after;
	argv[n++] = "--not";
	argv[n++] = "--all";
	char said[SAID_TEXT];
	int status = run_git(r, owner, -1, argv, said, e);
	if (status > 0)
		return err_set(e, ERR_INTERNAL, "the session's commits are not complete: %s", said);
	return status;
}

int commits_fetch(const struct review *r, const struct changes *c, const struct owner *owner,
		  int scratch, struct commits *m, struct err *e)
{
	/* git fetch does no fsck on what comes from a bundle; this does, and takes all or nothing. */
	static const char *const index_pack[] = {"index-pack", "--stdin", "--fix-thin", "--strict",
						 NULL};
	struct stat st;

	if (!m->n)
		return 0;
	if (commits_bundle(r, c, scratch, m, e) < 0)
		return err_wrap(e, "the session's commits");
	if (fstat(m->bundle, &st) < 0)
		return err_sys(e, "the session's commits");
	if (st.st_size > 0) {
		off_t at = pack_at(m->bundle);
		if (at < 0 || lseek(m->bundle, at, SEEK_SET) < 0)
			return err_set(e, ERR_INTERNAL, "the session's commits are no bundle");
		char said[SAID_TEXT];
		int status = run_git(r, owner, m->bundle, index_pack, said, e);
		if (status < 0)
			return -1;
		if (status > 0)
			return err_set(e, ERR_INTERNAL,
				       "git does not take the session's commits (status %d): %s",
				       status, said);
	}
	return check_connected(r, owner, m, e);
}

/* A line for each branch: git compares the old value. */
static int put_updates(const struct commits *m, struct buf *out, struct err *e)
{
	for (size_t i = 0; i < m->n; i++)
		(void)buf_printf(out, "update %s %s %s\n", m->v[i].name, m->v[i].after,
				 m->v[i].before);
	return buf_check(out, "the branches", ERR_ARG_LIMIT, e);
}

int commits_note(const struct journal *j, const struct commits *m, struct err *e)
{
	AUTO_BUF text = BUF_INIT(MAX_REFS_TEXT);

	if (!m->n)
		return 0;
	if (put_updates(m, &text, e) < 0)
		return -1;
	return journal_put_refs(j, text.p, text.n, e);
}

/* All of them in one transaction, in a file that git reads. */
static int transaction(const struct commits *m, int *ret, struct err *e)
{
	AUTO_BUF text = BUF_INIT(MAX_REFS_TEXT);

	(void)buf_str(&text, "start\n");
	if (put_updates(m, &text, e) < 0)
		return -1;
	(void)buf_str(&text, "prepare\ncommit\n");
	AUTO_FD int fd = memfd_create("sandglass-refs", MFD_CLOEXEC);
	if (buf_check(&text, "the branches", ERR_ARG_LIMIT, e) < 0)
		return -1;
	if (fd < 0 || write(fd, text.p, text.n) != (ssize_t)text.n || lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, "write the branches");
	*ret = TAKE_FD(fd);
	return 0;
}

static int note_refs(const struct review *r, int session, const struct commits *m, struct err *e)
{
	int rc = 0;
	struct stat st;
	AUTO_FREE struct applied_entry *v = calloc(m->n, sizeof(*v));
	AUTO_FREE char **paths = calloc(m->n, sizeof(*paths));
	size_t n = 0;

	if (!v || !paths)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < m->n && rc == 0; i++) {
		if (asprintf(&paths[n], ".git/%s", m->v[i].name) < 0)
			rc = err_set(e, ERR_INTERNAL, "out of memory");
		else if (beneath_stat(r->source, paths[n], &st) < 0)
			free(paths[n]);
		else
			v[n] = (struct applied_entry){.path = paths[n],
						      .dev = st.st_dev,
						      .ino = st.st_ino,
						      .ctime_ns = (int64_t)st.st_ctim.tv_sec *
									  1000000000 +
								  st.st_ctim.tv_nsec},
			n++;
	}
	if (rc == 0 && n)
		rc = applied_add(session, v, n, e);
	while (n)
		free(paths[--n]);
	return rc;
}

/* Why git did not: one was moved meanwhile, or somebody's git is at work, or whatever it said. */
static int not_moved(const struct review *r, const struct commits *m, const char *said,
		     struct err *e)
{
	struct finder f = {.r = r};
	const char *moved = NULL;
	char now[COMMITS_OID];

	AUTO_FD int packed = beneath_open(r->source, PACKED, O_RDONLY | O_NONBLOCK);
	f.source.text = read_all(packed, MAX_PACKED_BYTES);
	parse_packed(&f.source);
	for (size_t i = 0; i < m->n && !moved; i++) {
		bool is_new = m->v[i].before[strspn(m->v[i].before, "0")] == '\0';
		bool any = source_value(&f, m->v[i].name, now);
		if (any ? strcmp(now, m->v[i].before) != 0 : !is_new)
			moved = m->v[i].name;
	}
	packed_release(&f.source);
	if (moved)
		return err_set(e, ERR_CONFLICT,
			       "%s was moved in the source meanwhile, so no branch is: %s", moved,
			       said);
	return err_set(e, strstr(said, ".lock") ? ERR_BUSY : ERR_INTERNAL,
		       "git does not move the branches: %s", said);
}

int commits_move(const struct review *r, const struct owner *owner, int session,
		 const struct journal *j, struct commits *m, struct err *e)
{
	static const char *const update[] = {"update-ref",      "-m",      "sandglass apply",
					     "--create-reflog", "--stdin", NULL};
	char said[SAID_TEXT] = "";
	AUTO_FD int in = -1;

	if (!m->n)
		return 0;
	if (transaction(m, &in, e) < 0)
		return -1;
	int status = run_git(r, owner, in, update, said, e);
	if (status == 0)
		m->moved = true;
	if (status >= 0)
		journal_drop_refs(j); /* whoever comes next compares anew */
	if (status < 0)
		return -1;
	if (status != 0)
		return not_moved(r, m, said, e);
	if (note_refs(r, session, m, e) < 0)
		return -1;
	if (!m->has_head || m->v[m->head].before[strspn(m->v[m->head].before, "0")] == '\0')
		return 0;
	/* What the index has of the old commit becomes what the new one has; no file is looked at. */
	const char *const read_tree[] = {"read-tree",         "-i", "-m", m->v[m->head].before,
					 m->v[m->head].after, NULL};
	status = run_git(r, owner, -1, read_tree, said, e);
	if (status < 0)
		return -1;
	m->index_stays = status != 0;
	return 0;
}

/* What put_updates() wrote. */
static bool take_updates(char *text, struct commits *m)
{
	for (char *line = strsep(&text, "\n"); line && *line; line = strsep(&text, "\n")) {
		char *at = line;
		const char *word = strsep(&at, " ");
		const char *name = strsep(&at, " ");
		const char *after = strsep(&at, " ");
		struct moved_ref ref = {.name = NULL};
		if (!at || strcmp(word, "update") != 0 || !refs_is_oid(after, strlen(after)) ||
		    !refs_is_oid(at, strlen(at)) || m->n == MAX_MOVED_REFS)
			return false;
		memcpy(ref.after, after, strlen(after) + 1);
		memcpy(ref.before, at, strlen(at) + 1);
		struct moved_ref *v = realloc(m->v, (m->n + 1) * sizeof(*v));
		ref.name = strdup(name);
		if (v)
			m->v = v;
		if (!v || !ref.name) {
			free(ref.name);
			return false;
		}
		m->v[m->n++] = ref;
	}
	return true;
}

size_t commits_resume(int source, const struct session_record *rec, const struct owner *owner,
		      int session, const struct journal *j)
{
	struct review r = {.upper = -1, .masks = -1, .source = source, .rec = rec};
	struct commits m = {.bundle = -1};
	struct finder f = {.r = &r, .m = &m};
	struct err ignored = {0};
	size_t n = 0;
	AUTO_FREE char *text = journal_take_refs(j);

	if (!text)
		return 0;
	if (take_updates(text, &m)) {
		find_head(&f);
		/* One that was moved since stays; the next apply says so. */
		if (commits_move(&r, owner, session, j, &m, &ignored) == 0)
			n = m.n;
	}
	journal_drop_refs(j);
	commits_release(&m);
	return n;
}
