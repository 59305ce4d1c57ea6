/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pseudonyms, and where names are in a text. What a name is in free text is told by its
 * form alone; rather one word too many is replaced than one name is written.
 */
#include "audit/pseudonym.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#define BLOCK 64
#define MAX_HASHED 8192u
#define KEY_FILE "key"

void hmac_sha256(const unsigned char key[SHA256_BYTES], const void *p, size_t n,
		 unsigned char ret[SHA256_BYTES])
{
	unsigned char inner[BLOCK + MAX_HASHED];
	unsigned char outer[BLOCK + SHA256_BYTES];
	unsigned char digest[SHA256_BYTES];

	if (n > MAX_HASHED) {
		sha256(p, n, digest);
		p = digest;
		n = sizeof(digest);
	}
	memset(inner, 0x36, BLOCK);
	memset(outer, 0x5c, BLOCK);
	for (size_t i = 0; i < SHA256_BYTES; i++) {
		inner[i] ^= key[i];
		outer[i] ^= key[i];
	}
	memcpy(inner + BLOCK, p, n);
	sha256(inner, BLOCK + n, outer + BLOCK);
	sha256(outer, sizeof(outer), ret);
}

static int key_read(int fd, unsigned char ret[SHA256_BYTES], struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "the key of pseudonyms");
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 0077) ||
	    st.st_size != SHA256_BYTES || pread(fd, ret, SHA256_BYTES, 0) != SHA256_BYTES)
		return err_set(e, ERR_POLICY_DENIED,
			       "the key of pseudonyms is not 32 bytes that only you can read");
	return 0;
}

int pseudonym_key(int dir, bool make, unsigned char ret[SHA256_BYTES], struct err *e)
{
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	unsigned char key[SHA256_BYTES];

	AUTO_FD int fd = openat(dir, KEY_FILE, O_RDONLY | flags);
	if (fd >= 0)
		return key_read(fd, ret, e);
	if (errno != ENOENT || !make)
		return err_sys(e, "the key of pseudonyms");
	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		return err_sys(e, "getrandom");
	/* Under the lock of the log: nobody else makes one now. */
	(void)unlinkat(dir, KEY_FILE ".new", 0);
	fd = openat(dir, KEY_FILE ".new", O_WRONLY | O_CREAT | O_EXCL | flags, 0600);
	if (fd < 0 || write(fd, key, sizeof(key)) != sizeof(key) || fsync(fd) < 0 ||
	    renameat(dir, KEY_FILE ".new", dir, KEY_FILE) < 0)
		return err_sys(e, "make the key of pseudonyms");
	memcpy(ret, key, sizeof(key));
	return 0;
}

const char *pseudonym(const struct pseudonyms *p, const char *name, size_t n,
		      char ret[PSEUDONYM_TEXT])
{
	unsigned char digest[SHA256_BYTES];
	static const char digits[] = "0123456789abcdef";

	hmac_sha256(p->key, name, n, digest);
	ret[0] = 'p';
	ret[1] = '-';
	for (size_t i = 0; i < 8; i++) {
		ret[2 + 2 * i] = digits[digest[i] >> 4];
		ret[3 + 2 * i] = digits[digest[i] & 15];
	}
	ret[PSEUDONYM_TEXT - 1] = '\0';
	return ret;
}

static void put(const struct pseudonyms *p, const char *name, size_t n, struct buf *out)
{
	char text[PSEUDONYM_TEXT];

	(void)buf_str(out, pseudonym(p, name, n, text));
}

static bool is_host(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_';
}

static bool is_account(char c)
{
	return is_host(c) || c == '+';
}

static size_t run_of(const char *p, size_t n, bool (*is)(char))
{
	size_t i = 0;

	while (i < n && is(p[i]))
		i++;
	return i;
}

/* [address] with its brackets, or a name; its length. */
static size_t host_length(const char *p, size_t n)
{
	const char *end = n && *p == '[' ? memchr(p, ']', n) : NULL;

	return end ? (size_t)(end - p) + 1 : run_of(p, n, is_host);
}

static bool is_hex_colon(char c)
{
	return isxdigit((unsigned char)c) || c == ':' || c == '.';
}

/* An IPv6 address without brackets: colons, and nothing but what is in one. */
static size_t ipv6_length(const char *p, size_t n)
{
	size_t len = run_of(p, n, is_hex_colon);
	size_t colons = 0;

	for (size_t i = 0; i < len; i++)
		colons += p[i] == ':';
	if (len < n && (isalnum((unsigned char)p[len]) || p[len] == '-'))
		return 0;
	/* A time of day has two colons too, but none that are neighbours. */
	return colons >= 2 && colons <= 7 && (memmem(p, len, "::", 2) || colons == 7) ? len : 0;
}

void pseudonym_host(const struct pseudonyms *p, const char *text, size_t n, struct buf *out)
{
	size_t len = ipv6_length(text, n);

	if (len != n)
		len = host_length(text, n);
	if (len)
		put(p, text, len, out);
	(void)buf_add(out, text + len, n - len);
}

/* Endings of file names that could be read as the last label of a host's. */
static const char *const file_endings[] = {
	"py",   "sh",      "js",   "ts",    "c",      "h",       "md",     "txt",   "json", "jsonl",
	"yaml", "yml",     "toml", "xml",   "html",   "css",     "rs",     "go",    "java", "rb",
	"pl",   "php",     "lock", "log",   "csv",    "tsv",     "cfg",    "conf",  "ini",  "tar",
	"gz",   "xz",      "zst",  "zip",   "tgz",    "bz2",     "cc",     "cpp",   "hpp",  "hh",
	"cxx",  "jsx",     "tsx",  "mjs",   "cjs",    "vue",     "svelte", "scss",  "less", "sql",
	"db",   "so",      "a",    "o",     "out",    "exe",     "dll",    "png",   "jpg",  "jpeg",
	"gif",  "svg",     "pdf",  "patch", "diff",   "orig",    "bak",    "tmp",   "test", "spec",
	"env",  "example", "mk",   "cmake", "gradle", "kt",      "swift",  "scala", "ex",   "exs",
	"lua",  "vim",     "el",   "proto", "tf",     "service", "socket", "pem",   "key",  "crt",
	"map",  "min",     "d",    "t",     "in",     "ac",      "am",     "scd",   "nix",  "ipynb",
	"wasm", "whl",     "jar",  "class", "pyc",    "pyi",     "git",    "local", "sum",  "mod",
};

/* A name of at least two labels, the last of letters and no ending of files. */
static bool is_host_name(const char *p, size_t n)
{
	const char *dot = memrchr(p, '.', n);

	if (!dot || dot == p || p[0] == '-' || memmem(p, n, "..", 2))
		return false;
	size_t last = n - (size_t)(dot - p) - 1;
	if (last < 2)
		return false;
	for (size_t i = 0; i < last; i++)
		if (!isalpha((unsigned char)dot[1 + i]))
			return false;
	for (size_t i = 0; i < ARRAY_LEN(file_endings); i++)
		if (strlen(file_endings[i]) == last &&
		    strncasecmp(file_endings[i], dot + 1, last) == 0)
			return false;
	return true;
}

static bool is_ipv4(const char *p, size_t n)
{
	size_t dots = 0;
	size_t digits = 0;

	for (size_t i = 0; i < n; i++) {
		if (p[i] == '.') {
			if (!digits)
				return false;
			dots++;
			digits = 0;
		} else if (!isdigit((unsigned char)p[i]) || ++digits > 3) {
			return false;
		}
	}
	return dots == 3 && digits;
}

struct walk {
	const struct pseudonyms *p;
	const char *text;
	size_t n, at;
	struct buf *out;
};

static void keep(struct walk *w, size_t n)
{
	(void)buf_add(w->out, w->text + w->at, n);
	w->at += n;
}

static void hide(struct walk *w, size_t n)
{
	put(w->p, w->text + w->at, n, w->out);
	w->at += n;
}

static bool begins(const struct walk *w, const char *with)
{
	size_t len = strlen(with);

	return w->n - w->at >= len && memcmp(w->text + w->at, with, len) == 0;
}

static size_t component(const struct walk *w)
{
	size_t i = w->at;

	while (i < w->n && !isspace((unsigned char)w->text[i]) && !strchr("/\"':;,)&|", w->text[i]))
		i++;
	return i - w->at;
}

/* Behind a host: [:port]/OWNER/… or, as git has it, :OWNER/…; `git` says which. */
static void owner(struct walk *w, bool git)
{
	if (w->at < w->n && w->text[w->at] == ':' && !git)
		keep(w, 1 + run_of(w->text + w->at + 1, w->n - w->at - 1, is_host));
	else if (w->at < w->n && w->text[w->at] == ':')
		keep(w, 1);
	if (w->at < w->n && w->text[w->at] == '/')
		keep(w, 1);
	size_t len = component(w);
	if (len && w->at + len < w->n && w->text[w->at + len] == '/')
		hide(w, len);
}

static bool url(struct walk *w)
{
	if (!begins(w, "://"))
		return false;
	keep(w, 3);
	size_t i = w->at;
	while (i < w->n && !isspace((unsigned char)w->text[i]) && !strchr("/?#\"'@", w->text[i]))
		i++;
	if (i < w->n && w->text[i] == '@') {
		hide(w, i - w->at);
		keep(w, 1);
	}
	size_t len = host_length(w->text + w->at, w->n - w->at);
	if (len) {
		hide(w, len);
		owner(w, false);
	}
	return true;
}

/* The home directory, and /home/NAME of anybody. */
static bool home(struct walk *w)
{
	static const char *const tops[] = {"/home/", "/Users/", "/var/home/"};
	size_t len = w->p->home ? strlen(w->p->home) : 0;

	for (size_t i = 0; i < ARRAY_LEN(tops); i++) {
		if (!begins(w, tops[i]))
			continue;
		keep(w, strlen(tops[i]));
		len = component(w);
		if (len)
			hide(w, len);
		return true;
	}
	if (len > 1 && begins(w, w->p->home) &&
	    (w->at + len == w->n || !is_account(w->text[w->at + len]))) {
		hide(w, len);
		return true;
	}
	return false;
}

/* A word of letters, digits, dots and dashes. */
static void word(struct walk *w)
{
	const char *p = w->text + w->at;
	size_t left = w->n - w->at;
	size_t len = ipv6_length(p, left);

	if (len) {
		hide(w, len);
		return;
	}
	len = run_of(p, left, is_account);
	if (len < left && p[len] == '@' && len + 1 < left && is_host(p[len + 1])) {
		hide(w, len);
		keep(w, 1);
		hide(w, run_of(w->text + w->at, w->n - w->at, is_host));
		if (w->at < w->n && w->text[w->at] == ':')
			owner(w, true);
		return;
	}
	/* A dot at its end is the sentence's. */
	while (len > 1 && p[len - 1] == '.')
		len--;
	size_t actor = w->p->actor ? strlen(w->p->actor) : 0;
	if (is_ipv4(p, len) || is_host_name(p, len) ||
	    (actor && actor == len && memcmp(p, w->p->actor, len) == 0))
		hide(w, len);
	else
		keep(w, len);
}

void pseudonym_text(const struct pseudonyms *p, const char *text, size_t n, struct buf *out)
{
	struct walk w = {.p = p, .text = text, .n = n, .out = out};

	while (w.at < n) {
		char c = text[w.at];
		if (c == '/' && home(&w))
			continue;
		if (c == ':' && url(&w))
			continue;
		if (is_account(c) || (c == ':' && ipv6_length(text + w.at, n - w.at)))
			word(&w);
		else
			keep(&w, 1);
	}
}
