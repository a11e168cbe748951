#!/bin/bash
# The public headers and the library are one binary interface: Python's cffi reads every header and
# calls the library by them, and the interface is the one that was recorded (libsherd.abi, written
# by `make abi`). Prints TAP.
set -u
cd "$(dirname "$0")/../../.." || exit 2
if [ -n "${SAN:-}" ]; then
    echo "# the interface is that of the plain build"
    exit 77
fi
b=${BUILD:-build/plain} failed=0
now=$(mktemp) || exit 2
trap 'rm -f "$now"' EXIT
/usr/bin/python3 tests/system/abi/headers.py include "$b/libsherd.so" "$b/sherd" || failed=1

name="the binary interface is the recorded one"
if ! readelf -S "$b/libsherd.so" | grep -q '\.debug_info'; then
    echo "ok - $name # SKIP the library was built without debug information"
elif said=$(tools/abi "$b/libsherd.so" "$now" && abidiff tests/system/abi/libsherd.abi "$now" 2>&1); then
    echo "ok - $name"
else
    echo "not ok - $name"
    printf '%s\n' "$said" "A change that old programs survive: record it with 'make abi'. Any other needs a new major version." |
        sed 's/^/# /'
    failed=1
fi
exit $failed
