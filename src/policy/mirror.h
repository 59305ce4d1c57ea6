/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a package manager inside is told of its mirror (egress/mirror.h): by variables
 * where it reads some, else by a file that nobody inside can write.
 */
#pragma once

#include "base/buf.h"
#include "egress/set.h"

#define MIRROR_MAVEN_FILE "/etc/sandglass-mirror/settings.xml"
#define MIRROR_MAVEN_RC "/etc/mavenrc"
#define MIRROR_APT_FILE "/etc/sandglass-mirror/apt.conf"
#define MIRROR_APT_SOURCES "/etc/sandglass-mirror/sources.list"
#define MIRROR_CARGO_FILE "/.cargo/config.toml" /* above every directory, so of every one's */
#define MIRROR_VALUE 1200 /* bytes of a variable's value, with its NUL: a URL and a few words */

/*
 * The i-th variable (from 0) of an entry of EGRESS_LIST_MIRROR: its name, and its value in
 * ret. NULL: there are no more.
 */
const char *mirror_variable(const struct egress_entry *m, size_t i, char ret[MIRROR_VALUE]);

/*
 * The i-th file of such an entry: its path, and what it holds appended to ret. `release`: the
 * text of os-release, where a distribution says what it is called. NULL: no more.
 */
const char *mirror_file(const struct egress_entry *m, size_t i, const char *release,
			struct buf *ret);
