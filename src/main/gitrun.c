/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the person's own git may run at the end: it sees a repository that was made here,
 * without configuration and hooks; what is pushed are objects that git checks as it does
 * those of any fetch (index-pack --strict); of the source's repository it reads objects only.
 */
#include "main/gitrun.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file.h"
#include "base/num.h"
#include "policy/resolve.h"
#include "review/branch.h"
#include "review/refs.h"
#include "run/beside.h"
#include "run/catfile.h"
#include "store/remove.h"

#define WORKSHOP "repo.git"
#define MAX_LIST_BYTES ((size_t)512 << 20)

/* Of `git rev-parse --local-env-vars`, and what changes what git is: not for our repository. */
static const char *const local_vars[] = {
	"GIT_ALTERNATE_OBJECT_DIRECTORIES",
	"GIT_CONFIG",
	"GIT_CONFIG_PARAMETERS",
	"GIT_OBJECT_DIRECTORY",
	"GIT_DIR",
	"GIT_WORK_TREE",
	"GIT_IMPLICIT_WORK_TREE",
	"GIT_GRAFT_FILE",
	"GIT_INDEX_FILE",
	"GIT_NO_REPLACE_OBJECTS",
	"GIT_REPLACE_REF_BASE",
	"GIT_PREFIX",
	"GIT_SHALLOW_FILE",
	"GIT_COMMON_DIR",
	"GIT_NAMESPACE",
	"GIT_EXEC_PATH",
	"GIT_TEMPLATE_DIR",
	"GIT_ALLOW_PROTOCOL",
	"GIT_PROTOCOL_FROM_USER",
	"GIT_ATTR_SOURCE",
};

static bool is_local_var(const char *text)
{
	size_t n = strcspn(text, "=");

	for (size_t i = 0; i < ARRAY_LEN(local_vars); i++)
		if (strlen(local_vars[i]) == n && strncmp(text, local_vars[i], n) == 0)
			return true;
	return false;
}

static int make_env(struct workshop *w, struct err *e)
{
	static char protocols[] = "GIT_ALLOW_PROTOCOL=file:https:ssh";
	char **env = w->session->who.env;
	size_t n = 0;
	size_t kept = 0;

	while (env[n])
		n++;
	w->git_env = calloc(n + 3, sizeof(*w->git_env));
	if (!w->git_env)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < n; i++)
		if (!is_local_var(env[i]) && strncmp(env[i], "PATH=", 5) != 0)
			w->git_env[kept++] = env[i];
	w->git_env[kept++] = protocols;
	w->git_env[kept] = w->path_env;
	return 0;
}

/* One directory of PATH counts if it is absolute and not in the source, where a session writes. */
static bool path_counts(const struct workshop *w, const char *dir)
{
	static const struct places nowhere;
	struct resolved real;
	struct err ignored = {0};

	return dir[0] == '/' && resolve_path(dir, NULL, &nowhere, &real, &ignored) == 0 &&
	       !path_is_below(w->session->rec.source, real.path);
}

/* What git starts by name (ssh, helpers) comes from there too. */
static int find_git(struct workshop *w, struct err *e)
{
	const char *path = caller_env(&w->session->who, "PATH");
	AUTO_BUF out = BUF_INIT((size_t)1 << 20);

	(void)buf_str(&out, "PATH=");
	for (const char *p = path ? path : "/usr/bin:/bin"; *p;) {
		char dir[PATH_TEXT];
		size_t n = strcspn(p, ":");
		int len = snprintf(dir, sizeof(dir), "%.*s", (int)n, p);
		p += n + (p[n] == ':');
		if (len <= 0 || len >= (int)sizeof(dir) || !path_counts(w, dir))
			continue;
		(void)buf_printf(&out, "%s%s", out.n > 5 ? ":" : "", dir);
		if (!w->git[0] &&
		    (snprintf(w->git, sizeof(w->git), "%s/git", dir) >= (int)sizeof(w->git) ||
		     faccessat(AT_FDCWD, w->git, X_OK, AT_EACCESS) < 0))
			w->git[0] = '\0';
	}
	w->path_env = buf_take(&out);
	if (!w->path_env || !w->git[0])
		return err_set(e, ERR_NOT_FOUND, "no git in PATH");
	return 0;
}

/* Alternates are lines; quoted ones are read as C strings. */
static void quote_line(struct buf *b, const char *text)
{
	(void)buf_char(b, '"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			(void)buf_char(b, '\\');
		if (*text == '\n')
			(void)buf_str(b, "\\n");
		else
			(void)buf_char(b, *text);
	}
	(void)buf_str(b, "\"\n");
}

static int put_file(const char *dir, const char *name, const struct buf *text, struct err *e)
{
	char path[PATH_TEXT + 64];

	(void)snprintf(path, sizeof(path), "%s/" WORKSHOP "/%s", dir, name);
	if (!file_make_dirs(path, 0700))
		return err_sys(e, "make %s", path);
	AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text->p, text->n) != (ssize_t)text->n)
		return err_sys(e, "write %s", path);
	return 0;
}

/* A clone that is cut off says where; without it history seems broken. */
static int copy_shallow(const struct workshop *w, struct err *e)
{
	static char bytes[1 << 20];
	char path[PATH_TEXT + 16];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/shallow", w->repo->common);
	AUTO_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	ssize_t n = RETRY_EINTR(read(fd, bytes, sizeof(bytes)));
	if (n <= 0 || n == (ssize_t)sizeof(bytes) ||
	    strspn(bytes, "0123456789abcdef\n") < (size_t)n)
		return 0;
	return put_file(w->path, "shallow", &(struct buf){.p = bytes, .n = (size_t)n}, e);
}

/* By hand: what `git init` would make, and nothing of templates and configuration. */
static int make_repo(const struct workshop *w, struct err *e)
{
	bool sha256 = strlen(w->session->rec.head) == 64;
	AUTO_BUF config = BUF_INIT(1024);
	AUTO_BUF alternates = BUF_INIT((size_t)4 * PATH_TEXT);
	struct buf head = {.p = (char *)(uintptr_t) "ref: refs/heads/none\n", .n = 21};
	struct buf nothing = {.p = (char *)(uintptr_t) "", .n = 0};

	(void)buf_printf(&config, "[core]\n\trepositoryformatversion = %d\n\tbare = true\n",
			 sha256);
	if (sha256)
		(void)buf_str(&config, "[extensions]\n\tobjectformat = sha256\n");
	quote_line(&alternates, w->objects);
	if (config.failed || alternates.failed)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (put_file(w->path, "HEAD", &head, e) < 0 ||
	    put_file(w->path, "config", &config, e) < 0 ||
	    put_file(w->path, "objects/info/alternates", &alternates, e) < 0 ||
	    put_file(w->path, "objects/pack/.keep", &nothing, e) < 0 ||
	    put_file(w->path, "refs/heads/.keep", &nothing, e) < 0)
		return -1;
	return copy_shallow(w, e);
}

int workshop_open(struct workshop *w, const struct chosen *session, const struct repo *repo,
		  struct err *e)
{
	static const struct places nowhere;
	const char *tmp = caller_env(&session->who, "TMPDIR");
	struct resolved where;

	*w = (struct workshop){.session = session, .repo = repo};
	(void)snprintf(w->objects, sizeof(w->objects), "%s/objects", repo->common);
	if (attend_begin(&w->attend, e) < 0)
		return -1;
	if (beside_front(w->front, e) < 0 || find_git(w, e) < 0 || make_env(w, e) < 0)
		return -1;
	if (!tmp || tmp[0] != '/')
		tmp = "/tmp";
	if (resolve_path(tmp, NULL, &nowhere, &where, e) < 0)
		return err_wrap(e, "TMPDIR");
	if (strlen(where.path) >= sizeof(w->path) - 128)
		return err_set(e, ERR_CONFIG_INVALID, "%s is too long a name", tmp);
	(void)snprintf(w->path, sizeof(w->path), "%.*s/sandglass-push.XXXXXX", PATH_TEXT - 128,
		       where.path);
	if (!mkdtemp(w->path)) {
		w->path[0] = '\0';
		return err_sys(e, "make a directory in %s", tmp);
	}
	return make_repo(w, e);
}

void workshop_close(struct workshop *w)
{
	char *slash = strrchr(w->path, '/');

	if (slash) {
		*slash = '\0';
		AUTO_FD int above =
			open(w->path[0] ? w->path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (above >= 0)
			remove_tree(above, slash + 1);
	}
	free((void *)w->git_env);
	w->git_env = NULL;
	free(w->path_env);
	attend_end(&w->attend);
}

int workshop_file(const struct workshop *w, const char *name, int *ret_fd, struct err *e)
{
	char path[PATH_TEXT + 64];

	(void)snprintf(path, sizeof(path), "%s/%s", w->path, name);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, "open %s", path);
	*ret_fd = fd;
	return 0;
}

/* What a child said, shown with whatever it is safe. */
static int failed(const struct child *c, enum err_code code, const char *what, struct err *e)
{
	const char *last = c->tail;

	/* The last line says most. */
	for (const char *p = c->tail; *p; p++)
		if (*p == '\n' && p[1])
			last = p + 1;
	(void)err_set(e, code, "%s: %.*s", what, (int)strcspn(last, "\n"),
		      last[0] ? last : "it failed without a word");
	(void)remote_cut(e->msg);
	return -1;
}

static bool is_done(const struct child *c)
{
	return WIFEXITED(c->status) && WEXITSTATUS(c->status) == 0;
}

/* The person's git on our repository; `words` are what follows, NULL-terminated. */
static int own_git(struct workshop *w, const char *const *words, int in, int out, bool terminal,
		   struct child *ret, struct err *e)
{
	static const char *const off[] = {
		"git",
		"-c",
		"core.hooksPath=/dev/null",
		"-c",
		"core.fsmonitor=false",
		"-c",
		"core.alternateRefsCommand=true",
		"-c",
		"core.commitGraph=false",
		"-c",
		"protocol.ext.allow=never",
		"-c",
		"gc.auto=0",
		"-c",
		"maintenance.auto=false",
		"-c",
		"push.gpgSign=false",
		"-c",
		"core.attributesFile=/dev/null",
	};
	char *argv[ARRAY_LEN(off) + 24];
	char dir[PATH_TEXT + 64];
	size_t n = 0;

	(void)snprintf(dir, sizeof(dir), "--git-dir=%s/" WORKSHOP, w->path);
	for (; n < ARRAY_LEN(off); n++)
		argv[n] = (char *)(uintptr_t)off[n];
	argv[n++] = dir;
	for (; *words && n + 1 < ARRAY_LEN(argv); words++)
		argv[n++] = (char *)(uintptr_t)*words;
	argv[n] = NULL;
	*ret = (struct child){.path = w->git,
			      .argv = argv,
			      .env = w->git_env,
			      .cwd = w->path,
			      .in = in,
			      .out = out,
			      .most_bytes = MAX_LIST_BYTES,
			      .terminal = terminal};
	return child_run(&w->attend, ret, e);
}

/* A remote that is a path is one from the source's top. */
static void remote_words(const struct workshop *w, const char *url, char *ret, size_t cap)
{
	bool relative = url[0] != '/' && !strstr(url, "://") && !strchr(url, ':');

	(void)snprintf(ret, cap, "%s%s%s", relative ? w->session->rec.source : "",
		       relative ? "/" : "", url);
}

static void take_ref(char *line, const char *branch, struct remote_view *ret)
{
	static const char head[] = "ref: refs/heads/";
	char *tab = strchr(line, '\t');
	char full[512];

	if (!tab)
		return;
	*tab++ = '\0';
	(void)snprintf(full, sizeof(full), "refs/heads/%s", branch);
	if (strncmp(line, head, sizeof(head) - 1) == 0 && strcmp(tab, "HEAD") == 0)
		(void)snprintf(ret->head, sizeof(ret->head), "%s", line + sizeof(head) - 1);
	else if (strcmp(tab, full) == 0)
		ret->has_branch = true;
}

int remote_look(struct workshop *w, const char *url, const char *branch, struct remote_view *ret,
		struct err *e)
{
	static char text[65536];
	char address[REPO_URL_TEXT + PATH_TEXT];
	char ref[512];
	struct child c;

	remote_words(w, url, address, sizeof(address));
	(void)snprintf(ref, sizeof(ref), "refs/heads/%s", branch);
	*ret = (struct remote_view){.head = ""};
	const char *words[] = {"ls-remote", "--symref", "--", address, "HEAD", ref, NULL};
	AUTO_FD int out = -1;
	if (workshop_file(w, "refs", &out, e) < 0 || own_git(w, words, -1, out, true, &c, e) < 0)
		return -1;
	if (!is_done(&c)) {
		(void)err_set(e, ERR_NOT_FOUND, "git could not ask the remote %s", url);
		return err_hint(e, "git's own words are above; `git ls-remote` tries the same");
	}
	ssize_t n = pread(out, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	for (char *line = text; *line;) {
		char *end = line + strcspn(line, "\n");
		bool more = *end != '\0';
		*end = '\0';
		take_ref(line, branch, ret);
		line = end + more;
	}
	return 0;
}

int remote_push(struct workshop *w, const char *url, const char *commit, const char *branch,
		struct err *e)
{
	char address[REPO_URL_TEXT + PATH_TEXT];
	char ref[OID_TEXT + 512];
	struct child c;

	remote_words(w, url, address, sizeof(address));
	(void)snprintf(ref, sizeof(ref), "%s:refs/heads/%s", commit, branch);
	const char *words[] = {"push",
			       "--no-follow-tags",
			       "--recurse-submodules=no",
			       "--no-verify",
			       "--",
			       address,
			       ref,
			       NULL};
	if (own_git(w, words, -1, -1, true, &c, e) < 0)
		return -1;
	if (is_done(&c))
		return 0;
	(void)err_set(e, ERR_CONFLICT, "git could not push to %s", url);
	return err_hint(e, "git's own words are above; nothing was pushed");
}

/* Of all git commands in a sandbox: nothing of any configuration counts. */
#define SCRIPT_BEGIN                                                                \
	"set -e; umask 077; cd \"$TMPDIR\"; export LC_ALL=C GIT_CONFIG_NOSYSTEM=1 " \
	"GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 GIT_DIR=\"$TMPDIR/r\" "    \
	"GIT_NO_REPLACE_OBJECTS=1 GIT_OPTIONAL_LOCKS=0 "                            \
	"GIT_ALTERNATE_OBJECT_DIRECTORIES=\"$1\"; "                                 \
	"git init -q --bare --template= --object-format=\"$2\" \"$GIT_DIR\"; "

enum box {
	BOX_SOURCE,  /* the source is there, read-only */
	BOX_OBJECTS, /* of the source its objects alone */
};

struct boxed {
	enum box box;
	const char *write; /* a directory that may be written; NULL: none */
	const char *repo;  /* our repository, whose objects count too; NULL: not */
	const char *read;  /* a file; NULL: none */
	const char *script;
	const char *args[4]; /* $3 and on */
	int in, out;
};

/* sandglass run … sh -c SCRIPT sandglass OBJECTS FORMAT ARGS… */
static int in_sandbox(struct workshop *w, const struct boxed *b, struct child *ret, struct err *e)
{
	char *argv[48];
	char objects[2 * PATH_TEXT];
	const char *words[48] = {"sandglass", "run", "--quiet", "--no-tty", "--timeout", "30m"};
	size_t n = 6;

	/* Two of them are told apart by a colon; one in quotes may have any name. */
	AUTO_BUF quoted = BUF_INIT(sizeof(objects) - 1);
	quote_line(&quoted, w->objects);
	if (quoted.failed)
		return err_set(e, ERR_CONFIG_INVALID, "%s is too long a name", w->objects);
	quoted.p[quoted.n - 1] = '\0';
	(void)snprintf(objects, sizeof(objects), "%s%s%s%s", quoted.p, b->repo ? ":\"" : "",
		       b->repo ? b->repo : "", b->repo ? "/objects\"" : "");
	if (b->box == BOX_SOURCE) {
		words[n++] = "--mode";
		words[n++] = "read-only";
		words[n++] = "--source";
		words[n++] = w->session->rec.source;
	} else {
		words[n++] = "--no-source";
		words[n++] = "--read";
		words[n++] = w->objects;
	}
	const char *grants[][2] = {{"--write", b->write}, {"--read", b->repo}, {"--read", b->read}};
	for (size_t i = 0; i < ARRAY_LEN(grants); i++)
		for (size_t k = 0; grants[i][1] && k < 2; k++)
			words[n++] = grants[i][k];
	words[n++] = "sh";
	words[n++] = "-c";
	words[n++] = b->script;
	words[n++] = "sandglass";
	words[n++] = objects;
	words[n++] = strlen(w->session->rec.head) == 64 ? "sha256" : "sha1";
	for (size_t i = 0; i < ARRAY_LEN(b->args) && b->args[i]; i++)
		words[n++] = b->args[i];
	for (size_t i = 0; i < n; i++)
		argv[i] = (char *)(uintptr_t)words[i];
	argv[n] = NULL;
	*ret = (struct child){.path = w->front,
			      .argv = argv,
			      .env = w->git_env,
			      .cwd = b->box == BOX_SOURCE ? w->session->rec.source : w->path,
			      .in = b->in,
			      .out = b->out,
			      .most_bytes = MAX_PACK_BYTES};
	return child_run(&w->attend, ret, e);
}

static int read_all(int fd, uint64_t bytes, size_t most, char **ret, size_t *ret_n, struct err *e)
{
	if (bytes > most)
		return err_set(e, ERR_ARG_LIMIT, "more than %zu bytes of an answer", most);
	char *p = malloc((size_t)bytes + 1);
	if (!p)
		return err_set(e, ERR_INTERNAL, "out of memory");
	ssize_t n = pread(fd, p, (size_t)bytes, 0);
	if (n != (ssize_t)bytes) {
		free(p);
		return err_sys(e, "read an answer");
	}
	p[n] = '\0';
	*ret = p;
	*ret_n = (size_t)n;
	return 0;
}

int git_ignored(struct workshop *w, const char *parent, struct commit_paths *p, struct err *e)
{
	/* With the parent's tree as the index, what git knows is not ignored. */
	static const char script[] = SCRIPT_BEGIN
		"git config core.bare false; git read-tree \"$3\"; "
		"git --work-tree=\"$4\" -C \"$4\" check-ignore -z --stdin || test $? = 1";
	AUTO_BUF list = BUF_INIT(MAX_LIST_BYTES);
	struct child c;
	char *ignored = NULL;
	size_t n = 0;

	if (commit_paths_list(p, &list, e) < 0)
		return -1;
	if (!list.n)
		return 0;
	AUTO_FD int in = -1;
	AUTO_FD int out = -1;
	if (workshop_file(w, "paths", &in, e) < 0 || workshop_file(w, "ignored", &out, e) < 0)
		return -1;
	if (pwrite(in, list.p, list.n, 0) != (ssize_t)list.n)
		return err_sys(e, "write the list of paths");
	struct boxed b = {.box = BOX_SOURCE,
			  .script = script,
			  .args = {parent, w->session->rec.source},
			  .in = in,
			  .out = out};
	if (in_sandbox(w, &b, &c, e) < 0)
		return -1;
	if (!is_done(&c))
		return failed(&c, ERR_CONFLICT, "git cannot tell what is ignored", e);
	if (read_all(out, c.out_bytes, MAX_LIST_BYTES, &ignored, &n, e) < 0)
		return -1;
	commit_paths_ignore(p, ignored, n);
	free(ignored);
	return 0;
}

/* "COMMIT TREE\nGITLINKS\n", what changed, a NUL; the pack is behind it. */
static int take_answer(char *text, size_t n, struct git_made *ret, size_t *ret_pack, struct err *e)
{
	size_t oid = strspn(text, "0123456789abcdef");
	struct err ignored = {0};
	uint64_t links = 0;

	if (!refs_is_oid(text, oid) || text[oid] != ' ' || !refs_is_oid(text + oid + 1, oid) ||
	    text[2 * oid + 1] != '\n' || !memchr(text, 0, n))
		return err_set(e, ERR_INTERNAL, "git's answer is not what was asked for");
	memcpy(ret->commit, text, oid);
	memcpy(ret->tree, text + oid + 1, oid);
	*ret_pack = strlen(text) + 1;
	char *count = text + 2 * oid + 2;
	char *end = count + strcspn(count, "\n");
	bool more = *end != '\0';
	*end = '\0';
	if (num_parse(count, 0, SIZE_MAX, &links, &ignored) < 0)
		return err_set(e, ERR_INTERNAL, "git's answer is not what was asked for");
	ret->gitlinks = (size_t)links;
	ret->stat = strdup(end + more);
	return ret->stat ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
}

/* The name of a commit says all of it, so nobody in the sandbox can have made another one. */
static int check_made(const struct commit_head *head, const struct git_made *m, struct err *e)
{
	struct inventory_oid is;
	char hex[OID_TEXT];
	AUTO_BUF object = BUF_INIT((size_t)1 << 20);
	unsigned int bytes = (unsigned int)strlen(m->commit) / 2;

	if (commit_object(head, m->tree, &object, e) < 0)
		return -1;
	if (!object_name("commit", object.p, object.n, bytes, &is))
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < bytes; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", is.oid[i]);
	return strcmp(hex, m->commit) == 0
		       ? 0
		       : err_set(e, ERR_INTERNAL, "the commit %s is not the one asked for",
				 m->commit);
}

static int take_pack(struct workshop *w, int from, size_t at, struct err *e)
{
	static const char *const words[] = {"index-pack", "--stdin", "--strict", "--fix-thin",
					    NULL};
	struct child c;

	if (lseek(from, (off_t)at, SEEK_SET) < 0)
		return err_sys(e, "seek");
	if (own_git(w, words, from, -1, false, &c, e) < 0)
		return -1;
	return is_done(&c) ? 0 : failed(&c, ERR_INTERNAL, "git does not accept the objects", e);
}

int git_make(struct workshop *w, const struct commit_head *head, int source,
	     const struct commit_paths *p, struct git_made *ret, struct err *e)
{
	static const char script[] = SCRIPT_BEGIN
		"if [ -f \"$4\" ]; then cp \"$4\" \"$GIT_DIR/shallow\"; fi; "
		"git fast-import --quiet --done >&2; "
		"c=$(git rev-parse --verify " COMMIT_REF
		"); t=$(git rev-parse --verify \"$c^{tree}\"); "
		"echo \"$c $t\"; git diff-tree -r --no-renames --raw \"$3\" \"$c\" | "
		"sed -n '/^:160000\\|^:[0-7]* 160000/p' | wc -l; "
		"git diff-tree -r -M --stat=100 --stat-count=1000 --summary --no-ext-diff --no-textconv "
		"\"$3\" \"$c\"; printf '\\0'; "
		"printf '%s\\n^%s\\n' \"$c\" \"$3\" | git pack-objects --quiet --stdout --revs";
	char shallow[PATH_TEXT + 64];
	struct child c;
	size_t at = 0;

	*ret = (struct git_made){.stat = NULL};
	(void)snprintf(shallow, sizeof(shallow), "%s/" WORKSHOP "/shallow", w->path);
	bool cut = access(shallow, F_OK) == 0;
	AUTO_FD int in = -1;
	AUTO_FD int out = -1;
	if (workshop_file(w, "stream", &in, e) < 0 || workshop_file(w, "made", &out, e) < 0 ||
	    commit_stream(in, head, source, p, e) < 0)
		return -1;
	if (lseek(in, 0, SEEK_SET) < 0)
		return err_sys(e, "seek");
	struct boxed b = {.box = BOX_OBJECTS,
			  .script = script,
			  .args = {head->parent, cut ? shallow : NULL},
			  .read = cut ? shallow : NULL,
			  .in = in,
			  .out = out};
	if (in_sandbox(w, &b, &c, e) < 0)
		return -1;
	if (!is_done(&c))
		return failed(&c, ERR_CONFLICT, "git could not make the commit", e);
	AUTO_FREE char *text = calloc(1, MAX_STAT_BYTES + 1);
	ssize_t n = text ? pread(out, text, MAX_STAT_BYTES, 0) : -1;
	if (n <= 0)
		return err_set(e, ERR_INTERNAL, "git's answer cannot be read");
	if (take_answer(text, (size_t)n, ret, &at, e) < 0 || check_made(head, ret, e) < 0)
		return -1;
	return take_pack(w, out, at, e);
}

void git_made_release(struct git_made *m)
{
	free(m->stat);
	m->stat = NULL;
}

int git_checkout(struct workshop *w, const char *commit, const char *name,
		 char ret_path[PATH_TEXT + 64], struct err *e)
{
	static const char script[] =
		SCRIPT_BEGIN "git config core.bare false; git read-tree \"$3\"; "
			     "git --work-tree=\"$4\" -C \"$4\" checkout-index -a -f";
	char repo[PATH_TEXT + 64];
	struct child c;

	(void)snprintf(ret_path, PATH_TEXT + 64, "%s/%s", w->path, name);
	(void)snprintf(repo, sizeof(repo), "%s/" WORKSHOP, w->path);
	if (mkdir(ret_path, 0700) < 0)
		return err_sys(e, "make %s", ret_path);
	/* As root commands have the rights of a directory's owner: those of the source's. */
	if (w->session->who.root &&
	    chown(ret_path, w->session->rec.owner_uid, w->session->rec.owner_gid) < 0)
		return err_sys(e, "chown %s", ret_path);
	struct boxed b = {.box = BOX_OBJECTS,
			  .script = script,
			  .args = {commit, ret_path},
			  .repo = repo,
			  .write = ret_path,
			  .in = -1,
			  .out = -1};
	if (in_sandbox(w, &b, &c, e) < 0)
		return -1;
	return is_done(&c) ? 0 : failed(&c, ERR_INTERNAL, "git could not check the tree out", e);
}
