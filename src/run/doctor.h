/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What doctor knows about one feature of this host. doctor_features.c fills a
 * list of them in, doctor.c prints it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/request.h"

#define DOCTOR_WHY 1024
#define DOCTOR_MEND 4608 /* a path of this program is part of one */
#define DOCTOR_FACTS 6

struct fact {
	const char *name;
	const char *text; /* NULL: `number` */
	int64_t number;
	bool is_bool;
};

struct finding {
	const char *name;
	bool needed; /* no sandbox of namespaces without it */
	bool available;
	char why[DOCTOR_WHY];   /* why it is not there, or what is to be known about it */
	char mend[DOCTOR_MEND]; /* the command or file that mends it; empty: there is nothing to */
	struct fact facts[DOCTOR_FACTS];
	unsigned int fact_count;
};

#define MAX_FINDINGS 32

struct findings {
	struct finding v[MAX_FINDINGS];
	unsigned int n;
};

/* Starts a program, with nowhere to write to; its stderr into `text`. True: status 0. */
bool doctor_spawn(const char *path, const char *const *argv, char **env, char *text, size_t len);

/* Each feature is tried on its own, in a child that ends at once. */
void doctor_features(const struct caller *who, struct findings *ret);
