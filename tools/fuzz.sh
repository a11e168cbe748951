#!/bin/bash
# Builds each tests/fuzz/fuzz_NAME.c with clang's fuzzer and sanitizers and runs it.
#
#   FUZZ_SECS=60 tools/fuzz.sh [NAME...]
#
# It starts from the committed corpus, keeps what it finds in build/fuzz/corpus/NAME, and leaves a
# crashing input in build/fuzz/NAME.crash-*: add that to tests/fuzz/corpus/NAME with the fix. As many run at a time as
# there are processors.
# CPPFLAGS and LDLIBS come from the Makefile, which builds the library, too.
set -u
cd "$(dirname "$0")/.." || exit 2
if ! command -v clang >/dev/null; then
    echo "make fuzz needs clang: apt-get install -y clang" >&2
    exit 1
fi
unset MAKEFLAGS MFLAGS MAKELEVEL # those of a calling make would limit it to one job
flags="-g -O1 -w -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined"

fuzz_one() { # name: prints one line, and the end of the log if it fails
    local name=$1 log=build/fuzz/$1.log seeds=
    mkdir -p "build/fuzz/corpus/$name"
    [ -d "tests/fuzz/corpus/$name" ] && seeds=tests/fuzz/corpus/$name
    # shellcheck disable=SC2086
    clang -std=c11 ${CPPFLAGS:-} $flags -fsanitize=fuzzer -o "build/fuzz/$name" "tests/fuzz/fuzz_$name.c" \
        build/fuzz/lib/libsherd.a ${LDLIBS:-} >"$log" 2>&1 || { printf '  FAIL  %s does not build\n%s\n' "$name" "$(cat "$log")"; return; }
    # shellcheck disable=SC2086
    if ASAN_OPTIONS=allocator_may_return_null=1 "build/fuzz/$name" -max_total_time="${FUZZ_SECS:-30}" -rss_limit_mb=2048 -timeout=10 \
        -artifact_prefix="build/fuzz/$name." "build/fuzz/corpus/$name" $seeds >"$log" 2>&1 </dev/null; then
        echo "  ok    $name: $(sed -n 's/^Done \([0-9]*\) runs.*/\1 runs/p' "$log")"
    else
        printf '  FAIL  %s\n%s\n' "$name" "$(tail -40 "$log")"
    fi
}

if [ "${1:-}" = --one ]; then
    fuzz_one "$2"
    exit 0
fi
make B=build/fuzz/lib CC=clang CFLAGS="$flags" SAN= build/fuzz/lib/libsherd.a || { echo "the library does not build with clang" >&2; exit 1; }
names=$(for f in tests/fuzz/fuzz_*.c; do
    name=${f##*/fuzz_}; name=${name%.c}
    case " $* " in "  " | *" $name "*) echo "$name" ;; esac
done)
[ "$names" ] || { echo "there is no fuzzer of this name in tests/fuzz" >&2; exit 1; }
set -o pipefail
echo "$names" | xargs -n 1 -P "$(nproc)" bash tools/fuzz.sh --one | tee build/fuzz/sum
ended=$?
passed=$(grep -c '^  ok' build/fuzz/sum)
failed=$(grep -c '^  FAIL' build/fuzz/sum)
missing=$(($(echo "$names" | wc -l) - passed - failed)) # a killed shell prints nothing, and xargs starts no more
[ "$missing" -eq 0 ] || echo "  FAIL  fuzzers without a result: $missing"
echo "fuzz: $passed passed, $((failed + missing)) failed, 0 skipped"
[ "$ended" -eq 0 ] && [ $((failed + missing)) -eq 0 ]
