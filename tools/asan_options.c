/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defaults of the sanitizers for the instrumented products. They are compiled
 * in because the boundary is built with an empty environment. The leak check
 * is off: it stops every process that made a pid namespace. Unit tests, which
 * do not link this file, keep it on.
 */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0:exitcode=99:allocator_may_return_null=1:handle_segv=1";
}

const char *__ubsan_default_options(void)
{
	return "print_stacktrace=1:exitcode=99";
}
