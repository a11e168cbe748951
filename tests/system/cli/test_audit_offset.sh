#!/bin/sh
# `sherd audit` on records of a build whose masks share one keystream (prog_shared_masks.c). Products
# are right, and tests that compare entries of one place find nothing; the masks that were solved for
# are found to repeat at an offset. The same runs of the command itself have no findings. Writes TAP.
BROKEN=$(realpath "${BUILD:-build/plain}/tests/system/cli/prog_shared_masks")
. "$(dirname "$0")/../../support/tap.sh"
pids=
trap 'for p in $pids; do kill $p 2>/dev/null; done; rm -rf "$T"' EXIT
unset MASKS

# d: the latest report; hits: its findings; places: for the repeated masks among them, the length and
# both starts.
py() { /usr/bin/python3 -c "import json, re
d = json.load(open('out'))
hits = [f for f in d['findings'] if f['flagged'] and not f['control']]
places = [tuple(int(x) for x in re.search(r'(\d+) numbers, from (\d+) and (\d+) on', f['sentence']).groups()) for f in hits if f['test'] == 'offset']
nothing = lambda: not hits and [f['value'] for f in d['findings'] if f['test'] == 'offset'][:1] == [0]
unsolved = lambda: [s.split(')')[0].split('(')[1] for s in d['unseen'] if s.startswith('masks of') and 'encodings' in s]
$1" >>err 2>&1; }
audit() { run audit "$@" --json -q; [ $code = 0 ]; }

# Computes a product by the broken build and by the command, into records "bad" and "good".
both() { "$BROKEN" multiply "$@" -o bad.npy --record bad -q 2>err && "$S" multiply "$@" -o good.npy --record good -q 2>err; }
# Keeps only the bytes of these nodes in both records.
only() {
    for f in bad/*.sent bad/*.received good/*.sent good/*.received; do
        node=${f%.*}
        case " $* " in *" ${node##*-} "*) ;; *) truncate -s 300 "$f" ;; esac
    done
}
away() { rm -rf bad good; }

/usr/bin/python3 -c "
import numpy as np
g = np.random.default_rng(2)
A = g.integers(0, 256, (1500, 60)) * (g.random((1500, 60)) < .4)
np.save('A.npy', A.astype('u1')); np.save('F.npy', g.standard_normal((1500, 60)))
np.save('B.npy', g.standard_normal((60, 60)))
np.save('V.npy', g.standard_normal((60, 300))); np.save('W.npy', g.standard_normal((300, 400)))"

both A.npy B.npy -n 5 --scheme share --code lagrange --colluding 1 && cmp bad.npy good.npy
report $? "a build whose masks are all from one keystream computes the right product"
audit bad && py "
assert {f['test'] for f in hits} == {'offset'} and places == [(3600, 300, 0)] * len(hits) and len(hits) >= 2, d['findings']
assert all(f['subject'] == 'A / B' and 'whole rows' in f['sentence'] and f['ln_p'] < -1000 for f in hits)" &&
    audit good && py "assert nothing(), hits"
report $? "equal masks of A and B, five rows apart, are found in all shares for each prime without an operand"
only 2 5
audit bad --data A.npy && py "assert nothing() and unsolved() == ['B'], (hits, d['unseen'])" &&
    audit bad --right B.npy && py "assert nothing() and unsolved() == ['A'], (hits, d['unseen'])" &&
    audit bad --data A.npy --right B.npy &&
    py "assert places == [(3600, 300, 0)] * len(hits) and len(hits) >= 2 and not unsolved(), (hits, d['unseen'])" &&
    audit good --data A.npy --right B.npy && py "assert nothing() and not unsolved(), hits"
report $? "with both operands they are found in two of five shares, fewer than blocks and masks"
run audit bad --data A.npy --right V.npy -q; [ $code = 3 ] && grep -q 'B has 60 rows and 60 columns, and --right is 60 x 300' err
report $? "--right of another shape gives exit code 3"
away

both F.npy B.npy -n 7 --scheme share --code lagrange --colluding 2 --bits 20 && only 3 6 && audit bad --data F.npy --right B.npy &&
    py "assert places == [(3600, 300, 0)] * len(hits) and len(hits) >= 4, hits
assert {f['sentence'].split(' of ')[0] for f in hits} == {'mask 1', 'mask 2'}" && audit good --data F.npy --right B.npy && py "
assert nothing() and not any('17 bits' in w for w in d['warnings'])"
report $? "two masks are found in two shares, with the operands' scales from the record"
away

# By the inner-product code masks of A are 12 numbers wide and those of B 60.
both A.npy B.npy -n 7 --scheme share --code inner --colluding 1 && cmp bad.npy good.npy && audit bad && py "
assert {f['test'] for f in hits} == {'offset'} and hits and all(f['subject'] == 'A / B' for f in hits), d['findings']" &&
    audit good && py "assert nothing(), hits" && only 2 5 && audit bad --data A.npy --right B.npy && py "
assert {f['subject'] for f in hits} == {'A / B'} and not unsolved(), (hits, d['unseen'])" &&
    audit good --data A.npy --right B.npy && py "assert nothing() and not unsolved(), hits"
report $? "equal masks of A and B are found by the inner-product code, too, in all shares or with both operands"
run audit bad --data A.npy --right V.npy -q; [ $code = 3 ] && grep -q 'B has 60 rows and 60 columns, and --right is 60 x 300' err
report $? "there, too, --right of another shape gives exit code 3"
away

# An A that nodes keep for two products, and the right operands of both.
"$BROKEN" keep A.npy B.npy bad 2>err && MASKS=nothing "$BROKEN" keep A.npy B.npy good 2>err && audit bad && py "
assert {f['test'] for f in hits} == {'offset'}, d['findings']
assert {'A / right 1', 'right 1 / right 2'} <= {f['subject'] for f in hits}, hits" && audit good && py "assert nothing(), hits"
report $? "equal masks of a kept A and of the right operands are found by the inner-product code"
away

export MASKS=right
both V.npy W.npy -n 5 --scheme share --code lagrange --colluding 1 --memory 200k && only 1 4
audit bad --data V.npy && py "assert nothing() and unsolved() == ['B, B, tile 2, B, tile 3'], (hits, unsolved())" &&
    audit bad --data V.npy --right W.npy && py "
assert not unsolved() and {f['subject'] for f in hits} == {'B / B', 'B, tile 2 / B, tile 2', 'B, tile 3 / B, tile 3'}, places
assert all(' (lag -' in f['sentence'] and 'whole rows' in f['sentence'] for f in hits), hits" &&
    audit bad --right W.npy && py "assert len(hits) == 3" &&
    audit bad --right W.npy --encodings 2 && py "assert len(hits) == 2" &&
    audit good --data V.npy --right W.npy && py "assert nothing() and not unsolved()"
report $? "masks of B that repeat from prime to prime are found with --right, in every tile"
away

export MASKS=left
"$BROKEN" prepare B.npy --rows 1500 -o bad.masks -q 2>err && "$S" prepare B.npy --rows 1500 -o good.masks -q 2>err
"$BROKEN" multiply A.npy B.npy -o bad.npy -n 3 --scheme blind --masks bad.masks --record bad -q 2>err &&
    "$S" multiply A.npy B.npy -o good.npy -n 3 --scheme blind --masks good.masks --record good -q 2>err && cmp bad.npy good.npy &&
    audit bad --data A.npy --right B.npy && py "
own = [f for f in hits if f['value'] > 1000 and '(lag -300, whole rows)' in f['sentence']]
assert len(own) == 3 and all('prime 5931641' in f['sentence'] and 'prime 5931637' in f['sentence'] for f in own), hits
assert any('(--right) is not used' in w for w in d['warnings'])" && audit good --data A.npy && py "assert nothing()"
report $? "primes of blind that share a keystream are found at each node with the operand"
away

/usr/bin/python3 -c "
import numpy as np
g = np.random.default_rng(4)
np.save('T.npy', g.integers(0, 256, (1500, 128)).astype('u1')); np.save('U.npy', g.standard_normal((128, 70)))
np.save('P.npy', g.integers(0, 256, (250, 90)).astype('u1')); np.save('Q.npy', g.standard_normal((90, 700)))"
BYTES=1 "$BROKEN" multiply T.npy U.npy -o bad.npy -n 5 --scheme share --record bad -q 2>err && audit bad && py "
assert hits and {f['test'] for f in hits} == {'offset'}, hits
assert all(f['subject'] == 'A / A' and 'are the same for' in f['sentence'] for f in hits), hits
assert 'prime 251' in hits[0]['sentence'] and 'prime 241' in hits[0]['sentence'], hits"
report $? "primes below 256 of A that share a stream of bytes are found, although each rejects other bytes"
away

# Blocks of P that are not whole are drawn row after row, and so are all blocks of Q.
export BYTES=1 MASKS=encodings
both P.npy Q.npy -n 5 --scheme share && cmp bad.npy good.npy && audit bad && py "
assert {f['test'] for f in hits} == {'offset'} and {f['subject'] for f in hits} == {'A / B'}, d['findings']
assert len(hits) >= 4 and all(p[0] > 1000 for p in places), places" && audit good && py "assert nothing(), hits" &&
    only 2 5 && audit bad --data P.npy && py "assert nothing() and unsolved() == ['B'], (hits, d['unseen'])" &&
    audit bad --data P.npy --right Q.npy && py "
assert {f['subject'] for f in hits} == {'A / B'} and len(hits) >= 4 and not unsolved(), (hits, d['unseen'])" &&
    audit good --data P.npy --right Q.npy && py "assert nothing() and not unsolved(), hits"
report $? "equal masks of residues of one byte of A and B are found up to the edges, in all shares or with both operands"
away
export MASKS=right
both P.npy Q.npy -n 5 --scheme share && audit bad && py "
assert hits and {f['subject'] for f in hits} == {'B / B'} and {f['test'] for f in hits} == {'offset'}, hits
assert any('prime 251' in f['sentence'] and 'prime 241' in f['sentence'] for f in hits), hits"
report $? "so are primes below 256 of B that share a stream of bytes"
away
unset MASKS
# T shares of each operand are sent as seeds. The streams of masks are then those of the seeds.
SEEDS=operands "$BROKEN" multiply P.npy Q.npy -o bad.npy -n 7 --scheme share --code lagrange --colluding 2 --record bad -q 2>err &&
    "$S" multiply P.npy Q.npy -o good.npy -n 7 --scheme share --code lagrange --colluding 2 --record good -q 2>err &&
    cmp bad.npy good.npy && SEEDS=operands "$BROKEN" audit bad --json -q >out 2>err && py "
assert any(f['test'] == 'offset' and f['subject'] == 'A / B' and f['sentence'].startswith('seed of share') for f in hits), hits" && audit good && py "assert nothing(), hits"
report $? "a seed that is used for A and for B is found"
away
SEEDS=primes "$BROKEN" multiply P.npy Q.npy -o bad.npy -n 7 --scheme share --code lagrange --colluding 2 --record bad -q 2>err &&
    cmp bad.npy good.npy && SEEDS=primes "$BROKEN" audit bad --json -q >out 2>err && py "
assert any('seed of share' in f['sentence'] and 'prime 251' in f['sentence'] and 'prime 241' in f['sentence'] for f in hits), hits"
report $? "primes that share the stream of a seed are found"
away
unset BYTES

# A training: many operands of different widths, and data in the order of the training, in parts.
/usr/bin/python3 -c "
import numpy as np
g = np.random.default_rng(3)
x = (g.integers(0, 256, (1003, 20)) * (g.random((1003, 20)) < .4)).astype('u1'); y = g.integers(0, 10, 1003).astype('u1')
np.savez('t.npz', x=x, y=y); np.save('X.npy', x)"
cp "$R/tests/system/cli/audit.conf" t.conf
learn() { MASKS=$1 "$BROKEN" train t.conf --data t.npz -n 5 --scheme share --record bad -q >out 2>err; }
learn encodings && audit bad --encodings 40 && py "
names = {n for f in hits if f['test'] == 'offset' for n in f['subject'].split(' / ')}
assert 'A' in names and len(names) >= 8, names"
report $? "forty encodings of a training, of different widths, are found to share masks"
away
BYTES=1 SEEDS=encodings "$BROKEN" train t.conf --data t.npz -n 7 --scheme share --colluding 2 --record bad -q >out 2>err &&
    audit bad --encodings 40 && py "
named = [f['subject'].split(' / ') for f in hits if f['sentence'].startswith('seed of share')]
assert any(a != b and a.startswith('right') and b.startswith('right') for a, b in named), (named, hits)"
report $? "a seed that is used for two encodings of a training is found"
away
learn left && "$S" train t.conf --data t.npz -n 5 --scheme share --record good -q >out 2>err && only 3 5
audit bad && py "assert nothing(), hits" && audit bad --data X.npy && py "
assert len(hits) == 1 and hits[0]['subject'] == 'A / A' and hits[0]['value'] > 1000 and '(lag -100, whole rows)' in hits[0]['sentence'], hits" &&
    audit good --data X.npy && py "assert nothing()"
report $? "masks of the training's data are solved for in the rows of each part, in the training's order"
away

# Nodes' own records, two of five: share numbers follow from tasks, and scales are the default.
unset MASKS
"$S" keygen me.key >me.pub 2>err; echo "* $(cat me.pub) role=coordinator" >allow.txt
for i in 1 2 3 4 5; do
    "$S" keygen node$i.key >/dev/null 2>err
    "$S" node --listen 127.0.0.1:0 --key node$i.key --allow allow.txt --domain own-$i --record own$i >line$i 2>log$i </dev/null &
    pids="$pids $!"
done
for i in 1 2 3 4 5; do await test -s line$i; done
cat line? >lines
"$BROKEN" multiply F.npy B.npy -o bad.npy --nodes lines --key me.key --scheme share --code lagrange --colluding 1 --same-host-domains -q 2>err
kill $pids; wait $pids; pids=
audit own5 own2 --data F.npy && py "assert nothing() and unsolved() == ['B'], (hits, d['unseen'])" &&
    audit own5 own2 --data F.npy --right B.npy &&
    py "assert places == [(3600, 300, 0)] * len(hits) and len(hits) >= 2 and not unsolved(), (hits, d['unseen'])
assert [w.split(' was coded')[0].split()[-1] for w in d['warnings'] if '17 bits' in w] == ['B', 'A'], d['warnings']"
report $? "masks are solved for in the records of two nodes"

echo "1..$n"
