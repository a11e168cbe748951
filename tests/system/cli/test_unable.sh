#!/bin/sh
# One node of several cannot work: too little memory, a speed that is not a number, another version, or a
# goodbye or nothing instead of WELCOME. Under every scheme and verb it is named, and the others do the
# work. All verbs open a cluster in the same way, so each fault is tried with some of them only; but each
# plans for the memory of nodes, and for a missing node. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
nodes=
trap 'for p in $nodes; do kill "$p" 2>/dev/null; done; wait; rm -rf "$T"' EXIT
LIAR=$(realpath "$R/${B:-build/plain}/tests/system/node/prog_misbehave")
export XDG_STATE_HOME="$T/state"
all="one poor nan inf minus minor leaves breaks"
planned="one poor leaves"

/usr/bin/python3 -c "
import numpy as np
r = np.random.RandomState(1)
np.save('A.npy', r.randint(-9, 9, (90, 40)).astype(float))
np.save('B.npy', r.randint(-9, 9, (40, 30)).astype(float))
" 2>err
with() { # what node-3 does, then a command
    how=$1
    shift
    SHERD_TEST_MISBEHAVE=$how@node-3 "$LIAR" "$@" --progress none --timeout 60 >out 2>err </dev/null
    code=$?
}
named() { grep -q 'continuing with 3 of 4 nodes; node-3 (\|node-3 (.*counts as lost' err; }

for scheme in permute share plain "share --public b" "share --spare 1" blind; do
    ok=0
    case $scheme in permute|share) faults=$all ;; *) faults=$planned ;; esac
    for how in $faults; do
        masks=
        if [ "$scheme" = blind ]; then
            "$S" prepare B.npy -o "m-$how" --rows 90 >/dev/null 2>err || ok=1
            masks="--masks m-$how"
        fi
        with $how multiply A.npy B.npy -o C.npy -n 4 --scheme $scheme $masks --check --json
        [ $code = 0 ] && named || { ok=1; echo "# $scheme, $how: exit $code"; cat err; }
        [ $how != one ] || grep -q '"nodes_lost":1,' out || ok=1
        [ $ok = 0 ] || break
    done
    report $ok "--scheme $scheme works without a node that cannot work"
done

ok=0
for how in $faults; do
    with $how apply sigmoid A.npy -o C.npy -n 4 --json
    [ $code = 0 ] && named || { ok=1; echo "# $how: exit $code"; break; }
done
report $ok "an element-wise operation works without it"

for by in "--by gradients" "--scheme plain" "--scheme permute" "--scheme share --mode exact" \
    "--by gradients --aggregate ring" "--by gradients --aggregate halving-doubling" \
    "--by gradients --aggregate secure --simulate --examples 40"; do
    ok=0
    case $by in "--by gradients") faults=$all ;; *) faults=$planned ;; esac
    for how in $faults; do
        with $how train spiral --epochs 2 -n 4 $by
        [ $code = 0 ] || { ok=1; echo "# $by, $how: exit $code"; break; }
        case "$by $how" in
        *gradients*one) ;; # gradients need little memory
        *gradients*poor) ;;
        *scheme*one) named && [ "$(grep -c 'node-3' err)" = 1 ] || ok=1 ;; # not once for each product
        *) named || ok=1 ;;
        esac
    done
    report $ok "a training $by works without it"
done

# A node that declares 2^60 bytes is not given the work of the others, which declare usual sizes.
/usr/bin/python3 -c "
import numpy as np
r = np.random.RandomState(2)
np.save('L.npy', r.randint(-9, 9, (3000, 400)).astype(float))
np.save('R.npy', r.randint(-9, 9, (400, 30)).astype(float))
" 2>err
for verb in "multiply L.npy R.npy --scheme plain" "multiply L.npy R.npy --scheme permute" \
    "apply sigmoid L.npy"; do
    with vast $verb -o C.npy -n 4 --node-memory 300K --json
    [ $code = 0 ] && grep -q '"nodes_lost":0,' out && ! grep -q 'counts as lost' err
    report $? "$verb: a node that declares a huge memory does not get all the work"
done

with nan multiply A.npy B.npy -o C.npy -n 3 --scheme share
[ $code = 5 ] && grep -q '2 of 3 nodes are up; node-3 (.*a rate that is negative or not a number' err
report $? "if the other nodes are too few, the error names it"
echo "1..$n"
