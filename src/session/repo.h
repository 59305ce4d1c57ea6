/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a source's repository stands when a session begins: HEAD, branch, remote.
 * Read from its files, beneath it and without links; git is not started.
 */
#pragma once

#include "store/session.h"

/* Fills in head, branch, remote and remote_url; what cannot be read stays empty. */
void repo_look(struct session_record *rec);
