/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From request to plan: asks the policy layer, finds what the host offers, and
 * puts it together. Nothing is started and nothing is changed but the lock on a
 * session uid.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file.h"
#include "base/term.h"
#include "policy/apply.h"
#include "policy/look.h"
#include "policy/network.h"
#include "policy/viewcache.h"
#include "run/authority.h"
#include "run/job.h"
#include "run/mirror.h"
#include "run/secretkeep.h"
#include "run/session.h"
#include "run/sockets.h"
#include "run/uidlock.h"
#include "store/cache.h"

#define INNER_ID 1000u /* inside, where the caller's own id is 0 in a nested namespace */
#define SHOWN 512

/* Whether all ids of the host are ours to map, i.e. this is no user namespace. */
static bool has_all_ids(void)
{
	char text[128];
	unsigned int inside = 0;
	unsigned int outside = 0;
	unsigned int count = 0;

	if (!file_read_text(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text)) ||
	    sscanf(text, "%u %u %u", &inside, &outside, &count) != 3)
		return false;
	return inside == 0 && outside == 0 && count == UINT32_MAX;
}

/* A place that would be another one in each directory is no place to keep anything. */
static int check_home(const struct caller *who, struct err *e)
{
	const char *home = caller_env(who, "SANDGLASS_HOME");
	char shown[SHOWN];

	if (!home || !home[0] || home[0] == '/')
		return 0;
	(void)err_set(e, ERR_CONFIG_INVALID, "SANDGLASS_HOME: %s: not an absolute path",
		      term_escape_cut(shown, sizeof(shown), home, strlen(home)));
	return err_hint(e, "export SANDGLASS_HOME=/…, or unset it");
}

int caller_init(struct caller *who, char **env, char cwd[PATH_TEXT], struct err *e)
{
	struct sysinfo info;

	if (check_home(&(struct caller){.env = env}, e) < 0)
		return -1;
	if (sysinfo(&info) < 0)
		return err_sys(e, "sysinfo");
	*who = (struct caller){
		.uid = geteuid(),
		.gid = getegid(),
		.env = env,
		.cwd = getcwd(cwd, PATH_TEXT) && cwd[0] == '/' ? cwd : NULL,
		.terminal = isatty(0) && isatty(1) && isatty(2),
		.ram_bytes = (uint64_t)info.totalram * info.mem_unit,
	};
	who->root = who->uid == 0 && has_all_ids();
	who->home = caller_env(who, "HOME");
	if (!who->home || who->home[0] != '/') {
		struct passwd *pw = getpwuid(who->uid);
		who->home = pw ? pw->pw_dir : NULL;
	}
	return 0;
}

/*
 * A file system without id-mapped mounts: the command becomes the source's
 * owner instead, who is nobody special; for root's files only reading is left.
 */
static int decide_ids_unmapped(struct job *j, struct err *e)
{
	struct plan_numbers *n = &j->plan.n;
	const struct stat *st = &j->src.st;
	char shown[SHOWN];

	if (j->src.given && st->st_uid != 0) {
		n->uid = n->outer_uid = st->st_uid;
		n->gid = st->st_gid ? st->st_gid : n->gid;
		n->outer_gid = st->st_gid ? st->st_gid : n->outer_gid;
		j->runs_as = "source-owner";
		return 0;
	}
	if (j->req->mode == MODE_READ_ONLY && !j->req->write.n)
		return 0;
	(void)err_set(e, ERR_POLICY_DENIED,
		      "source %s is root's and its file system has no id-mapped mounts: what the "
		      "command writes would not keep its owner",
		      term_escape_cut(shown, sizeof(shown), j->src.path, strlen(j->src.path)));
	return err_hint(e, "use --mode read-only, or work on a copy that belongs to a user");
}

static int decide_ids_root(struct job *j, struct view_ids *ids, struct err *e)
{
	struct plan_numbers *n = &j->plan.n;

	n->flags |= PLAN_ROOT;
	/* Inside always the same: git compares owners with those of the last call. */
	n->uid = n->gid = SESSION_UID_FIRST;
	n->outer_uid = n->outer_gid = j->session_uid;
	ids->idmap = !j->no_idmap;
	j->runs_as = "session-uid";
	return j->no_idmap ? decide_ids_unmapped(j, e) : 0;
}

/*
 * Without namespaces nobody can be mapped: the command writes as the source's
 * owner or, where it writes nothing, is nobody that the host knows.
 */
static int decide_ids_rung(struct job *j, struct err *e)
{
	struct plan_numbers *n = &j->plan.n;
	bool writes = j->src.given && j->req->mode == MODE_WORKSPACE_WRITE;

	n->flags |= PLAN_ROOT;
	n->uid = n->gid = n->outer_uid = n->outer_gid = j->session_uid;
	j->runs_as = "session-uid";
	if (!writes && !j->req->write.n)
		return 0;
	if (j->src.given && j->src.st.st_uid != 0) {
		n->uid = n->outer_uid = j->src.st.st_uid;
		if (j->src.st.st_gid != 0)
			n->gid = n->outer_gid = j->src.st.st_gid;
		j->runs_as = "source-owner";
		return 0;
	}
	(void)err_set(e, ERR_POLICY_DENIED,
		      "isolation `landlock` as root: what is written would have to be root's, and "
		      "no command runs as root");
	return err_hint(e,
			"use --mode read-only, a source that belongs to a user, or be that user");
}

static int decide_ids_user(struct job *j, struct err *e)
{
	struct plan_numbers *n = &j->plan.n;
	char text[128];
	unsigned int inside = 1;
	unsigned int outside = 1;

	j->runs_as = "caller-in-user-namespace";
	n->outer_uid = j->who.uid;
	n->outer_gid = j->who.gid;
	n->uid = j->who.uid ? j->who.uid : INNER_ID;
	n->gid = j->who.gid ? j->who.gid : INNER_ID;
	/* Root of a user namespace that the host's root made is the host's root. */
	if (j->who.uid != 0 ||
	    !file_read_text(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text)) ||
	    sscanf(text, "%u %u", &inside, &outside) != 2 || outside != 0)
		return 0;
	(void)err_set(e, ERR_SANDBOX_UNAVAILABLE,
		      "root of a user namespace that stands for the host's root: the command would "
		      "run as kernel uid 0");
	return err_hint(e, "run as root outside of it, or as an ordinary user");
}

static int decide_ids(struct job *j, struct view_ids *ids, struct err *e)
{
	*ids = (struct view_ids){.name = "sandglass", .session = j->session};
	if ((!j->who.root     ? decide_ids_user(j, e)
	     : job_is_rung(j) ? decide_ids_rung(j, e)
			      : decide_ids_root(j, ids, e)) < 0)
		return -1;
	if (job_is_rung(j) && !j->who.root)
		j->runs_as = "caller";
	ids->uid = j->plan.n.uid;
	ids->gid = j->plan.n.gid;
	return 0;
}

/* A source that its caller could not write as it is would only fail later, and unclearly. */
static int check_owner(const struct job *j, struct err *e)
{
	char shown[SHOWN];

	if (!j->src.given || j->req->mode != MODE_WORKSPACE_WRITE || j->who.root)
		return 0;
	(void)term_escape_cut(shown, sizeof(shown), j->src.path, strlen(j->src.path));
	if (access(j->src.path, X_OK | R_OK) < 0)
		return err_set(e, ERR_POLICY_DENIED, "source %s: %s", shown, strerror(errno));
	if (access(j->src.path, W_OK) == 0 || errno == EROFS)
		return 0;
	(void)err_set(e, ERR_POLICY_DENIED, "source %s belongs to uid %u and you may not write it",
		      shown, (unsigned int)j->src.st.st_uid);
	return err_hint(e, "use --mode read-only, or run as its owner");
}

static bool is_visible(const struct job *j, const char *path)
{
	return path_is_below(job_agent_root(j), path) || view_covers(&j->view, path);
}

/* The caller's working directory if it is in the view, else the source's top. */
static void decide_cwd(struct job *j)
{
	const char *cwd = j->who.cwd;

	if (j->req->mode == MODE_FULL_ACCESS)
		cwd = cwd ? cwd : "/";
	else if (!j->src.given)
		cwd = NULL;
	else if (!cwd || !is_visible(j, cwd))
		cwd = j->src.path;
	if (cwd)
		(void)snprintf(j->cwd, sizeof(j->cwd), "%s", cwd);
	else
		(void)snprintf(j->cwd, sizeof(j->cwd), "%s/workspace", job_agent_root(j));
}

static int decide_argv(struct job *j, struct err *e)
{
	static const char *const bash[] = {"/bin/bash", "--noprofile", "--norc", "-c"};
	static const char *const sh[] = {"/bin/sh", "-c"};
	const struct request *req = j->req;
	bool has_bash = access("/bin/bash", X_OK) == 0;
	const char *const *shell = has_bash ? bash : sh;
	size_t fixed = !req->script ? 0 : has_bash ? ARRAY_LEN(bash) : ARRAY_LEN(sh);

	if (!req->script && !req->argc) {
		(void)err_set(e, ERR_CONFIG_INVALID, "no command");
		return err_hint(e, "sandglass run CMD [ARG…], or sandglass run -c 'SCRIPT'");
	}
	if (!req->script && !req->argv[0][0])
		return err_set(e, ERR_CONFIG_INVALID, "the command's name is empty");
	j->argv = calloc(fixed + 2 + (size_t)req->argc + 1, sizeof(*j->argv));
	if (!j->argv)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < fixed; i++)
		j->argv[j->argc++] = (char *)(uintptr_t)shell[i];
	if (req->script) {
		j->argv[j->argc++] = (char *)(uintptr_t)req->script;
		if (req->argc) /* $0, then $1 … */
			j->argv[j->argc++] = (char *)(uintptr_t) "sandglass";
	}
	for (int i = 0; i < req->argc; i++)
		j->argv[j->argc++] = req->argv[i];
	return 0;
}

/* Per-user kernel counters: a sandbox gets at most a quarter of what its user has. */
static void decide_counters(struct plan_numbers *n)
{
	char text[32];
	uint64_t value = 0;
	struct err ignored = {0};

	n->inotify_instances = 32;
	n->inotify_watches = 65536;
	size_t len = file_read_text(AT_FDCWD, "/proc/sys/fs/inotify/max_user_instances", text,
				    sizeof(text));
	text[len ? len - 1 : 0] = '\0';
	if (len && num_parse(text, 1, UINT32_MAX, &value, &ignored) == 0)
		n->inotify_instances = (uint32_t)(value < 64 ? 16 : value / 4);
	len = file_read_text(AT_FDCWD, "/proc/sys/fs/inotify/max_user_watches", text, sizeof(text));
	text[len ? len - 1 : 0] = '\0';
	if (len && num_parse(text, 1, UINT32_MAX, &value, &ignored) == 0)
		n->inotify_watches = (uint32_t)(value / 2);
}

static void decide_terminal(struct job *j)
{
	struct winsize size = {.ws_row = 24, .ws_col = 80};
	/* Without a boundary the command has the caller's own terminal. */
	bool tty = j->req->mode != MODE_FULL_ACCESS && !j->req->no_tty && !j->req->json &&
		   (j->req->tty || j->who.terminal);

	if (!tty)
		return;
	j->plan.n.flags |= PLAN_TTY;
	for (int fd = 0; fd <= 2; fd++)
		if (ioctl(fd, TIOCGWINSZ, &size) == 0)
			break;
	j->plan.n.rows = size.ws_row;
	j->plan.n.cols = size.ws_col;
}

/* What a session owns is bounded as a whole, by its keeper, which looks at it. */
static void take_session_limits(struct job *j)
{
	const uint64_t values[] = {j->in->rec.disk_bytes, j->in->rec.inodes};
	const unsigned int ids[] = {LIMIT_DISK, LIMIT_INODES};

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		j->limits.value[ids[i]] = values[i];
		j->limits.grade[ids[i]] = GRADE_WATCHED;
		j->limits.asked[ids[i]] = false;
	}
}

static int decide_limits(struct job *j, struct err *e)
{
	/*
	 * Entering a v1 cgroup stalls for a grace period of the kernel, up to 15 ms:
	 * only for a limit that somebody asked for. v2 takes a child in at its birth.
	 */
	const struct request *req = j->req;
	bool asked = req->memory_bytes != LIMIT_UNSET || req->pids != LIMIT_UNSET ||
		     req->cpus_milli != LIMIT_UNSET;
	if (asked || cgroups_are_v2())
		cgroups_find(&j->cgroups);
	struct host_limits host = {.memory = j->cgroups.memory,
				   .pids = j->cgroups.pids,
				   .cpu = j->cgroups.cpu,
				   .max_memory = LIMIT_NONE,
				   .max_pids = LIMIT_NONE,
				   .max_cpus_milli = LIMIT_NONE};
	if (j->cgroups.kind == CGROUP_KIND_V2) {
		host.max_memory = j->cgroups.max_memory;
		host.max_pids = j->cgroups.max_pids;
		host.max_cpus_milli = j->cgroups.max_cpus_milli;
	}
	if (limits_decide(j->req, &j->who, &host, &j->limits, e) < 0)
		return -1;
	if (j->in)
		take_session_limits(j);
	limits_to_plan(&j->limits, &j->plan.n);
	/* What counts a user's processes as a whole would end this one for the others' sake. */
	if (j->limits.grade[LIMIT_PIDS] == GRADE_NONE)
		j->plan.n.pids = LIMIT_NONE;
	j->plan.n.shm_bytes = j->who.ram_bytes / 2;
	if (j->req->mode == MODE_FULL_ACCESS)
		return 0;
	j->plan.cgroups = j->plan_cgroups;
	j->plan.cgroup_count =
		cgroups_plan(&j->cgroups, j->limits.value[LIMIT_MEMORY] != LIMIT_NONE,
			     j->limits.value[LIMIT_PIDS] != LIMIT_NONE,
			     j->limits.value[LIMIT_CPUS] != LIMIT_NONE, j->call, &j->cgroup_store,
			     j->plan_cgroups);
	if (!j->in || !j->in->cgroup.dir)
		return 0;
	/* Below the session's, which freezes and kills them all. */
	if (j->plan.cgroup_count && j->in->cgroup.role == CGROUP_V2)
		j->plan.cgroup_count = 0;
	j->plan_cgroups[j->plan.cgroup_count++] = j->in->cgroup;
	return 0;
}

/* What is the same for each call of this caller in this source, from the cache if that stands. */
static int decide_usual(struct job *j, const struct view_ids *ids, struct err *e)
{
	static struct looks looks;
	AUTO_BUF key = BUF_INIT(MAX_VIEWCACHE_BYTES); /* five variables, each of at most 128 KiB */
	AUTO_BUF entry = BUF_INIT(MAX_VIEWCACHE_BYTES);
	char name[VIEWCACHE_NAME];
	struct err ignored = {0};
	size_t first = j->view.n;
	AUTO_FD int fd = -1;

	bool keyed = viewcache_key(&j->who, &j->src, ids, &key, &ignored) == 0; /* not too long */
	viewcache_name(&key, name);
	AUTO_FD int dir = keyed ? cache_open(&j->who) : -1;
	size_t n = dir < 0 ? 0 : cache_find(dir, name, MAX_VIEWCACHE_BYTES, &fd);
	void *bytes = n ? view_room(&j->view, n) : NULL;
	if (bytes && read(fd, bytes, n) == (ssize_t)n &&
	    viewcache_decode(bytes, n, &key, &j->view, &j->refused))
		return 0;
	look_begin(&looks);
	int rc = j->who.root ? uidlock_check(e) : 0;
	if (rc == 0)
		rc = refused_init(&j->who, &j->refused, e);
	if (rc == 0)
		rc = view_add_usual(&j->view, &j->who, &j->refused, &j->src, ids, e);
	look_stop();
	if (rc == 0 && dir >= 0 && !looks.full && !looks.young &&
	    viewcache_encode(&looks, &key, &j->view, first, &j->refused, &entry, &ignored) == 0)
		cache_put(dir, name, entry.p, entry.n);
	return rc;
}

/*
 * A policy that the command may write would be the command's own in the next call.
 * One in the source counts as the project's, and is not widened by.
 */
static int check_policy_place(const struct job *j, struct err *e)
{
	static const struct places nowhere;
	struct resolved r;
	struct err ignored = {0};
	char shown[SHOWN];

	if (!j->req->policy || resolve_path(j->req->policy, j->who.cwd, &nowhere, &r, &ignored) < 0)
		return 0; /* read already; gone by now */
	for (size_t i = 0; i < j->view.grant_count; i++) {
		const struct grant *g = &j->view.grants[i];
		if (!g->write || !path_is_below(g->path, r.path))
			continue;
		(void)err_set(
			e, ERR_POLICY_DENIED,
			"--policy %s lies where the command may write: it could give itself more",
			term_escape_cut(shown, sizeof(shown), r.path, strlen(r.path)));
		return err_hint(e, "keep policies outside of what is written");
	}
	return 0;
}

static int decide_grants(struct job *j, struct err *e)
{
	if (source_check(&j->src, &j->refused, e) < 0 || check_owner(j, e) < 0 ||
	    view_grants(&j->view, j->req, &j->who, &j->refused, &j->src, e) < 0)
		return -1;
	if (view_link(&j->view, j->req, &j->who, &j->refused, &j->src, &j->link, e) < 0)
		return -1;
	/* What cannot be held is not written: a git directory elsewhere is read only. */
	for (size_t i = 0; j->in && job_session_is_held(j) && i < j->view.grant_count; i++)
		j->view.grants[i].write &= !j->view.grants[i].linked;
	return check_policy_place(j, e);
}

/* Rules on the host's own paths, and a directory of the host as AGENT_ROOT. */
static int decide_rung(struct job *j, const struct view_ids *ids, struct err *e)
{
	const struct plan_numbers *n = &j->plan.n;

	if ((j->who.root && uidlock_check(e) < 0) || refused_init(&j->who, &j->refused, e) < 0 ||
	    decide_grants(j, e) < 0 || rung_check(&j->view, j->req, &j->src, e) < 0 ||
	    agentroot_make(&j->root, &j->who, j->session, j->call, n->outer_uid, n->outer_gid, e) <
		    0 ||
	    view_add_own(&j->view, ids, e) < 0 ||
	    view_add_usual(&j->view, &j->who, &j->refused, &j->src, ids, e) < 0 ||
	    view_add_places(&j->view, j->req, &j->src, ids, e) < 0 ||
	    rung_add(&j->view, j->root.path, e) < 0)
		return -1;
	if (j->req->mode == MODE_READ_ONLY)
		j->plan.n.flags |= PLAN_READ_ONLY;
	return j->view.home_config ? agentroot_write(&j->root, ".gitconfig", j->view.home_config,
						     n->outer_uid, n->outer_gid, e)
				   : 0;
}

/*
 * What a one-shot call has made for it in /sand is there in a session, as its commands
 * have left it.
 */
static void leave_out_home(struct view *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++)
		if (v->mounts[i].kind != MOUNT_FILE || !path_is_below("/sand", v->mounts[i].dst))
			v->mounts[n++] = v->mounts[i];
	v->n = n;
}

/* In a session /sand is a directory of the host's, and the keeper gives what lies at the source's path. */
static int decide_session_view(struct job *j, const struct view_ids *ids, struct err *e)
{
	const struct view_session how = {.root = j->in->root, .given = job_session_is_held(j)};

	leave_out_home(&j->view);
	if (view_add_session(&j->view, j->req, &j->src, ids, &how, e) < 0)
		return -1;
	job_session_make_targets(j);
	return 0;
}

static int decide_view(struct job *j, struct err *e)
{
	const struct view_ids *ids = &j->ids;

	j->view.rules = job_is_rung(j);
	if (job_is_rung(j))
		return decide_rung(j, ids, e);
	if (j->in) {
		if (view_add_own(&j->view, ids, e) < 0 ||
		    mirror_add_files(&j->view, &j->req->egress, e) < 0 ||
		    decide_usual(j, ids, e) < 0 || decide_grants(j, e) < 0 ||
		    decide_session_view(j, ids, e) < 0)
			return -1;
		if (j->req->mode == MODE_READ_ONLY)
			j->plan.n.flags |= PLAN_READ_ONLY;
		return 0;
	}
	if (view_add_own(&j->view, ids, e) < 0 ||
	    mirror_add_files(&j->view, &j->req->egress, e) < 0 || decide_usual(j, ids, e) < 0 ||
	    decide_grants(j, e) < 0 || view_add_places(&j->view, j->req, &j->src, ids, e) < 0)
		return -1;
	if (j->req->mode == MODE_READ_ONLY)
		j->plan.n.flags |= PLAN_READ_ONLY;
	return 0;
}

/* The proxy has made its own while the view was worked out. */
static int add_authority(struct job *j, struct err *e)
{
	if (job_has_egress(j) && egress_await_authority(&j->egress, e) < 0)
		return -1;
	return j->egress.authority ? authority_add(&j->view, j->egress.authority, e) : 0;
}

int job_guard(struct job *j, struct err *e)
{
	struct guard_order o = {.req = j->req,
				.who = &j->who,
				.src = &j->src,
				.link = &j->link,
				.view = &j->view,
				.idmap = j->who.root && !j->no_idmap,
				.session = j->session};

	struct source none = {.given = false};
	bool held = j->in && job_session_is_held(j);

	if (j->req->mode == MODE_FULL_ACCESS || job_is_rung(j))
		return 0;
	/* What is held for review needs no guard; grants beside it do. */
	if (held)
		o.src = &none;
	if (held)
		o.link = &(struct gitlink){.found = false};
	if (sockets_mask(&j->view, o.src, e) < 0 || guard_begin(&o, &j->guard, e) < 0)
		return -1;
	j->plan.mount_count = j->view.n;
	return 0;
}

const char *job_agent_root(const struct job *j)
{
	return job_is_rung(j) ? j->root.path : "/sand";
}

unsigned int landlock_abi(void)
{
	long abi = syscall(444 /* landlock_create_ruleset */, NULL, 0, 1 /* its version */);

	return abi < 1 ? 0 : (unsigned int)abi;
}

bool job_is_rung(const struct job *j)
{
	return j->req->isolation == ISOLATION_LANDLOCK && j->req->mode != MODE_FULL_ACCESS;
}

/* Asked for by name: never a rung that somebody did not want. */
static int check_rung(const struct job *j, struct err *e)
{
	if (caller_env(&j->who, "SANDGLASS") && prctl(PR_GET_SECCOMP) == 2) {
		(void)err_set(e, ERR_NESTED_SANDBOX,
			      "already inside a sandbox, which makes no second one");
		return err_hint(e, "run the command as it is: the outer boundary holds it");
	}
	if (landlock_abi() >= 1)
		return 0;
	(void)err_set(e, ERR_SANDBOX_UNAVAILABLE, "isolation `landlock`: %s",
		      errno == EOPNOTSUPP ? "Landlock is not switched on in this kernel"
		      : errno == ENOSYS   ? "this kernel has no Landlock"
					  : strerror(errno));
	return err_hint(e, "Linux 5.13 or later with `landlock` in the boot parameter lsm= (see "
			   "/sys/kernel/security/lsm); in a container, allow its system calls");
}

/* Rules that open something need a network of the sandbox's own, with a proxy at its end. */
static int decide_egress(struct job *j, struct err *e)
{
	if (!egress_set_opens(&j->req->egress))
		return 0;
	if (job_is_rung(j)) {
		(void)err_set(e, ERR_SANDBOX_UNAVAILABLE,
			      "isolation `landlock` cannot open the network for some hosts only");
		return err_hint(e, "take the network rules away, or use isolation `namespace`");
	}
	if (j->in) /* the session's keeper sees to it */
		return 0;
	j->plan.n.flags |= PLAN_EGRESS;
	if (egress_plan(&j->req->egress, &j->plan.egress, e) < 0)
		return -1;
	j->prefixes = j->plan.egress.prefixes;
	return 0;
}

int job_policy(struct job *j, struct request *req, struct err *e)
{
	struct err why = {0};

	j->req = req;
	/* Without a boundary there need be no source; if there is one, its file still narrows. */
	if (source_locate(req, &j->who, &j->src, &why) < 0 && !req->full_access) {
		policy_apply(req, NULL);
		*e = why;
		return -1;
	}
	if (policy_load(&j->policy, req, &j->who, &j->src, e) < 0)
		return -1;
	egress_set_release(&req->egress);
	return network_of(req, &req->egress, e);
}

/* Ids of session and call: the session's own, what the caller gave, or new ones. */
static int decide_names(struct job *j, struct err *e)
{
	const char *given = caller_env(&j->who, "SESSION_ID");

	if (uuid4(j->session, e) < 0 || uuid4(j->call, e) < 0)
		return -1;
	if (j->in && j->in->call[0])
		memcpy(j->call, j->in->call, UUID_TEXT);
	if (j->in)
		memcpy(j->session, j->in->rec.id, UUID_TEXT);
	else if (given && uuid_valid(given))
		memcpy(j->session, given, UUID_TEXT);
	return 0;
}

/* The uid that root's sandbox has on the host. */
static int decide_uid(struct job *j, bool bare, struct err *e)
{
	if (j->in) {
		j->session_uid = j->in->rec.uid; /* its keeper holds it */
		return 0;
	}
	if (bare || !j->who.root)
		return 0;
	if (j->uid_fd < 0)
		j->uid_fd = uidlock_take(&j->session_uid, e);
	return j->uid_fd < 0 ? -1 : 0;
}

/* Those of a session were fetched once, for all its calls. */
static int decide_secrets(struct job *j, struct err *e)
{
	int rc = 0;

	if (j->in)
		rc = secrets_of_session(j->in->ctl, j->req, &j->who, j->session, &j->secrets, e);
	else if (egress_set_opens(&j->req->egress))
		rc = secrets_fetch(j->req, &j->who, j->session, &j->secrets, e);
	return rc < 0 || !j->secrets.n ? rc : censor_new(&j->secrets, &j->censor, e);
}

int job_begin(struct job *j, struct err *e)
{
	bool bare = j->req->mode == MODE_FULL_ACCESS;

	if (job_is_rung(j) && check_rung(j, e) < 0)
		return -1;
	if (job_is_rung(j))
		j->plan.n.flags |= PLAN_LANDLOCK;
	if (j->in)
		j->plan.n.flags |= PLAN_SESSION;
	j->root.sessions = j->root.lock = -1;
	if (!bare && decide_egress(j, e) < 0)
		return -1;
	if (decide_names(j, e) < 0)
		return -1;
	if (!bare && decide_secrets(j, e) < 0)
		return -1;
	if (bare) {
		j->plan.n.flags |= PLAN_BARE;
		j->runs_as = "caller";
	}
	if (decide_argv(j, e) < 0 || (j->in && job_session_enter(j, e) < 0) ||
	    decide_limits(j, e) < 0)
		return -1;
	decide_terminal(j);
	if (stdio_plan(j->closed, j->req->json, j->plan.n.flags & PLAN_TTY, bare, &j->io, e) < 0)
		return -1;
	if (j->in && job_session_open_logs(j, e) < 0)
		return -1;
	if (j->in && !bare)
		stdio_keep_output(&j->io);
	/* A descriptor of its own, read-only, needs a mount. */
	if (job_is_rung(j) && j->io.way[0] == STDIO_FILE)
		j->io.way[0] = STDIO_RELAY;
	if (decide_uid(j, bare, e) < 0)
		return -1;
	decide_counters(&j->plan.n);
	return bare ? 0 : decide_ids(j, &j->ids, e);
}

int job_prepare(struct job *j, struct err *e)
{
	bool bare = j->req->mode == MODE_FULL_ACCESS;

	if (!bare && (decide_view(j, e) < 0 || add_authority(j, e) < 0))
		return -1;
	if (j->io.way[0] == STDIO_FILE) {
		j->plan.n.flags |= PLAN_STDIN_FILE;
		j->plan.n.stdin_dev = j->io.file.st_dev;
		j->plan.n.stdin_ino = j->io.file.st_ino;
	}
	decide_cwd(j);
	if (environment_build(&j->env, j->req, &j->who, job_agent_root(j), j->session, j->call, e) <
	    0)
		return -1;
	j->plan.n.parent_pid = (uint32_t)getpid();
	j->plan.cwd = j->cwd;
	j->plan.hostname = "sandglass";
	j->plan.stdin_path = j->plan.n.flags & PLAN_STDIN_FILE ? j->io.file_path : "";
	j->plan.mounts = j->view.mounts;
	j->plan.mount_count = j->view.n;
	j->plan.argv = j->argv;
	j->plan.argc = j->argc;
	j->plan.envp = j->env.v;
	j->plan.envc = j->env.n;
	return 0;
}

bool job_needs_other_ids(const struct job *j)
{
	const struct outcome *o = &j->out;

	return o->have_failure && o->failure.stage == STAGE_IDMAP && o->failure.sys == EINVAL &&
	       !j->no_idmap && !o->told_signal;
}

static void release_attempt(struct job *j)
{
	guard_free(j->guard);
	j->guard = NULL;
	view_release(&j->view);
	agentroot_remove(&j->root);
	environment_release(&j->env);
	egress_release(&j->egress);
	secrets_release(&j->secrets);
	censor_free(j->censor);
	j->censor = NULL;
	free((void *)(uintptr_t)j->prefixes);
	j->prefixes = NULL;
	capture_release(&j->capture[0]);
	capture_release(&j->capture[1]);
	call_log_close(&j->log[0]);
	call_log_close(&j->log[1]);
	free(j->argv);
	if (j->uid_fd >= 0)
		(void)close(j->uid_fd);
	j->uid_fd = -1;
}

void job_reset(struct job *j)
{
	struct job again = {.req = j->req,
			    .who = j->who,
			    .closed = j->closed,
			    .src = j->src,
			    .policy = j->policy,
			    .uid_fd = -1,
			    .no_idmap = true,
			    .began_ms = j->began_ms};

	release_attempt(j);
	*j = again;
}

void job_release(struct job *j)
{
	release_attempt(j);
	policy_release(&j->policy);
}
