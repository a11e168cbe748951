#!/bin/sh
# clang compiles every source, too: gcc accepts code that the standard does not permit, and fuzzing
# needs clang. The library and the command are compiled to object code, since some errors (a target
# that an inlined function lacks, an operand of asm) are not found earlier; without optimisation, which
# finds the same errors in half the time. What has not changed since it passed is not compiled again.
# Prints TAP; skipped without clang.
command -v clang >/dev/null || exit 77
echo 1..3
look() { # number, name, target of make
    said=$(make -k -j"$(nproc)" -s "$3" 2>&1) && echo "ok $1 - $2" && return
    echo "not ok $1 - $2"
    echo "$said" | sed 's/^/# /'
}
look 1 "clang compiles every source" clang-sources
look 2 "clang parses every test, example and MPI program" clang-tests
look 3 "clang parses every fuzzer" clang-fuzzers
