/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a session's secrets: fetched once, then kept by the session's keeper, as
 * two sealed files in memory that it hands on and never reads. One is the proxy's; the
 * other has what each call's front looks for in what it writes. Nothing is on a disk.
 */
#pragma once

#include <stdbool.h>

#include "run/secrets.h"

/*
 * Whether the policies of `req` name secrets, and its rules open something: what is closed
 * needs none.
 */
bool secrets_wanted(const struct request *req);

/*
 * Has the keeper at the other end of `ctl` know them, and returns them (to be released):
 * what it has is what was fetched first, and stays for as long as it runs. Where it has none
 * they are fetched now, by secrets_fetch(), with whose errors it fails.
 */
NODISCARD int secrets_of_session(int ctl, const struct request *req, const struct caller *who,
				 const char *session, struct secret_values *ret, struct err *e);

/*
 * For a keeper that is still to be started: fetches them into two files, -1 where there are
 * none to fetch. No value stays in the memory of this process.
 */
struct secret_files {
	int rendered; /* of secrets_file() */
	int values;   /* names and values */
};
NODISCARD int secrets_fetch_files(const struct request *req, const struct caller *who,
				  const char *session, struct secret_files *ret, struct err *e);
void secrets_files_close(struct secret_files *f);

/* Reads exactly what the second file has; anything else is INTERNAL. Nothing is rendered. */
NODISCARD int secrets_values_read(int fd, struct secret_values *ret, struct err *e);
