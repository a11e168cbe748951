#!/bin/bash
# Builds each tests/fuzz/fuzz_NAME.c with clang's fuzzer and sanitizers and runs it.
#
#   FUZZ_SECS=60 tools/fuzz.sh [NAME...]
#
# It starts from the committed corpus, keeps what it finds in build/fuzz/corpus/NAME, and leaves a
# crashing input in build/fuzz/NAME.crash-*: add that to tests/fuzz/corpus/NAME with the fix.
# CPPFLAGS and LDLIBS come from the Makefile, which builds the library, too.
set -u
cd "$(dirname "$0")/.." || exit 2
if ! command -v clang >/dev/null; then
    echo "make fuzz needs clang: apt-get install -y clang" >&2
    exit 1
fi
unset MAKEFLAGS MFLAGS MAKELEVEL # those of a calling make would limit it to one job
flags="-g -O1 -w -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined"
make B=build/fuzz/lib CC=clang CFLAGS="$flags" SAN= build/fuzz/lib/libsherd.a || { echo "the library does not build with clang" >&2; exit 1; }

passed=0 failed=0
for f in tests/fuzz/fuzz_*.c; do
    [ -f "$f" ] || continue
    name=${f##*/fuzz_}; name=${name%.c}
    if [ $# -gt 0 ]; then case " $* " in *" $name "*) ;; *) continue ;; esac; fi
    mkdir -p "build/fuzz/corpus/$name"
    seeds=
    [ -d "tests/fuzz/corpus/$name" ] && seeds=tests/fuzz/corpus/$name
    # shellcheck disable=SC2086
    if ! clang -std=c11 ${CPPFLAGS:-} $flags -fsanitize=fuzzer -o "build/fuzz/$name" "$f" build/fuzz/lib/libsherd.a ${LDLIBS:-} >"build/fuzz/$name.log" 2>&1; then
        echo "  FAIL  $name does not build"; cat "build/fuzz/$name.log"; failed=$((failed + 1)); continue
    fi
    # shellcheck disable=SC2086
    if ASAN_OPTIONS=allocator_may_return_null=1 "build/fuzz/$name" -max_total_time="${FUZZ_SECS:-30}" -rss_limit_mb=2048 -timeout=10 \
        -artifact_prefix="build/fuzz/$name." "build/fuzz/corpus/$name" $seeds >"build/fuzz/$name.log" 2>&1 </dev/null; then
        passed=$((passed + 1)); echo "  ok    $name: $(sed -n 's/^Done \([0-9]*\) runs.*/\1 runs/p' "build/fuzz/$name.log")"
    else
        failed=$((failed + 1)); echo "  FAIL  $name"; tail -40 "build/fuzz/$name.log"
    fi
done
echo "fuzz: $passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
