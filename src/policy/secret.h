/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets as policies name them: without any value.
 */
#pragma once

#include "base/buf.h"
#include "egress/secret.h"
#include "policy/request.h"

#define MAX_SECRET_FROM 4096u
#define MAX_SECRET_TEMPLATE 512u
#define MAX_SECRET_USER 128u                            /* of {basic:USER} */
#define MAX_SECRET_HOSTS_TEXT (MAX_SECRET_HOSTS * 302u) /* with a blank between */

enum secret_text { SECRET_NAME, SECRET_VARIABLE, SECRET_FROM, SECRET_HEADER };

/* One text of a secret. CONFIG_INVALID, or UNSUPPORTED for a place that cannot be read yet. */
NODISCARD int secret_check_text(enum secret_text what, const char *text, struct err *e);
/* All of a secret. */
NODISCARD int secret_check(const struct secret_rule *s, struct err *e);

/*
 * "sandglass-NAME-" and 32 hexadecimal digits: the same for all calls of a session (its
 * id), of another one it is another.
 */
#define SECRET_PLACEHOLDER_TEXT (MAX_SECRET_NAME + 48)
void secret_placeholder(const char *session, const char *name, char ret[SECRET_PLACEHOLDER_TEXT]);

/* The variable that holds its placeholder: `variable`, that of `env:`, or the name in capitals. */
void secret_variable(const struct secret_rule *s, struct buf *ret);

/*
 * Those that hold for this request: all that its policies name, or with --secret these
 * alone. ret has room for MAX_EGRESS_SECRETS. CONFIG_INVALID: no policy names it, or two
 * go into one variable.
 */
NODISCARD int secrets_chosen(const struct request *req, const struct secret_rule **ret,
			     size_t *ret_n, struct err *e);

/*
 * What its header becomes with this value (n bytes), and where its name ends: "Name" and
 * the rest behind ": ".
 */
NODISCARD int secret_render(const struct secret_rule *s, const char *value, size_t n,
			    struct buf *ret, struct err *e);
/* The header's name, its bytes in *ret_n. */
const char *secret_field(const struct secret_rule *s, size_t *ret_n);
