/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file: what is read, and where each mistake is said to be.
 */
#include "config/layer.h"

#include "base/base.h"
#include "config/yaml.h"
#include "test_base_suite.h"

static struct arena arena;
static struct findings found;
static const struct layer_places places = {.home = "/home/me", .source = "/src"};

static int read_text(const char *text, size_t n, struct layer *ret)
{
	arena_release(&arena);
	found = (struct findings){.n = 0};
	*ret = (struct layer){.layer = LAYER_USER, .file = "/p.yaml", .trusted = true};
	return layer_read(&arena, &places, text, n, ret, &found);
}

static struct layer good(const char *text)
{
	struct layer l;
	int rc = read_text(text, strlen(text), &l);

	ck_assert_msg(rc == 0, "%s:%u:%u: %s: %s", text, found.v[0].at.line, found.v[0].at.column,
		      found.v[0].key, found.v[0].why.msg);
	ck_assert_uint_eq(found.errors, 0);
	return l;
}

START_TEST(everything)
{
	static const char yaml[] =
		"version: 1\n"
		"extends: [node, go]\n"
		"mode: read-only\n"
		"writes: direct\n"
		"filesystem:\n"
		"  read:\n"
		"  - ~/x\n"
		"  - ~\n"
		"  write: [../out, /data]\n"
		"  hide: [\"**/*.pem\", secret]\n"
		"environment: {pass: [CI], set: {A: 1, B: 'x y', C: \"\"}}\n"
		"limits: {wall: 5m, grace: 1s, cpu_time: none, cpus: 1.5, memory: 2GiB,\n"
		"  pids: 512, disk: 1G, inodes: none, output: 1024}\n"
		"promotion:\n"
		"  protected: [main, \"stable/*\"]\n"
		"  checks:\n"
		"  - {name: unit-1, run: [npm, test, 7, \"\"], timeout: 90s}\n"
		"  - {run: [make], name: b}\n"
		"artifacts: [\"**/junit*.xml\", coverage/**]\n"
		"network:\n"
		"  allow: [a.com, {host: b.com}, \"*.c.com:22\"]\n"
		"  deny: [\"*:25\"]\n"
		"  local: [5432, '80']\n";
	struct layer l = good(yaml);

	ck_assert_int_eq(l.mode, MODE_READ_ONLY);
	ck_assert_uint_eq(l.mode_at.line, 3);
	ck_assert_uint_eq(l.mode_at.column, 7);
	ck_assert_int_eq(l.writes, 0);
	ck_assert_uint_eq(l.extends_count, 2);
	ck_assert_str_eq(l.extends[1].name, "go");
	ck_assert_uint_eq(l.path_count, 6);
	ck_assert_str_eq(l.paths[0].path, "/home/me/x");
	ck_assert_str_eq(l.paths[1].path, "/home/me/");
	ck_assert_str_eq(l.paths[2].path, "/src/../out");
	ck_assert_uint_eq(l.paths[2].access, ACCESS_WRITE);
	ck_assert_str_eq(l.paths[3].path, "/data");
	ck_assert(l.paths[4].pattern);
	ck_assert_str_eq(l.paths[4].path, "**/*.pem");
	ck_assert_uint_eq(l.paths[4].at.line, 10);
	ck_assert_uint_eq(l.paths[4].at.column, 10);
	ck_assert_str_eq(l.paths[5].path, "/src/secret");
	ck_assert_uint_eq(l.env_count, 4);
	ck_assert_str_eq(l.env[0].text, "CI");
	ck_assert_str_eq(l.env[1].text, "A=1");
	ck_assert_str_eq(l.env[2].text, "B=x y");
	ck_assert_str_eq(l.env[3].text, "C=");
	ck_assert_uint_eq(l.limit[LIMIT_WALL], 300000);
	ck_assert_uint_eq(l.limit[LIMIT_GRACE], 1000);
	ck_assert_uint_eq(l.limit[LIMIT_CPU_TIME], LIMIT_NONE);
	ck_assert_uint_eq(l.limit[LIMIT_CPUS], 1500);
	ck_assert_uint_eq(l.limit[LIMIT_MEMORY], 1ull << 31);
	ck_assert_uint_eq(l.limit[LIMIT_PIDS], 512);
	ck_assert_uint_eq(l.limit[LIMIT_INODES], LIMIT_NONE);
	ck_assert_uint_eq(l.limit[LIMIT_OUTPUT], 1024);
	ck_assert_uint_eq(l.protected_count, 2);
	ck_assert_str_eq(l.protected[1].name, "stable/*");
	ck_assert_uint_eq(l.protected[1].at.line, 15);
	ck_assert_uint_eq(l.check_count, 2);
	ck_assert_str_eq(l.checks[0].name, "unit-1");
	ck_assert_uint_eq(l.checks[0].run_count, 4);
	ck_assert_str_eq(l.checks[0].run[2], "7");
	ck_assert_str_eq(l.checks[0].run[3], "");
	ck_assert_ptr_null(l.checks[0].run[4]);
	ck_assert_uint_eq(l.checks[0].timeout_ms, 90000);
	ck_assert_uint_eq(l.checks[1].timeout_ms, CHECK_TIMEOUT_MS);
	ck_assert_uint_eq(l.checks[1].at.line, 18);
	ck_assert(l.artifacts_named);
	ck_assert_uint_eq(l.artifact_count, 2);
	ck_assert_str_eq(l.artifacts[1].name, "coverage/**");
	ck_assert_uint_eq(l.host_count, 6);
	ck_assert_str_eq(l.hosts[1].text, "b.com");
	ck_assert_uint_eq(l.hosts[1].list, EGRESS_LIST_ALLOW);
	ck_assert_uint_eq(l.hosts[2].number, 2);
	ck_assert_uint_eq(l.hosts[2].at.line, 21);
	ck_assert_uint_eq(l.hosts[3].list, EGRESS_LIST_DENY);
	ck_assert_uint_eq(l.hosts[3].number, 0);
	ck_assert_str_eq(l.hosts[5].text, "80");
	ck_assert_uint_eq(l.hosts[5].list, EGRESS_LIST_LOCAL);
}
END_TEST

START_TEST(json)
{
	struct layer l = good("{\n\t\"version\": 1,\n\t\"limits\": {\"pids\": 7},\n"
			      "\t\"filesystem\": {\"read\": [\"/a\\u0062\"]}\n}\n");

	ck_assert_uint_eq(l.limit[LIMIT_PIDS], 7);
	ck_assert_str_eq(l.paths[0].path, "/ab");
	good("version: 1\n");
	good("\xef\xbb\xbfversion: 1\r\nmode: read-only\r\n");
	good("%YAML 1.2\n---\nversion: 1\n...\n");
}
END_TEST

struct row {
	const char *text;
	unsigned int line, column;
	const char *key, *says;
	enum err_code code;
};

#define BAD(text, line, column, key, says)                        \
	{                                                         \
		text, line, column, key, says, ERR_CONFIG_INVALID \
	}
#define LATER(text, line, column, key)                                          \
	{                                                                       \
		text, line, column, key, "not in this version", ERR_UNSUPPORTED \
	}

static const struct row rows[] = {
	BAD("", 1, 1, "", "empty"),
	BAD("# nothing\n", 1, 1, "", "empty"),
	BAD("mode: read-only\n", 1, 1, "version", "missing"),
	BAD("version: 1\nmoed: read-only\n", 2, 1, "moed", "unknown key"),
	BAD("version: 1\nfilesystem:\n  denyReads: [a]\n", 3, 3, "filesystem.denyReads",
	    "unknown key"),
	BAD("version: 1\nmode: readonly\n", 2, 7, "mode", "unknown value"),
	BAD("version: 1\nmode:\n", 2, 1, "mode", "has no value"),
	BAD("version: 1\nmode: [read-only]\n", 2, 7, "mode", "not a list"),
	BAD("version: 1\nmode: {a: b}\n", 2, 7, "mode", "not a map"),
	BAD("version: '1'\n", 1, 10, "version", "the number 1"),
	BAD("version: one\n", 1, 10, "version", "the number 1"),
	BAD("version: 1.0\n", 1, 10, "version", "the number 1"),
	{"version: 2\n", 1, 10, "version", "version 1", ERR_UNSUPPORTED},
	BAD("version: 1\nversion: 1\n", 2, 1, "version", "twice"),
	BAD("version: 1\nlimits: {pids: 1, pids: 2}\n", 2, 19, "pids", "twice"),
	BAD("{\"version\": 1, \"mode\": \"read-only\", \"mode\": \"read-only\"}", 1, 37, "mode",
	    "twice"),
	BAD("version: 1\nlimits:\n\twall: 5m\n", 3, 1, "", "tab"),
	BAD("version: &a 1\nlimits: {pids: *a}\n", 1, 13, "", "anchors"),
	BAD("version: 1\nmode: *x\n", 2, 7, "", "aliases"),
	BAD("version: !!int 1\n", 1, 16, "", "tags"),
	BAD("version: 1\nextends: !include [a]\n", 2, 19, "", "tags"),
	BAD("version: 1\n---\nversion: 1\n", 2, 1, "", "second document"),
	BAD("version: 1\n? [a]\n: b\n", 2, 3, "", "must be a word"),
	BAD("version: 1\nmode: \xff\n", 2, 7, "", "not UTF-8"),
	BAD("version: 1\nmode: \"\xc3\x28\"\n", 2, 8, "", "not UTF-8"),
	BAD("version: 1\n# \xe2\x80\xae\n", 2, 3, "", "U+202E"),
	BAD("version: 1\nmode: \"a\x1b[0m\"\n", 2, 9, "", "U+001B"),
	BAD("version: 1\nmode: \"\n", 2, 8, "", "closing quote"),
	BAD("{\n", 2, 1, "", ""),
	BAD("- version\n", 1, 1, "", "map of keys"),
	BAD("just words\n", 1, 1, "", "map of keys"),
	BAD("version: 1\nlimits: {wall: 90}\n", 2, 16, "limits.wall", "90s?"),
	BAD("version: 1\nlimits: {wall: -5m}\n", 2, 16, "limits.wall", ""),
	BAD("version: 1\nlimits: {wall: 0s}\n", 2, 16, "limits.wall", "0 would"),
	BAD("version: 1\nlimits: {memory: 2GB}\n", 2, 18, "limits.memory", "2GB"),
	BAD("version: 1\nlimits: {memory: 1e9}\n", 2, 18, "limits.memory", ""),
	BAD("version: 1\nlimits: {pids: many}\n", 2, 16, "limits.pids", ""),
	BAD("version: 1\nlimits: {pids: '5'}\n", 2, 16, "limits.pids", "not a text"),
	BAD("version: 1\nlimits: {pids: 010}\n", 2, 16, "limits.pids", ""),
	BAD("version: 1\nlimits: {pids: 99999999999}\n", 2, 16, "limits.pids", ""),
	BAD("version: 1\nlimits: {grace: none}\n", 2, 17, "limits.grace", "without end"),
	BAD("version: 1\nlimits: 5m\n", 2, 9, "limits", "must be a map"),
	BAD("version: 1\nlimits: {memroy: 1G}\n", 2, 10, "limits.memroy", "unknown key"),
	BAD("version: 1\npromotion: {protect: [a]}\n", 2, 13, "promotion.protect", "unknown key"),
	BAD("version: 1\npromotion: {protected: main}\n", 2, 24, "promotion.protected",
	    "must be a list"),
	BAD("version: 1\npromotion: {protected: ['']}\n", 2, 25, "promotion.protected[0]",
	    "a branch"),
	BAD("version: 1\npromotion: {checks: [{name: a}]}\n", 2, 22, "promotion.checks[0]",
	    "`run` is missing"),
	BAD("version: 1\npromotion: {checks: [{run: [a]}]}\n", 2, 22, "promotion.checks[0]",
	    "`name` is missing"),
	BAD("version: 1\npromotion: {checks: [{name: a b, run: [a]}]}\n", 2, 29,
	    "promotion.checks[0].name", "a name of letters"),
	BAD("version: 1\npromotion: {checks: [{name: a, run: []}]}\n", 2, 37,
	    "promotion.checks[0].run", "needs a command"),
	BAD("version: 1\npromotion: {checks: [{name: a, run: make}]}\n", 2, 37,
	    "promotion.checks[0].run", "must be a list"),
	BAD("version: 1\npromotion: {checks: [{name: a, run: [b], timeout: 5}]}\n", 2, 51,
	    "promotion.checks[0].timeout", ""),
	BAD("version: 1\npromotion: {checks: [{name: a, run: [b], timeout: none}]}\n", 2, 51,
	    "promotion.checks[0].timeout", "has to end"),
	BAD("version: 1\npromotion: {checks: [{name: a, run: [b]}, {name: a, run: [c]}]}\n", 2, 43,
	    "promotion.checks[1]", "has that name"),
	BAD("version: 1\nartifacts: coverage\n", 2, 12, "artifacts", "must be a list"),
	BAD("version: 1\nartifacts: [/etc/x]\n", 2, 13, "artifacts[0]", "relative"),
	BAD("version: 1\nartifacts: [a/../b]\n", 2, 13, "artifacts[0]", "match nothing"),
	BAD("version: 1\nartifacts: [a//b]\n", 2, 13, "artifacts[0]", "needs a name"),
	BAD("version: 1\nartifacts: [a**]\n", 2, 13, "artifacts[0]", "stands alone"),
	LATER("version: 1\nlimits: {idle: 5m}\n", 2, 10, "limits.idle"),
	BAD("version: 1\nnetwork: {bytes_up: 0}\n", 2, 21, "network.bytes_up", "at least 1 byte"),
	BAD("version: 1\nnetwork: {bytes_down: 1MB}\n", 2, 23, "network.bytes_down", "1MB"),
	BAD("version: 1\nnetwork: {bytes_down: none}\n", 2, 23, "network.bytes_down", "none"),
	BAD("version: 1\nnetwork: {rate: 1023}\n", 2, 17, "network.rate", "1KiB a second"),
	BAD("version: 1\nnetwork: {connections: 16385}\n", 2, 24, "network.connections", "16384"),
	BAD("version: 1\nnetwork: {mirror: []}\n", 2, 19, "network.mirror", "must be a map"),
	BAD("version: 1\nnetwork: {mirror: {nmp: 'http://a'}}\n", 2, 20, "network.mirror.nmp",
	    "unknown key"),
	BAD("version: 1\nnetwork: {mirror: {npm: a}}\n", 2, 25, "network.mirror.npm",
	    "no address of a mirror"),
	BAD("version: 1\nnetwork: {inspect: [10.0.0.1]}\n", 2, 21, "network.inspect[0]",
	    "no address"),
	BAD("version: 1\nnetwork: {push: [a.com]}\n", 2, 18, "network.push[0]",
	    "names a repository"),
	BAD("version: 1\nnetwork: {allow: [{host: a, methods: [GTE]}]}\n", 2, 39,
	    "network.allow[0].methods[0]", "unknown method"),
	BAD("version: 1\nnetwork: {allow: [{host: a, methods: []}]}\n", 2, 38,
	    "network.allow[0].methods", "match nothing"),
	BAD("version: 1\nnetwork: {deny: [{host: a, paths: [/x, y]}]}\n", 2, 40,
	    "network.deny[0].paths[1]", "begins with"),
	BAD("version: 1\nnetwork: {deny: [{host: a, paths: [/x/../y]}]}\n", 2, 36,
	    "network.deny[0].paths[0]", "dot segment"),
	BAD("version: 1\nnetwork: {allow: [{host: 10.0.0.1, paths: [/x]}]}\n", 2, 26,
	    "network.allow[0]", "need a name"),
	BAD("version: 1\nsecrets: {}\n", 2, 10, "secrets", "must be a list"),
	BAD("version: 1\nsecrets: [{name: a}]\n", 2, 11, "secrets[0]", "`from` is missing"),
	BAD("version: 1\nsecrets: [{name: 1a}]\n", 2, 18, "secrets[0].name", "a name of letters"),
	BAD("version: 1\nsecrets: [{name: a, from: envy:X}]\n", 2, 27, "secrets[0].from",
	    "unknown place"),
	BAD("version: 1\nsecrets: [{name: a, from: file:x}]\n", 2, 27, "secrets[0].from",
	    "absolute path"),
	BAD("version: 1\nsecrets: [{name: a, header: \"X: {basic:}\"}]\n", 2, 29,
	    "secrets[0].header", "exactly one"),
	BAD("version: 1\nsecrets: [{name: a, header: \"Host: {value}\"}]\n", 2, 29,
	    "secrets[0].header", "what a request is"),
	BAD("version: 1\nsecrets: [{name: a, hosts: [\"*:443\"]}]\n", 2, 29, "secrets[0].hosts[0]",
	    "that are named"),
	BAD("version: 1\nsecrets: [{name: a, plain: 1}]\n", 2, 28, "secrets[0].plain",
	    "true or false"),
	LATER("version: 1\nsecrets: [{name: a, ttl: 1h}]\n", 2, 21, "secrets[0].ttl"),
	BAD("version: 1\nnetwork: {allow: [{}]}\n", 2, 19, "network.allow[0]", "is missing"),
	BAD("version: 1\nnetwork: {allow: [a, \"*\"]}\n", 2, 22, "network.allow[1]",
	    "would open every name"),
	BAD("version: 1\nnetwork: {allow: a}\n", 2, 18, "network.allow", "must be a list"),
	BAD("version: 1\nnetwork: {allow: ['']}\n", 2, 19, "network.allow[0]", "no host"),
	BAD("version: 1\nnetwork: {deny: [https://a.b/x]}\n", 2, 18, "network.deny[0]", "a path"),
	BAD("version: 1\nnetwork: {local: [0]}\n", 2, 19, "network.local[0]", "a port is"),
	BAD("version: 1\nnetwork: {local: [{host: 1}]}\n", 2, 19, "network.local[0]", "not a map"),
	BAD("version: 1\nnetwork: {alow: []}\n", 2, 11, "network.alow", "unknown key"),
	LATER("version: 1\nrules: []\n", 2, 1, "rules"),
	BAD("version: 1\nfilesystem: {read: /x}\n", 2, 20, "filesystem.read", "must be a list"),
	BAD("version: 1\nfilesystem: {read: [a, '']}\n", 2, 24, "filesystem.read[1]", "empty path"),
	BAD("version: 1\nfilesystem: {read: [[a]]}\n", 2, 21, "filesystem.read[0]", "not a list"),
	BAD("version: 1\nfilesystem: {write: [\"**/x\"]}\n", 2, 22, "filesystem.write[0]",
	    "pattern"),
	BAD("version: 1\nfilesystem: {hide: [\"*.pem\"]}\n", 2, 21, "filesystem.hide[0]",
	    "begins with"),
	BAD("version: 1\nfilesystem: {hide: [/etc/*]}\n", 2, 21, "filesystem.hide[0]", "relative"),
	BAD("version: 1\nfilesystem: {hide: [\"**/a/**\"]}\n", 2, 21, "filesystem.hide[0]",
	    "beginning"),
	BAD("version: 1\nfilesystem: {hide: [\"**/../x*\"]}\n", 2, 21, "filesystem.hide[0]",
	    "nothing"),
	BAD("version: 1\nfilesystem: {read: [~root/x]}\n", 2, 21, "filesystem.read[0]", "your own"),
	BAD("version: 1\nenvironment: {pass: [A-B]}\n", 2, 22, "environment.pass[0]",
	    "variable's name"),
	BAD("version: 1\nenvironment: {pass: [HOME]}\n", 2, 22, "environment.pass[0]", "itself"),
	BAD("version: 1\nenvironment: {set: {HOME: /x}}\n", 2, 21, "environment.set.HOME",
	    "itself"),
	BAD("version: 1\nenvironment: {set: {A: }}\n", 2, 21, "environment.set.A", "no value"),
	BAD("version: 1\nenvironment: {set: [A]}\n", 2, 20, "environment.set", "must be a map"),
};

START_TEST(mistakes)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct layer l;
		ck_assert_msg(read_text(r->text, strlen(r->text), &l) == -1, "accepted: %s",
			      r->text);
		const struct finding *f = &found.v[0];
		ck_assert_uint_ge(found.n, 1);
		ck_assert_msg(f->at.line == r->line && f->at.column == r->column,
			      "%u:%u, not %u:%u, for %s", f->at.line, f->at.column, r->line,
			      r->column, r->text);
		ck_assert_msg(strcmp(f->key, r->key) == 0, "%s, not %s, for %s", f->key, r->key,
			      r->text);
		ck_assert_msg(strstr(f->why.msg, r->says) != NULL, "\"%s\" is not in \"%s\"",
			      r->says, f->why.msg);
		ck_assert_int_eq(f->why.code, r->code);
		ck_assert_str_eq(f->file, "/p.yaml");
		ck_assert(!f->warning);
	}
}
END_TEST

START_TEST(hints)
{
	struct layer l;

	ck_assert_int_eq(read_text("version: 1\nmoed: x\n", 19, &l), -1);
	ck_assert_str_eq(found.v[0].why.hint, "did you mean `mode`?");
	ck_assert_int_eq(read_text("version: 1\nmode: readonly\n", 26, &l), -1);
	ck_assert_str_eq(found.v[0].why.hint, "did you mean `read-only`?");
	ck_assert_int_eq(read_text("version: 1\nqqqqqq: x\n", 21, &l), -1);
	ck_assert_ptr_nonnull(strstr(found.v[0].why.hint, "filesystem"));
	/* All mistakes, not only the first. */
	static const char many[] = "version: 1\nmode: a\nlimits: {wall: 1, pids: x}\nmoed: 2\n";
	ck_assert_int_eq(read_text(many, sizeof(many) - 1, &l), -1);
	ck_assert_uint_eq(found.errors, 4);
}
END_TEST

/* A NUL ends nothing: what is behind it is seen too. */
START_TEST(nul)
{
	static const char text[] = "version: 1\nmode: read-only\0\nmode: x\n";
	struct layer l;

	ck_assert_int_eq(read_text(text, sizeof(text) - 1, &l), -1);
	ck_assert_uint_eq(found.v[0].at.line, 2);
	ck_assert_uint_eq(found.v[0].at.column, 16);
}
END_TEST

/* At the limit and one over it. */
START_TEST(bounds)
{
	AUTO_BUF text = BUF_INIT(1 << 20);
	struct layer l;

	(void)buf_str(&text, "version: 1\nfilesystem: {read: [");
	for (size_t i = 0; i < MAX_LAYER_PATHS; i++)
		(void)buf_printf(&text, "p%zu,", i);
	size_t n = text.n;
	(void)buf_str(&text, "]}\n");
	ck_assert_int_eq(read_text(text.p, text.n, &l), 0);
	text.n = n;
	(void)buf_str(&text, "one-more]}\n");
	ck_assert_int_eq(read_text(text.p, text.n, &l), -1);
	ck_assert_str_eq(found.v[0].key, "filesystem.read[512]");

	static const struct {
		const char *begin, *one, *end;
		size_t most;
	} lists[] = {
		{"promotion: {protected: [", "b", "]}\n", MAX_LAYER_BRANCHES},
		{"artifacts: [", "a", "]\n", MAX_LAYER_ARTIFACTS},
		{"promotion: {checks: [{name: a, run: [", "x", "]}]}\n", MAX_CHECK_ARGS},
	};
	for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
		for (size_t more = 0; more < 2; more++) {
			buf_clear(&text);
			(void)buf_printf(&text, "version: 1\n%s", lists[k].begin);
			for (size_t i = 0; i < lists[k].most + more; i++)
				(void)buf_printf(&text, "%s%zu,", lists[k].one, i);
			(void)buf_str(&text, lists[k].end);
			ck_assert_int_eq(read_text(text.p, text.n, &l), more ? -1 : 0);
		}
		ck_assert_ptr_nonnull(strstr(found.v[0].why.msg, "more than"));
	}

	buf_clear(&text);
	(void)buf_str(&text, "version: 1\nextends: ");
	for (size_t i = 0; i < MAX_YAML_DEPTH - 1; i++)
		(void)buf_char(&text, '[');
	n = text.n;
	for (size_t i = 0; i < MAX_YAML_DEPTH - 1; i++)
		(void)buf_char(&text, ']');
	ck_assert_int_eq(read_text(text.p, text.n, &l), -1);
	ck_assert_ptr_nonnull(strstr(found.v[0].why.msg, "not a list"));
	text.n = n;
	(void)buf_str(&text, "[]");
	ck_assert_int_eq(read_text(text.p, text.n, &l), -1);
	ck_assert_ptr_nonnull(strstr(found.v[0].why.msg, "too deeply"));

	buf_clear(&text);
	(void)buf_str(&text, "version: 1\nextends: [");
	for (size_t i = 0; i < MAX_YAML_NODES; i++)
		(void)buf_str(&text, "a,");
	(void)buf_str(&text, "]\n");
	ck_assert_int_eq(read_text(text.p, text.n, &l), -1);
	ck_assert_ptr_nonnull(strstr(found.v[0].why.msg, "too many entries"));
	/* More mistakes than are kept are counted. */
	buf_clear(&text);
	(void)buf_str(&text, "version: 1\n");
	for (size_t i = 0; i < MAX_FINDINGS + 3; i++)
		(void)buf_printf(&text, "zz%zu: 1\n", i);
	ck_assert_int_eq(read_text(text.p, text.n, &l), -1);
	ck_assert_uint_eq(found.n, MAX_FINDINGS);
	ck_assert_uint_eq(found.more, 3);
}
END_TEST

START_TEST(warnings)
{
	struct layer l = good("version: 1\nfilesystem: {hide: [\"**/*\"]}\n");

	ck_assert_uint_eq(l.path_count, 1);
	ck_assert_uint_eq(found.n, 1);
	ck_assert(found.v[0].warning);
	ck_assert_uint_eq(found.v[0].at.column, 21);
}
END_TEST

/* Without a source or a home some paths have no meaning. */
START_TEST(no_places)
{
	static const struct layer_places none = {.home = NULL};
	static const char text[] = "version: 1\nfilesystem: {read: [a, /b, \"**/c\"]}\n";
	static const char tilde[] = "version: 1\nfilesystem: {read: [~/a]}\n";
	struct layer l = {.file = "/p.yaml"};

	arena_release(&arena);
	found = (struct findings){.n = 0};
	ck_assert_int_eq(layer_read(&arena, &none, text, sizeof(text) - 1, &l, &found), 0);
	ck_assert_ptr_null(l.paths[0].path);
	ck_assert_str_eq(l.paths[1].path, "/b");
	ck_assert_int_eq(layer_read(&arena, &none, tilde, sizeof(tilde) - 1, &l, &found), -1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("layer");
	TCase *c = tcase_create("layer");

	tcase_add_test(c, everything);
	tcase_add_test(c, json);
	tcase_add_test(c, mistakes);
	tcase_add_test(c, hints);
	tcase_add_test(c, nul);
	tcase_add_test(c, bounds);
	tcase_add_test(c, warnings);
	tcase_add_test(c, no_places);
	suite_add_tcase(s, c);
	return suite_run(s);
}
