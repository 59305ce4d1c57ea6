/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files that read a layer: what has to be known about the place that is
 * being read, and how mistakes are reported.
 */
#pragma once

#include "config/layer.h"
#include "config/yaml.h"

struct reader {
	struct arena *arena;
	const struct layer_places *places;
	struct layer *layer;
	struct findings *findings;
	struct layer_check *check;   /* the one being read */
	struct layer_secret *secret; /* likewise */
	char key[KEY_TEXT];          /* the dotted name of what is being read */
};

struct key {
	const char *name;
	void (*read)(struct reader *r, const struct node *n, unsigned int arg);
	unsigned int arg;
	const char *later;     /* not in this version: the part that brings it */
	const struct key *sub; /* of a map */
};

void reader_report(struct reader *r, bool warning, struct position at, const struct err *why);
/* An error at n; hint: NULL if there is none. */
void reader_wrong(struct reader *r, const struct node *n, const char *what, const char *hint);
/* A value of one word; NULL if it is something else (which is reported). */
const char *reader_word(struct reader *r, const struct node *n);
/* Calls `read` for the entries of a list, with the index in the key. */
void reader_each(struct reader *r, const struct node *n, unsigned int arg,
		 void (*read)(struct reader *r, const struct node *n, unsigned int arg));
/* Room in a list that is made when its first entry comes; NULL is reported. */
void *reader_more(struct reader *r, const struct node *n, void **list, size_t *count, size_t most,
		  size_t size);
void reader_map(struct reader *r, const struct node *map, const struct key *keys);

extern const struct key network_keys[];
void read_secrets(struct reader *r, const struct node *n, unsigned int arg);
