/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command's environment: an allowlist of the caller's variables, what the
 * request names, and what says where the command is. Nothing else.
 */
#pragma once

#include "policy/request.h"
#include "policy/source.h"

#define MAX_ENV 512
/* How deep a call may call again; counts down at each level. */
#define DEPTH_LEFT 3u

struct environment {
	char *v[MAX_ENV + 1]; /* NULL-terminated, owned */
	size_t n;
};

/*
 * Under inspection: the host's certificates and the session's own, and that one alone.
 * The first is where Debian and its like look anyway.
 */
#define AUTHORITIES_FILE "/etc/ssl/certs/ca-certificates.crt"
#define AUTHORITY_FILE "/etc/ssl/certs/sandglass-ca.pem"

/* `root` is AGENT_ROOT as it is seen inside. */
NODISCARD int environment_build(struct environment *env, const struct request *req,
				const struct caller *who, const char *root, const char *session,
				const char *call, struct err *e);
/* A name (n bytes) that --env and policy files may use: else CONFIG_INVALID. */
NODISCARD int environment_check_name(const char *text, size_t n, struct err *e);
void environment_release(struct environment *env);
