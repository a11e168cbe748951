#!/bin/sh
# Installs missing Debian packages, after printing their names.
#
#   tools/setup.sh build          what building needs (tools/packages-build.txt)
#   tools/setup.sh test           the same, and what the tests need (tools/packages-test.txt)
#   tools/setup.sh lint           the same, and what `make lint` needs (marked for:lint in the test list)
#   tools/setup.sh fuzz           likewise, for `make fuzz`
#   tools/setup.sh python         likewise, for `make check-python` and `make wheel`
#   tools/setup.sh --check build  installs nothing; prints what is missing and fails
#
# dpkg decides what is installed. On another system a package counts as installed if the commands and
# pkg-config modules that it provides are (cmd: and pkg: in the lists).
set -eu
cd "$(dirname "$0")/.."

check=no
if [ "${1:-}" = --check ]; then check=yes; shift; fi
case "${1:-}" in
build) lists=tools/packages-build.txt ;;
test | lint | fuzz | python) lists="tools/packages-build.txt tools/packages-test.txt" ;;
*) echo "usage: tools/setup.sh [--check] build|test|lint|fuzz|python" >&2; exit 2 ;;
esac
wanted='s/[#?].*//'
[ "$1" = test ] || wanted="s/^? *\(.*for:$1\)/\1/; s/[#?].*//"

packages() {
    # shellcheck disable=SC2086
    sed "$wanted" $lists | awk 'NF { print $1 }'
}

debian() {
    command -v dpkg-query >/dev/null && command -v apt-get >/dev/null
}

missing_by_dpkg() {
    # dpkg-query fails when it knows none of a name; what is installed is on its output all the same.
    { packages | xargs dpkg-query -W -f '${Package} ${db:Status-Status}\n' 2>/dev/null || :
      echo :
      packages; } |
        awk '$1 == ":" { listed = 1; next }
             !listed { if ($2 == "installed") have[$1] = 1; next }
             !($1 in have) { print $1 }'
}

missing_by_look() {
    # shellcheck disable=SC2086
    sed "$wanted" $lists | while read -r name marks; do
        [ -n "$name" ] || continue
        for mark in $marks; do
            case $mark in
            cmd:*) command -v "${mark#cmd:}" >/dev/null || { echo "$name"; break; } ;;
            pkg:*) pkg-config --exists "${mark#pkg:}" 2>/dev/null || { echo "$name"; break; } ;;
            esac
        done
    done
}

if debian; then missing=$(missing_by_dpkg); else missing=$(missing_by_look); fi
missing=$(echo $missing)
[ -n "$missing" ] || exit 0

if [ "$check" = yes ]; then
    echo "missing: $missing" >&2
    if debian; then
        echo "\`make demo\` and \`make check\` install them; or: apt-get install -y $missing" >&2
    else
        echo "install what your system calls these Debian packages, then run make again" >&2
    fi
    exit 1
fi
if ! debian; then
    echo "This needs what Debian 12 calls: $missing" >&2
    echo "Packages are installed automatically on Debian only; install these, then run make again." >&2
    exit 1
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "Missing packages: $missing" >&2
        echo "As root, run: apt-get install -y $missing" >&2
        exit 1
    fi
    as_root=sudo
fi
echo "Installing through apt: $missing"
# -o: wait for another apt rather than fail; the lists are fetched only where they do not suffice.
apt="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120"
# shellcheck disable=SC2086
if ! $apt install --no-install-recommends $missing </dev/null; then
    echo "The package lists do not have all of them: fetching new ones"
    $apt update </dev/null
    $apt install --no-install-recommends $missing </dev/null
fi
