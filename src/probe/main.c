/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandglass-probe: tries the rows that it is told to, from wherever it runs,
 * and prints one line a row:
 *
 *	ROW safe|ESCAPED|inconclusive|works|BROKEN DETAIL
 *
 * Exit status: 0 all safe and working, 1 something ESCAPED or BROKEN, 3 nothing
 * of that but something inconclusive, 2 usage or no memory.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/json.h"
#include "probe/rows.h"

#define ROW_SECONDS 30
#define MAX_REPORT (4u << 20)
#define MAX_DETAIL 8192

static const struct row_table *const tables[] = {
	&rows_tty, &rows_ns,    &rows_proc,  &rows_kernel_files, &rows_fd,
	&rows_fs,  &rows_view,  &rows_setid, &rows_syscall,      &rows_net,
	&rows_ipc, &rows_limit, &rows_works, &rows_works_more,
};

static const char usage[] =
	"usage: sandglass-probe [--json] [--set KEY=VALUE]... --all | ROW...\n"
	"       sandglass-probe --list | --ids\n"
	"Tries to get out of where it runs. --all tries every row but those that need an\n"
	"argument they were not given and those that kill their neighbours.\n";

struct options {
	bool json, list, all, ids;
};

static const struct row *row_find(const char *name)
{
	for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
		for (size_t i = 0; i < tables[t]->n; i++) {
			const struct row *r = &tables[t]->rows[i];
			if (strcmp(r->name, name) == 0 || (r->alias && strcmp(r->alias, name) == 0))
				return r;
		}
	}
	return NULL;
}

static void row_list(void)
{
	for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
		for (size_t i = 0; i < tables[t]->n; i++) {
			const struct row *r = &tables[t]->rows[i];
			(void)printf("%s\t%s\t%s\t%s%s\t%s\n", r->name, r->alias ? r->alias : "-",
				     r->flags & ROW_WORKS ? "works" : "escape",
				     r->needs ? r->needs : "-",
				     r->flags & ROW_ALONE ? ",alone" : "", r->technique);
		}
	}
}

/* Waits for the row's process, at most as long as a row may take. True if it ended by itself. */
static bool row_wait(pid_t pid, int *ret_status)
{
	sigset_t child;
	struct timespec limit = {ROW_SECONDS, 0};
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	for (;;) {
		if (waitpid(pid, ret_status, WNOHANG) == pid)
			return true;
		int sig = sigtimedwait(&child, NULL, &limit);
		if (sig < 0 && errno == EAGAIN)
			break;
	}
	(void)kill(pid, SIGKILL);
	(void)RETRY_EINTR(waitpid(pid, ret_status, 0));
	return false;
}

static void row_child(const struct row *row, struct finding *f, const sigset_t *mask, pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)sigprocmask(SIG_SETMASK, mask, NULL);
	if (getppid() == parent)
		row->run(f);
	_exit(0);
}

static void row_run(const struct row *row, struct finding *f)
{
	sigset_t child, before;
	int status = 0;
	*f = (struct finding){0};
	if (row->needs && !arg(row->needs)) {
		cannot(f, "needs --set %s=…", row->needs);
		return;
	}
	if (row->flags & ROW_ALONE) {
		row->run(f);
		return;
	}
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, &before);
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid < 0)
		cannot(f, "fork: %s", errno_text(errno));
	else if (pid == 0)
		row_child(row, f, &before, parent);
	else if (!row_wait(pid, &status))
		cannot(f, "took longer than %d s", ROW_SECONDS);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		judged(f, "killed by SIGSYS", EPERM, false);
	else if (WIFSIGNALED(status))
		note(f, "killed by signal %d", WTERMSIG(status));
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
}

/* "EPERM: mount, umount2; ENOSYS: clone3; reached: bpf (EFAULT); ..." and what was noted. */
static void detail_group(const struct finding *f, struct buf *out, int err, bool escaped)
{
	size_t n = f->attempts < MAX_TRIES ? f->attempts : MAX_TRIES;
	unsigned int shown = 0;
	for (size_t i = 0; i < n; i++) {
		const struct attempt *a = &f->list[i];
		if (a->err != err || a->escaped != escaped)
			continue;
		if (shown == 0)
			(void)buf_printf(out, "%s%s%s:", out->n ? "; " : "",
					 escaped && err ? "REACHED " : "", errno_text(err));
		if (++shown <= 40)
			(void)buf_printf(out, " %s", a->what);
	}
	if (shown > 40)
		(void)buf_printf(out, " and %u more", shown - 40);
}

static void detail_make(const struct finding *f, struct buf *out)
{
	size_t n = f->attempts < MAX_TRIES ? f->attempts : MAX_TRIES;
	if (f->note_len)
		(void)buf_printf(out, "[%s]", f->note);
	if (f->why[0])
		(void)buf_printf(out, "%s%s", out->n ? " " : "", f->why);
	for (int escaped = 1; escaped >= 0; escaped--) {
		for (size_t i = 0; i < n; i++) {
			bool first = f->list[i].escaped == (bool)escaped;
			for (size_t j = 0; first && j < i; j++)
				first = f->list[j].err != f->list[i].err ||
					f->list[j].escaped != f->list[i].escaped;
			if (first)
				detail_group(f, out, f->list[i].err, escaped);
		}
	}
}

struct report {
	struct options opt;
	struct buf text;
	struct json json;
	unsigned int count[VERDICT_BROKEN + 1];
};

static void report_row(struct report *r, const struct row *row, const struct finding *f)
{
	enum verdict v = finding_verdict(f, row);
	AUTO_BUF detail = BUF_INIT(MAX_DETAIL);
	r->count[v]++;
	detail_make(f, &detail);
	if (!r->opt.json) {
		(void)printf("%s %s %s\n", row->name, verdict_name(v), buf_cstr(&detail));
		(void)fflush(stdout);
		return;
	}
	json_obj_begin(&r->json);
	json_kv_str(&r->json, "row", row->name);
	json_kv_str(&r->json, "alias", row->alias);
	json_kv_str(&r->json, "technique", row->technique);
	json_kv_str(&r->json, "verdict", verdict_name(v));
	json_key(&r->json, "detail");
	json_text(&r->json, detail.p ? detail.p : "", detail.n);
	json_obj_end(&r->json);
}

static void report_begin(struct report *r)
{
	if (!r->opt.json)
		return;
	json_obj_begin(&r->json);
	json_kv_uint(&r->json, "version", 1);
	json_key(&r->json, "rows");
	json_arr_begin(&r->json);
}

static int report_end(struct report *r)
{
	if (r->opt.json) {
		struct err e;
		json_arr_end(&r->json);
		json_key(&r->json, "counts");
		json_obj_begin(&r->json);
		for (enum verdict v = VERDICT_SAFE; v <= VERDICT_BROKEN; v++)
			json_kv_uint(&r->json, verdict_name(v), r->count[v]);
		json_obj_end(&r->json);
		json_obj_end(&r->json);
		if (json_finish(&r->json, ERR_INTERNAL, &e)) {
			(void)fprintf(stderr, "sandglass-probe: %s\n", e.msg);
			return 2;
		}
		(void)printf("%s\n", buf_cstr(&r->text));
	}
	if (fflush(stdout) || ferror(stdout))
		return 2;
	if (r->count[VERDICT_ESCAPED] || r->count[VERDICT_BROKEN])
		return 1;
	return r->count[VERDICT_INCONCLUSIVE] ? 3 : 0;
}

static void run_all(struct report *r, struct finding *f)
{
	for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
		for (size_t i = 0; i < tables[t]->n; i++) {
			const struct row *row = &tables[t]->rows[i];
			if (row->flags & ROW_ALONE || (row->needs && !arg(row->needs)))
				continue;
			row_run(row, f);
			report_row(r, row, f);
		}
	}
}

/* The index of the first operand, -1 for wrong usage. */
static int parse(int argc, char **argv, struct options *opt)
{
	int i = 1;
	for (; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--json") == 0)
			opt->json = true;
		else if (strcmp(argv[i], "--list") == 0)
			opt->list = true;
		else if (strcmp(argv[i], "--all") == 0)
			opt->all = true;
		else if (strcmp(argv[i], "--ids") == 0)
			opt->ids = true;
		else if (strcmp(argv[i], "--set") == 0 && i + 1 < argc && arg_set(argv[i + 1]) == 0)
			i++;
		else
			return -1;
	}
	for (int j = i; j < argc; j++) {
		if (!row_find(argv[j])) {
			(void)fprintf(stderr, "sandglass-probe: no row %s\n", argv[j]);
			return -1;
		}
	}
	bool rows = i < argc;
	return opt->list + opt->all + opt->ids + rows == 1 ? i : -1;
}

int main(int argc, char **argv)
{
	struct report r = {.text = BUF_INIT(MAX_REPORT)};
	int first = parse(argc, argv, &r.opt);
	if (first < 0) {
		(void)fputs(usage, stderr);
		return 2;
	}
	if (r.opt.ids) {
		char text[256];
		ids_text(text, sizeof(text));
		(void)fputs(text, stdout);
		return 0;
	}
	if (r.opt.list) {
		row_list();
		return 0;
	}
	struct finding *f =
		mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f == MAP_FAILED) {
		(void)fprintf(stderr, "sandglass-probe: %s\n", strerror(errno));
		return 2;
	}
	r.json = JSON_INIT(&r.text);
	report_begin(&r);
	if (r.opt.all)
		run_all(&r, f);
	for (int i = first; i < argc; i++) {
		const struct row *row = row_find(argv[i]);
		row_run(row, f);
		report_row(&r, row, f);
	}
	int status = report_end(&r);
	buf_release(&r.text);
	return status;
}
