#!/bin/sh
# `sherd audit` on records of real runs, on simulated views, and on invalid records. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
pids=
trap 'for p in $pids; do kill $p 2>/dev/null; done; rm -rf "$T"' EXIT

py() { /usr/bin/python3 -c "import json
def worst(d, test, statistic, size=1):
    return max((f for f in d['findings'] if (f['test'], f['statistic'], f['size']) == (test, statistic, size)),
               key=lambda f: f['value'])
def median(d, test, statistic, size=1):
    v = sorted(f['value'] for f in d['findings'] if (f['test'], f['statistic'], f['size']) == (test, statistic, size))
    return v[len(v) // 2]
$1" >>err 2>&1; }

# Rows of ten kinds, each with its own mean in each column, and public rows of the same distribution.
/usr/bin/python3 -c "
import numpy as np
g = np.random.default_rng(1)
shape = g.random((10, 60)) * g.random(60)
def rows(n):
    kind = g.integers(0, 10, n)
    x = np.clip(shape[kind] * 200 + g.standard_normal((n, 60)) * 25, 0, 255)
    x[g.random((n, 60)) < .3] = 0
    return x.astype('u1'), kind.astype('u1')
A, L = rows(1500)
P, Q = rows(2000)
np.save('A.npy', A); np.save('L.npy', L); np.save('P.npy', P); np.save('Q.npy', Q)
np.save('F.npy', A.astype('f8') / 7)
np.save('B.npy', g.standard_normal((60, 20)))"
SIDE="--data A.npy --labels L.npy --public-data P.npy --public-labels Q.npy"

run audit; [ $code = 2 ] && grep -q 'record' err && grep -q -- '--simulate' err
report $? "without a record and without --simulate the error names both, exit code 2"
run audit nowhere; [ $code = 4 ]
report $? "a missing folder gives exit code 4"
mkdir empty; run audit empty; [ $code = 3 ] && grep -q 'empty' err
report $? "a folder that is not a record gives exit code 3"

printf '0123456789abcdef0123456789abcdef' >seed && chmod 600 seed
"$S" multiply A.npy B.npy -o C.npy -n 5 --record perm --seed seed -q 2>err
run audit perm $SIDE --json -q
[ $code = 0 ] && [ ! -s err ] && py "d = json.load(open('out'))
assert d['ok'] and d['schema'] == 'sherd/audit/1' and d['nodes'] == 5 and (d['rows'], d['cols']) == (1500, 60)
assert d['truth'] and d['labels'] and d['public_rows'] == 2000 and d['tests'] > 20
assert [(c['size'], c['attacked'], c['of']) for c in d['coalitions']] == [(1, 5, 5), (2, 10, 10)]
assert .98 < sum(f['value'] for f in d['findings'] if f['test'] == 'verbatim' and f['size'] == 1) <= 1 + 1e-9
w = worst(d, 'columns', 'with correlations and order')
assert w['flagged'] and w['value'] > .5 and abs(w['chance'] - 1 / 60) < 1e-9
assert worst(d, 'labels', '5 nearest public rows')['flagged']
for f in d['findings']:
    assert f['sentence'] and f['chance'] is not None and (f['ln_p'] is None or f['ln_p'] <= 1e-9)"
report $? "a record of permute: columns and labels are inferred, each printed beside chance"

run audit perm --data A.npy -q
[ $code = 0 ] && grep -q 'verbatim' out && ! grep -q 'columns: own' out && grep -q -- '--public-data' out
report $? "without public data the report counts verbatim entries and names the missing option"
run audit perm -q; [ $code = 0 ] && grep -q 'in clear' out && grep -q -- '--data' out
report $? "with the record alone the report states that values were in clear"

run audit perm $SIDE --right B.npy -q
[ $code = 0 ] && grep -q '^      FLAGGED, worst: node-' out &&
    [ "$(sed '/^FLAGGED: /q' out | grep -vE '^(note|FLAGGED): ' | awk '{ if (length > w) w = length } END { print w }')" -lt 80 ]
report $? "the table fits 80 columns and names the nodes of what was found"

run audit perm --right B.npy --json -q
[ $code = 0 ] && py "d = json.load(open('out'))
B = [f['value'] for f in d['findings'] if f['subject'] == 'B']
assert len(B) == 5 and abs(sum(B) - 1) < 1e-9, B"
report $? "rows of B are found in their shuffled form"

/usr/bin/python3 -c "
import numpy as np
A, B = np.load('A.npy'), np.load('B.npy')
np.save('short.npy', A[:150]); np.save('turned.npy', A.T); np.save('other.npy', A[::-1] // 2 + 1)
np.save('narrow.npy', B[:, :5]); np.save('few.npy', B[:5]); np.save('Bt.npy', B[:, :10].T); np.save('otherB.npy', B + 1)
np.save('whole.npy', np.hstack([A, A + 1]))"
wrong=0
for f in B short turned; do
    run audit perm --data $f.npy -q
    [ $code = 3 ] && grep -q "was sent 1500 rows and .* columns of A, and --data is" err || wrong=$f
done
for f in Bt narrow few; do
    run audit perm --data A.npy --right $f.npy -q
    [ $code = 3 ] && grep -q "was sent .* rows and 20 columns of B, and --right is" err || wrong=$f
done
[ $wrong = 0 ]; report $? "operands of another shape than the recorded ones are refused ($wrong)"
run audit perm --data other.npy --right otherB.npy -q
[ $code = 0 ] && grep -q 'note: no column of --data occurs in this record' out &&
    grep -q 'note: no row of --right occurs in this record' out
report $? "of another operand of the same shape the report states that none of it occurs"
run audit perm --data whole.npy --right B.npy -q; [ $code = 0 ] && ! grep -q 'occurs in this' out
report $? "an operand of which the record holds a part is neither refused nor questioned"

"$S" multiply F.npy B.npy -o C.npy -n 5 --bits 17 --record fixed -q 2>err
run audit fixed --data F.npy --json -q
py "d = json.load(open('out'))
assert .98 < sum(f['value'] for f in d['findings'] if f['test'] == 'verbatim' and f['size'] == 1) <= 1 + 1e-9"
report $? "entries sent in fixed point are found in the original floats"

"$S" multiply A.npy B.npy -o C.npy -n 5 --encoding csr --group 4 --record csr --seed seed -q 2>err
run audit csr --data A.npy --json -q
py "d = json.load(open('out'))
assert .7 < sum(f['value'] for f in d['findings'] if f['test'] == 'verbatim' and f['size'] == 1) <= 1 + 1e-9
import re
for f in d['findings']:
    if f['test'] == 'verbatim' and f['size'] == 1:
        found, sent = re.search(r'sent of (\d+) of (\d+) columns', f['sentence']).groups()
        assert found == sent, f"
report $? "blocks in CSR, without zeros, are read too"

"$S" multiply A.npy B.npy -o C.npy -n 5 --scheme plain --record plain -q 2>err
run audit plain $SIDE --json -q
py "d = json.load(open('out'))
assert abs(sum(f['value'] for f in d['findings'] if f['test'] == 'verbatim' and f['size'] == 1) - 1) < 1e-9
assert median(d, 'labels', '5 nearest public rows') > .7"
report $? "a record of plain: whole rows are found and labels inferred"

"$S" multiply A.npy B.npy -o C.npy -n 5 --scheme share --colluding 1 --record share -q 2>err
run audit share $SIDE --json -q --html page.html
[ $code = 0 ] && py "d = json.load(open('out'))
assert d['form'].startswith('share') and d['flagged'] == 0
assert all(f['control'] for f in d['findings'] if f['flagged'])
controls = [f for f in d['findings'] if f['test'] == 'control']
offset = [f for f in d['findings'] if f['test'] == 'offset']
assert len(offset) == 1 and offset[0]['value'] == 0 and 'streams of masks' in offset[0]['sentence'], offset
assert [s.split(':')[0] for s in d['unseen']][:3] == ['refusals', 'timing', 'links among members of a training']
assert all(s in open('page.html').read() for s in d['unseen']) and 'streams of masks' in open('page.html').read()
assert {'permute', 'mask reuse', 'T+1 domains', 'alpha = beta', 'mask at an offset', 'negated mask'} <= {f['subject'] for f in controls}
assert any(f['test'] == 'labels' for f in d['findings']) and any(f['test'] == 'game' for f in d['findings'])"
report $? "a record of share: nothing beyond chance, every negative control flagged"
run audit share $SIDE -q --rows 100 --html some.html
[ $code = 0 ] && grep -q '^Nothing found beyond chance in what was looked at (Holm' out &&
    grep -q '^  masks of [0-9]* of [0-9]* rows of shares: --rows reads more' out &&
    grep -q 'rows of shares: --rows reads more' some.html && run audit share $SIDE -q --rows 100 --json &&
    py "d = json.load(open('out')); import re
left, all = [int(x) for s in d['unseen'] for t in re.findall('masks of ([0-9]+) of ([0-9]+) rows of shares', s) for x in t]
assert 0 < left < all and all - left <= 100 * 2, (left, all)" && run audit share $SIDE -q &&
    grep -q '^Nothing found beyond chance (Holm' out && ! grep -q '^  masks of [0-9]' out &&
    grep -q '^  refusals: ' out && grep -q '^  timing: ' out && grep -q '^  links among members of a training: ' out
report $? "if only a part of the shares is read, text, page and JSON report the number of rows left out"
[ "$(stat -c %a page.html)" = 600 ] && py "import re, base64
p = open('page.html').read()
assert '://' not in re.sub('base64,[A-Za-z0-9+/=]*', '', p) and '<script' not in p and 'href=' not in p
assert p.count('src=\"data:image/png') == p.count('src=') >= 1"
report $? "the page is self-contained and readable by its owner only"
run audit share $SIDE --html nodir/page.html
[ $code = 4 ] && grep -q 'nodir/page.html: cannot write' err && ! grep -q 'attacks' err
report $? "a page that cannot be written is reported before the attacks"
run audit share $SIDE --show 77
[ $code = 2 ] && grep -q 'there are 5 nodes' err; report $? "--show with the number of no node gives exit code 2"
cp -r share cut; chmod -R u+w cut; truncate -s -5000 cut/node-2.sent
run audit cut --data A.npy -q
tail -1 out | grep -q '^The record is cut: this covers 4 of 5 domains in full'
report $? "the last line of a truncated record's report states how much of it was covered"
cp -r share heard; chmod -R u+w heard; truncate -s -3 heard/node-4.received
run audit heard --data A.npy -q --json --html cut.html
[ $code = 0 ] && py "d = json.load(open('out')); import os
size = os.path.getsize('heard/node-4.received')
assert d['cut'] is True and d['domains_covered'] == 4 and d['domains'] == 5
assert d['reach'] == 'The record is cut: this covers 4 of 5 domains in full.'
assert d['reach'] in open('cut.html').read()
said, = [w for w in d['warnings'] if 'node-4.received' in w]
assert '%d bytes long and the index says %d' % (size, size + 3) in said and 'cannot be read from byte' in said" &&
    run audit share --data A.npy -q --json &&
    py "d = json.load(open('out')); assert d['cut'] is False and d['reach'] is None and d['domains_covered'] == 5"
report $? "so do JSON and page, and a truncated answer is reported with file and byte"

"$S" multiply A.npy B.npy -o C.npy -n 5 --scheme share1 --public b --colluding 1 --record one -q 2>err
run audit one $SIDE --json -q
[ $code = 0 ] && py "d = json.load(open('out'))
assert d['form'].startswith('share1') and d['flagged'] == 0 and d['coalitions'][1]['attacked'] == 10"
report $? "a record of share1: nothing beyond chance"
"$S" prepare B.npy --rows 1500 -o B.masks -q 2>err
"$S" multiply A.npy B.npy -o C.npy -n 2 --scheme blind --masks B.masks --record blind -q 2>>err
run audit blind $SIDE --json -q
[ $code = 0 ] && py "d = json.load(open('out'))
assert d['form'].startswith('blind') and d['flagged'] == 0 and d['tests'] > 10
assert any(f['control'] and f['flagged'] for f in d['findings'])"
report $? "a record of blind: nothing beyond chance"

run audit blind --data A.npy --public-data P.npy --labels L.npy --public-labels Q.npy --json -q
[ $code = 0 ] && py "d = json.load(open('out'))
of = {f['test'] for f in d['findings'] if f['size'] == 1}
assert {'verbatim', 'columns', 'labels', 'rebuilding', 'independence', 'uniformity', 'differences'} <= of, of
assert sum(f['test'] == 'game' for f in d['findings']) == 2
controls = {f['subject'] for f in d['findings'] if f['test'] == 'control'}
assert controls == {'permute', 'mask reuse', 'one mask for all primes', 'mask at an offset', 'negated mask'}, controls
offset = [f for f in d['findings'] if f['test'] == 'offset']
assert len(offset) == 1 and offset[0]['value'] == 0 and ' 4 streams of masks' in offset[0]['sentence'], offset
games = [f for f in d['findings'] if f['test'] == 'control game']
assert len(games) == 4 and all(f['flagged'] and f['value'] > .9 for f in games)"
report $? "blind is attacked by values, with known data and in games, with its own controls"

"$S" apply sigmoid A.npy -o S.npy -n 5 --record element --seed seed -q 2>err
run audit element $SIDE --json -q
[ $code = 0 ] && py "d = json.load(open('out'))
assert d['form'].startswith('element-wise') and d['nodes'] == 5
V = [f for f in d['findings'] if f['test'] == 'verbatim' and f['size'] == 1]
assert len(V) == 5 and abs(sum(f['value'] for f in V) - 1) < 1e-9 and all(f['flagged'] for f in V)
w = worst(d, 'labels', '5 nearest public rows, by values', 2)
assert .08 < w['chance'] < .2 and w['ln_p'] is not None and w['sentence'], w
assert [(c['size'], c['unit'], c['attacked']) for c in d['coalitions']] == [(1, 'node', 5), (2, 'domain', 10)]"
report $? "an element-wise operation: each entry is in clear at one node, and inferences are printed beside chance"
/usr/bin/python3 -c "import numpy as np; np.save('A2.npy', np.load('A.npy') * 3.0)"
"$S" apply minus A.npy A2.npy -o S.npy -n 5 --record two -q 2>err
run audit two --data A.npy --right A2.npy -q --json
[ $code = 0 ] && py "d = json.load(open('out'))
B = [f['value'] for f in d['findings'] if f['test'] == 'verbatim' and f['size'] == 1 and f['subject'] == 'B']
assert len(B) == 5 and abs(sum(B) - 1) < 1e-9, B"
report $? "an element-wise operation of two operands: both are in clear"

/usr/bin/python3 -c "
import numpy as np
A = np.load('A.npy')
np.save('high.npy', np.vstack([A, A])); np.save('Aother.npy', A + .5); np.save('thin.npy', A[:, :5])"
wrong=0
for f in short turned thin; do
    run audit element --data $f.npy -q
    [ $code = 3 ] && grep -q "node-[0-9] was sent [0-9]* values of each of 1500 rows of A, and --data is" err || wrong=$f
done
run audit two --data A.npy --right short.npy -q
[ $code = 3 ] && grep -q "of each of 1500 rows of B, and --right is 150 x 60" err || wrong=right
[ $wrong = 0 ]; report $? "operands of another shape than the element-wise ones are refused ($wrong)"
run audit two --data Aother.npy --right Aother.npy -q
[ $code = 0 ] && grep -q 'note: no entry of --data occurs in this record: is it the A of this run' out &&
    grep -q 'note: no entry of --right occurs in this record' out &&
    run audit element --data high.npy -q && [ $code = 0 ] && ! grep -q 'occurs in this' out
report $? "of an element-wise operand of which nothing occurs in the record, the report states so"

# Five nodes, three of which are one domain.
"$S" keygen me.key >me.pub 2>err; echo "* $(cat me.pub) role=coordinator" >allow.txt; : >lines
for i in 1 2 3 4 5; do
    case $i in 1|2|4) domain=acme ;; *) domain=site-$i ;; esac
    "$S" keygen node$i.key >/dev/null 2>err
    "$S" node --listen 127.0.0.1:0 --key node$i.key --allow allow.txt --domain $domain >line$i 2>log$i </dev/null &
    pids="$pids $!"
done
for i in 1 2 3 4 5; do
    tries=0
    while [ ! -s line$i ] && [ $tries -lt 200 ]; do sleep 0.05; tries=$((tries + 1)); done
    cat line$i >>lines
done
"$S" multiply A.npy B.npy -o C.npy --nodes lines --key me.key --seed seed --exposure-max 1 --record dom -q 2>err
run audit dom $SIDE --json -q
[ $code = 0 ] && py "d = json.load(open('out'))
assert d['domains_known'] and (d['nodes'], d['domains']) == (5, 3)
assert [(c['size'], c['unit'], c['attacked'], c['of']) for c in d['coalitions']] == [
    (1, 'node', 5, 5), (1, 'domain', 1, 1), (2, 'domain', 3, 3)]
v = [f for f in d['findings'] if f['test'] == 'verbatim']
node = {f['who']: f['value'] for f in v if f['unit'] == 'node'}
acme, = [f for f in v if f['unit'] == 'domain' and f['size'] == 1]
names = sorted(node)
assert acme['who'] == 'acme' and abs(sum(node.values()) - 1) < 1e-9
assert abs(acme['value'] - sum(node[names[i]] for i in (0, 1, 3))) < 1e-9, (acme, node)
assert any(abs(f['value'] - 1) > .01 for f in v if f['size'] == 2)"
report $? "three nodes of one domain= are one adversary: their views are combined"
run audit dom --data A.npy -q; grep -q '5 nodes in 3 domains' out && grep -q 'Each domain by itself' out
report $? "the report names the combined domain"
"$S" multiply A.npy B.npy -o C.npy --nodes lines --key me.key --scheme share --colluding 1 \
    --same-host-domains --record code -q 2>err
run audit code --data A.npy --json -q
[ $code = 0 ] && py "d = json.load(open('out'))
assert d['flagged'] == 0 and (d['nodes'], d['domains']) == (5, 3)
assert [(c['size'], c['unit'], c['of']) for c in d['coalitions']] == [(1, 'domain', 3), (2, 'domain', 3)]
assert any(f['control'] and f['flagged'] for f in d['findings'] if f['size'] == 2)
assert any('acme' in f['who'] for f in d['findings'])"
report $? "under share a domain has one share, whichever of its nodes received it"
# Nodes' own records of share, T = 1: share numbers follow from tasks, and masks of A and B are solved for.
own=
for i in 1 2 3 4 5; do
    "$S" node --listen 127.0.0.1:0 --key node$i.key --allow allow.txt --domain own-$i --record own$i >own-line$i \
        2>log$i </dev/null &
    own="$own $!"
done
: >own-lines
for i in 1 2 3 4 5; do
    tries=0
    while [ ! -s own-line$i ] && [ $tries -lt 400 ]; do sleep 0.05; tries=$((tries + 1)); done
    cat own-line$i >>own-lines
done
"$S" multiply A.npy B.npy -o C.npy --nodes own-lines --key me.key --scheme share --colluding 1 --same-host-domains -q 2>err
kill $own; wait $own
run audit own3 own1 own5 own2 own4 --data A.npy --json -q
[ $code = 0 ] && py "d = json.load(open('out'))
offset, = [f for f in d['findings'] if f['test'] == 'offset']
assert d['flagged'] == 0 and offset['value'] == 0 and 'of 2 of 2 encodings' in offset['sentence'], offset
assert not any(s.startswith('masks of') for s in d['unseen']), d['unseen']
assert any('shares are numbered by their tasks' in w for w in d['warnings'])
assert any(f['control'] and f['flagged'] and f['test'] == 'coalition' for f in d['findings'])" &&
    run audit own4 --data A.npy --json -q && py "d = json.load(open('out'))
assert any(s.startswith('masks of 2 of 2 encodings (A, B)') for s in d['unseen']), d['unseen']"
report $? "shares in nodes' own records are numbered and masks solved for; a single record has too few, which is reported"
cp -r code old; sed -i 's,sherd/record/2,sherd/record/1,' old/index.json
run audit old -q; [ $code != 0 ] || grep -q 'each node counts as one' out
report $? "a record of version 1 has no domains, which is reported"
cp -r code new; sed -i 's,sherd/record/2,sherd/record/3,' new/index.json
run audit new -q; [ $code = 3 ] && grep -q 'sherd/record/3' err && grep -q 'version of sherd that wrote it' err
report $? "a record of a later version gives exit code 3"
for p in $pids; do kill $p 2>/dev/null; done; pids=

# A training: data are kept at the nodes in the order of the training, in parts, the last one shorter.
/usr/bin/python3 -c "
import numpy as np
x, y = np.load('A.npy')[:1003, :20], np.load('L.npy')[:1003]
np.savez('t.npz', x=x, y=y); np.save('X.npy', x); np.save('Y.npy', y); np.save('half.npy', x[:500])"
cp "$R/tests/system/cli/audit.conf" t.conf
"$S" train t.conf --data t.npz -n 5 --scheme share --record learnt -q >out 2>err
SIDE2="--data X.npy --labels Y.npy --public-data X.npy --public-labels Y.npy"
run audit learnt $SIDE2 --json -q
[ $code = 0 ] && py "d = json.load(open('out'))
assert d['flagged'] == 0 and d['form'].startswith('share') and not d['cut'], d['warnings']
A = [f for f in d['findings'] if f['subject'].startswith('A') and f['size'] == 2]
guessed = [f['value'] for f in A if f['statistic'] == 'entries as guessed']
assert len(guessed) % 10 == 0 and len(guessed) >= 20 and set(guessed) == {458 * 20}, guessed
V = [f for f in d['findings'] if f['test'] == 'verbatim']
assert {f['subject'] for f in V} == {'A, block 1', 'A, block 2'} and all(f['value'] < 2 * f['chance'] + 1e-3 for f in V)"
report $? "a training under share: rows of each part are compared with the right rows, and nothing is flagged"
# Node 3's share without its mask, at the point of block 2: the rows of the parts, in the training's order.
cp -r learnt leaky; chmod -R u+w leaky
/usr/bin/python3 - leaky <<'E1' 2>err
import glob, json, struct, sys
import numpy as np
rec = sys.argv[1]
o = json.loads(open(rec + '/coded.jsonl').readline())
a = np.load('X.npy').astype(int)[np.load(rec + '/rows.npy').ravel()] * 256
assert a.max() == o['largest'] and o['rows'] == len(a) == 903 and o['blocks'] == 2
of_panel = []                      # rows of block 2
for first in range(0, o['rows'], o['part']):
    part = a[first:first + o['part']]
    h = -(-len(part) // 2)
    block = np.vstack([part[h:], np.zeros((2 * h - len(part), 20), int)])
    of_panel += [block[i:i + o['panel']] for i in range(0, h, o['panel'])]
path = sorted(glob.glob(rec + '/*-3.sent'))[0]
b, at, done = bytearray(open(path, 'rb').read()), 0, 0
while at < len(b):
    magic, kind, flags, job, number, part, size = struct.unpack_from('<IHHQIIQ', b, at)
    at += 32
    if kind == 3 and part == 1 and '%016x' % job == o['job'] and 2 * len(of_panel) < number <= 3 * len(of_panel):
        x = of_panel[number - 1 - 2 * len(of_panel)]
        strips = -(-len(x) // 16)                  # residues of one byte are in tiles of 16 rows and 64 terms
        if size % (strips * 1024) == 0:
            tiles = np.zeros((strips * 16, 64), int)
            tiles[:len(x), :20] = x
            used = [251, 241, 239, 233, 229, 227, 223, 211][:size // (strips * 1024)]
            body = b''.join((tile % p).astype('u1').tobytes() for tile in tiles.reshape(-1, 16, 64) for p in used)
        else:
            body = b''.join(int(v).to_bytes(3, 'little') for v in x.ravel())
            assert size % len(body) == 0
            body *= size // len(body)
        assert len(body) == size
        b[at:at + size] = body; done += 1
    at += size
assert done == len(of_panel), (done, len(of_panel))
open(path, 'wb').write(b)
E1
run audit leaky $SIDE2 --json -q
[ $code = 0 ] && py "d = json.load(open('out'))
f = {(f['test'], f['statistic'], f['subject']): f for f in d['findings'] if f['who'].endswith('-3')}
own = f['verbatim', 'fraction of the entries of A', 'A, block 2']
assert own['value'] == 1 and own['flagged']
assert f['zero mask', 'F1', 'A, block 2']['value'] == 1
assert any(g['flagged'] for g in f.values() if g['test'] == 'independence')
assert any(g['flagged'] for g in f.values() if g['test'] == 'uniformity')
assert f['labels', '5 nearest public rows', 'A, block 2']['flagged']
assert {g['who'][-1] for g in d['findings'] if g['flagged'] and not g['control']} == {'3'}"
report $? "a share without its mask is flagged, and each row is found at its place"
run audit learnt --data half.npy -q
[ $code = 2 ] && grep -q 'rows.npy: row .* of the recorded operand is row .* of its data, and --data has 500' err
report $? "data with missing rows are refused with the row's number, exit code 2"
"$S" train t.conf --data t.npz -n 3 --scheme share --record three -q >out 2>err
run audit three --data X.npy --json -q
[ $code = 0 ] && py "d = json.load(open('out'))
R = [f['value'] for f in d['findings'] if f['statistic'] == 'entries rebuilt exactly' and f['subject'] == 'A']
assert R == [1, 1, 1] and d['flagged'] == 0, R"
report $? "two of three nodes, one more than T, rebuild every entry of the data"
rm three/coded.jsonl three/rows.npy
run audit three --data X.npy -q
[ $code = 2 ] && grep -q 'no code of 3 nodes' err
report $? "if the record lacks the partition, it is refused and not guessed"

# A damaged record is read as far as possible, which is reported.
cp -r perm cut; f=$(ls cut/*.sent | head -1); truncate -s 20000 "$f"
run audit cut --data A.npy -q; [ $code = 0 ] && grep -q 'note: ' out
report $? "a truncated record is audited up to its end, and the truncation is reported"
cp -r perm lost; rm lost/index.json
run audit lost --data A.npy -q; [ $code = 0 ] && grep -q 'no index' out && grep -q 'verbatim' out
report $? "a record without its index is read from its files"
cp -r perm edited; sed -i 's/"node-1"/"..\/node-1"/' edited/index.json
run audit edited --data A.npy -q; [ $code = 3 ] && grep -q 'plain name' err
report $? "an index that names files outside of the record gives exit code 3"
run audit perm --data P.npy --public-data B.npy -q; [ $code = 3 ]
report $? "public data of another width give exit code 3"
run audit perm --labels L.npy; [ $code = 2 ]
report $? "labels without their data give exit code 2"

run audit --simulate permute-published -q --json --coalitions 0 --rows 3000
[ $code = 0 ] && py "d = json.load(open('out'))
assert median(d, 'columns', 'with correlations') >= .35 and abs(d['findings'][-1]['chance']) < .2
assert median(d, 'labels', '5 nearest public rows') >= .55"
report $? "permute as published, on generated digits: a third of the columns and most labels are inferred"

if [ -d "${MNIST:-/nowhere}" ]; then
    M="--data $MNIST/train-images-idx3-ubyte.gz --labels $MNIST/train-labels-idx1-ubyte.gz
       --public-data $MNIST/t10k-images-idx3-ubyte.gz --public-labels $MNIST/t10k-labels-idx1-ubyte.gz"
    run audit --simulate permute-published $M -q --json --coalitions 0
    [ $code = 0 ] && py "d = json.load(open('out'))
assert d['public_rows'] == 10000
for node in {f['who'] for f in d['findings']}:
    of = {(f['test'], f['statistic']): f for f in d['findings'] if f['who'] == node}
    assert of['columns', 'with correlations']['value'] >= .35
    assert abs(of['columns', 'with correlations']['chance'] - 1 / 784) < 1e-9
    assert of['labels', '5 nearest public rows']['value'] >= .55
    assert .1 < of['labels', '5 nearest public rows']['chance'] < .15"
    report $? "MNIST, permute as published: 35 % of the columns, 55 % of the labels, for each node"
else
    skip "MNIST, permute as published: 35 % of the columns, 55 % of the labels, for each node" "no MNIST at ../shared/data/mnist"
fi

echo "1..$n"
