/* SPDX-License-Identifier: Apache-2.0 */
#include "main/call_line.h"

#include <jansson.h>
#include <string.h>

#include "base/num.h"
#include "base/term.h"

#define COMMAND_COLUMNS 60

/* Words of a command, or what there is of them in that many columns. */
static void put_command(const json_t *argv, struct buf *out)
{
	AUTO_BUF line = BUF_INIT((size_t)1 << 26);
	char shown[4 * COMMAND_COLUMNS];

	for (size_t i = 0; i < json_array_size(argv) && line.n <= COMMAND_COLUMNS; i++) {
		const json_t *word = json_array_get(argv, i);
		if (!json_is_string(word))
			continue;
		(void)buf_str(&line, i ? " " : "");
		(void)buf_add(&line, json_string_value(word), json_string_length(word));
	}
	bool cut = line.n > COMMAND_COLUMNS;
	size_t n = cut ? COMMAND_COLUMNS : line.n;
	while (cut && n && ((unsigned char)line.p[n] & 0xc0) == 0x80)
		n--; /* not within a character */
	(void)buf_str(out, line.n ? term_escape_cut(shown, sizeof(shown), line.p, n) : "-");
	(void)buf_str(out, cut ? "…" : "");
}

void call_line(const char *id, const struct buf *result, struct buf *out)
{
	char wall[NUM_TEXT] = "-";
	json_t *root = result->n ? json_loadb(result->p, result->n, 0, NULL) : NULL;
	const json_t *exit = json_object_get(root, "exit");
	const char *sig = json_string_value(json_object_get(exit, "signal"));
	const json_t *ms = json_object_get(json_object_get(root, "usage"), "wall_ms");

	if (!root) {
		(void)buf_printf(out, "%s  ended\n", id);
		return;
	}
	if (json_is_integer(ms) && json_integer_value(ms) >= 0)
		(void)duration_format((uint64_t)json_integer_value(ms), wall);
	(void)buf_printf(out, "%s  ended    %3lld  %-8s %8s  ", id,
			 (long long)json_integer_value(json_object_get(exit, "status")),
			 sig ? sig : "", wall);
	put_command(json_object_get(root, "argv"), out);
	(void)buf_char(out, '\n');
	json_decref(root);
}
