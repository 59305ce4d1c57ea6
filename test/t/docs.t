#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The manual pages know all that the program has: verbs, options, codes,
# features, keys of the result, limits of input. And the other way round where a
# page lists things: no option and no code that the program does not have.
set -eu
cd "$(dirname "$0")/../.."
sandglass=${SANDGLASS:-build/sandglass}

tmp=$(mktemp -d "${TMPDIR:-/tmp}/sandglass-docs.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
n=0 failed=0

ok() { # ok STATUS NAME [FILE with why]
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		failed=1
		echo "not ok $n - $2"
		sed 's/^/# /' "${3:-/dev/null}"
	fi
}

# Words of a page, marks of scdoc taken away, one a line.
words() {
	tr -s ' \t\n*,()[]";:|`.' '\n' <"$1" | sed 's/^_//; s/_$//' | sort -u
}

# all LIST PAGE NAME: each line of LIST is a word of PAGE, and LIST is not empty.
all() {
	words "$2" >"$tmp/words"
	sort -u "$1" | comm -23 - "$tmp/words" >"$tmp/why"
	is=0
	[ -s "$1" ] && [ ! -s "$tmp/why" ] || is=1
	ok "$is" "$3 ($(wc -l <"$1"))" "$tmp/why"
}

printf 'run\nno-such-verb\n' >"$tmp/control"
words doc/sandglass.1.scd >"$tmp/words"
missing=$(sort -u "$tmp/control" | comm -23 - "$tmp/words")
is=0
[ "$missing" = no-such-verb ] || is=1
ok "$is" 'control: a word that is missing is seen'

sed -n 's/^	{"\([a-z]*\)", .*/\1/p' src/cli/table.c >"$tmp/verbs"
all "$tmp/verbs" doc/sandglass.1.scd 'verbs are in sandglass(1)'

"$sandglass" run --help | sed -n 's/^  .\{0,6\}\(--[a-z-]*\).*/\1/p' >"$tmp/options"
all "$tmp/options" doc/sandglass-run.1.scd 'options are in sandglass-run(1)'

sed -n 's/^	{\.name = "\([a-z-]*\)",.*\.later = .*/--\1/p' src/cli/run_options.c >"$tmp/later"
all "$tmp/later" doc/sandglass-run.1.scd 'options of later parts are in sandglass-run(1)'

words doc/sandglass-run.1.scd | grep -E '^--[a-z][a-z-]*$' |
	grep -vxE -e '--(noprofile|norc)' >"$tmp/told"
sort -u "$tmp/options" "$tmp/later" | comm -13 - "$tmp/told" >"$tmp/why"
is=0
[ -s "$tmp/told" ] && [ ! -s "$tmp/why" ] || is=1
ok "$is" 'sandglass-run(1) has no option that the program has not' "$tmp/why"

sed -n 's/^	\[ERR_[A-Z_]*\] = {"\([A-Z_]*\)", ERR_KIND_\([A-Z]*\), .*/\1 \2/p' src/base/err.c |
	grep -v '^NONE ' | tr 'A-Z' 'a-z' | sort >"$tmp/codes"
sed -n 's/^\*\([A-Z_]*\)\* (\([a-z]*\), .*/\1 \2/p' doc/sandglass-errors.7.scd |
	tr 'A-Z' 'a-z' | sort >"$tmp/told"
diff "$tmp/codes" "$tmp/told" >"$tmp/why" || true
is=0
[ -s "$tmp/codes" ] && [ ! -s "$tmp/why" ] || is=1
ok "$is" "codes and kinds are those of sandglass-errors(7) ($(wc -l <"$tmp/codes"))" "$tmp/why"

"$sandglass" doctor --json >"$tmp/doctor" || true
grep -oE '"[a-z_]+":\{"available"' "$tmp/doctor" | sed 's/"\([a-z_]*\)".*/\1/' >"$tmp/features"
all "$tmp/features" doc/sandglass-doctor.1.scd 'features are in sandglass-doctor(1)'

"$sandglass" run --no-source --json --timeout 1m true >"$tmp/result" || true
grep -oE '"[a-z_0-9]+":' "$tmp/result" | tr -d '":' | sort -u >"$tmp/keys"
all "$tmp/keys" doc/sandglass-result.7.scd 'keys are in sandglass-result(7)'

find src -name '*.[ch]' ! -path 'src/probe/*' -exec cat {} + |
	sed -nE 's/^#define (MAX_[A-Z_]+|REPORT_TEXT_MAX|STRLIST_MAX|ERR_[A-Z]+_MAX)\b.*/\1/p; s/.*enum \{ (MAX_[A-Z_]+) = .*/\1/p' |
	sort -u >"$tmp/limits"
all "$tmp/limits" doc/sandglass-plan.7.scd 'limits of input are in sandglass-plan(7)'

echo "1..$n"
exit "$failed"
