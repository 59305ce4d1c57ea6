/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What git does on its own with these files, as of 2.39 and of what is newer:
 * git-config(1), gitrepository-layout(5) and git-rebase(1). A key that is not in
 * the table, or has a value that is not expected, is never harmless, whatever a
 * later git makes of it.
 */
#include "policy/gitjudge.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/term.h"
#include "policy/gitconfig.h"

#define MAX_GIT_LINE 65536u   /* bytes of a todo list's line */
#define MAX_GIT_REMOTES 4096u /* bytes of the remotes' names; further ones do not count */

enum sub { SUB_NONE, SUB_NAME, SUB_MAY };

enum accept {
	AS_BOOL = 1,   /* also alone or empty, and whole numbers, as git does */
	AS_NUMBER = 2, /* with k, m or g */
	AS_TEXT = 4,   /* anything to be shown to people */
	AS_PLAIN = 8,  /* letters, digits and a few signs */
	AS_REF = 16,   /* a reference, a refspec */
	AS_URL = 32,
	AS_REMOTE = 64, /* a remote of this file, `.` or a URL */
	AS_WORKTREE = 128,
};

struct rule {
	const char *section;
	enum sub sub;
	const char *key;    /* NULL: each */
	unsigned int as;    /* enum accept, or'ed */
	const char *or_one; /* these words too, each with a | behind it */
};

/*
 * Left out with care, among those that look plain: core.commentChar (changes
 * what a todo list says), core.attributesFile and core.excludesFile (read any
 * file), gc.repackFilterTo and extensions.partialClone (objects elsewhere),
 * gc.*Expire (throw away what could be restored), log.showSignature and
 * merge.verifySignatures (run gpg), push.recurseSubmodules, remote.pushDefault and
 * remotes.* (may be a path), submodule.*.gitdir.
 */
static const struct rule rules[] = {
	{"core", SUB_NONE, "repositoryformatversion", AS_NUMBER, NULL},
	{"core", SUB_NONE, "filemode", AS_BOOL, NULL},
	{"core", SUB_NONE, "bare", AS_BOOL, NULL},
	{"core", SUB_NONE, "logallrefupdates", AS_BOOL, "always|"},
	{"core", SUB_NONE, "ignorecase", AS_BOOL, NULL},
	{"core", SUB_NONE, "precomposeunicode", AS_BOOL, NULL},
	{"core", SUB_NONE, "symlinks", AS_BOOL, NULL},
	{"core", SUB_NONE, "autocrlf", AS_BOOL, "input|"},
	{"core", SUB_NONE, "eol", 0, "lf|crlf|native|"},
	{"core", SUB_NONE, "safecrlf", AS_BOOL, "warn|"},
	{"core", SUB_NONE, "worktree", AS_WORKTREE, NULL},
	{"core", SUB_NONE, "sharedrepository", 0, "umask|false|0|"}, /* else .git opens up */
	{"core", SUB_NONE, "abbrev", AS_NUMBER, "auto|no|off|false|"},
	{"core", SUB_NONE, "quotepath", AS_BOOL, NULL},
	{"core", SUB_NONE, "bigfilethreshold", AS_NUMBER, NULL},
	{"core", SUB_NONE, "compression", AS_NUMBER, NULL},
	{"core", SUB_NONE, "loosecompression", AS_NUMBER, NULL},
	{"core", SUB_NONE, "preloadindex", AS_BOOL, NULL},
	{"core", SUB_NONE, "untrackedcache", AS_BOOL, "keep|"},
	{"core", SUB_NONE, "trustctime", AS_BOOL, NULL},
	{"core", SUB_NONE, "checkstat", 0, "default|minimal|"},
	{"core", SUB_NONE, "sparsecheckout", AS_BOOL, NULL},
	{"core", SUB_NONE, "sparsecheckoutcone", AS_BOOL, NULL},
	{"core", SUB_NONE, "whitespace", AS_PLAIN, NULL},
	{"core", SUB_NONE, "commitgraph", AS_BOOL, NULL},
	{"core", SUB_NONE, "multipackindex", AS_BOOL, NULL},
	{"core", SUB_NONE, "fsmonitor", 0, "false|"}, /* any other word is a program to some git */
	{"extensions", SUB_NONE, "objectformat", 0, "sha1|sha256|"},
	{"extensions", SUB_NONE, "compatobjectformat", 0, "sha1|sha256|"},
	{"extensions", SUB_NONE, "worktreeconfig", AS_BOOL, NULL},
	{"extensions", SUB_NONE, "refstorage", 0, "files|reftable|"}, /* a newer git takes URLs */
	{"extensions", SUB_NONE, "preciousobjects", AS_BOOL, NULL},
	{"extensions", SUB_NONE, "relativeworktrees", AS_BOOL, NULL},
	{"remote", SUB_NAME, "url", AS_URL, NULL},
	{"remote", SUB_NAME, "pushurl", AS_URL, NULL},
	{"remote", SUB_NAME, "fetch", AS_REF, NULL},
	{"remote", SUB_NAME, "push", AS_REF, NULL},
	{"remote", SUB_NAME, "mirror", AS_BOOL, NULL},
	{"remote", SUB_NAME, "tagopt", 0, "--tags|--no-tags|"},
	{"remote", SUB_NAME, "prune", AS_BOOL, NULL},
	{"remote", SUB_NAME, "prunetags", AS_BOOL, NULL},
	{"remote", SUB_NAME, "skipdefaultupdate", AS_BOOL, NULL},
	{"remote", SUB_NAME, "skipfetchall", AS_BOOL, NULL},
	{"branch", SUB_NAME, "remote", AS_REMOTE, NULL},
	{"branch", SUB_NAME, "pushremote", AS_REMOTE, NULL},
	{"branch", SUB_NAME, "merge", AS_REF, NULL},
	{"branch", SUB_NAME, "rebase", AS_BOOL, "merges|interactive|preserve|"},
	{"branch", SUB_NAME, "description", AS_TEXT, NULL},
	{"branch", SUB_NAME, "vscode-merge-base", AS_REF, NULL}, /* written by editors and gh */
	{"branch", SUB_NAME, "gh-merge-base", AS_REF, NULL},
	{"remote", SUB_NAME, "gh-resolved", 0, "base|"},
	{"branch", SUB_NONE, "autosetupmerge", AS_BOOL, "always|inherit|simple|"},
	{"branch", SUB_NONE, "autosetuprebase", 0, "never|local|remote|always|"},
	{"branch", SUB_NONE, "sort", 0, /* `signature` runs gpg */
	 "refname|-refname|committerdate|-committerdate|authordate|-authordate|"
	 "creatordate|-creatordate|version:refname|-version:refname|v:refname|-v:refname|"},
	{"submodule", SUB_NAME, "url", AS_URL, NULL},
	{"submodule", SUB_NAME, "active", AS_BOOL, NULL},
	{"submodule", SUB_NAME, "branch", AS_REF, ".|"},
	{"submodule", SUB_NAME, "ignore", 0, "none|untracked|dirty|all|"},
	{"submodule", SUB_NAME, "fetchrecursesubmodules", AS_BOOL, "on-demand|"},
	{"submodule", SUB_NAME, "update", 0, "checkout|rebase|merge|none|"}, /* or `!program` */
	{"submodule", SUB_NONE, "active", AS_TEXT, NULL},
	{"submodule", SUB_NONE, "recurse", AS_BOOL, NULL},
	{"user", SUB_NONE, "name", AS_TEXT, NULL},
	{"user", SUB_NONE, "email", AS_TEXT, NULL},
	{"author", SUB_NONE, "name", AS_TEXT, NULL},
	{"author", SUB_NONE, "email", AS_TEXT, NULL},
	{"committer", SUB_NONE, "name", AS_TEXT, NULL},
	{"committer", SUB_NONE, "email", AS_TEXT, NULL},
	{"init", SUB_NONE, "defaultbranch", AS_REF, NULL},
	{"gc", SUB_NONE, "auto", AS_NUMBER, NULL},
	{"gc", SUB_NONE, "autopacklimit", AS_NUMBER, NULL},
	{"gc", SUB_NONE, "autodetach", AS_BOOL, NULL},
	{"gc", SUB_NONE, "aggressivedepth", AS_NUMBER, NULL},
	{"gc", SUB_NONE, "aggressivewindow", AS_NUMBER, NULL},
	{"gc", SUB_NONE, "bigpackthreshold", AS_NUMBER, NULL},
	{"gc", SUB_NONE, "cruftpacks", AS_BOOL, NULL},
	{"gc", SUB_NONE, "maxcruftsize", AS_NUMBER, NULL},
	{"gc", SUB_NONE, "packrefs", AS_BOOL, "notbare|"},
	{"gc", SUB_NONE, "writecommitgraph", AS_BOOL, NULL},
	{"pack", SUB_NONE, "window", AS_NUMBER, NULL},
	{"pack", SUB_NONE, "depth", AS_NUMBER, NULL},
	{"pack", SUB_NONE, "windowmemory", AS_NUMBER, NULL},
	{"pack", SUB_NONE, "compression", AS_NUMBER, NULL},
	{"pack", SUB_NONE, "threads", AS_NUMBER, NULL},
	{"pack", SUB_NONE, "indexversion", AS_NUMBER, NULL},
	{"pack", SUB_NONE, "packsizelimit", AS_NUMBER, NULL},
	{"pack", SUB_NONE, "deltacachesize", AS_NUMBER, NULL},
	{"pack", SUB_NONE, "deltacachelimit", AS_NUMBER, NULL},
	{"pack", SUB_NONE, "allowpackreuse", AS_BOOL, "single|multi|"},
	{"pack", SUB_NONE, "usebitmaps", AS_BOOL, NULL},
	{"pack", SUB_NONE, "writebitmaphashcache", AS_BOOL, NULL},
	{"pack", SUB_NONE, "writebitmaplookuptable", AS_BOOL, NULL},
	{"pack", SUB_NONE, "readreverseindex", AS_BOOL, NULL},
	{"pack", SUB_NONE, "writereverseindex", AS_BOOL, NULL},
	{"pack", SUB_NONE, "usesparse", AS_BOOL, NULL},
	{"pack", SUB_NONE, "usepathwalk", AS_BOOL, NULL},
	{"repack", SUB_NONE, "usedeltabaseoffset", AS_BOOL, NULL},
	{"repack", SUB_NONE, "packkeptobjects", AS_BOOL, NULL},
	{"repack", SUB_NONE, "usedeltaislands", AS_BOOL, NULL},
	{"repack", SUB_NONE, "writebitmaps", AS_BOOL, NULL},
	{"repack", SUB_NONE, "updateserverinfo", AS_BOOL, NULL},
	{"repack", SUB_NONE, "cruftwindow", AS_NUMBER, NULL},
	{"repack", SUB_NONE, "cruftwindowmemory", AS_NUMBER, NULL},
	{"repack", SUB_NONE, "cruftdepth", AS_NUMBER, NULL},
	{"repack", SUB_NONE, "cruftthreads", AS_NUMBER, NULL},
	{"merge", SUB_NONE, "ff", AS_BOOL, "only|"},
	{"merge", SUB_NONE, "conflictstyle", 0, "merge|diff3|zdiff3|"},
	{"merge", SUB_NONE, "renames", AS_BOOL, "copy|copies|"},
	{"merge", SUB_NONE, "log", AS_BOOL, NULL},
	{"merge", SUB_NONE, "stat", AS_BOOL, "compact|diffstat|"},
	{"pull", SUB_NONE, "rebase", AS_BOOL, "merges|interactive|preserve|"},
	{"pull", SUB_NONE, "ff", AS_BOOL, "only|"},
	{"push", SUB_NONE, "default", 0, "nothing|current|upstream|tracking|simple|matching|"},
	{"push", SUB_NONE, "autosetupremote", AS_BOOL, NULL},
	{"push", SUB_NONE, "followtags", AS_BOOL, NULL},
	{"fetch", SUB_NONE, "prune", AS_BOOL, NULL},
	{"fetch", SUB_NONE, "prunetags", AS_BOOL, NULL},
	{"rebase", SUB_NONE, "autosquash", AS_BOOL, NULL},
	{"rebase", SUB_NONE, "autostash", AS_BOOL, NULL},
	{"rebase", SUB_NONE, "updaterefs", AS_BOOL, NULL},
	{"rebase", SUB_NONE, "stat", AS_BOOL, NULL},
	{"diff", SUB_NONE, "renames", AS_BOOL, "copy|copies|"},
	{"diff", SUB_NONE, "algorithm", 0, "default|myers|minimal|patience|histogram|"},
	{"diff", SUB_NONE, "mnemonicprefix", AS_BOOL, NULL},
	{"diff", SUB_NONE, "noprefix", AS_BOOL, NULL},
	{"diff", SUB_NONE, "context", AS_NUMBER, NULL},
	{"status", SUB_NONE, "branch", AS_BOOL, NULL},
	{"status", SUB_NONE, "short", AS_BOOL, NULL},
	{"status", SUB_NONE, "aheadbehind", AS_BOOL, NULL},
	{"status", SUB_NONE, "renames", AS_BOOL, "copy|copies|"},
	{"status", SUB_NONE, "renamelimit", AS_NUMBER, NULL},
	{"status", SUB_NONE, "relativepaths", AS_BOOL, NULL},
	{"status", SUB_NONE, "showstash", AS_BOOL, NULL},
	{"status", SUB_NONE, "showuntrackedfiles", AS_BOOL, "normal|all|"},
	{"status", SUB_NONE, "displaycommentprefix", AS_BOOL, NULL},
	{"color", SUB_MAY, NULL, AS_PLAIN, NULL},
	{"column", SUB_NONE, NULL, AS_PLAIN, NULL},
	{"advice", SUB_NONE, NULL, AS_BOOL, NULL},
	{"log", SUB_NONE, "date", AS_TEXT, NULL},
	{"log", SUB_NONE, "decorate", AS_BOOL, "short|full|auto|"},
	{"rerere", SUB_NONE, "enabled", AS_BOOL, NULL},
	{"commit", SUB_NONE, "gpgsign", 0, "false|"}, /* true runs a program */
	{"tag", SUB_NONE, "gpgsign", 0, "false|"},
	{"commit", SUB_NONE, "verbose", AS_BOOL, NULL},
	{"commit", SUB_NONE, "cleanup", 0, "strip|whitespace|verbatim|scissors|default|"},
	{"index", SUB_NONE, "version", AS_NUMBER, NULL},
	{"index", SUB_NONE, "threads", AS_BOOL, NULL},
	{"index", SUB_NONE, "sparse", AS_BOOL, NULL},
	{"feature", SUB_NONE, "manyfiles", AS_BOOL, NULL},
	{"lfs", SUB_NONE, "repositoryformatversion", AS_NUMBER, NULL},
};

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool is_alnum(int c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_control(int c)
{
	return (unsigned char)c < 0x20 || (unsigned char)c == 0x7f;
}

/* Is it one of the words, each of which has a | behind it? */
static bool is_one_of(const char *words, const char *text)
{
	size_t n = strlen(text);

	for (const char *end; (end = strchr(words, '|')); words = end + 1)
		if ((size_t)(end - words) == n && strncmp(words, text, n) == 0)
			return true;
	return false;
}

static bool is_number(const char *v)
{
	size_t digits = 0;

	v += *v == '-';
	for (; is_digit(*v); v++)
		digits++;
	if (digits && *v && strchr("kKmMgG", *v))
		v++;
	return digits > 0 && digits < 20 && !*v;
}

static bool is_bool(const char *v)
{
	static const char *const words[] = {"", "true", "yes", "on", "false", "no", "off"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasecmp(v, words[i]) == 0)
			return true;
	return is_number(v);
}

/* No control character but line ends and tabs, which people write into descriptions. */
static bool is_text(const char *v)
{
	for (; *v; v++)
		if (is_control(*v) && *v != '\n' && *v != '\t')
			return false;
	return true;
}

/* Colours, layouts, lists of words. */
static bool is_plain(const char *v)
{
	for (; *v; v++)
		if (!is_alnum(*v) && !strchr(" ,=#-.", *v))
			return false;
	return true;
}

static bool is_ref(const char *v)
{
	if (!*v || *v == '-' || strstr(v, ".."))
		return false;
	for (; *v; v++)
		if (is_control(*v) || strchr(" ~?[\\", *v))
			return false;
	return true;
}

static int hex_digit(int c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* `%0a` and its like forge lines where a URL is taken apart; `%2d` is a hidden option. */
static bool hides_control(const char *v)
{
	for (; (v = strchr(v, '%')); v++) {
		int high = hex_digit(v[1]);
		int low = high < 0 ? -1 : hex_digit(v[2]);
		if (low >= 0 && (is_control(high << 4 | low) || (high << 4 | low) == '-'))
			return true;
	}
	return false;
}

/* What a host's name, and a user's, may begin with: never like an option. */
static bool is_host(const char *v, size_t n)
{
	const char *at = memrchr(v, '@', n);
	size_t host = at ? (size_t)(at + 1 - v) : 0;

	if (host < n && v[host] == '[')
		host++;
	return n > host && is_alnum(v[host]) && (is_alnum(v[0]) || v[0] == '[' || v[0] == '_');
}

/*
 * A path of this machine, as `git clone` writes it. A push there runs the hooks of
 * that repository: one in the source has none that a command made, once the call
 * is over, and one elsewhere no command could write.
 */
static bool is_local(const char *v)
{
	static const char file[] = "file:///";

	if (strncmp(v, file, sizeof(file) - 1) == 0)
		v += sizeof(file) - 2;
	return v[0] == '/' || strncmp(v, "./", 2) == 0 || strncmp(v, "../", 3) == 0;
}

/*
 * Reached by git's own means: `x::…` and the schemes that git does not know run a
 * program git-remote-x.
 */
static bool is_url(const char *v)
{
	static const char schemes[] = "http|https|ssh|git|git+ssh|ssh+git|";
	char scheme[16];

	if (*v == '-' || strstr(v, "::") || strchr(v, '\\') || hides_control(v))
		return false;
	bool local = is_local(v);
	for (const char *p = v; *p; p++)
		if (is_control(*p) || (*p == ' ' && !local))
			return false;
	if (local)
		return true;
	const char *sep = strstr(v, "://");
	if (sep) {
		size_t n = (size_t)(sep - v);
		if (n >= sizeof(scheme))
			return false;
		memcpy(scheme, v, n);
		scheme[n] = '\0';
		return is_one_of(schemes, scheme) && is_host(sep + 3, strcspn(sep + 3, "/"));
	}
	size_t n = strcspn(v, "/:");
	return v[n] == ':' && v[n + 1] && v[n + 1] != '-' && is_host(v, n);
}

/* A remote's name: nothing that is an option, a path or a URL where git is given names. */
static bool is_remote_name(const char *v)
{
	if (!is_alnum(*v))
		return false;
	for (const char *p = v; *p; p++)
		if (!is_alnum(*p) && !strchr("._-/+@", *p))
			return false;
	return !strstr(v, "..") && !strstr(v, "//");
}

/* A branch's or submodule's name; the latter is a path below .git/modules. */
static bool is_name(const char *v)
{
	if (!*v || *v == '-' || *v == '/')
		return false;
	for (const char *p = v; *p; p++)
		if (is_control(*p) || *p == '\\')
			return false;
	return !strstr(v, "..");
}

struct judge {
	struct gitjudge *ret;
	struct buf remotes; /* names of those with a URL, each with its NUL */
};

static bool is_known_remote(const struct judge *j, const char *name)
{
	for (size_t at = 0; at < j->remotes.n; at += strlen(j->remotes.p + at) + 1)
		if (strcmp(j->remotes.p + at, name) == 0)
			return true;
	return false;
}

static bool take_remote(void *self, const struct gitconfig_entry *entry)
{
	struct judge *j = self;

	/* One for which there is no room is unknown later, which is refused. */
	if (strcmp(entry->section, "remote") == 0 && entry->sub && strcmp(entry->key, "url") == 0 &&
	    !is_known_remote(j, entry->sub))
		(void)buf_add(&j->remotes, entry->sub, strlen(entry->sub) + 1);
	return true;
}

static bool set_worktree(struct gitjudge *ret, const char *v)
{
	size_t n = strlen(v);

	if (n == 0 || n >= sizeof(ret->worktree))
		return false;
	memcpy(ret->worktree, v, n + 1);
	return true;
}

static bool accepts(struct judge *j, const struct rule *rule, const char *v)
{
	const struct {
		unsigned int as;
		bool (*check)(const char *v);
	} checks[] = {
		{AS_BOOL, is_bool},   {AS_NUMBER, is_number}, {AS_TEXT, is_text},
		{AS_PLAIN, is_plain}, {AS_REF, is_ref},       {AS_URL | AS_REMOTE, is_url},
	};

	if (!v) /* alone: true, and an error for what is no truth value */
		return rule->as & AS_BOOL;
	if (rule->or_one && is_one_of(rule->or_one, v))
		return true;
	if (rule->as & AS_WORKTREE)
		return set_worktree(j->ret, v);
	if (rule->as & AS_REMOTE &&
	    (strcmp(v, ".") == 0 || (is_remote_name(v) && is_known_remote(j, v))))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(checks); i++)
		if (rule->as & checks[i].as && checks[i].check(v))
			return true;
	return false;
}

static bool fits(const struct rule *rule, const struct gitconfig_entry *entry)
{
	if (strcmp(rule->section, entry->section) != 0 ||
	    (rule->key && strcmp(rule->key, entry->key) != 0))
		return false;
	if (!entry->sub)
		return rule->sub != SUB_NAME;
	if (rule->sub == SUB_NONE)
		return false;
	return strcmp(entry->section, "remote") == 0 ? is_remote_name(entry->sub)
						     : is_name(entry->sub);
}

static bool no(struct gitjudge *ret, const char *fmt, ...) PRINTF(2, 3);

static bool no(struct gitjudge *ret, const char *fmt, ...)
{
	char text[3 * MAX_GIT_KEY + 64];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)term_escape_cut(ret->why, sizeof(ret->why), text, strlen(text));
	ret->worktree[0] = '\0';
	return false;
}

static bool judge_entry(void *self, const struct gitconfig_entry *entry)
{
	struct judge *j = self;
	const char *why = "is not known to be harmless";

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (!fits(&rules[i], entry))
			continue;
		if (!entry->odd_blanks && accepts(j, &rules[i], entry->value))
			return true;
		why = "has a value that is not known to be harmless";
	}
	return no(j->ret, "%s%s%s.%s %s", entry->section, entry->sub ? "." : "",
		  entry->sub ? entry->sub : "", entry->key, why);
}

bool gitjudge_config(const char *text, size_t n, struct gitjudge *ret)
{
	struct judge j = {.ret = ret, .remotes = BUF_INIT(MAX_GIT_REMOTES)};

	*ret = (struct gitjudge){.why = ""};
	if (n > MAX_GIT_FILE)
		return no(ret, "it is longer than %u bytes", MAX_GIT_FILE);
	/* First all remotes, since a branch may name one that follows. */
	bool good = gitconfig_parse(text, n, take_remote, &j) &&
		    gitconfig_parse(text, n, judge_entry, &j);
	buf_release(&j.remotes);
	if (!good && !ret->why[0])
		return no(ret, "git would refuse it, or it has a name or value that is too long");
	return good;
}

/* The words of a todo list that run nothing; `exec` and what is unknown are not here. */
static const char todo_words[] = "pick|p|reword|r|edit|e|squash|s|fixup|f|drop|d|noop|break|b|"
				 "label|l|reset|t|merge|m|update-ref|u|revert|";

static bool is_harmless_line(const char *p, size_t n)
{
	char word[16];
	size_t len = 0;

	if (n && p[n - 1] == '\r')
		n--;
	for (; n && (*p == ' ' || *p == '\t'); n--)
		p++;
	if (!n || *p == '#')
		return true;
	while (len < n && p[len] != ' ' && p[len] != '\t')
		len++;
	if (len >= sizeof(word))
		return false;
	memcpy(word, p, len);
	word[len] = '\0';
	return is_one_of(todo_words, word);
}

bool gitjudge_todo(const char *text, size_t n, struct gitjudge *ret)
{
	const char *end = text + n;
	size_t number = 1;

	*ret = (struct gitjudge){.why = ""};
	if (n > MAX_GIT_FILE)
		return no(ret, "it is longer than %u bytes", MAX_GIT_FILE);
	if (n && memchr(text, '\0', n))
		return no(ret, "it holds a NUL byte");
	for (const char *p = text; p < end; number++) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((eol ? eol : end) - p);
		if (len > MAX_GIT_LINE)
			return no(ret, "line %zu is longer than %u bytes", number, MAX_GIT_LINE);
		if (!is_harmless_line(p, len))
			return no(ret, "line %zu: %.*s", number, (int)(len < 64 ? len : 64), p);
		p += len + (eol != NULL);
	}
	return true;
}

static size_t without_line_ends(const char *p, size_t n)
{
	while (n && (p[n - 1] == '\n' || p[n - 1] == '\r'))
		n--;
	return n;
}

/* The strategies that are part of git; any other is a program git-merge-NAME. */
static const char strategies[] = "ort|recursive|resolve|octopus|ours|subtree|";

static bool is_strategy(const char *v)
{
	return is_one_of(strategies, v);
}

static bool judge_option(void *self, const struct gitconfig_entry *entry)
{
	struct gitjudge *ret = self;

	if (strcmp(entry->section, "options") != 0 || entry->odd_blanks)
		return no(ret, "[%s] %s", entry->section, entry->key);
	if (strcmp(entry->key, "strategy") == 0 && (!entry->value || !is_strategy(entry->value)))
		return no(ret, "the merge strategy is not one of git's own");
	return true;
}

/* Options of `git apply`, quoted for a shell; without those that write elsewhere. */
static bool is_apply_option(const char *p, size_t n)
{
	static const char *const good[] = {"-C",
					   "-p",
					   "--whitespace=",
					   "--ignore-whitespace",
					   "--ignore-space-change",
					   "--exclude=",
					   "--include="};

	if (n >= 2 && p[0] == '\'' && p[n - 1] == '\'') {
		p++;
		n -= 2;
	}
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (n >= strlen(good[i]) && memcmp(p, good[i], strlen(good[i])) == 0)
			return !memchr(p, '\'', n);
	return false;
}

static bool judge_apply_options(const char *text, size_t n)
{
	const char *end = text + n;

	while (text < end) {
		size_t len = 0;
		while (text < end && strchr(" \t\r\n", *text))
			text++;
		while (text + len < end && !strchr(" \t\r\n", text[len]))
			len++;
		if (len && !is_apply_option(text, len))
			return false;
		text += len;
	}
	return true;
}

bool gitjudge_state(const char *name, const char *text, size_t n, struct gitjudge *ret)
{
	char word[32];

	*ret = (struct gitjudge){.why = ""};
	if (n > MAX_GIT_FILE || (n && memchr(text, '\0', n)))
		return no(ret, "it is longer than %u bytes or holds a NUL byte", MAX_GIT_FILE);
	if (strcmp(name, "opts") == 0)
		return gitconfig_parse(text, n, judge_option, ret) ||
		       (ret->why[0] ? false : no(ret, "git would refuse it"));
	if (strcmp(name, "apply-opt") == 0)
		return judge_apply_options(text, n) ||
		       no(ret, "it has options that may write outside of the work tree");
	n = without_line_ends(text, n);
	if (n >= sizeof(word))
		return no(ret, "the merge strategy is not one of git's own");
	if (n)
		memcpy(word, text, n);
	word[n] = '\0';
	return !n || is_strategy(word) || no(ret, "the merge strategy is not one of git's own");
}

/* A path of n bytes with neither a NUL nor a line end inside. */
static bool put_path(const char *p, size_t n, char ret[PATH_TEXT])
{
	if (n == 0 || n >= PATH_TEXT || memchr(p, '\0', n) || memchr(p, '\n', n))
		return false;
	memcpy(ret, p, n);
	ret[n] = '\0';
	return true;
}

bool gitjudge_gitfile(const char *text, size_t n, char ret[PATH_TEXT])
{
	static const char start[] = "gitdir: ";
	const size_t len = sizeof(start) - 1;

	if (n > MAX_GIT_FILE || n < len || memcmp(text, start, len) != 0)
		return false;
	n = without_line_ends(text, n);
	return n > len && put_path(text + len, n - len, ret);
}

bool gitjudge_path(const char *text, size_t n, char ret[PATH_TEXT])
{
	if (n > MAX_GIT_FILE)
		return false;
	n = without_line_ends(text, n);
	/* Of blanks at the end one part of git takes away, another does not. */
	if (n && (text[n - 1] == ' ' || text[n - 1] == '\t'))
		return false;
	return put_path(text, n, ret);
}

bool gitjudge_alternates(const char *text, size_t n, gitjudge_item *item, void *self)
{
	const char *end = text + n;
	char path[PATH_TEXT];

	if (n > MAX_GIT_FILE || (n && memchr(text, '\0', n)))
		return false;
	for (const char *p = text; p < end;) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((eol ? eol : end) - p);
		if (len && *p == '"')
			return false;
		if (len && *p != '#' && (!put_path(p, len, path) || !item(self, path)))
			return false;
		p += len + (eol != NULL);
	}
	return true;
}
