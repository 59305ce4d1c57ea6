/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of sandglass-main, one file each.
 */
#pragma once

#include "cli/policy_options.h"
#include "config/set.h"

int main_audit(int argc, char **argv);
void main_follow_policy(void);

/* How long the user's own policy keeps that; LIMIT_NONE: for good, or it cannot be read. */
uint64_t main_kept_ms(enum kept what);
int main_compile(int argc, char **argv);
int main_schema(int argc, char **argv);
int main_session(int argc, char **argv);
int main_gc(int argc, char **argv);
int main_export(int argc, char **argv);
int main_push(int argc, char **argv);
int main_show(const struct policy_options *o, char **env);
int main_check(const struct policy_options *o, const char *file, char **env);
int main_explain(const struct policy_options *o, char **env);
int main_trust(const char *file, bool trust, char **env);

/* The caller, as the front has it. */
struct main_caller {
	struct caller who;
	char cwd[PATH_TEXT];
	struct policy_where where;
	struct source src;
};
NODISCARD int main_caller_init(struct main_caller *c, const struct policy_options *o, char **env,
			       struct err *e);

/* Where this program lies; it is part of what a policy is made from. */
NODISCARD int main_program(char ret[PATH_TEXT], struct err *e);
