#!/bin/sh
# An operand that is rewritten in place while it is hidden: a node has the file rewritten and refuses a
# task once (or loses its blocks), so that it must be sent the same rows again. No two of its blocks may
# then differ by the difference of the new and the old contents of the file. Writes TAP.
MINE=$(realpath "${BUILD:-build/plain}/tests/system/node/prog_misbehave")
. "$(dirname "$0")/../../support/tap.sh"
export XDG_STATE_HOME="$T/state"
S=$MINE
export SHERD_TEST_RETURN_MS=60000 # wait for a node that rewinds, even on a busy machine

cat >held.py <<'PY'
import os, struct, sys
import numpy as np

PUT = 3

def blocks(path):
    """Bodies of the blocks that a node was sent, by job and number; whole ones."""
    data, at, out = open(path, 'rb').read(), 0, {}
    while at < len(data):
        magic, kind, _, job, number, part, size = struct.unpack_from('<IHHQIIQ', data, at)
        assert magic == 0x44524853, path
        if kind == PUT and part == 0: out.setdefault((job, number), []).append(b'')
        if kind == PUT and part > 0: out[job, number][-1] += data[at + 32:at + 32 + size]
        at += 32 + size
    return [b for all in out.values() for b in all]

def commonest(folder):
    """How often the commonest difference of any two blocks of one node comes, and of how many. All
    entries of the operand changed by the same: under one mask all differences are alike."""
    worst, pairs = 0, 0
    for f in sorted(os.listdir(folder)):
        if not f.endswith('.sent'): continue
        held = [b for b in blocks(folder + '/' + f) if len(b) >= 6000 and len(b) % 3 == 0]
        values = [np.pad(np.frombuffer(b, np.uint8).reshape(-1, 3), ((0, 0), (0, 1))).view('<u4')
                  .ravel().astype(np.int64) for b in held]
        for i in range(len(values)):
            for j in range(i):
                if len(values[i]) != len(values[j]): continue
                pairs += 1
                d = (values[i] - values[j])[:len(values[i]) // 4]
                same = d != 0
                if not same.any(): continue # the same block again
                worst = max(worst, np.unique(d[same], return_counts=True)[1].max())
    return worst, pairs

worst, pairs = commonest(sys.argv[1])
print(worst, pairs)
sys.exit(int(worst > 20))
PY

/usr/bin/python3 - <<'PY'
import numpy as np
r = np.random.default_rng(5)
for name, shape in ('A', (600, 500)), ('B', (500, 150)), ('long', (3000, 40)), ('wide', (40, 3000)):
    x = r.integers(-500, 500, shape).astype('i4')
    np.save(name + '.old', x); np.save(name + '.new', x + 5) # within the range that was found
PY

# rewritten NAME MODE ARGS...: restores both files, has $node rewrite NAME.npy, and inspects the record.
# Rows that are kept in hidden form may be sent again; the change is then found at the end.
rewritten() {
    name=$1 mode=$2
    shift 2
    for x in A B long wide; do cp "$x.old.npy" "$x.npy"; cp "$x.new.npy" "$x.npy.new"; done
    rm -rf rec
    export SHERD_TEST_REWRITE="$T/$name.npy"
    SHERD_TEST_MISBEHAVE="$mode@$node" run multiply "$@" -o C.npy --record rec
    cmp -s "$name.npy" "$name.new.npy" || { echo "# it was not rewritten"; return 1; }
    /usr/bin/python3 held.py rec >>err || return 1
    [ $code = 4 ] && [ ! -e C.npy ] && grep -q "$name.npy:* changed while it was" err &&
        grep -q 'try: run again once its writer has finished' err
}
# The same, repeated until rows had to be hidden again, which depends on the speed of the other nodes.
hidden_again() {
    for _ in 1 2 3 4 5; do
        rewritten "$@" || return 1
        grep -q 'changed while it was in use' err && return
    done
}

# Under share the first node has a seed of A, and the second one of B (docs/SCHEMES.md): what they are sent
# again does not contain the operand.
node=node-1
run prepare B.old.npy -o masks --rows 600 --bits 17
[ $code = 0 ] && hidden_again A rewrite A.npy B.npy -n 2 --scheme blind --masks masks
report $? "blind: a node that refused once does not receive A's new rows under the masks of the old ones"
node=node-3
hidden_again A rewrite A.npy B.npy -n 3 --scheme share
report $? "share: a node that refused once does not receive shares of A's new rows under the masks of the old ones"
hidden_again A rewrite A.npy B.npy -n 3 --scheme share1
report $? "share1: a node that refused once does not receive shares of A's new rows under the masks of the old ones"
hidden_again long rewind long.npy wide.npy -n 3 --scheme share
report $? "share: neither does a node that returns without its blocks"
hidden_again wide rewind long.npy wide.npy -n 3 --scheme share
report $? "share: B's new rows are not sent under the masks of the old ones"
echo "1..$n"
