#!/bin/bash
# Runs the ```sh blocks of README.md in order, in one shell in an empty folder with the command of this
# build on the PATH. Set-up lines (apt-get, make, the PATH) are indented in README and do not run. The
# output of `make install` is staged first, for the block that compiles README's ```c block.
set -u
cd "$(dirname "$0")/../../.." || exit 2
top=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/try" "$work/run"
ln -s "${SHERD:-$top/build/sherd}" "$work/bin/sherd"
export PATH=$work/bin:$PATH XDG_RUNTIME_DIR=$work/run TMPDIR=$work HOME=$work
unset MAKEFLAGS MAKEOVERRIDES MFLAGS MAKELEVEL

failed=0
case_of() { # name, command...
    local name=$1
    shift
    if "$@" >"$work/log" 2>&1; then echo "ok - $name"; else
        echo "not ok - $name"; sed 's/^/# /' "$work/log"; failed=1
    fi
}

first_lines_are_the_two_commands() {
    sed -n '1,7p' README.md | grep -q '^    make demo ' && sed -n '1,7p' README.md | grep -q '^    make check '
}
# All indented lines are known set-up lines, so that no other command is left out by its layout.
indented_lines_are_set_up() {
    awk '/^```/ { inside = !inside } !inside && /^    [^ ]/' README.md |
        grep -vE '^    (apt-get install -y make|make demo|make check|export PATH="\$PWD/build:\$PATH")( |$)' && return 1
    return 0
}
# Joins the blocks to one script, with a command after each that records that it succeeded.
extract() {
    # Nodes that a failing block leaves behind end with the shell.
    echo "trap 'kill \$(jobs -p) 2>/dev/null || true' EXIT" >"$work/script"
    awk -v script="$work/script" -v program="$work/try/first.c" '
        /^```sh$/ { inside = 1; n++; from = NR; next }
        /^```c$/ { inside = 2; next }
        /^```/ { if (inside == 1) printf "echo \"passed %d %d\" >&3\n", n, from >>script; inside = 0; next }
        inside == 1 { print >>script }
        inside == 2 { print >program }
        END { print n }' README.md
}
staged() {
    make B="${BUILD:-build/plain}" PREFIX="$work/final" DESTDIR="$work/stage" install &&
        mv "$work/stage$work/final" "$work/final"
}

case_of "README begins with make demo and make check" first_lines_are_the_two_commands
case_of "the indented lines of README are set-up lines" indented_lines_are_set_up
blocks=$(extract)
if [ -z "${SAN:-}" ]; then
    case_of "make install provides what the C block needs" staged
    export PKG_CONFIG_PATH=$work/final/lib/pkgconfig LD_LIBRARY_PATH=$work/final/lib
    # shellcheck disable=SC2094
    case_of "README's C program compiles without a warning" sh -c \
        "cc -std=c11 -Wall -Wextra -Werror -fsyntax-only -I'$work/final/include' '$work/try/first.c'"
else
    echo "ok - the C block # SKIP the installed copy is always the plain build"
    sed -i '/first/d' "$work/script"
fi

: >"$work/passed"
(cd "$work/try" && timeout -k 5 150 bash -eu -o pipefail "$work/script" 3>>"$work/passed" >"$work/out" 2>&1 </dev/null)
status=$?
while read -r _ _ line; do echo "ok - the commands of line $line"; done <"$work/passed"
passed=$(wc -l <"$work/passed")
if [ $status -ne 0 ] || [ "$passed" -ne "$blocks" ]; then
    echo "not ok - README's command block $((passed + 1)) of $blocks: exit $status"
    tail -40 "$work/out" | sed 's/^/# /'
    failed=1
fi
# The output that README promises.
case_of "two products are equal bit for bit" [ "$(grep -c '^equal: yes, bit for bit' "$work/out")" -ge 2 ]
case_of "no product warns of its operands" sh -c "! grep 'warning: [AB].npy' '$work/out'"
case_of "the float product is within its bound" grep -q '^equal: yes, within gamma_k' "$work/out"
[ -n "${SAN:-}" ] || case_of "the C program multiplies" grep -qx '43 50' "$work/out"
exit $failed
