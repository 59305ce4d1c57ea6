/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index reader: against `git ls-files` for indexes that git made, and on
 * bytes made by hand.
 */
#include "policy/gitindex.h"

#include "base/buf.h"
#include "test_policy_git.h"

static struct err e;

/* As `git ls-files --stage -z`. */
static bool list(void *self, const struct gitindex_entry *entry)
{
	struct buf *out = self;

	(void)buf_printf(out, "%06o ", entry->mode);
	for (size_t i = 0; i < 20; i++)
		(void)buf_printf(out, "%02x", entry->oid[i]);
	(void)buf_printf(out, " %u\t", entry->stage);
	(void)buf_add(out, entry->path, entry->path_len);
	return buf_char(out, '\0') == 0;
}

/* Runs a script that makes a repository, then reads its index as git does. True: split. */
static bool as_git(const char *script)
{
	static const char start[] = "rm -rf a && git init -q a && cd a && ";
	static const char end[] = " && git ls-files --stage -z >../listed && cp .git/index ..";
	AUTO_BUF text = BUF_INIT(1 << 16);
	AUTO_BUF out = BUF_INIT(1 << 22);
	bool split = false;
	size_t n = 0;
	size_t listed_n = 0;

	ck_assert_int_eq(buf_printf(&text, "%s%s%s", start, script, end), 0);
	ck_assert_msg(place_shell(buf_cstr(&text)) == 0, "%s", script);
	AUTO_FREE char *index = place_read("index", &n);
	AUTO_FREE char *listed = place_read("listed", &listed_n);
	CK_WORKS(gitindex_each(index, n, 20, list, &out, &split, &e), e);
	if (!split)
		ck_assert_msg(out.n == listed_n && memcmp(buf_cstr(&out), listed, out.n) == 0,
			      "%s: %zu bytes of %zu", script, out.n, listed_n);
	return split;
}

#define MAKE_FILES                                                                     \
	"mkdir -p d/e && echo 1 >a && echo 2 >d/b && echo 3 >d/e/c && echo 4 >d/e/cc " \
	"&& ln -s a l && chmod +x d/b && git add -A"

START_TEST(versions)
{
	char script[512];

	if (!place_has_git())
		return;
	ck_assert(!as_git("git read-tree --empty"));
	ck_assert(!as_git(MAKE_FILES " && git update-index --index-version 2"));
	ck_assert(!as_git(MAKE_FILES " && git update-index --index-version 4"));
	/* Names long enough for a strip length of two bytes. */
	for (int v = 2; v <= 4; v += 2) {
		snprintf(script, sizeof(script),
			 "h=$(echo x | git hash-object -w --stdin) && "
			 "git config index.version %d && x= && for i in $(seq 1 400); do x=x$x; "
			 "printf \"100644 $h 0\\t$x\\n100644 $h 0\\ty$x/z\\n\"; "
			 "done | git update-index --index-info",
			 v);
		ck_assert(!as_git(script));
	}
}
END_TEST

START_TEST(extended_and_stages)
{
	static const char conflict[] =
		"h=$(echo x | git hash-object -w --stdin) && "
		"printf '100644 %s 1\\tf\\n100755 %s 2\\tf\\n120000 %s 3\\tf\\n160000 %s 0\\tm\\n' "
		"$h $h $h $h | git update-index --index-info";
	char script[1024];

	if (!place_has_git())
		return;
	for (int v = 2; v <= 4; v++) {
		snprintf(script, sizeof(script),
			 MAKE_FILES " && git update-index --index-version %d && echo 5 >d/new && "
				    "git add -N d/new && git update-index --skip-worktree a && "
				    "git update-index --assume-unchanged d/b && %s",
			 v, conflict);
		ck_assert(!as_git(script));
	}
}
END_TEST

/* Enough files for git to write a table of blocks; read by git on several threads. */
START_TEST(many_files)
{
	static const char make[] = "h=$(echo x | git hash-object -w --stdin) && "
				   "git config index.threads 4 && git config index.version %d && "
				   "seq -f \"100644 $h 0\tdir/%%05.0f/name\" 1 12000 | "
				   "git update-index --index-info && grep -q IEOT .git/index";
	char script[512];

	if (!place_has_git())
		return;
	for (int v = 2; v <= 4; v += 2) {
		snprintf(script, sizeof(script), make, v);
		ck_assert(!as_git(script));
	}
}
END_TEST

START_TEST(split)
{
	if (!place_has_git())
		return;
	ck_assert(as_git(MAKE_FILES " && git update-index --split-index"));
	ck_assert(as_git(MAKE_FILES " && git update-index --split-index && echo 9 >a && git add a "
				    "&& git rm -q --cached l"));
	ck_assert(as_git(MAKE_FILES " && git update-index --index-version 4 && "
				    "git update-index --split-index && "
				    "echo 9 >a && echo 8 >n && git add a n"));
	ck_assert(!as_git(MAKE_FILES " && git update-index --split-index && "
				     "git update-index --no-split-index"));
}
END_TEST

START_TEST(other_extensions)
{
	if (!place_has_git())
		return;
	ck_assert(!as_git(MAKE_FILES " && git commit -qm x && git update-index --untracked-cache "
				     "--force-untracked-cache && git status >/dev/null"));
	ck_assert(!as_git(MAKE_FILES " && git commit -qm x && git sparse-checkout set --cone "
				     "--sparse-index d && git sparse-checkout set --cone "
				     "--no-sparse-index d"));
}
END_TEST

static bool count(void *self, const struct gitindex_entry *entry)
{
	ck_assert_uint_ge(entry->path_len, 1);
	ck_assert_uint_le(entry->path_len, 4095);
	++*(size_t *)self;
	return true;
}

START_TEST(sha256_and_sparse)
{
	bool is_split = true;
	size_t n = 0;
	size_t entries = 0;

	if (!place_has_git())
		return;
	ck_assert_int_eq(place_shell("git init -q --object-format=sha256 a && cd a && " MAKE_FILES
				     " && cp .git/index .."),
			 0);
	AUTO_FREE char *index = place_read("index", &n);
	CK_WORKS(gitindex_each(index, n, 32, count, &entries, &is_split, &e), e);
	ck_assert_uint_eq(entries, 5);
	ck_assert(!is_split);
	CK_FAILS(gitindex_each(index, n, 20, count, &entries, &is_split, &e), e, ERR_CONFIG_INVALID,
		 "git index: ");
	/* A sparse index: one entry stands for a directory. */
	entries = 0;
	ck_assert_int_eq(place_shell("rm -rf a && git init -q a && cd a && " MAKE_FILES
				     " && git commit -qm x && git sparse-checkout set --cone "
				     "--sparse-index x && grep -q sdir .git/index && "
				     "cp .git/index .."),
			 0);
	AUTO_FREE char *sparse = place_read("index", &n);
	CK_WORKS(gitindex_each(sparse, n, 20, count, &entries, &is_split, &e), e);
	ck_assert_uint_eq(entries, 3);
}
END_TEST

/* Bytes by hand. */

static void be32(struct buf *b, uint32_t v)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		ck_assert_int_eq(buf_char(b, (char)(v >> shift)), 0);
}

static void be16(struct buf *b, unsigned int v)
{
	ck_assert_int_eq(buf_char(b, (char)(v >> 8)), 0);
	ck_assert_int_eq(buf_char(b, (char)v), 0);
}

static void header(struct buf *b, uint32_t version, uint32_t entries)
{
	buf_clear(b);
	ck_assert_int_eq(buf_str(b, "DIRC"), 0);
	be32(b, version);
	be32(b, entries);
}

/* An entry up to its name. */
static void entry_head(struct buf *b, uint32_t mode, unsigned int flags)
{
	for (int i = 0; i < 10; i++)
		be32(b, i == 6 ? mode : 7);
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(buf_char(b, (char)i), 0);
	be16(b, flags);
}

static void fill(struct buf *b, char c, size_t n)
{
	while (n--)
		ck_assert_int_eq(buf_char(b, c), 0);
}

/* An entry of version 2. */
static void entry(struct buf *b, const char *name, size_t n, unsigned int flags)
{
	entry_head(b, 0100644, flags);
	ck_assert_int_eq(buf_add(b, name, n), 0);
	fill(b, '\0', 8 - (62 + n) % 8);
}

/* An entry of version 4, whose strip length is one byte. */
static void entry4(struct buf *b, int strip, const char *rest, unsigned int flags)
{
	entry_head(b, 0100644, flags);
	ck_assert_int_eq(buf_char(b, (char)strip), 0);
	ck_assert_int_eq(buf_add(b, rest, strlen(rest) + 1), 0);
}

static void extension(struct buf *b, const char *name, const void *p, size_t n)
{
	ck_assert_int_eq(buf_str(b, name), 0);
	be32(b, (uint32_t)n);
	ck_assert_int_eq(buf_add(b, p, n), 0);
}

/* With a checksum behind it, in a block of its own size so that a wrong read is seen. */
static int each(const struct buf *b, struct buf *out, bool *ret_split)
{
	char *copy = calloc(1, b->n + 20);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, b->p, b->n);
	buf_clear(out);
	int rc = gitindex_each(copy, b->n + 20, 20, list, out, ret_split, &e);
	free(copy);
	return rc;
}

static void fails(const struct buf *b, const char *text)
{
	AUTO_BUF out = BUF_INIT(1 << 20);
	bool is_split = false;

	CK_FAILS(each(b, &out, &is_split), e, ERR_CONFIG_INVALID, text);
	ck_assert(!is_split);
}

static void works(const struct buf *b)
{
	AUTO_BUF out = BUF_INIT(1 << 20);
	bool is_split = true;

	CK_WORKS(each(b, &out, &is_split), e);
	ck_assert(!is_split);
}

START_TEST(headers)
{
	AUTO_BUF b = BUF_INIT(1 << 20);

	header(&b, 2, 0);
	works(&b);
	for (size_t n = 0; n < 12; n++) {
		struct buf cut = b;
		cut.n = n;
		fails(&cut, "too short");
	}
	header(&b, 1, 0);
	fails(&b, "unknown version at byte 0");
	header(&b, 5, 0);
	fails(&b, "unknown version");
	header(&b, 2, 0);
	b.p[0] = 'd';
	fails(&b, "no index");
	header(&b, 2, UINT32_MAX);
	fails(&b, "an entry that is cut at byte 12");
	bool is_split = false;
	CK_FAILS(gitindex_each("", (size_t)MAX_GIT_INDEX + 1, 20, list, NULL, &is_split, &e), e,
		 ERR_CONFIG_INVALID, "more than");
}
END_TEST

START_TEST(entries)
{
	AUTO_BUF b = BUF_INIT(1 << 20);

	header(&b, 2, 2);
	entry(&b, "a", 1, 1);
	entry(&b, "bc", 2, 2 | 0x8000 | 0x3000);
	works(&b);
	for (size_t n = 12; n < b.n; n++) {
		struct buf cut = b;
		cut.n = n;
		fails(&cut, "git index: ");
	}
	header(&b, 2, 1);
	entry(&b, "abc", 3, 2);
	fails(&b, "a name of another length");
	header(&b, 2, 1);
	entry(&b, "a\0c", 3, 3);
	fails(&b, "a name of another length");
	header(&b, 2, 1);
	entry(&b, "", 0, 0);
	fails(&b, "an entry without a name");
	header(&b, 2, 1);
	entry(&b, "abc", 3, 3);
	b.p[b.n - 1] = 1;
	fails(&b, "bad padding");
	header(&b, 2, 1);
	entry_head(&b, 0100600, 1);
	fails(&b, "an unknown mode");
	header(&b, 2, 1);
	entry_head(&b, 0100644, 0x4001);
	be16(&b, 0x2000);
	ck_assert_int_eq(buf_add(&b, "a\0\0\0\0\0\0\0", 8), 0);
	fails(&b, "unknown flags");
	b.p[7] = 3;
	works(&b);
	b.p[b.n - 10] = (char)0x80;
	fails(&b, "unknown flags");
	header(&b, 2, 1);
	entry_head(&b, 0100644, 3);
	struct buf whole = BUF_INIT(100);
	ck_assert_int_eq(buf_add(&whole, b.p, b.n), 0);
	ck_assert_int_eq(buf_add(&whole, "xxxxxxxxxxxxxxxxxxxx", 20), 0);
	bool is_split = false;
	CK_FAILS(gitindex_each(whole.p, whole.n, 20, list, NULL, &is_split, &e), e,
		 ERR_CONFIG_INVALID, "a name without an end");
	buf_release(&whole);
}
END_TEST

START_TEST(long_names)
{
	AUTO_BUF b = BUF_INIT(1 << 20);
	char name[4097];

	memset(name, 'x', sizeof(name));
	header(&b, 2, 1);
	entry(&b, name, 4094, 4094);
	works(&b);
	header(&b, 2, 1);
	entry(&b, name, 4095, 0xfff);
	works(&b);
	header(&b, 2, 1);
	entry(&b, name, 4096, 0xfff);
	fails(&b, "a name that is too long");
	header(&b, 2, 1);
	entry(&b, name, 4094, 0xfff);
	fails(&b, "a name of another length");
	/* Version 4: together too long. */
	header(&b, 4, 2);
	entry_head(&b, 0100644, 0xfff);
	fill(&b, '\0', 1);
	fill(&b, 'x', 4095);
	fill(&b, '\0', 1);
	entry4(&b, 1, "x", 0xfff);
	works(&b);
	header(&b, 4, 2);
	entry_head(&b, 0100644, 0xfff);
	fill(&b, '\0', 1);
	fill(&b, 'x', 4095);
	fill(&b, '\0', 1);
	entry4(&b, 0, "x", 0xfff);
	fails(&b, "a name that is too long");
}
END_TEST

START_TEST(prefixes)
{
	AUTO_BUF b = BUF_INIT(1 << 20);
	AUTO_BUF out = BUF_INIT(1 << 20);
	bool is_split = true;

	header(&b, 4, 3);
	entry4(&b, 0, "dir/a", 5);
	entry4(&b, 1, "bc", 6);
	entry4(&b, 6, "x", 1);
	CK_WORKS(each(&b, &out, &is_split), e);
	ck_assert_str_eq(strchr(buf_cstr(&out), '\t') + 1, "dir/a");
	ck_assert_ptr_nonnull(memmem(out.p, out.n, "\tdir/bc", 8));
	ck_assert_ptr_nonnull(memmem(out.p, out.n, "\tx", 3));
	for (size_t n = 12; n < b.n; n++) {
		struct buf cut = b;
		cut.n = n;
		ck_assert_int_eq(each(&cut, &out, &is_split), -1);
	}
	header(&b, 4, 1);
	entry4(&b, 1, "a", 1);
	fails(&b, "a prefix of a name that is not there");
	header(&b, 4, 2);
	entry4(&b, 0, "ab", 2);
	entry4(&b, 3, "a", 1);
	fails(&b, "a prefix of a name that is not there");
	header(&b, 4, 2);
	entry4(&b, 0, "ab", 2);
	entry4(&b, 0, "c", 2);
	fails(&b, "a name of another length");
	header(&b, 4, 1);
	entry_head(&b, 0100644, 1);
	fill(&b, (char)0xff, 30);
	fails(&b, "a bad prefix length");
}
END_TEST

START_TEST(extensions)
{
	static const char oid[32] = "01234567890123456789";
	AUTO_BUF b = BUF_INIT(1 << 20);
	AUTO_BUF out = BUF_INIT(1 << 20);
	bool is_split = false;

	header(&b, 2, 1);
	entry(&b, "", 0, 0);
	extension(&b, "TREE", oid, 3);
	extension(&b, "link", oid, 20);
	CK_WORKS(each(&b, &out, &is_split), e);
	ck_assert(is_split);
	ck_assert_uint_eq(out.n, 0);
	extension(&b, "link", oid, 20);
	fails(&b, "a bad link");
	header(&b, 2, 0);
	extension(&b, "link", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
	works(&b);
	header(&b, 2, 0);
	extension(&b, "link", oid, 19);
	fails(&b, "a bad link");
	header(&b, 2, 0);
	extension(&b, "ZZZZ", oid, 5);
	works(&b);
	for (size_t n = 13; n < b.n; n++) {
		struct buf cut = b;
		cut.n = n;
		fails(&cut, "an extension that is cut");
	}
	header(&b, 2, 0);
	extension(&b, "zZZZ", oid, 5);
	fails(&b, "an unknown extension at byte 20");
	header(&b, 2, 0);
	extension(&b, "[ZZZ", oid, 5);
	fails(&b, "an unknown extension");
	header(&b, 2, 0);
	ck_assert_int_eq(buf_str(&b, "TREE"), 0);
	be32(&b, UINT32_MAX);
	fails(&b, "an extension that is cut");
}
END_TEST

static void table(struct buf *b, const uint32_t *numbers, size_t n)
{
	ck_assert_int_eq(buf_str(b, "IEOT"), 0);
	be32(b, (uint32_t)(4 * n));
	for (size_t i = 0; i < n; i++)
		be32(b, numbers[i]);
}

static void two_entries(struct buf *b, int strip)
{
	header(b, 4, 2);
	entry4(b, 0, "a", 1);
	entry4(b, strip, "b", strip ? 1 : 2);
}

/* What git reads on several threads has to be the same. */
START_TEST(blocks)
{
	static const uint32_t good[] = {1, 12, 1, 12 + 65, 1};
	static const uint32_t whole[] = {1, 12, 2};
	static const uint32_t wrong[][5] = {
		{2, 12, 1, 77, 1}, {1, 12, 1, 78, 1}, {1, 12, 1, 77, 2},
		{1, 12, 1, 77, 0}, {1, 77, 1, 12, 1}, {1, 12, UINT32_MAX, 77, 1},
	};
	AUTO_BUF b = BUF_INIT(1 << 20);

	two_entries(&b, 1);
	table(&b, good, 5);
	works(&b);
	table(&b, good, 5);
	fails(&b, "a second table of blocks");
	two_entries(&b, 0);
	table(&b, whole, 3);
	works(&b);
	two_entries(&b, 0);
	table(&b, good, 5);
	fails(&b, "a block that needs the one before");
	two_entries(&b, 1);
	table(&b, good, 4);
	fails(&b, "a bad table of blocks");
	two_entries(&b, 1);
	table(&b, good, 1);
	fails(&b, "a table of blocks that is not whole");
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		two_entries(&b, 1);
		table(&b, wrong[i], 5);
		fails(&b, "table of blocks");
	}
}
END_TEST

START_TEST(ends)
{
	AUTO_BUF b = BUF_INIT(1 << 20);
	char content[64] = "";

	for (uint32_t off = 0; off < 2; off++) {
		header(&b, 2, 0);
		content[3] = (char)(12 + off);
		extension(&b, "TREE", "abc", 3);
		extension(&b, "EOIE", content, 24);
		if (off)
			fails(&b, "a bad end of the entries");
		else
			works(&b);
	}
	/* Not the last one: git would not see it, or another one. */
	header(&b, 2, 0);
	content[3] = 12;
	extension(&b, "EOIE", content, 24);
	extension(&b, "TREE", "abc", 3);
	fails(&b, "a bad end of the entries");
	/* Inside of another one. */
	header(&b, 2, 0);
	memcpy(content + 5, "EOIE\0\0\0\x18", 8);
	extension(&b, "TREE", content, 5 + 32);
	fails(&b, "a hidden end of the entries");
}
END_TEST

static bool stop(void *self, const struct gitindex_entry *item)
{
	(void)item;
	++*(size_t *)self;
	return false;
}

START_TEST(stops)
{
	AUTO_BUF b = BUF_INIT(1 << 20);
	bool is_split = true;
	size_t n = 0;

	header(&b, 2, 2);
	entry(&b, "a", 1, 1);
	fill(&b, 'x', 100);
	CK_WORKS(gitindex_each(b.p, b.n, 20, stop, &n, &is_split, &e), e);
	ck_assert_uint_eq(n, 1);
	ck_assert(is_split);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("policy/gitindex");
	TCase *tests = tcase_create("gitindex");
	TCase *with_git = tcase_create("git");

	tcase_add_test(tests, headers);
	tcase_add_test(tests, entries);
	tcase_add_test(tests, long_names);
	tcase_add_test(tests, prefixes);
	tcase_add_test(tests, extensions);
	tcase_add_test(tests, blocks);
	tcase_add_test(tests, ends);
	tcase_add_test(tests, stops);
	suite_add_tcase(suite, tests);
	tcase_add_checked_fixture(with_git, place_setup, place_close);
	tcase_add_test(with_git, versions);
	tcase_add_test(with_git, extended_and_stages);
	tcase_add_test(with_git, many_files);
	tcase_add_test(with_git, split);
	tcase_add_test(with_git, other_extensions);
	tcase_add_test(with_git, sha256_and_sparse);
	suite_add_tcase(suite, with_git);
	return suite_run(suite);
}
