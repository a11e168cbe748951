#!/bin/sh
# tools/fuzz.sh in a small source tree whose files change: fuzzers are always built from the current
# sources and their includes. Prints TAP; skipped without clang.
command -v clang >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/core" "$work/learn" "$work/tests/fuzz" "$work/include/sherd" "$work/tools"
cp Makefile "$work"
cp tools/fuzz.sh tools/setup.sh tools/packages-*.txt "$work/tools"
cp include/sherd/version.h "$work/include/sherd"
cd "$work" || exit 2
put() { printf '%s\n' "$2" >"$1"; }
put core/a.h 'int a(void);'
put core/a.c '#include "core/a.h"
int a(void) { return 1; }'
put core/b.c 'int b(void); int b(void) { return 1; }'
put learn/half.h '#define HALF 1'
put learn/part.inc 'int part(void) { return 1; }'
put learn/c.c '#include "learn/half.h"
int part(void);
#include "learn/part.inc"
int half(void); int half(void) { return HALF; }'
put tests/fuzz/steps.h '#define STEPS 1'
put tests/fuzz/fuzz_a.c '#include <stddef.h>
#include "tests/fuzz/steps.h"
int a(void), b(void), half(void), part(void);
int LLVMFuzzerTestOneInput(const unsigned char *x, size_t len);
int LLVMFuzzerTestOneInput(const unsigned char *x, size_t len)
{
    (void)x, (void)len;
    if (!a() || !b() || !half() || !part() || !STEPS) __builtin_trap();
    return 0;
}'
number=0
expect() { # status, text of the output, name
    number=$((number + 1))
    FUZZ_SECS=1 CPPFLAGS=-I. bash tools/fuzz.sh >said 2>&1
    got=$?
    if [ $got -eq "$1" ] && grep -q "$2" said; then
        echo "ok $number - $3"
    else
        echo "not ok $number - $3"
        sed 's/^/# /' said
    fi
}
echo 1..8
expect 0 '1 passed, 0 failed' "a fuzzer is built and run"
put core/a.c 'int a(void); int a(void) { return 0; }'
expect 1 '0 passed, 1 failed' "it is built again after a source has changed"
put core/a.c 'int a(void); int a(void) { return 1; }'
put learn/half.h '#define HALF 0'
expect 1 '0 passed, 1 failed' "it is built again after a header has changed"
put learn/half.h '#define HALF 1'
put learn/part.inc 'int part(void) { return 0; }'
expect 1 '0 passed, 1 failed' "it is built again after another included file has changed"
put learn/part.inc 'int part(void) { return 1; }'
put tests/fuzz/steps.h '#define STEPS 0'
expect 1 '0 passed, 1 failed' "it is built again after a header of the fuzzers has changed"
put tests/fuzz/steps.h '#define STEPS 1'
expect 0 '1 passed, 0 failed' "it passes again with the original sources"
put tests/fuzz/fuzz_b.c '#include <signal.h>
#include <stddef.h>
#include <unistd.h>
int LLVMFuzzerTestOneInput(const unsigned char *x, size_t len);
int LLVMFuzzerTestOneInput(const unsigned char *x, size_t len)
{
    (void)x, (void)len;
    kill(getppid(), SIGKILL);
    _exit(0); /* before it has another parent */
}'
expect 1 'without a result: [12]$' "a fuzzer whose shell is killed, as for memory, has failed"
rm tests/fuzz/fuzz_b.c
rm core/b.c
expect 1 'does not build' "it does not build without a removed source"
