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

sed -n 's/^.*\.name = "\([a-z-]*\)",.*\.later = .*/--\1/p' src/cli/run_options.c | sort -u >"$tmp/later"
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

# Verbs that are there, by the list of the program; each with its page, or a part of sandglass(1).
"$sandglass" help | sed -n '/^usage/,/^examples/s/^  \([a-z]*\)  .*/\1/p' >"$tmp/there"
page() {
	case $1 in
	help | version) echo doc/sandglass.1.scd ;;
	shell) echo doc/sandglass-run.1.scd ;;
	*) echo "doc/sandglass-$1.1.scd" ;;
	esac
}
: >"$tmp/why"
while read -r verb; do
	if [ ! -f "$(page "$verb")" ] || ! grep -q "^\*$verb\*" doc/sandglass.1.scd; then
		echo "$verb" >>"$tmp/why"
	fi
done <"$tmp/there"
is=0
[ -s "$tmp/there" ] && [ ! -s "$tmp/why" ] || is=1
ok "$is" "each verb has its page ($(wc -l <"$tmp/there"))" "$tmp/why"

# Help: by the option and by the verb the same, narrow, and without anything that a terminal obeys.
: >"$tmp/why"
for verb in '' $(cat "$tmp/there"); do
	"$sandglass" help $verb >"$tmp/help" 2>&1 || echo "help $verb: status $?" >>"$tmp/why"
	if [ -n "$verb" ]; then
		"$sandglass" "$verb" --help >"$tmp/help2" 2>&1 || echo "$verb --help: status $?" >>"$tmp/why"
		cmp -s "$tmp/help" "$tmp/help2" || echo "$verb: two helps" >>"$tmp/why"
		[ "$verb" = help ] || "$sandglass" "$verb" -h | cmp -s "$tmp/help" - || echo "$verb -h" >>"$tmp/why"
	fi
	LC_ALL=C.UTF-8 awk -v v="$verb" 'length($0) > 100 { print v ": " $0 }' "$tmp/help" >>"$tmp/why"
	LC_ALL=C tr -d '\n\040-\176\200-\377' <"$tmp/help" | od -c | sed '$d' >>"$tmp/why"
done
is=0
[ ! -s "$tmp/why" ] || is=1
ok "$is" 'help of each verb, at most 100 columns' "$tmp/why"

# The largest value of each limit, by what the program says of one above it, is in the page.
: >"$tmp/why"
words doc/sandglass-run.1.scd >"$tmp/words"
while read -r option value; do
	"$sandglass" run "$option" "$value" true >"$tmp/out" 2>&1 </dev/null || true
	most=$(sed -n 's/.*\(CONFIG_INVALID: '"$option"'\).* \([0-9][0-9A-Za-z]*\)$/\2/p' "$tmp/out")
	if [ -z "$most" ] || ! grep -qxF -e "$most" "$tmp/words"; then
		{ echo "$option: ${most:-nothing}"; cat "$tmp/out"; } >>"$tmp/why"
	fi
done <<-EOF
	--timeout 36501d
	--grace 36501d
	--cpu-time 36501d
	--cpus 1000001
	--memory 8388608TiB
	--disk 8388608TiB
	--output 8388608TiB
	--pids 4194305
	--inodes 4294967296
EOF
is=0
[ ! -s "$tmp/why" ] || is=1
ok "$is" 'the largest value of each limit is in sandglass-run(1)' "$tmp/why"

# says STATUS TEXT ARG…: the program ends with that status and its last lines say that.
says() {
	want=$1 text=$2
	shift 2
	status=0
	"$sandglass" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || status=$?
	if [ "$status" -ne "$want" ] || ! grep -qF "$text" "$tmp/err" || [ -s "$tmp/out" ]; then
		{ echo "$*: status $status"; cat "$tmp/out" "$tmp/err"; } >>"$tmp/why"
	fi
}
: >"$tmp/why"
says 2 'did you mean `run`?' rnu
says 2 'did you mean `doctor`?' docter --json
says 2 'unknown verb `make`' make test
says 2 '`sandglass run --mode … CMD`' --mode read-only ls
says 2 'did you mean `run`?' help rn
says 2 '`help` takes two words at most' help run x y
says 2 '`version` takes no argument' version please
says 2 'did you mean --help?' version --hlep
says 2 'did you mean --json?' doctor --jsn
says 2 '`serve` is not in this version' help serve
says 2 '`serve` is not in this version' serve
says 125 'did you mean --timeout?' run --timout 5s true
says 125 'did you mean read-only?' run --mode readonly true
says 125 '`on-request` is not in this version' run --approval on-request true
says 125 '`shell` takes no command' shell -c true
is=0
[ ! -s "$tmp/why" ] || is=1
ok "$is" 'a verb, option or choice that is not there is named, with the nearest one' "$tmp/why"

: >"$tmp/why"
for words in help version 'help run' 'run --help' 'doctor --help' doctor; do
	[ -w /dev/full ] || continue
	status=0
	"$sandglass" $words >/dev/full 2>"$tmp/err" || status=$?
	case $status in
	2 | 125) ;;
	*) echo "$words >/dev/full: status $status" >>"$tmp/why" ;;
	esac
	grep -q '^sandglass: INTERNAL: write: No space left' "$tmp/err" || cat "$tmp/err" >>"$tmp/why"
	# A pipe that nobody reads ends it by SIGPIPE, or with an error where that is ignored.
	perl -e '$SIG{PIPE} = "DEFAULT"; pipe(R, W); close R; open STDOUT, ">&", \*W; exec @ARGV' \
		"$sandglass" $words 2>"$tmp/err" && echo "$words: closed pipe: status 0" >>"$tmp/why"
	perl -e '$SIG{PIPE} = "IGNORE"; pipe(R, W); close R; open STDOUT, ">&", \*W; exec @ARGV' \
		"$sandglass" $words 2>"$tmp/err" && echo "$words: closed pipe: status 0" >>"$tmp/why"
	grep -q '^sandglass: INTERNAL: write: Broken pipe' "$tmp/err" || cat "$tmp/err" >>"$tmp/why"
done
is=0
[ ! -s "$tmp/why" ] || is=1
ok "$is" 'output that cannot be written is an error' "$tmp/why"

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

for folder in src/*/; do
	echo "src/$(basename "$folder")"
done >"$tmp/folders"
all "$tmp/folders" ARCHITECTURE.md 'folders of src are in ARCHITECTURE.md'

echo "1..$n"
exit "$failed"
