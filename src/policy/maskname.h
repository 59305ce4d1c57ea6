/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which names hold secrets in usual projects: what is masked without being asked
 * for, unless git tracks it. sandglass-masks(7) tells the same to people.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum mask_name {
	MASK_NAME_NONE,
	MASK_NAME_DOTENV, /* reads as empty */
	MASK_NAME_SECRET, /* unreadable */
	MASK_NAME_SNIFF,  /* unreadable if its beginning says so: mask_sniff() */
};

/* `parent` is the name of the directory, for names that count only in a certain one. */
enum mask_name mask_name(const char *parent, const char *name);

#define MASK_SNIFF_BYTES 4096u /* of the beginning of a file: keys begin at once */
bool mask_sniff(const void *bytes, size_t n);
