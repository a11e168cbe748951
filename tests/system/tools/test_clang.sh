#!/bin/sh
# Every source is C to clang too: gcc takes what the standard does not promise, and fuzzing needs
# clang. Speaks TAP; skipped where there is no clang.
command -v clang >/dev/null || exit 77
flags="-std=c11 -D_GNU_SOURCE -I. -Iinclude -I/usr/include/nanopb $(pkg-config --cflags libuv libsodium openblas openssl libzip zlib jansson)"
echo 1..2
rooms=$(sed -n 's/^\([a-z]*\):.*/\1/p' tools/layers.txt)
# shellcheck disable=SC2086
clang_takes() { xargs -n 16 -P "$(nproc)" clang $flags -fsyntax-only -w 2>&1 >/dev/null; }
look() { # number, name; names of files come in
    said=$(clang_takes)
    [ -z "$said" ] && echo "ok $1 - $2" && return
    echo "not ok $1 - $2"
    echo "$said" | sed 's/^/# /'
}
for room in $rooms; do ls "$room"/*.c 2>/dev/null; done | look 1 "clang compiles every source"
ls tests/fuzz/*.c | look 2 "and every fuzzer"
