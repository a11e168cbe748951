#!/bin/bash
# Breaks the code in known ways and asks whether a test notices.
#
#   tools/mutants.sh            all of tests/mutants/*.patch
#   tools/mutants.sh buf wire   those whose name contains one of the words
#
# A mutant is a patch (-p1) whose head says which tests must turn red:
#   Test: unit/core/test_buf
#   Point: what is broken, in a few words
#   Area: what of the house it belongs to: 1 set-up, 2 demo, 3 products, 4 element-wise, 5 metadata,
#         6 nodes, 7 faults, 8 large, 9 bad input, 10 library, 11 developer's side; speed
# Each is applied to a scratch copy of the tree, built as far as its tests need, and its tests are
# run. It survives if they all pass; one that does not apply or does not build is an error. The
# untouched copy is tested first: a test that is red already proves nothing.
set -u
cd "$(dirname "$0")/.." || exit 2
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
# Times are kept and what has gone is removed, so that the scratch build stays incremental.
tar cf - --exclude=./build --exclude=./.git . | tar xf - -C "$copy"
(cd "$copy" && find . -path ./build -prune -o -type f -print) | while read -r f; do
    [ -e "$top/$f" ] || rm -f "$copy/$f"
done
cd "$copy" || exit 2
# What was built of a mutant must not look newer than its healed source, whose old time is back.
[ -f "$logs/touched" ] && xargs -r touch -c <"$logs/touched" && rm -f "$logs/touched"

header() { sed -n "s/^$2: *//p" "$top/$1" | tr '\n' ' '; }
run() { make T="$1" B=build/plain check >"$2" 2>&1 </dev/null; }
built() { grep -qE '^[0-9]+ passed, [0-9]+ failed' "$1"; }

killed=0 survived=0 broken=0
say() { printf '  %-9s %-40s %s\n' "$1" "$2" "$3"; }
declare -A clean
for p in "${patches[@]}"; do
    name=${p##*/}; name=${name%.patch}
    tests=$(header "$p" Test); tests=${tests% }
    log=$logs/$name.log
    if [ -z "$tests" ]; then
        say BROKEN "$name" "has no Test: line"; broken=$((broken + 1)); continue
    fi
    if [ -z "${clean[$tests]:-}" ]; then
        run "$tests" "$log"; clean[$tests]=$?
    fi
    if [ "${clean[$tests]}" -ne 0 ]; then
        say BROKEN "$name" "$tests is red without it"; broken=$((broken + 1)); continue
    fi
    if ! patch -p1 -s -N --dry-run <"$top/$p" >"$log" 2>&1; then
        say BROKEN "$name" "does not apply"; broken=$((broken + 1)); continue
    fi
    files=$(patch -p1 -N --no-backup-if-mismatch <"$top/$p" | sed -n "s/^patching file '\{0,1\}\([^']*\)'\{0,1\}.*/\1/p")
    # shellcheck disable=SC2086
    touch $files && printf '%s\n' $files >>"$logs/touched"
    run "$tests" "$log"; status=$?
    if ! built "$log"; then
        say BROKEN "$name" "does not build: $log"; broken=$((broken + 1))
    elif [ $status -ne 0 ]; then
        say killed "$name" "$tests"; killed=$((killed + 1))
    else
        say SURVIVED "$name" "$tests: $(header "$p" Point)"; survived=$((survived + 1))
    fi
    for f in $files; do
        if [ -e "$top/$f" ]; then cp "$top/$f" "$f"; else rm -f "$f"; fi
    done
done
echo "mutants: $killed killed, $survived survived, $broken broken"
[ $((survived + broken)) -eq 0 ]
