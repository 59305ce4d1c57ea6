/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the reader of policy files, libfyaml included. Whatever is read,
 * every mistake has a place in the file and a text that is safe to show, and
 * what is accepted is within its limits.
 */
#include "config/layer.h"
#include "config/yaml.h"
#include "fuzz_base.h"

static void check_findings(const struct findings *f, size_t lines)
{
	FUZZ_CHECK(f->n <= MAX_FINDINGS && f->errors <= f->n + f->more);
	for (size_t i = 0; i < f->n; i++) {
		struct err e = {0};
		FUZZ_CHECK(f->v[i].at.line >= 1 && f->v[i].at.line <= lines + 1);
		FUZZ_CHECK(f->v[i].at.column >= 1);
		finding_err(&f->v[i], &e);
		fuzz_check_err(&e);
	}
}

static void check_layer(const struct layer *l)
{
	FUZZ_CHECK(l->mode >= -1 && l->mode <= MODE_FULL_ACCESS);
	FUZZ_CHECK(l->writes >= -1 && l->writes <= WRITES_OVERLAY);
	FUZZ_CHECK(l->path_count <= MAX_LAYER_PATHS && l->env_count <= MAX_LAYER_ENV);
	FUZZ_CHECK(l->host_count <= MAX_LAYER_HOSTS);
	for (size_t i = 0; i < l->host_count; i++)
		FUZZ_CHECK(l->hosts[i].list < EGRESS_LISTS &&
			   strlen(l->hosts[i].text) <= MAX_EGRESS_RULE_TEXT);
	for (size_t i = 0; i < l->path_count; i++) {
		const struct layer_path *p = &l->paths[i];
		FUZZ_CHECK(p->path && strlen(p->path) < PATH_TEXT);
		FUZZ_CHECK(p->pattern ? strncmp(p->path, "**/", 3) == 0 : p->path[0] == '/');
		FUZZ_CHECK(!p->pattern || p->access != ACCESS_WRITE);
	}
	for (size_t i = 0; i < l->env_count; i++)
		FUZZ_CHECK(l->env[i].text[0] && l->env[i].text[0] != '=');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct findings found;
	static const struct layer_places places = {.home = "/home/me", .source = "/src"};
	struct arena arena = {.chunks = NULL};
	struct layer l = {.layer = LAYER_USER, .file = "/p.yaml"};
	size_t lines = 1;

	if (size > MAX_YAML_BYTES)
		return 0;
	char *text = fuzz_string(data, size);
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n' || data[i] == '\r';
	found.n = found.more = found.errors = 0;
	int rc = layer_read(&arena, &places, text, size, &l, &found);
	FUZZ_CHECK((rc < 0) == (found.errors > 0));
	check_findings(&found, lines);
	if (rc == 0)
		check_layer(&l);
	arena_release(&arena);
	free(text);
	return 0;
}
