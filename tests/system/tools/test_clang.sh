#!/bin/sh
# clang compiles every source, too: gcc accepts code that the standard does not permit, and fuzzing
# needs clang. The library and the command are compiled to object code, since some errors (a target
# that an inlined function lacks, an operand of asm) are not found earlier; without optimisation, which
# finds the same errors in half the time. Prints TAP; skipped without clang.
command -v clang >/dev/null || exit 77
flags="-std=c11 -D_GNU_SOURCE -I. -Iinclude -I/usr/include/nanopb $(pkg-config --cflags libuv libsodium openblas openssl libzip zlib jansson)"
echo 1..3
mpi=
rooms=$(sed -n 's/^\([a-z]*\):.*/\1/p' tools/layers.txt | grep -vx mpi)
look() { # number, name, files per call, option...; reads names of files from stdin
    number=$1 name=$2 many=$3
    shift 3
    # shellcheck disable=SC2086
    said=$(xargs -n "$many" -P "$(nproc)" clang $flags -w "$@" 2>&1 >/dev/null)
    [ -z "$said" ] && echo "ok $number - $name" && return
    echo "not ok $number - $name"
    echo "$said" | sed 's/^/# /'
}
for room in $rooms; do ls "$room"/*.c 2>/dev/null; done |
    look 1 "clang compiles every source" 1 -c -O0 -o /dev/null
if pkg-config --exists ompi-c; then flags="$flags $(pkg-config --cflags ompi-c)" mpi=mpi; fi
# shellcheck disable=SC2086
find $mpi tests/unit tests/contract tests/sim tests/system tests/support examples -name '*.c' |
    look 2 "clang parses every test, example and MPI program" 16 -fsyntax-only
ls tests/fuzz/*.c | look 3 "clang parses every fuzzer" 16 -fsyntax-only
