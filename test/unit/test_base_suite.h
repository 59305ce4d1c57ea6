/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the unit tests of src/base share: the runner and checks of errors.
 */
#pragma once

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"

/* The call failed with that code and its message holds that text. */
#define CK_FAILS(call, e, want, text)                                                             \
	do {                                                                                      \
		(e) = (struct err){0};                                                            \
		ck_assert_int_eq((call), -1);                                                     \
		ck_assert_str_eq(err_code_name((e).code), err_code_name(want));                   \
		ck_assert_msg(strstr((e).msg, (text)) != NULL, "\"%s\" is not in \"%s\"", (text), \
			      (e).msg);                                                           \
	} while (0)

/* The call succeeded and left the error alone. */
#define CK_WORKS(call, e)                                             \
	do {                                                          \
		(e) = (struct err){0};                                \
		int works_ = (call);                                  \
		ck_assert_msg(works_ == 0, "%s: %s", #call, (e).msg); \
		ck_assert_int_eq((e).code, ERR_NONE);                 \
	} while (0)

/* Seed of random tests: printed, and given back by SEED=N. */
static inline unsigned int suite_seed(void)
{
	const char *given = getenv("SEED");
	unsigned int seed =
		given ? (unsigned int)strtoul(given, NULL, 10) : (unsigned int)time(NULL);

	fprintf(stderr, "# SEED=%u\n", seed);
	srandom(seed);
	return seed;
}

/* A failed assertion is expected: keep its message out of the log. */
static inline void suite_expect_abort(void)
{
	ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
}

static inline int suite_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
