#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every requirement has its row in THREATS.md or ACCEPTANCE.md, and each row
# names tests that exist, or says *not yet* and which part brings it.
#
# The last cell of a row names test files in backquotes, with their rows in
# parentheses: `test/cases/field.jsonl` (path-001, path-002).
set -eu
cd "$(dirname "$0")/../.."

threats='T1 T2 T3 T4 T5 R1 R2 R3 R4 R5 R6 R7 R8 R9
	B1 B2 B3 B4 B5 B6 B7 B8 B9 B10 B11 B12 B13'
acceptance='A1 A2 A3 A4 A5 A6 A7 A8 P1 P2 P3 P4 P5 S1 S2 S3 S4 S5 S6 S7 S8 S9
	G1 G2 G3 G4 M1 M2 M3 M4 M5 M6 M7 M8 W1 W2'

tmp=$(mktemp -d "${TMPDIR:-/tmp}/sandglass-rows.XXXXXX")
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

# The named tests of a cell, one a line: file, then a row of it or nothing.
named() {
	printf '%s\n' "$1" | grep -oE '`test/[^`]+`( \([^)]*\))?' | while IFS= read -r item; do
		rest=${item#\`}
		file=${rest%%\`*}
		rows=${rest#*\`}
		if [ -z "$rows" ]; then
			echo "$file"
			continue
		fi
		printf '%s\n' "$rows" | tr -d '()' | tr ',' '\n' | while read -r row; do
			echo "$file $row"
		done
	done
}

# Whether a test file has a row of this name.
has_row() {
	case $1 in
	*.jsonl) grep -qF "\"id\": \"$2\"" "$1" ;;
	*) grep -qF "\"$2\"" "$1" ;;
	esac
}

# complaints FILE ID: what is wrong with the row, a line each; nothing if it is right.
complaints() {
	count=$(grep -cE "^\| $2 \|" "$1" || true)
	if [ "$count" -ne 1 ]; then
		echo "$1 has $count rows $2"
		return
	fi
	cell=$(grep -E "^\| $2 \|" "$1" | sed 's/ |$//; s/.* | //')
	tests=$(named "$cell")
	if [ -z "$tests" ] && ! printf '%s\n' "$cell" | grep -qE '\*not yet\*: [a-z]'; then
		echo "$2 names no test and does not say *not yet*"
	fi
	printf '%s\n' "$tests" | while read -r file row; do
		if [ -z "$file" ]; then
			continue
		elif [ ! -f "$file" ]; then
			echo "$2 names $file, which is not there"
		elif [ -n "$row" ] && ! has_row "$file" "$row"; then
			echo "$2 names $row, which $file does not have"
		fi
	done
}

# Controls: each kind of mistake is seen.
mistake() { # mistake NAME CELL
	printf '| X1 | what | %s |\n' "$2" >"$tmp/mistake.md"
	complaints "$tmp/mistake.md" X1 >"$tmp/why"
	if [ -s "$tmp/why" ]; then
		ok 0 "control: $1"
	else
		ok 1 "control: $1"
	fi
}
first=$(sed -n 's/^{"id": "\([^"]*\)".*/\1/p' test/cases/field.jsonl | head -n 1)
printf '| X1 | what | `test/cases/field.jsonl` (%s); *not yet*: the rest |\n' "$first" \
	>"$tmp/right.md"
complaints "$tmp/right.md" X1 >"$tmp/why"
is=0
[ ! -s "$tmp/why" ] || is=1
ok "$is" 'control: a right row is right' "$tmp/why"
complaints "$tmp/right.md" X2 >"$tmp/why"
is=0
[ -s "$tmp/why" ] || is=1
ok "$is" 'control: a missing row'
mistake 'a cell without a test' 'by hand'
mistake 'a file that is not there' '`test/t/no-such.t`'
mistake 'a row that is not there' "\`test/cases/field.jsonl\` ($first, no-such-row)"
mistake '*not yet* without a part' '*not yet*'

check() { # check FILE IDS
	for id in $2; do
		if [ -f "$1" ]; then
			complaints "$1" "$id" >"$tmp/why"
		else
			echo "$1 is not there" >"$tmp/why"
		fi
		is=0
		[ ! -s "$tmp/why" ] || is=1
		ok "$is" "$id in $1" "$tmp/why"
	done
}
check THREATS.md "$threats"
check ACCEPTANCE.md "$acceptance"

echo "1..$n"
exit "$failed"
