#!/bin/bash
# tools/lint on a small source tree, which it must pass, and on copies with one violation each, which it
# must report (tests/lint/bad/NAME/EXPECT: the check, and a pattern of its output). The tables are the
# real ones.
set -u
cd "$(dirname "$0")/../../.." || exit 2
top=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TOP=$top WORK=$work

compile() { # folder: compiles those of its sources that have no object
    cd "$1" || return
    find . -name '*.c' ! -path './tests/*' -printf '%P\n' | while read -r c; do
        [ -e "build/plain/${c%.c}.o" ] && continue
        mkdir -p "build/plain/${c%/*}"
        cc -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -I. -Iinclude -MD -MP -c -o "build/plain/${c%.c}.o" "$c"
    done
    find build/plain -name '*.o' ! -path '*/cli/*' -print0 | xargs -0 cc -shared -o build/plain/libsherd.so
}
try() { # name -> TAP line in $WORK/name.tap
    local name=$1 tree=$WORK/$1 check='' pattern='' f
    if [ "$name" != clean ]; then # what the violation does not change is not compiled again
        { read -r check; read -r pattern; } <"tests/lint/bad/$name/EXPECT"
        if [ "$check" = format ] && [ ! -e "$WORK/clean/.clang-format" ]; then
            echo "ok - the violation is reported: ${name//-/ } # SKIP clang-format-14 is not installed"
            return
        fi
        cp -r "$WORK/clean" "$tree"
        cp -r "tests/lint/bad/$name/." "$tree"
        if [ -n "$(find "tests/lint/bad/$name" -name '*.h')" ]; then rm -rf "$tree/build"; fi
        find "tests/lint/bad/$name" -name '*.c' -printf '%P\n' | while read -r f; do rm -f "$tree/build/plain/${f%.c}".[od]; done
        (compile "$tree") >"$WORK/$name.cc" 2>&1
    fi
    LINT=$check ROOT=$tree B=build/plain tools/lint >"$WORK/$name.out" 2>&1
    local status=$?
    if [ "$name" = clean ]; then
        [ $status -eq 0 ] && echo "ok - a clean source tree passes" && return
    elif [ $status -eq 1 ] && grep -q "$pattern" "$WORK/$name.out"; then
        echo "ok - the violation is reported: ${name//-/ }"
        return
    fi
    echo "not ok - $name (status $status)"
    sed 's/^/# /' "$WORK/$name.cc" "$WORK/$name.out"
}
export -f compile try

mkdir "$work/clean"
cp -r tests/lint/clean/. "$work/clean"
cp tools/layers.txt tools/packages-*.txt "$work/clean/tools"
# Without clang-format, which `make lint` installs, there is no check of the layout.
command -v clang-format-14 >/dev/null && cp .clang-format "$work/clean"
(compile "$work/clean") >"$work/clean.cc" 2>&1
{ echo clean; ls tests/lint/bad; } | xargs -P "$(nproc)" -I{} bash -c 'try {} >"$WORK/{}.tap"'
cat "$work"/*.tap
! grep -q '^not ok' "$work"/*.tap
