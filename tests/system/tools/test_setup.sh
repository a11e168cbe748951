#!/bin/bash
# tools/setup.sh with replacements of dpkg-query, apt-get, sudo and id: what it installs, and when.
set -u
cd "$(dirname "$0")/../../.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
for c in sh dirname sed awk xargs cat env mawk cc gcc; do ln -s "$(command -v $c)" "$work/$c"; done 2>/dev/null
program() { printf '#!/bin/sh\n%s\n' "$2" >"$work/$1"; chmod +x "$work/$1"; }

# Sets up a system: its installed packages, the user id, and whether package lists are stale.
world() {
    rm -f "$work"/{dpkg-query,apt-get,sudo,id,pkg-config} "$work/apt.log"
    printf '%s\n' "$1" | tr ' ' '\n' >"$work/installed"
    program id "echo $2"
    program dpkg-query "shift 2; status=0; for p; do if grep -qx \$p $work/installed; then echo \"\$p installed\"; else echo no package \$p >&2; status=1; fi; done; exit \$status"
    program apt-get "echo \"apt-get \$*\" >>$work/apt.log; case \"\$*\" in *install*) [ ! -e $work/stale ] ;; *) rm -f $work/stale ;; esac"
    ln -sf "$(command -v grep)" "$work/grep"; ln -sf "$(command -v rm)" "$work/rm"
}
setup() { PATH=$work tools/setup.sh "$@" >"$work/out" 2>&1; }
report() { # name, status of the test
    if [ "$2" -eq 0 ]; then echo "ok - $1"; else
        echo "not ok - $1"; failed=1; sed 's/^/# /' "$work/out" "$work/apt.log" 2>/dev/null
    fi
}
names() { sed 's/[#?].*//' "$@" | awk 'NF { print $1 }' | xargs; }
build=$(names tools/packages-build.txt)
all=$(names tools/packages-build.txt tools/packages-test.txt)

world "$all" 0; setup test && [ ! -e "$work/apt.log" ] && [ ! -s "$work/out" ]
report "if nothing is missing it does and prints nothing" $?

world "${all/libuv1-dev /}" 0; setup test && grep -q 'Installing through apt: libuv1-dev$' "$work/out" &&
    [ "$(grep -c . "$work/apt.log")" = 1 ] && grep -q 'install.* libuv1-dev$' "$work/apt.log"
report "only missing packages are installed, after they were named" $?

world "$build" 0; setup build && [ ! -e "$work/apt.log" ]
report "packages that only tests need are not required for building" $?

world "" 0; setup build && for p in $build; do grep -qw -- "$p" "$work/apt.log" || exit 1; done
report "on a bare system the whole list is installed" $?

world "${all/libuv1-dev /}" 0; touch "$work/stale"; setup build && [ "$(sed 's/.*\(install\|update\).*/\1/' "$work/apt.log" | xargs)" = "install update install" ]
report "package lists are updated once, and only if they are stale" $?

world "${all/libuv1-dev /}" 1000; program sudo "echo sudo >>$work/apt.log; exec \"\$@\""; setup build && [ "$(head -1 "$work/apt.log")" = sudo ]
report "a user other than root uses sudo" $?

world "${all/libuv1-dev /}" 1000; ! setup build && grep -q 'As root, run: apt-get install -y libuv1-dev' "$work/out" && [ ! -e "$work/apt.log" ]
report "without sudo it prints the command for root" $?

world "${all/libuv1-dev /}" 0; ! setup --check build && grep -q 'missing: libuv1-dev' "$work/out" && [ ! -e "$work/apt.log" ]
report "with --check it names missing packages and installs nothing" $?

world "" 0; rm "$work/apt-get" "$work/dpkg-query"; program pkg-config '[ "$2" != libuv ]'
! setup build && grep -q 'needs what Debian 12 calls:.*libuv1-dev' "$work/out" && ! grep -q libsodium-dev "$work/out"
report "on another system it names missing commands and modules, and fails" $?
exit $failed
