/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the guard share: guard.c (begin and end), guard_pins.c
 * (what is pinned), guard_watch.c (while the call runs), guard_judge.c (may
 * this stay), tracked.c (does git know it).
 */
#pragma once

#include <sys/stat.h>

#include "base/buf.h"
#include "base/nameset.h"
#include "run/guard.h"
#include "run/quarantine.h"
#include "store/inventory.h"

#define MAX_GUARD_ROOTS 64
#define MAX_GUARD_PINS 4096u
#define MAX_GUARD_WATCHES 4096u
#define MAX_GUARD_REPOS 32
#define MAX_GUARD_OPENED 64         /* directories whose mode keeps us out */
#define MAX_PACKED_BYTES (4u << 20) /* of refs; a repository with more has no tips from there */

/* The places that are guarded: the source, writable grants, a linked git directory. */
struct guard_root {
	struct guard *g;
	char path[PATH_TEXT];
	int fd;
	struct protect_dir kind;
	struct inventory before, after;
	bool have_after;
	bool looked, news;            /* guard_early() has: it found something */
	struct nameset gitdirs_after; /* as gitdirs below, of the scan at the end */
	char file[48];                /* of the inventory */
	int lock;                     /* -1: none */
	bool alone;                   /* no other run was alive when we began */
	bool killed;                  /* one was killed, and this one comes next */
	bool quiet;                   /* read-only inside: only looked through for masks */
	struct nameset suspects;      /* paths that may be the work of another running call */
};

/* A repository's files as they were when the call began, held open. */
struct guard_repo {
	char work[PATH_TEXT]; /* its work tree, absolute; "" unknown */
	char git[PATH_TEXT];  /* its git directory, absolute */
	int index;            /* held open: git replaces it by rename; -1: none */
	struct stat index_st;
	bool quiet;   /* of a root that is read-only inside */
	char *packed; /* its packed refs, ended by NUL; NULL: none, or too many */
};

/* A directory whose mode kept us out, open by now. */
struct guard_opened {
	int fd;
	mode_t mode;
};

struct watch;

/* What is masked, and what remembers it. */
struct mask {
	char *path; /* absolute */
	char *rule; /* MASK_RULE_…, with what follows */
	bool empty, dir;
	bool asked; /* by a rule of the caller */
	bool hint;  /* --read of its path lifts it */
	uint64_t dev, ino;
	int64_t born_ns; /* birth time, 0: the file system has none */
	uint32_t mount;  /* of the plan */
	uint32_t again;  /* times that it was put back */
	int sys;         /* of the last time, an errno */
	int fd;          /* O_PATH, to find it at the end; -1: none */
};
#define MASK_RULE_ENV "env"
#define MASK_RULE_SECRET "secret"
#define MASK_RULE_PATTERN "pattern "
#define MASK_RULE_HIDE "hide "

/* A file that was masked in a call before. */
struct mask_known {
	uint64_t dev, ino;
	int64_t born_ns;
	char *rule, *path;
	bool found; /* this time */
};

struct mask_rule {
	char *text; /* an absolute path, or a pattern as of store/inventory.h */
	char *told; /* as it was written */
	bool pattern;
	bool hide;     /* else: shown, a pattern */
	bool narrow;   /* of a file that can only narrow: shows nothing that is hidden */
	uint8_t layer; /* enum policy_layer */
	bool is_dir;
};

struct masks {
	struct mask_rule *rules;
	size_t rule_count;
	struct inventory_ask ask;
	const char *patterns[MAX_INVENTORY_PATTERNS];
	uint64_t *inos;
	struct mask *v;
	size_t n, cap;
	struct nameset at;   /* absolute path → index in v */
	struct nameset held; /* absolute paths that are read-only by rule in a writable tree → 1 */
	struct mask_known *known;
	size_t known_count, known_cap;
	struct nameset inside; /* absolute paths that git knows by a command only → 1 */
	bool changed;          /* what is kept of it */
};

struct guard {
	const struct caller *who;
	const struct source *src;
	const struct gitlink *link;
	int64_t begin_ns;   /* of the call, since 1970 */
	uint64_t search_ms; /* when the search in git's objects ends, 0: it has not begun */
	struct view *view;
	uint32_t idmap; /* MOUNT_IDMAP or 0, for grants */
	bool read_only; /* the mode */
	struct guard_root roots[MAX_GUARD_ROOTS];
	size_t root_count;
	size_t pin_count;
	struct nameset pins;    /* absolute path → index of the plan's mount */
	struct nameset known;   /* absolute path of what existed → find of the before inventory */
	struct nameset same;    /* "dev:ino" of what existed → 1 */
	struct nameset gitdirs; /* "dev:ino" of git directories and their objects → 1 */
	struct nameset layouts; /* absolute path of git directories by layout → 1 */
	struct nameset loose;   /* absolute path of a pin that the host has removed → 1 */
	struct nameset put_back; /* absolute path of a pin that is put back → times */
	struct nameset
		relative; /* paths that a configuration names relative to the work tree → 1 */
	struct nameset inside;   /* tips made in sandboxes, in hex → 1 */
	struct nameset dangling; /* links to nothing when the call began → 1 */
	struct quarantine quarantine;
	struct guard_repo repos[MAX_GUARD_REPOS];
	size_t repo_count;
	struct inventory_oid *tips; /* of all repositories, when the call began */
	size_t tip_count;
	struct guard_opened opened[MAX_GUARD_OPENED]; /* modes that are given back at the end */
	size_t opened_count;
	struct masks masks;
	/* watching */
	int inotify;
	const struct launch *launch; /* NULL: no sandbox to put pins back in */
	struct watch *watches;
	size_t watch_count, watch_cap;
	struct nameset locks; /* absolute path of a configuration that git tried to write → times */
	bool rescan;
	/* told */
	struct guard_flag *flags;
	size_t flag_count;
	struct guard_denial *denials;
	size_t denial_count;
	const char *lost[8];
	size_t lost_count;
};

/* guard.c */
void guard_lose(struct guard *g, const char *what);
void guard_tell(struct guard *g, const char *path, enum guard_action action, const char *why,
		const char *moved_to);
void guard_deny(struct guard *g, const char *path, const char *hint, unsigned int count);
/* Whether a grant names it, or names a protected directory above it. */
bool guard_is_lifted(const struct guard *g, const char *path);
/* Below the source: relative; else as it is. */
const char *guard_shown(const struct guard *g, const char *path);
/* As an option of the caller would have to name it: relative only to the working directory. */
const char *guard_as_option(const struct guard *g, const char *path);
/* The root that holds the absolute path; the deepest. NULL: none. */
struct guard_root *guard_root_of(struct guard *g, const char *path);
void guard_identity(char ret[40], uint64_t dev, uint64_t ino);
/* Opens the directory of an absolute path below a root without following links; `*ret_name` is the last name. */
int guard_open_parent(const struct guard_root *r, const char *path, const char **ret_name);
/* Changed since the call began: by the command, most likely. ctime cannot be set. */
bool guard_is_recent(const struct guard_root *r, const char *path, int64_t begin_ns);
/* Modes of directories that kept us out are as they were again. */
void guard_give_back_modes(struct guard *g);
bool guard_is_gone(int sys); /* of an errno: nothing is there */
/* Moves it to quarantine and tells so. */
void guard_take(struct guard *g, struct guard_root *r, const char *path, const char *why);

/* Opens a directory as one more root; NULL: it cannot be opened, or there are too many. */
struct guard_root *guard_add_root(struct guard *g, const char *path, struct protect_dir kind);
const char *guard_root_name(const struct guard_root *r);
/* Reads everything anew, as g->masks.ask has it now. */
NODISCARD int guard_scan_again(struct guard *g, struct err *e);

/* Absolute paths of a find, and of a directory; guard_put_path() is false without memory. */
bool guard_put_path(const struct guard_root *r, const struct inventory *inv,
		    const struct inventory_find *f, struct buf *out);
void guard_put_dir(const struct guard_root *r, const struct inventory *inv, uint32_t dir,
		   struct buf *out);

/* guard_clean.c: roots `first` to before `last`. */
void guard_clean(struct guard *g, size_t first, size_t last);
/* Moves what links lead to that led nowhere when the call began. */
void guard_settle_dangling(struct guard *g);

/* guard_state.c */
int guard_open_state(const struct guard *g); /* -1: nothing is kept */
/* Whether calls over this place were killed; counts this one. */
bool guard_begin_count(struct guard_root *r, int state);
/* Whether no other call is counted: what was found may be kept for the next. */
bool guard_end_count(struct guard_root *r);
/* Held until it is closed: what a place's files say is read and written in turns. */
int guard_state_lock(const struct guard_root *r, int state);
/* Of a held lock: no call that counts is running, and none was killed. */
bool guard_is_idle(int lock);
/* Directories that an index has led to before, as roots. */
void guard_read_links(struct guard *g, int state);
/* Those that an index leads to since this call. */
void guard_find_links(struct guard *g, int state);

/* guard_pins.c */
NODISCARD int guard_add_pins(struct guard *g, struct guard_root *r, struct err *e);
void guard_open_repos(struct guard *g, struct guard_root *r);

/* A regular file of a git directory, opened without following it; -1. */
int guard_open_file(const char *git, const char *name, struct stat *ret);
/* The index, where it is not the one that was open at the beginning; -1. */
int guard_open_index(const struct guard_repo *repo, struct stat *ret);
/* Its whole text, ended by NUL, or NULL. */
char *guard_read_file(int fd, const struct stat *st, size_t most);

/* guard_judge.c */
struct judged {
	enum protect_class class;
	unsigned char type; /* DT_… */
	char why[200];
};
/*
 * Whether what lies at the absolute path may stay there. `live`: the call still runs, so a
 * git directory counts only if it was one before.
 */
bool guard_may_stay(struct guard *g, struct guard_root *r, const char *path, struct judged *j,
		    bool live);
/*
 * A hooks directory: its samples stay, everything else is moved, or (not `all`)
 * only what is recent. Returns whether something was left.
 */
bool guard_sift_hooks(struct guard *g, struct guard_root *r, const char *path, bool all);

/* guard_watch.c */
void guard_watch_begin(struct guard *g);
void guard_watch_end(struct guard *g);

/* guard_masks.c: what is masked */
NODISCARD int masks_begin(struct guard *g, const struct request *req, struct err *e);
void masks_release(struct guard *g);
/* After the scans, with repositories open: decides, and adds to the view. */
NODISCARD int masks_add(struct guard *g, struct err *e);
bool masks_have_rules(const struct guard *g);
/* The bits of hits that a rule only lets be read. */
uint64_t masks_read_bits(const struct guard *g, const struct inventory *inv);

/* masked.c: what is remembered of them */
void masked_load(struct guard *g, int state);
void masked_save(struct guard *g, int state);
void masked_end(struct guard *g, int state);
/* Adds, or brings up to date. */
void masked_remember(struct guard *g, const struct mask *m);
struct mask_known *masked_find(struct guard *g, uint64_t dev, uint64_t ino, int64_t born_ns);
/* Of what lies at the path, links not followed. */
bool masked_identity(int dir, const char *path, struct stat *ret, int64_t *ret_born_ns);
/* Of candidates (absolute path → any) those that git tracks get value 1. */
void masked_tracked(struct guard *g, struct nameset *candidates, const struct nameset *known);
/* Names that git tracks since this call only, by a command: they do not count in the next. */
void masked_note_index(struct guard *g);

/* tracked.c */
struct tracked_file {
	const char *path; /* absolute */
	const char *work; /* work tree of its repository, absolute */
	bool known;       /* out */
};
/* Which of these equal a blob, at their path, of a commit that a tip of before reaches. */
void tracked_find(struct guard *g, struct tracked_file *files, size_t n);
/* Pinned files that git's index has replaced during the call, though they could not be. */
void tracked_deny(struct guard *g);
/* Tips that appeared during the call are remembered as made inside. */
void tracked_remember(struct guard *g, struct guard_root *r);
