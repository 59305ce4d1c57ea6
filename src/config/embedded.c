/* SPDX-License-Identifier: Apache-2.0 */
#include "config/embedded.h"

#include <string.h>

const struct embedded *embedded_find(const struct embedded *list, const char *name)
{
	for (; list->name; list++)
		if (strcmp(list->name, name) == 0)
			return list;
	return NULL;
}
