#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The case runner itself: what it must notice, it notices.
# The rows expand their names themselves.
# shellcheck disable=SC2016,SC2059
set -u
here=$(cd "$(dirname "$0")/../cases" && pwd) || exit 1
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
mkdir -p "$top/a/b/cases"
cases=$top/a/b/cases
cp -r "$here/run" "$here/lib" "$cases"
number=0
failed=0

result() {
	number=$((number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $number - $2"
	else
		echo "not ok $number - $2"
		sed 's/^/# /' "$top/said"
		failed=1
	fi
}

# rows LINE…: these are the only rows; runs them without a sandbox
rows() {
	printf '%s\n' "$@" >"$cases/rows.jsonl"
	"$cases/run" --runner bare -j 1 >"$top/said" 2>&1
	status=$?
}

says() {
	grep -qE -- "$1" "$top/said"
}

good='{"id":"good","title":"t","kind":"compat","cmd":"echo hi","expect":{"rc":0,"out":"^hi$"}}'
rows "$good"
[ $status = 0 ] && ! says '^not ok' && says '^[1-9] passed, 0 failed, 0 skipped$'
result $? 'a row that holds passes'

rows '{"id":"rc","title":"t","kind":"compat","cmd":"exit 3","expect":{"rc":0}}'
[ $status = 1 ] && says '^not ok 1 - rc' && says 'status 3, expected 0'
result $? 'a wrong status fails'

rows '{"id":"host","title":"t","kind":"compat","cmd":"touch x","expect":{"host":"test ! -e x"}}'
[ $status = 1 ] && says 'outside: status 1'
result $? 'a trace outside fails'

rows '{"id":"leak","title":"t","kind":"view","cmd":"cat \"$SIB/secret.txt\"","expect":{"notout":"$CANARY"},"control":{"how":"bare","out":"$CANARY"}}'
[ $status = 1 ] && says 'output has /\$CANARY/' && says 'the canary is in the output' && ! says 'cN[0-9a-f]{12}\+'
result $? 'a canary in the output fails, and is not repeated in the report'

rows '{"id":"hidden","title":"t","kind":"view","cmd":"base64 -w0 \"$SIB/secret.txt\"; echo; xxd -p \"$SIB/secret.txt\" | tr -d \"\\n\"","expect":{"notout":"$CANARY"},"control":{"how":"bare","cmd":"cat \"$SIB/secret.txt\"","out":"$CANARY"}}'
[ $status = 1 ] && says 'the canary is in the output'
result $? 'also when it is encoded'

rows '{"id":"copy","title":"t","kind":"view","cmd":"cp \"$SIB/secret.txt\" here","expect":{"rc":0,"notout":"$CANARY"},"control":{"how":"bare","cmd":"cat \"$SIB/secret.txt\"","out":"$CANARY"}}'
[ $status = 1 ] && says 'canary in ws/here'
result $? 'also in a new file'

rows '{"id":"net","title":"t","kind":"network","cmd":"(echo x > /dev/tcp/192.0.2.1/80); exit 1","expect":{"rc":1,"net":"silent"},"control":{"how":"bare","net":"seen"}}'
[ $status = 1 ] && says 'left the sandbox'
result $? 'a packet fails'

rows '{"id":"weak","title":"t","kind":"view","refuse":true,"cmd":"cat /nonexistent","expect":{"rc":"nonzero"},"control":{"how":"bare","rc":0}}'
[ $status = 1 ] && says 'inconclusive: control'
result $? 'a control that reaches nothing makes the row inconclusive'

rows '{"id":"left","title":"t","kind":"zombie","cmd":"setsid sleep $NAP >/dev/null 2>&1 &\nsleep 0.2","expect":{"rc":0}}'
[ $status = 1 ] && says 'left behind: sleep'
result $? 'a process left behind fails'

rows '{"id":"held","title":"t","kind":"zombie","cmd":"sleep $NAP & echo x","expect":{"rc":0}}'
[ $status = 1 ] && says 'output held open'
result $? 'a pipe held open fails'

rows '{"id":"slow","title":"t","kind":"timeout","cmd":"sleep 30","expect":{"rc":0},"deadline":1}'
[ $status = 1 ] && says 'had to be killed at the deadline'
result $? 'a row that hangs is ended'

rows '{"id":"notrun","title":"t","kind":"compat","launch":"exit 0","cmd":"true","expect":{"rc":0}}'
[ $status = 1 ] && says 'the command did not run'
result $? 'a command that did not run fails, whatever the status'

rows '{"id":"x","title":"t","kind":"compat","cmd":"true","expcet":{"rc":0}}'
[ $status = 2 ] && says 'Bail out!.*unknown keys'
result $? 'an unknown key is an error'

rows '{"id":"x","title":"t","kind":"compat","cmd":"true","expect":{"rc":1},"refuse":true}'
[ $status = 2 ] && says 'without a control'
result $? 'a refusal without a control is an error'

rows '{"id":"x","title":"t","kind":"compat","cmd":"true","expect":{"rc":0,"notout":"$CANARY"}}'
[ $status = 2 ] && says 'without a control'
result $? 'a canary makes a refusal'

rows '{"id":"x","title":"t","kind":"compat","cmd":"true","expect":{}}'
[ $status = 2 ] && says 'nothing is expected'
result $? 'a row that expects nothing is an error'

rows "$good" "$good"
[ $status = 2 ] && says 'is also in'
result $? 'an id twice is an error'

rows '{"id":"x","title":"t","kind":"compat","cmd":"echo $CANARY","expect":{"rc":0}}'
[ $status = 2 ] && says 'would leak it itself'
result $? 'a script that holds the canary is an error'

# The list of the outside corpus, with a corpus of one line beside it.
mkdir -p "$top/shared/cases"
for name in field codex srt escape; do : >"$top/shared/cases/$name.jsonl"; done
printf '{"id": "one"}\n' >"$top/shared/cases/field.jsonl"
sum=$(head -c -1 "$top/shared/cases/field.jsonl" | sha256sum | cut -d' ' -f1)
printf '%s\n' '{"id":"good","from":["field/one"],"title":"t","kind":"compat","cmd":"true","expect":{"rc":0}}' >"$cases/rows.jsonl"
listed() {
	printf "$1" >"$cases/IMPORTED"
	"$cases/run" --imported >"$top/said" 2>&1
	status=$?
}
listed "field\tone\t$sum\tpass\n"
[ $status = 0 ] && says 'corpus: compared' && says '^1 listed, 0 problems$'
result $? 'a complete list passes'
listed '# nothing\n'
[ $status = 1 ] && says 'field one: not listed'
result $? 'an unlisted id fails'
listed "field\tone\t${sum%??}00\tpass\n"
[ $status = 1 ] && says 'field one: altered'
result $? 'an altered line fails'
listed "field\tone\t$sum\texcluded: no reason\n"
[ $status = 1 ] && says 'but a row is from it' && says 'more than 3%'
result $? 'too many excluded fail, and so does one that has a row'

echo "1..$number"
exit $failed
