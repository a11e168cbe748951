#!/bin/bash
# Breaks the code in known ways and checks that a test notices.
#
#   tools/mutants.sh            all of tests/mutants/*.patch
#   tools/mutants.sh buf wire   those whose name contains one of the words
#
# A mutant is a patch (-p1) whose head says which tests must turn red (tools/lint holds it to that):
#   Area: the area that it belongs to: 1 set-up, 2 demo, 3 products, 4 element-wise, 5 metadata, 6 nodes,
#         7 faults, 8 large, 9 bad input or documents, 10 library, 11 developer's side; speed; or,
#         numbered within these, 4.N training (4.2 gradients, 4.3 secure aggregation, 4.4 sums
#         among nodes, 4.5 checkpoints), 5.N what peers may do
#   Point: what is broken, in a few words
#   Test: unit/core/test_buf
# Each is applied to a scratch copy of the tree, built as far as its tests need, and its tests are
# run. It survives if they all pass; a mutant that does not apply or does not build is an error. The
# unchanged copy is tested first, because a test that already fails proves nothing.
set -u
cd "$(dirname "$0")/.." || exit 2
unset MAKEFLAGS MFLAGS MAKELEVEL # those of a calling make would limit it to one job
top=$PWD
copy=$top/build/mutants/tree
logs=$top/build/mutants
patches=()
for p in tests/mutants/*.patch; do
    [ -f "$p" ] || continue
    if [ $# -eq 0 ]; then patches+=("$p"); continue; fi
    for word; do case ${p##*/} in *"$word"*) patches+=("$p"); break ;; esac; done
done
[ ${#patches[@]} -gt 0 ] || { echo "no mutant matches" >&2; exit 1; }

mkdir -p "$copy" "$logs"
# Times are kept and deleted files are removed, so that the scratch build stays incremental.
tar cf - --exclude=./build --exclude=./.git . | tar xf - -C "$copy"
(cd "$copy" && find . -path ./build -prune -o -type f -print) | while read -r f; do
    [ -e "$top/$f" ] || rm -f "$copy/$f"
done
cd "$copy" || exit 2
# Files that were built from a mutant must not be newer than the restored source, which has its old time again.
[ -f "$logs/touched" ] && xargs -r touch -c <"$logs/touched" && rm -f "$logs/touched"

header() { sed -n "s/^$2: *//p" "$top/$1" | tr '\n' ' '; }
run() { make T="$1" B=build/plain run-tests >"$2" 2>&1 </dev/null; }
built() { grep -qE '^[0-9]+ passed, [0-9]+ failed' "$1"; }

# A mutant that hangs counts as found when it has taken far longer than the tests without it.
patience_for() { awk '/^  ok .* s\)$/ { sub(/.*\(/, ""); s += $1 } END { print int(5 * s) + 10 }' "$1"; }

# A source is compiled for its mutant, but not again when it is restored: its earlier object is put
# back, and files that were linked from the mutant's object get an old time.
object() { case $1 in tests/*) ;; *.c) echo "build/plain/${1%.c}.o" ;; esac; }
keep() {
    rm -rf "$logs/kept"
    local f o
    for f; do
        o=$(object "$f")
        if [ -z "$o" ] || [ ! -e "$o" ]; then continue; fi
        mkdir -p "$logs/kept/${o%/*}" && cp -p "$o" "$logs/kept/$o"
    done
}
heal() {
    local f o
    for f; do
        o=$(object "$f")
        if [ -n "$o" ] && [ -e "$logs/kept/$o" ] && [ -e "$top/$f" ]; then
            cp -p "$top/$f" "$f"
            cp -p "$logs/kept/$o" "$o"
            sed -i "\\|^$f\$|d" "$logs/touched"
        elif [ -e "$top/$f" ]; then
            cp "$top/$f" "$f"
        else
            rm -f "$f"
        fi
    done
    touch -c -d @1 build/plain/*.a build/plain/*.so build/plain/sherd
}

killed=0 survived=0 broken=0
say() { printf '  %-9s %-32s %4d s  %s\n' "$1" "$2" $((SECONDS - began)) "$3"; }
declare -A clean limit
for p in "${patches[@]}"; do
    name=${p##*/}; name=${name%.patch}
    tests=$(header "$p" Test); tests=${tests% }
    log=$logs/$name.log
    began=$SECONDS
    if [ -z "$tests" ]; then
        say BROKEN "$name" "has no Test: line"; broken=$((broken + 1)); continue
    fi
    if [ -z "${clean[$tests]:-}" ]; then
        run "$tests" "$log"; clean[$tests]=$?
        limit[$tests]=$(patience_for "$log")
    fi
    if [ "${clean[$tests]}" -ne 0 ]; then
        say BROKEN "$name" "$tests is red without it"; broken=$((broken + 1)); continue
    fi
    if ! patch -p1 -s -N --dry-run <"$top/$p" >"$log" 2>&1; then
        say BROKEN "$name" "does not apply"; broken=$((broken + 1)); continue
    fi
    began=$SECONDS
    files=$(patch -p1 -N --no-backup-if-mismatch <"$top/$p" | sed -n "s/^patching file '\{0,1\}\([^']*\)'\{0,1\}.*/\1/p")
    # shellcheck disable=SC2086
    keep $files
    # shellcheck disable=SC2086
    touch $files && printf '%s\n' $files >>"$logs/touched"
    LIMIT_S=${limit[$tests]} run "$tests" "$log"; status=$?
    if ! built "$log"; then
        say BROKEN "$name" "does not build: $log"; broken=$((broken + 1))
    elif [ $status -ne 0 ]; then
        say killed "$name" "$tests"; killed=$((killed + 1))
    else
        say SURVIVED "$name" "$tests: $(header "$p" Point)"; survived=$((survived + 1))
    fi
    # shellcheck disable=SC2086
    heal $files
done
echo "mutants: $killed killed, $survived survived, $broken broken, in $SECONDS s"
[ $((survived + broken)) -eq 0 ]
