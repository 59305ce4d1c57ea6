/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mirror: where a package manager has its packages from, instead of the registries
 * that it would ask by itself. Its text is `npm http://127.0.0.1:4873/some/path`.
 */
#pragma once

#include "egress/rule.h"

/* In the order of their names. */
enum egress_manager {
	MANAGER_APT,
	MANAGER_CARGO,
	MANAGER_GO,
	MANAGER_MAVEN,
	MANAGER_NPM,
	MANAGER_PIP,
	EGRESS_MANAGERS
};
extern const char *const egress_managers[EGRESS_MANAGERS + 1]; /* NULL at the end */

/*
 * Reads `MANAGER URL`; for egress_rule_read(). CONFIG_INVALID: the URL is not http:// or
 * https://, with one host, a port if wanted, and a path of letters, digits and `-._~/%+@,=`;
 * or it is a registry that the mirror is to stand for.
 */
NODISCARD int egress_mirror_read(const char *text, struct egress_rule *ret, struct err *e);

/* Of a rule of EGRESS_LIST_MIRROR: the name is a public registry of its manager, which is closed then. */
bool egress_mirror_closes(const struct egress_rule *r, const struct host *h);

/* The URL in the text of such a rule. */
const char *egress_mirror_url(const char *text);
