/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdicts on what lies in a git directory.
 */
#include "policy/gitjudge.h"

#include "base/buf.h"
#include "test_policy_git.h"

static struct gitjudge verdict;

static bool harmless(const char *text)
{
	return gitjudge_config(text, strlen(text), &verdict);
}

static void yes(const char *text)
{
	ck_assert_msg(harmless(text), "%s\n%s", text, verdict.why);
	ck_assert_str_eq(verdict.why, "");
}

/* `why` begins with that key. */
static void no(const char *text, const char *key)
{
	ck_assert_msg(!harmless(text), "taken: %s", text);
	ck_assert_msg(strncmp(verdict.why, key, strlen(key)) == 0, "%s: %s", text, verdict.why);
	ck_assert_str_eq(verdict.worktree, "");
}

START_TEST(plain)
{
	yes("");
	yes("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
	    "\tlogallrefupdates = true\n[remote \"origin\"]\n"
	    "\turl = https://example.com/a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
	    "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"
	    "\tvscode-merge-base = origin/main\n\tdescription = one\\ntwo\n"
	    "[submodule \"lib/a\"]\n\turl = git@example.com:a/lib.git\n\tactive = true\n"
	    "[user]\n\tname = Ada L.\n\temail = a@example.com\n[gc]\n\tauto = 0\n"
	    "[color \"diff\"]\n\tmeta = bold #ff0000\n[color]\n\tui = auto\n"
	    "[pull]\n\trebase = false\n[advice]\n\tdetachedHead = false\n");
	yes("[core]\n\tfsmonitor = false\n[commit]\n\tgpgsign = false\n[core]\n\tbare\n");
	yes("[core]\n\tcompression = -1\n\tbigfilethreshold = 512m\n\twhitespace = -tab-in-indent,"
	    "tabwidth=4\n\tsharedrepository = 0\n");
	yes("[submodule \"a\"]\n\tupdate = rebase\n[extensions]\n\tobjectformat = sha256\n");
}
END_TEST

START_TEST(programs)
{
	static const char *const rows[][2] = {
		{"[core]\n\thooksPath = h\n", "core.hookspath "},
		{"[core]\n\tfsmonitor = true\n", "core.fsmonitor "},
		{"[core]\n\tfsmonitor\n", "core.fsmonitor "},
		{"[core]\n\tfsmonitor = sh x\n", "core.fsmonitor "},
		{"[core]\n\tsshCommand = x\n", "core.sshcommand "},
		{"[core]\n\tpager = x\n", "core.pager "},
		{"[core]\n\teditor = x\n", "core.editor "},
		{"[core]\n\taskPass = x\n", "core.askpass "},
		{"[core]\n\tgitProxy = x\n", "core.gitproxy "},
		{"[core]\n\talternateRefsCommand = x\n", "core.alternaterefscommand "},
		{"[core]\n\tattributesFile = x\n", "core.attributesfile "},
		{"[core]\n\texcludesFile = x\n", "core.excludesfile "},
		{"[core]\n\tcommentChar = x\n", "core.commentchar "},
		{"[core]\n\tprotectNTFS = false\n", "core.protectntfs "},
		{"[core]\n\tsharedrepository = 0666\n", "core.sharedrepository "},
		{"[core \"x\"]\n\tbare = true\n", "core.x.bare "},
		{"[include]\n\tpath = x\n", "include.path "},
		{"[includeIf \"gitdir:/\"]\n\tpath = x\n", "includeif.gitdir:/.path "},
		{"[alias]\n\ta = !x\n", "alias.a "},
		{"[alias \"a\"]\n\tcommand = !x\n", "alias.a.command "},
		{"[filter \"f\"]\n\tclean = x\n", "filter.f.clean "},
		{"[filter.f]smudge = x\n", "filter.f.smudge "},
		{"[filter \"f\"]\n\tprocess = x\n", "filter.f.process "},
		{"[diff]\n\texternal = x\n", "diff.external "},
		{"[diff]\n\torderFile = x\n", "diff.orderfile "},
		{"[diff \"d\"]\n\ttextconv = x\n", "diff.d.textconv "},
		{"[diff \"d\"]\n\tcommand = x\n", "diff.d.command "},
		{"[merge \"m\"]\n\tdriver = x\n", "merge.m.driver "},
		{"[merge]\n\ttool = x\n", "merge.tool "},
		{"[mergetool \"m\"]\n\tcmd = x\n", "mergetool.m.cmd "},
		{"[difftool \"m\"]\n\tcmd = x\n", "difftool.m.cmd "},
		{"[credential]\n\thelper = x\n", "credential.helper "},
		{"[http]\n\tproxy = x\n", "http.proxy "},
		{"[http \"https://a/\"]\n\tsslVerify = false\n", "http.https://a/.sslverify "},
		{"[url \"ext::x\"]\n\tinsteadOf = https:\n", "url.ext::x.insteadof "},
		{"[protocol]\n\tallow = always\n", "protocol.allow "},
		{"[remote \"o\"]\n\tuploadpack = x\n", "remote.o.uploadpack "},
		{"[remote \"o\"]\n\treceivepack = x\n", "remote.o.receivepack "},
		{"[remote \"o\"]\n\tvcs = x\n", "remote.o.vcs "},
		{"[remote \"o\"]\n\tproxy = x\n", "remote.o.proxy "},
		{"[remote \"o\"]\n\tpromisor = true\n", "remote.o.promisor "},
		{"[remote]\n\tpushDefault = x\n", "remote.pushdefault "},
		{"[remotes]\n\tdefault = x\n", "remotes.default "},
		{"[branch \"b\"]\n\tmergeOptions = -s x\n", "branch.b.mergeoptions "},
		{"[branch]\n\tsort = signature\n", "branch.sort "},
		{"[sequence]\n\teditor = x\n", "sequence.editor "},
		{"[gpg]\n\tprogram = x\n", "gpg.program "},
		{"[gpg \"ssh\"]\n\tdefaultKeyCommand = x\n", "gpg.ssh.defaultkeycommand "},
		{"[commit]\n\tgpgSign = true\n", "commit.gpgsign "},
		{"[commit]\n\tgpgSign\n", "commit.gpgsign "},
		{"[commit]\n\ttemplate = x\n", "commit.template "},
		{"[tag]\n\tgpgSign = 1\n", "tag.gpgsign "},
		{"[log]\n\tshowSignature = true\n", "log.showsignature "},
		{"[uploadpack]\n\tpackObjectsHook = x\n", "uploadpack.packobjectshook "},
		{"[receive]\n\tprocReceiveRefs = x\n", "receive.procreceiverefs "},
		{"[safe]\n\tdirectory = *\n", "safe.directory "},
		{"[trailer \"t\"]\n\tcmd = x\n", "trailer.t.cmd "},
		{"[web]\n\tbrowser = x\n", "web.browser "},
		{"[browser \"b\"]\n\tcmd = x\n", "browser.b.cmd "},
		{"[man \"m\"]\n\tcmd = x\n", "man.m.cmd "},
		{"[help]\n\tautocorrect = 1\n", "help.autocorrect "},
		{"[interactive]\n\tdiffFilter = x\n", "interactive.difffilter "},
		{"[pager]\n\tlog = x\n", "pager.log "},
		{"[sendemail]\n\tsmtpServer = x\n", "sendemail.smtpserver "},
		{"[instaweb]\n\thttpd = x\n", "instaweb.httpd "},
		{"[guitool \"g\"]\n\tcmd = x\n", "guitool.g.cmd "},
		{"[maintenance]\n\tauto = true\n", "maintenance.auto "},
		{"[hook \"h\"]\n\tcommand = x\n", "hook.h.command "},
		{"[gc]\n\trecentObjectsHook = x\n", "gc.recentobjectshook "},
		{"[gc]\n\trepackFilterTo = x\n", "gc.repackfilterto "},
		{"[gc]\n\tpruneExpire = now\n", "gc.pruneexpire "},
		{"[tar \"x\"]\n\tcommand = x\n", "tar.x.command "},
		{"[submodule \"s\"]\n\tupdate = !x\n", "submodule.s.update "},
		{"[submodule \"s\"]\n\tgitdir = x\n", "submodule.s.gitdir "},
		{"[submodule \"a/../../b\"]\n\tactive = true\n", "submodule.a/../../b.active "},
		{"[extensions]\n\tpartialClone = o\n", "extensions.partialclone "},
		{"[extensions]\n\trefStorage = files:///x\n", "extensions.refstorage "},
		{"[lfs \"customtransfer.x\"]\n\tpath = x\n", "lfs.customtransfer.x.path "},
		{"[push]\n\trecurseSubmodules = on-demand\n", "push.recursesubmodules "},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		no(rows[i][0], rows[i][1]);
}
END_TEST

/* A harmless file with one value of a key. */
static bool takes(const char *section, const char *key, const char *value)
{
	char text[8192];

	snprintf(text, sizeof(text),
		 "[remote \"origin\"]\n\turl = https://example.com/x\n[%s]\n\t%s = \"%s\"\n",
		 section, key, value);
	return harmless(text);
}

START_TEST(urls)
{
	static const char *const good[] = {
		"https://example.com/a.git",
		"http://u:p@example.com:8080/a",
		"git://example.com/a",
		"ssh://git@example.com:22/a",
		"ssh://git@example.com/~u/a",
		"git@example.com:a/b.git",
		"example.com:a",
		"https://u%40x.org@example.com/a%20b",
		"[example.com:22]:a",
		"git+ssh://h/a",
		"file:/srv/a", /* a host's name */
		/* Of this machine, as git clone writes them. */
		"/srv/repo.git",
		"/srv/two words/caf\xc3\xa9",
		"/",
		"./a",
		"./two words",
		"../a.git",
		"../../a:b",
		"./-a",
		"file:///srv/repo.git",
		"file:///srv/two words",
		"file:///srv/a%20b",
	};
	static const char *const bad[] = {
		"",
		"ext::sh -c x",
		"ext::x",
		"transport::https://example.com",
		"https://example.com/a::b",
		"-oProxyCommand=x",
		"--upload-pack=x",
		"ssh://-oProxyCommand=x/a",
		"ssh://git@-oProxyCommand=x/a",
		"ssh://%2doProxyCommand=x/a",
		"-oProxyCommand=x:a",
		"git@-oProxyCommand=x:a",
		"[-oProxyCommand=x:22]:a",
		"host:-a",
		"host:",
		"/srv/a::b",
		"./ext::sh -c x",
		"file:///srv/a::b",
		"/srv/a%0ab",
		"/srv/%2da",
		"/srv/a\\nb",
		"/srv/a\\\\b",
		"./a\\tb",
		"../a\x7f",
		"file://host/srv/a",
		"file://./a",
		"file:",
		"file://",
		"FILE:///srv/a",
		"..",
		".a/b",
		"evil",
		"evil/x",
		"dir/a:b",
		"ftp://example.com/a",
		"foo://example.com/a",
		"fd::17",
		"HTTPS://example.com/a",
		"https:///a",
		"https://",
		"https://example.com/a b",
		"https://example.com/%0aprotocol=http",
		"https://example.com/%0Dx",
		"https://example.com/a\\nb",
		"https://example.com/a\\tb",
		"C:\\\\x",
		"~/x",
	};
	static const char *const keys[][2] = {{"remote \"o\"", "url"},
					      {"remote \"o\"", "pushurl"},
					      {"submodule \"o\"", "url"},
					      {"branch \"o\"", "remote"},
					      {"branch \"o\"", "pushremote"}};

	for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
		for (size_t i = 0; i < ARRAY_LEN(good); i++)
			ck_assert_msg(takes(keys[k][0], keys[k][1], good[i]), "%s: %s", good[i],
				      verdict.why);
		for (size_t i = 0; i < ARRAY_LEN(bad); i++)
			ck_assert_msg(!takes(keys[k][0], keys[k][1], bad[i]), "%s.%s: %s",
				      keys[k][0], keys[k][1], bad[i]);
	}
}
END_TEST

/* A branch's remote that is no remote of the file is a path to git. */
START_TEST(remotes)
{
	ck_assert(takes("branch \"b\"", "remote", "origin"));
	ck_assert(takes("branch \"b\"", "remote", "."));
	ck_assert(!takes("branch \"b\"", "remote", "upstream"));
	ck_assert(!takes("branch \"b\"", "remote", ".."));
	yes("[branch \"b\"]\n\tremote = o\n[remote \"o\"]\n\turl = https://example.com/a\n");
	no("[branch \"b\"]\n\tremote = o\n[remote \"o\"]\n\tfetch = +refs/*:refs/*\n",
	   "branch.b.remote ");
	no("[remote \"o\"]\n\turl = https://example.com/a\n\turl =\n", "remote.o.url ");
	no("[remote \"o\"]\n\turl\n", "remote.o.url ");
	no("[remote \"--upload-pack=x\"]\n\turl = https://example.com/a\n",
	   "remote.--upload-pack=x.url ");
	no("[remote \".\"]\n\turl = https://example.com/a\n", "remote...url ");
	no("[remote \"https://example.com/a\"]\n\turl = https://example.org/a\n",
	   "remote.https://example.com/a.url ");
}
END_TEST

/* More remotes than are remembered: the later ones do not count, nothing breaks. */
START_TEST(many_remotes)
{
	AUTO_BUF text = BUF_INIT(MAX_GIT_FILE);

	for (int i = 0; i < 2000; i++)
		ck_assert_int_eq(buf_printf(&text, "[remote \"r%d\"]\nurl = https://a/b\n", i), 0);
	ck_assert(gitjudge_config(text.p, text.n, &verdict));
	size_t n = text.n;
	ck_assert_int_eq(buf_str(&text, "[branch \"b\"]\nremote = r1\n"), 0);
	ck_assert(gitjudge_config(text.p, text.n, &verdict));
	text.n = n;
	ck_assert_int_eq(buf_str(&text, "[branch \"b\"]\nremote = r1999\n"), 0);
	ck_assert(!gitjudge_config(text.p, text.n, &verdict));
}
END_TEST

START_TEST(values)
{
	ck_assert(!takes("core", "bare", "maybe"));
	ck_assert(!takes("core", "compression", "x"));
	ck_assert(!takes("core", "compression", "1x"));
	ck_assert(!takes("core", "eol", "lf|crlf"));
	ck_assert(!takes("core", "eol", ""));
	ck_assert(!takes("user", "name", "a\\bb"));
	ck_assert(!takes("branch \"b\"", "merge", "--exec=x"));
	ck_assert(!takes("branch \"b\"", "merge", "refs/../x"));
	ck_assert(!takes("branch \"-b\"", "rebase", "true"));
	ck_assert(!takes("color", "ui", "`x`"));
	ck_assert(takes("merge", "log", "20"));
	ck_assert(takes("core", "autocrlf", "input"));
	ck_assert(takes("core", "filemode", "No"));
	/* Read differently by versions of git. */
	no("[user]\n\tname = a\tb\n", "user.name ");
}
END_TEST

START_TEST(unreadable)
{
	static const char nul[] = "[core]\n#\0\n";
	static char text[MAX_GIT_FILE + 1];

	no("[core]\n\tbare = \"x\n", "git would refuse it");
	no("bare = true\n", "git would refuse it");
	ck_assert(!gitjudge_config(nul, sizeof(nul) - 1, &verdict));
	memset(text, '\n', sizeof(text));
	ck_assert(gitjudge_config(text, MAX_GIT_FILE, &verdict));
	ck_assert(!gitjudge_config(text, MAX_GIT_FILE + 1, &verdict));
	ck_assert_str_eq(verdict.why, "it is longer than 1048576 bytes");
}
END_TEST

START_TEST(worktree)
{
	char text[PATH_TEXT + 64];

	yes("[core]\n\tworktree = ../../../a b\n");
	ck_assert_str_eq(verdict.worktree, "../../../a b");
	yes("[core]\n\tworktree = /a\n\tworktree = /b\n");
	ck_assert_str_eq(verdict.worktree, "/b");
	no("[core]\n\tworktree\n", "core.worktree ");
	no("[core]\n\tworktree =\n", "core.worktree ");
	no("[core]\n\tworktree = /a\n[alias]\n\ta = b\n", "alias.a ");
	for (size_t extra = 0; extra < 2; extra++) {
		size_t n = (size_t)snprintf(text, sizeof(text), "[core]\nworktree=");
		memset(text + n, 'x', PATH_TEXT - 1 + extra);
		ck_assert(gitjudge_config(text, n + PATH_TEXT - 1 + extra, &verdict) == !extra);
	}
}
END_TEST

/* What is shown is one line, without control characters, and ends. */
START_TEST(why)
{
	char text[600];

	no("[alias \"\x1b[31m\\n\"]\n\tx = y\n", "alias.\\x1b[31mn.x is");
	memset(text, 'x', sizeof(text));
	memcpy(text, "[alias \"", 8);
	memcpy(text + 250, "\"]\nk\n", 6);
	ck_assert(!harmless(text));
	ck_assert_uint_lt(strlen(verdict.why), GITJUDGE_WHY);
	ck_assert_uint_gt(strlen(verdict.why), GITJUDGE_WHY - 8);
}
END_TEST

static bool todo_n(const char *text, size_t n)
{
	return gitjudge_todo(text, n, &verdict);
}

static bool todo(const char *text)
{
	return todo_n(text, strlen(text));
}

START_TEST(todo_lists)
{
	static const char *const good[] = {
		"",
		"\n\r\n \t\n",
		"# exec x\n\t# x y\n",
		"pick 1234567 subject\np 1234567\n",
		"reword 1\nr 1\nedit 1\ne 1\nsquash 1\ns 1\nfixup 1\nf -C 1\nf -c 1\ndrop 1\nd 1\n",
		"noop\nnoop\r\nbreak\nb\n",
		"label onto\nl a\nreset onto\nt [new root] x\nmerge -C 1 a # b\nm -c 1 a\n",
		"update-ref refs/heads/x\nu refs/heads/x\nrevert 1\n",
		"  pick 1 x\n\tpick\t1\n",
		"pick 1 exec x",
		"pick",
	};
	static const char *const bad[] = {
		"exec x",
		"x x",
		"x\tx",
		"  exec x",
		"pick 1\nexec x\n",
		"pick 1\r\nx x",
		"x",
		"exec",
		"EXEC x",
		"Pick 1",
		"pickx 1",
		"execute",
		"\rexec x",
		"\vexec x",
		"pick\r1 x",
		"\xef\xbb\xbfpick 1",
		"merge\\x",
		";x",
		"label\n=x",
		"|",
		"pick|p 1",
		"\"pick\" 1",
	};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		ck_assert_msg(todo(good[i]), "%s: %s", good[i], verdict.why);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_msg(!todo(bad[i]), "%s", bad[i]);
	ck_assert(!todo("pick 1\nexec touch /tmp/\x1b[31mx\n"));
	ck_assert_str_eq(verdict.why, "line 2: exec touch /tmp/\\x1b[31mx");
	ck_assert(!todo_n("pick 1\0\n", 8));
	ck_assert(!todo_n("#\0", 2));
}
END_TEST

START_TEST(todo_limits)
{
	static char text[MAX_GIT_FILE + 1];

	memset(text, '#', sizeof(text));
	ck_assert(todo_n(text, 65536));
	ck_assert(!todo_n(text, 65537));
	memset(text, '\n', sizeof(text));
	ck_assert(todo_n(text, MAX_GIT_FILE));
	ck_assert(!todo_n(text, MAX_GIT_FILE + 1));
}
END_TEST

static bool state_n(const char *name, const char *text, size_t n)
{
	memset(&verdict, 'x', sizeof(verdict));
	bool good = gitjudge_state(name, text, n, &verdict);

	ck_assert_ptr_nonnull(memchr(verdict.why, '\0', sizeof(verdict.why)));
	ck_assert_int_eq(verdict.why[0] == '\0', good);
	ck_assert_str_eq(verdict.worktree, "");
	return good;
}

static void states(const char *name, const char *const *texts, size_t n, bool want)
{
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(state_n(name, texts[i], strlen(texts[i])) == want, "%s %s: \"%s\" %s",
			      name, want ? "refused" : "taken", texts[i], verdict.why);
}

/* Of git's own: any other one is a program, git-merge-NAME, and with a slash any file. */
START_TEST(strategy_states)
{
	static const char *const good[] = {"",          "\n",      "\r\n",      "ort",
					   "ort\n",     "ort\r\n", "recursive", "resolve\n",
					   "octopus\n", "ours\n",  "subtree\n"};
	static const char *const bad[] = {"./x",
					  "./x\n",
					  "../x",
					  "/bin/x",
					  "x",
					  "ort/../x",
					  "ort ",
					  " ort",
					  "\tort",
					  "ort\nours",
					  "\nort",
					  "ort|ours",
					  "ort|",
					  "|",
					  "ORT",
					  "or",
					  "orts",
					  "theirs",
					  "index",
					  "file",
					  " ",
					  "\xef\xbb\xbfort",
					  "-ort",
					  "recursive-recursive-recursive-",
					  "recursive-recursive-recursive-recursive-recursive"};
	/* A name that a file system folds comes here too; nothing else is taken for it. */
	static const char *const names[] = {"strategy", "STRATEGY", "Opts", "apply-opt2", ""};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		states(names[i], good, ARRAY_LEN(good), true);
		states(names[i], bad, ARRAY_LEN(bad), false);
	}
	ck_assert(!state_n("strategy", "ort\0", 4));
	ck_assert(!state_n("strategy", "ort\0/x", 6));
	ck_assert(!state_n("strategy", "\0", 1));
	ck_assert(state_n("strategy", NULL, 0));
	(void)state_n("strategy", "./x", 3);
	ck_assert_ptr_nonnull(strstr(verdict.why, "strategy"));
}
END_TEST

/* As git am writes them: each quoted for a shell, a space before it. */
START_TEST(apply_options)
{
	static const char *const good[] = {
		"",
		" \t\r\n",
		" '-p1'\n",
		" '-C1' '-p2' '--whitespace=fix' '--ignore-whitespace'\n",
		"--ignore-space-change",
		" '--exclude=a/*' '--include=b'\n",
		"-p1\t-C2\r\n'-p0'",
		" '-C'",
	};
	static const char *const bad[] = {
		" '--directory=../x'\n",
		"--directory=x",
		" '--directory' 'x'",
		" '--unsafe-paths'\n",
		"--unsafe-paths",
		" '-p1' '--unsafe-paths'",
		" '-p1'\t'--directory=/x'",
		"-p1\n--directory=/x",
		"-p1\r--unsafe-paths",
		/* An abbreviation is the same to git. */
		"'--dir=x'",
		"'--unsafe'",
		"'--build-fake-ancestor=x'",
		"'--index-info'",
		"'--reject'",
		"'--cached'",
		"'-3'",
		"'-R'",
		"'p1'",
		"x",
		"'",
		"''",
		"'-p1",
		"-p1'",
		/* Two in one, where a shell would see one. */
		"'-p1''--directory=x'",
		"'-p1'\\'--directory=x'",
		"'--exclude=a b'",
		"'--exclude=a'\\''b'",
		"\"-p1\"",
		"'--'",
		"--",
		"'--whitespace'",
		"'--exclude'",
		"\v-p1",
		"\xc2\xa0-p1",
	};

	states("apply-opt", good, ARRAY_LEN(good), true);
	states("apply-opt", bad, ARRAY_LEN(bad), false);
	ck_assert(!state_n("apply-opt", "-p1\0", 4));
	ck_assert(state_n("apply-opt", NULL, 0));
	(void)state_n("apply-opt", "--unsafe-paths", 14);
	ck_assert_ptr_nonnull(strstr(verdict.why, "outside of the work tree"));
}
END_TEST

/* A configuration with one section. */
START_TEST(sequencer_options)
{
	static const char *const good[] = {
		"",
		"# nothing\n",
		"[options]\n",
		"[options]\n\tno-commit = true\n\tedit = true\n\tallow-empty\n\tmainline = 1\n",
		"[options]\n\tstrategy = ort\n\tstrategy-option = ours\n",
		"[OPTIONS]\nStrategy = \"recursive\"\n",
		"[options]\n\tstrategy = oct\\\nopus\n",
		"[options]\n\tgpg-sign = 0123\n\trecord-origin = true\n",
	};
	static const char *const bad[] = {
		"[options]\n\tstrategy = ./x\n",
		"[options]\n\tstrategy = x\n",
		"[options]\n\tstrategy\n",
		"[options]\n\tstrategy =\n",
		"[options]\n\tSTRATEGY = ./x\n",
		"[Options]\n\tstrategy = \"./x\"\n",
		"[options]\n\tstrategy = .\\\n/x\n",
		"[options]\n\tstrategy = ort\n\tstrategy = ./x\n",
		"[options]\n\tstrategy = ./x\n\tstrategy = ort\n",
		"[options]\n\tstrategy = ort # x\n[options]\nstrategy=./x",
		"[options]\n\tedit = a\tb\n",
		"[core]\n\teditor = x\n",
		"[include]\n\tpath = x\n",
		"[options]\n\tstrategy = ort\n[merge \"x\"]\n\tdriver = x\n",
		/* Nothing that git would read. */
		"strategy = ort\n",
		"[options\n",
		"[options]\n\tstrategy = \"ort\n",
		"ort",
		"\x01",
	};

	states("opts", good, ARRAY_LEN(good), true);
	states("opts", bad, ARRAY_LEN(bad), false);
	ck_assert(!state_n("opts", "[options]\0\n", 11));
	ck_assert(state_n("opts", NULL, 0));
	/* What is shown is safe to be shown. */
	ck_assert(!state_n("opts", "[x \"\x1b[31m\"]\n\tk = v\n", 20));
	ck_assert_ptr_null(strchr(verdict.why, '\x1b'));
}
END_TEST

START_TEST(state_limits)
{
	static char text[MAX_GIT_FILE + 1];
	static const char *const names[] = {"strategy", "apply-opt", "opts"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		memset(text, '\n', sizeof(text));
		ck_assert_msg(state_n(names[i], text, MAX_GIT_FILE), "%s", names[i]);
		ck_assert_msg(!state_n(names[i], text, MAX_GIT_FILE + 1), "%s", names[i]);
		memset(text, 'x', sizeof(text));
		ck_assert_msg(!state_n(names[i], text, MAX_GIT_FILE), "%s", names[i]);
	}
}
END_TEST

START_TEST(gitfiles)
{
	char path[PATH_TEXT];
	char text[PATH_TEXT + 16];

	ck_assert(gitjudge_gitfile("gitdir: ../.git/modules/a\n", 26, path));
	ck_assert_str_eq(path, "../.git/modules/a");
	ck_assert(gitjudge_gitfile("gitdir: /a b \r\n\n", 16, path));
	ck_assert_str_eq(path, "/a b ");
	ck_assert(gitjudge_gitfile("gitdir:  a", 10, path));
	ck_assert_str_eq(path, " a");
	ck_assert(!gitjudge_gitfile("gitdir: ", 8, path));
	ck_assert(!gitjudge_gitfile("gitdir: \n", 9, path));
	ck_assert(!gitjudge_gitfile("gitdir:a", 8, path));
	ck_assert(!gitjudge_gitfile("gitdir", 6, path));
	ck_assert(!gitjudge_gitfile("", 0, path));
	ck_assert(!gitjudge_gitfile(" gitdir: a", 10, path));
	ck_assert(!gitjudge_gitfile("gitdir: a\nb\n", 12, path));
	ck_assert(!gitjudge_gitfile("gitdir: a\0b", 11, path));
	ck_assert(!gitjudge_gitfile("gitdir: a\0", 10, path));
	memcpy(text, "gitdir: ", 8);
	memset(text + 8, 'x', PATH_TEXT);
	ck_assert(gitjudge_gitfile(text, 8 + PATH_TEXT - 1, path));
	ck_assert(!gitjudge_gitfile(text, 8 + PATH_TEXT, path));
}
END_TEST

START_TEST(paths)
{
	char path[PATH_TEXT];
	char text[PATH_TEXT];

	ck_assert(gitjudge_path("../..\n", 6, path));
	ck_assert_str_eq(path, "../..");
	ck_assert(gitjudge_path("/w/a b/.git\r\n", 13, path));
	ck_assert_str_eq(path, "/w/a b/.git");
	ck_assert(!gitjudge_path("", 0, path));
	ck_assert(!gitjudge_path("\n", 1, path));
	ck_assert(!gitjudge_path("a\nb", 3, path));
	ck_assert(!gitjudge_path("a \n", 3, path));
	ck_assert(!gitjudge_path("a\0", 2, path));
	memset(text, 'x', sizeof(text));
	ck_assert(gitjudge_path(text, PATH_TEXT - 1, path));
	ck_assert(!gitjudge_path(text, PATH_TEXT, path));
}
END_TEST

static bool note(void *self, const char *path)
{
	struct buf *out = self;

	return strcmp(path, "stop") != 0 && buf_printf(out, "%s|", path) == 0;
}

static bool alternates(const char *text, size_t n, struct buf *out)
{
	buf_clear(out);
	return gitjudge_alternates(text, n, note, out);
}

START_TEST(alternate_stores)
{
	AUTO_BUF out = BUF_INIT(1 << 16);
	char text[PATH_TEXT];

	ck_assert(alternates("", 0, &out));
	ck_assert(alternates("/a/objects\n../b\n\n# c\n/d", 23, &out));
	ck_assert_str_eq(buf_cstr(&out), "/a/objects|../b|/d|");
	ck_assert(!alternates("\"/a\"\n", 5, &out));
	ck_assert(!alternates("/a\nstop\n/b", 10, &out));
	ck_assert(!alternates("/a\0b", 4, &out));
	ck_assert(!alternates("# \0", 3, &out));
	memset(text, 'x', sizeof(text));
	ck_assert(alternates(text, PATH_TEXT - 1, &out));
	ck_assert(!alternates(text, PATH_TEXT, &out));
}
END_TEST

/* What git writes on its own is harmless, or every session would ask. */
START_TEST(written_by_git)
{
	static const char script[] =
		"git init -q a && cd a && git commit -q --allow-empty -m x && "
		"git remote add origin https://example.com/a.git && "
		"git remote add --mirror=fetch m ssh://git@example.com/m && "
		"git config branch.main.remote origin && "
		"git branch --track b HEAD && git branch side && git branch --track c side && "
		"git config extensions.worktreeConfig true && git sparse-checkout init --cone && "
		"git worktree add -q ../w && git config --worktree core.bare false && "
		"git -c core.splitIndex=false update-index --untracked-cache --force-untracked-cache";
	size_t n = 0;

	if (!place_has_git())
		return;
	ck_assert_int_eq(place_shell(script), 0);
	AUTO_FREE char *config = place_read("a/.git/config", &n);
	ck_assert_msg(gitjudge_config(config, n, &verdict), "%s\n%s", verdict.why, config);
	AUTO_FREE char *more = place_read("a/.git/config.worktree", &n);
	ck_assert_msg(gitjudge_config(more, n, &verdict), "%s\n%s", verdict.why, more);
	char path[PATH_TEXT];
	AUTO_FREE char *file = place_read("w/.git", &n);
	ck_assert(gitjudge_gitfile(file, n, path));
	ck_assert_str_eq(path, at("a/.git/worktrees/w"));
	AUTO_FREE char *common = place_read("a/.git/worktrees/w/commondir", &n);
	ck_assert(gitjudge_path(common, n, path));
	ck_assert_str_eq(path, "../..");
	AUTO_FREE char *gitdir = place_read("a/.git/worktrees/w/gitdir", &n);
	ck_assert(gitjudge_path(gitdir, n, path));
	ck_assert_str_eq(path, at("w/.git"));
}
END_TEST

/* A stopped rebase of git's own, merges and all; and one with a command in it. */
START_TEST(rebased_by_git)
{
	static const char script[] =
		"git init -q a && cd a && for i in 1 2 3; do git commit -q --allow-empty -m $i; done && "
		"git checkout -q -b t HEAD~1 && git commit -q --allow-empty -m t && "
		"git checkout -q - && git merge -q --no-edit t && "
		"GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i -r --keep-empty HEAD~2 && "
		"cp .git/rebase-merge/git-rebase-todo .git/rebase-merge/done .. && "
		"git rebase --abort && "
		"GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i -x true --keep-empty HEAD~2 && "
		"cp .git/rebase-merge/git-rebase-todo ../with-exec";
	size_t n = 0;

	if (!place_has_git())
		return;
	ck_assert_int_eq(place_shell(script), 0);
	AUTO_FREE char *list = place_read("git-rebase-todo", &n);
	ck_assert_ptr_nonnull(strstr(list, "merge -C"));
	ck_assert_msg(todo_n(list, n), "%s\n%s", verdict.why, list);
	AUTO_FREE char *done = place_read("done", &n);
	ck_assert_msg(todo_n(done, n), "%s\n%s", verdict.why, done);
	AUTO_FREE char *exec = place_read("with-exec", &n);
	ck_assert(!todo_n(exec, n));
	ck_assert_ptr_nonnull(strstr(verdict.why, "exec true"));
}
END_TEST

/* What a stopped cherry-pick and a stopped rebase of git's own go on with. */
START_TEST(stopped_by_git)
{
	static const char script[] =
		"git init -q a && cd a && echo 1 >f && git add f && git commit -q -m 1 && "
		"echo 2 >f && git commit -q -a -m 2 && git checkout -q -b t HEAD~1 && "
		"for i in 3 4; do echo $i >f && git commit -q -a -m $i; done && "
		"! git cherry-pick --strategy=resolve -X ours -x @{-1} t~1 >/dev/null 2>&1 && "
		"cp .git/sequencer/opts .. && git cherry-pick --abort && "
		"! git rebase -q -s resolve @{-1} >/dev/null 2>&1 && "
		"cp .git/rebase-merge/strategy .. && git rebase --abort && "
		"! git rebase -q --apply -C1 --whitespace=fix @{-1} >/dev/null 2>&1 && "
		"cp .git/rebase-apply/apply-opt ..";
	static const char *const names[] = {"opts", "strategy", "apply-opt"};
	static const char *const words[] = {"strategy = resolve", "resolve", "'-C1'"};

	if (!place_has_git())
		return;
	ck_assert_int_eq(place_shell(script), 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t n = 0;
		AUTO_FREE char *text = place_read(names[i], &n);
		ck_assert_msg(strstr(text, words[i]) != NULL, "%s: %s", names[i], text);
		ck_assert_msg(state_n(names[i], text, n), "%s: %s\n%s", names[i], verdict.why,
			      text);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("policy/gitjudge");
	TCase *tests = tcase_create("gitjudge");
	TCase *with_git = tcase_create("git");

	tcase_add_test(tests, plain);
	tcase_add_test(tests, programs);
	tcase_add_test(tests, urls);
	tcase_add_test(tests, remotes);
	tcase_add_test(tests, many_remotes);
	tcase_add_test(tests, values);
	tcase_add_test(tests, unreadable);
	tcase_add_test(tests, worktree);
	tcase_add_test(tests, why);
	tcase_add_test(tests, todo_lists);
	tcase_add_test(tests, todo_limits);
	tcase_add_test(tests, strategy_states);
	tcase_add_test(tests, apply_options);
	tcase_add_test(tests, sequencer_options);
	tcase_add_test(tests, state_limits);
	tcase_add_test(tests, gitfiles);
	tcase_add_test(tests, paths);
	tcase_add_test(tests, alternate_stores);
	suite_add_tcase(suite, tests);
	tcase_add_checked_fixture(with_git, place_setup, place_close);
	tcase_add_test(with_git, written_by_git);
	tcase_add_test(with_git, rebased_by_git);
	tcase_add_test(with_git, stopped_by_git);
	suite_add_tcase(suite, with_git);
	return suite_run(suite);
}
