/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Under inspection: the certificates that a sandbox believes, the host's and the one of
 * its own authority, whose key never leaves the proxy.
 */
#pragma once

#include "base/err.h"
#include "policy/view.h"

#define MAX_AUTHORITIES_BYTES (900u << 10) /* of the host's; Debian's have 220 KiB */

/*
 * Puts AUTHORITIES_FILE and AUTHORITY_FILE (policy/environment.h) into a view, in place of
 * the host's directory there. `pem` is the certificate of the session's authority.
 * SANDBOX_UNAVAILABLE: the host's certificates cannot be read.
 */
NODISCARD int authority_add(struct view *v, const char *pem, struct err *e);
