/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The git configuration reader on any bytes: ends, stays in bounds, and what it
 * found is a terminated string without a NUL inside the limit.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/gitconfig.h"
#include "policy/gitid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count(void *self, const char *path)
{
	if (strlen(path) >= MAX_GIT_VALUE)
		abort();
	++*(size_t *)self;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct git_identity id = {.name = ""};
	size_t includes = 0;

	gitid_parse((const char *)data, size, &id, count, &includes);
	if (strnlen(id.name, sizeof(id.name)) == sizeof(id.name) ||
	    strnlen(id.email, sizeof(id.email)) == sizeof(id.email) ||
	    strnlen(id.branch, sizeof(id.branch)) == sizeof(id.branch) || includes > size)
		abort();
	return 0;
}
