#!/bin/bash
# The bundle of `make bundle` in a root folder that has glibc, and no other library and no program.
set -u
cd "$(dirname "$0")/../../.." || exit 2
if [ -n "${SAN:-}" ]; then
    echo "# the bundle is always of the plain build"
    exit 77
fi
unset MAKEFLAGS MAKEOVERRIDES MFLAGS MAKELEVEL
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
report() { # status, name
    if [ "$1" -eq 0 ]; then echo "ok - $2"; else
        echo "not ok - $2"; failed=1; cat "$work"/out "$work"/err 2>/dev/null | sed 's/^/# /'
    fi
}

make B="${BUILD:-build/plain}" bundle >"$work/out" 2>&1
report $? "the bundle is made"
root=$work/root
mkdir -p "$root/moved" "$root/proc" "$root/tmp" "$root/dev"
: >"$root/dev/null"
tar -xzf build/bundle/sherd-*.tar.gz -C "$root/moved" --strip-components 1
report $? "it can be unpacked into any folder"

missing=$(objdump -p "$root"/moved/bin/* "$root"/moved/contract/* "$root"/moved/lib/* | awk '$1 == "NEEDED" { print $2 }' | sort -u |
    grep -vxE 'ld-linux.*|lib(c|m|dl|pthread)\.so\.[0-9]+' |
    while read -r l; do [ -e "$root/moved/lib/$l" ] || echo "$l"; done)
[ -z "$missing" ] || echo "not in lib/: $missing" >"$work/out"
[ -z "$missing" ]
report $? "every library except glibc is in it"

[ "$(du -sk "$root" | cut -f 1)" -lt 60000 ]
report $? "it takes less than 60 MB"

ldd "$root/moved/bin/sherd" | grep -oE '/[^ ]*/(ld-linux[^ ]*|lib(c|m|dl|pthread)\.so\.[0-9]+)' | sort -u |
    while read -r l; do mkdir -p "$root$(dirname "$l")" && cp -L "$l" "$root$l"; done
if ! unshare -rmpf --mount-proc="$root/proc" true 2>"$work/err"; then
    echo "ok - the command runs # SKIP no namespaces: $(head -1 "$work/err")"
    exit $failed
fi
inside() { # program, arguments
    env -i HOME=/tmp TMPDIR=/tmp PATH=/usr/sbin:/usr/bin SHERD_CONTRACT=cuda CMOCKA_MESSAGE_OUTPUT=TAP \
        SHERD_CUDA_LIBRARY=/driver.so unshare -rmpf --mount-proc="$root/proc" \
        chroot "$root" "/moved/$@" >"$work/out" 2>"$work/err"
}
inside bin/sherd version && grep -q "^openblas" "$work/out"
report $? "the command runs where nothing else is installed"
inside bin/sherd demo -n 3 --samples 2000
report $? "it starts nodes from itself"
cp "${BUILD:-build/plain}/tests/system/node/preload_cuda.so" "$root/driver.so"
inside contract/test_calls && grep -q '^ok 8 - .*_device$' "$work/out"
report $? "the suite of backends runs on a driver that the machine has"
exit $failed
