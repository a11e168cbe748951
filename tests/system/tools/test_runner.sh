#!/bin/bash
# tools/run-tests on tests that pass, fail, skip, crash, hang, print nothing and leave a process behind:
# each must be counted correctly.
set -u
cd "$(dirname "$0")/../../.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
runner=$PWD/tools/run-tests
mkdir -p "$work/b/tests/unit/x" "$work/tests/system/x"
cd "$work" || exit 2
failed=0
fake() { # name, body of a program
    printf '#!/bin/sh\n%s\n' "$2" >"b/tests/unit/x/$1"
    chmod +x "b/tests/unit/x/$1"
}
script() { printf '#!/bin/sh\n%s\n' "$2" >"tests/system/x/$1.sh"; chmod +x "tests/system/x/$1.sh"; }
expect() { # name, last line, status, pattern, tests...
    local name=$1 last=$2 status=$3 pattern=$4
    shift 4
    LIMIT_S=2 WRAP='' SAN='' "$runner" b "$@" >out 2>&1
    local got=$?
    if [ "$(tail -1 out)" = "$last" ] && [ $got -eq "$status" ] && grep -qE -- "$pattern" out; then
        echo "ok - $name"
    else
        echo "not ok - $name"; failed=1; echo "# status $got"; sed 's/^/# /' out
    fi
}
u=b/tests/unit/x
fake good 'echo 1..2; echo "ok 1 - a"; echo "ok 2 - b"'
fake bad 'echo "ok 1 - a"; echo "not ok 2 - b"; exit 1'
fake lies 'echo "not ok 1 - a"; exit 0'
fake skips 'echo "ok 1 - a"; echo "not ok 2 # SKIP no_device"'
fake crashes 'echo "ok 1 - a"; kill -SEGV $$'
fake hangs 'echo "ok 1 - a"; sleep 60'
fake silent 'exit 0'
fake leaves 'sleep 61.74 & echo "not ok 1 - a"; exit 1'
fake orphan 'echo "ok 1 - a"; sleep 61.73 & exec sleep 62'
script quiet 'exit 0'
script loses 'exit 3'
script absent 'exit 77'
script talks 'echo "ok - a"; echo "ok - b # SKIP no such thing"'
expect "the runner counts cases, not programs" "2 passed, 0 failed, 0 skipped" 0 'ok .*good' $u/good
expect "a failed case fails the run and is shown" "3 passed, 1 failed, 0 skipped" 1 'not ok 2 - b' $u/good $u/bad
expect "a failed case counts even if the exit status is 0" "0 passed, 1 failed, 0 skipped" 1 'FAIL' $u/lies
expect "a skipped case is named at the end" "1 passed, 0 failed, 1 skipped" 0 'skip unit/x/skips: no_device' $u/skips
expect "a crash is a failure" "1 passed, 1 failed, 0 skipped" 1 'exit status 139' $u/crashes
expect "a test that hangs is stopped" "1 passed, 1 failed, 0 skipped" 1 'stopped after 2 s' $u/hangs
expect "a test without cases is a failure" "0 passed, 1 failed, 0 skipped" 1 'ran no case' $u/silent
expect "a missing program is a failure" "0 passed, 1 failed, 0 skipped" 1 'exit status 127' $u/nowhere
expect "a script counts by its exit status" "1 passed, 1 failed, 1 skipped" 1 'skip system/x/absent' tests/system/x/{quiet,loses,absent}.sh
expect "a script may print TAP" "1 passed, 0 failed, 1 skipped" 0 'skip system/x/talks.sh: no such thing' tests/system/x/talks.sh
expect "a run without tests is a failure" "no test matches" 1 'no test'
expect "processes of a stopped test are stopped, too" "1 passed, 1 failed, 0 skipped" 1 'stopped' $u/orphan
expect "a test that fails leaves a process behind" "0 passed, 1 failed, 0 skipped" 1 'not ok 1' $u/leaves
if pgrep -f '^sleep 61\.7[34]$' >/dev/null; then echo "not ok - an orphan process is still running"; failed=1; fi
exit $failed
