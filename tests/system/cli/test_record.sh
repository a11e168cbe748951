#!/bin/sh
# A disk that becomes full while a record (--record DIR) is written, simulated by a limit on the size of
# files: the result is kept, and the run reports that the record is incomplete (exit code 4). Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
python3 - <<'PY'
import numpy as np
r = np.random.default_rng(1)
np.save('A.npy', r.integers(-9, 9, (4, 4000)).astype('i4'))
np.save('B.npy', r.integers(-9, 9, (4000, 4)).astype('i4'))
np.save('Y.npy', np.load('A.npy').astype('f8') @ np.load('B.npy'))
np.save('V.npy', r.standard_normal((50, 60)))
np.save('I.npy', r.standard_normal((900, 2)))
PY

# 12 blocks of 512 bytes: an index fits, but no operand
limited() {
    want=$1
    shift
    (ulimit -f "$want"; trap '' XFSZ; "$S" "$@" >out 2>err </dev/null); code=$?
}
torn() {
    [ $code = 4 ] && grep -q '^sherd: [a-z]*: rec: cannot write the record: File too large$' err &&
        grep -q '"complete": false' rec/index.json
    r=$?
    rm -rf rec
    return $r
}
right() { python3 -c 'import numpy as np, sys; sys.exit(not np.array_equal(np.load("C.npy"), np.load("Y.npy")))'; }

limited 12 multiply A.npy B.npy -o C.npy -n 2 --mode exact --record rec --certificate C.json
grep -q '^wrote C.npy' err && torn && right && run verify C.json A.npy B.npy C.npy && [ $code = 0 ]; report $? "a product and its certificate are kept, and the incomplete record gives exit code 4"
limited 12 multiply A.npy B.npy -o C.npy -n 2 --record rec --json
[ $code = 4 ] && python3 - <<'PY'
import json
o = json.load(open('out'))
assert o['ok'] is False and o['error']['code'] == 4 and 'record' in o['error']['message'], o
assert o['tasks'] > 0 and all(n['state'] == 'up' for n in o['nodes']), o
PY
r=$?; rm -rf rec; report $r "with --json there is one object, with the same nodes"
limited 60 apply minus V.npy V.npy -o E.npy -n 1 --record rec
torn && [ -s E.npy ]; report $? "the result of an element-wise operation is kept"
limited 40 train spiral -n 2 --epochs 4 --batch 10 --record rec -o model.npz
grep -q 'warning: recording has stopped: rec: cannot write the record' err && torn && [ -s model.npz ]; report $? "a training's model is kept, and the end of its record is reported at once"
limited 12 train spiral -n 2 --epochs 1 --by gradients --record rec --json
[ $code = 4 ] && python3 -c 'import json; o = json.load(open("out")); assert o["ok"] is False and o["error"]["code"] == 4 and o["steps"] > 0, o'
r=$?; rm -rf rec; report $r "the model of a training by gradients is kept"
run train spiral -o model.npz
limited 60 predict model.npz I.npy -o P.npy -n 2 --record rec
torn && [ -s P.npy ] && grep -q 'wrote P.npy' err; report $? "predictions are kept"

mkdir rec
"$S" multiply A.npy B.npy -o C.npy -n 1 --record rec >out 2>err </dev/null; code=$?
[ $code = 0 ] && grep -q '"complete": true' rec/index.json; report $? "a complete record is marked as complete"
echo "1..$n"
