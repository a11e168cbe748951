#!/bin/sh
# Products and element-wise operations on files, with real node processes, compared with numpy; and all
# that can be wrong with them: one message, the right exit code, and an unchanged output file. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

py() { /usr/bin/python3 -c "import json, os, numpy as np
$1" >>err 2>&1; }
json() { /usr/bin/python3 -c "import json
d = json.load(open('out'))
assert $1, d" >>err 2>&1; }
# fails CODE WORDS ARGS...: checks the exit code, words on stderr, and that C.npy is unchanged
fails() {
    want=$1 words=$2; shift 2
    cp keep.npy C.npy
    run "$@"
    [ $code = "$want" ] && grep -q -- "$words" err && silent_out && cmp -s keep.npy C.npy &&
        [ "$(find . -name '.*sherd-*' | wc -l)" = 0 ]
}
silent_out() { [ ! -s out ]; }

py "
r = np.random.default_rng(3)
np.save('A.npy', r.standard_normal((37, 29)))
np.save('B.npy', r.standard_normal((29, 23)))
np.save('B5.npy', r.standard_normal((5, 23)))
np.save('u8.npy', r.integers(0, 256, (37, 29), dtype=np.uint8))
np.save('f32.npy', r.standard_normal((29, 23)).astype('<f4'))
np.save('i8w.npy', r.integers(-9, 9, (29, 23)).astype('<i8'))
i4 = r.integers(-9, 10, (320, 320)).astype('<i4'); i4[0] = 1; i4[0, 2] = -9
np.save('i4w.npy', i4[:37]); np.save('i4b.npy', i4[:, :23])
np.save('fortran.npy', np.asfortranarray(np.load('A.npy')))
np.save('row.npy', r.standard_normal(29))
np.save('col.npy', r.standard_normal(29))
np.save('one.npy', np.array([[3.0]]))
np.save('none.npy', np.zeros((0, 29)))
np.save('k0a.npy', np.zeros((3, 0))); np.save('k0b.npy', np.zeros((0, 4)))
np.save('cube.npy', np.zeros((2, 2, 2)))
np.save('object.npy', np.array([[1, 'x']], dtype=object), allow_pickle=True)
bad = np.load('A.npy'); bad[7, 3] = np.nan; np.save('nan.npy', bad)
bad[7, 3] = np.inf; np.save('inf.npy', bad)
x = np.array([[0.0, -0.0, 1, -1, 800, -800, np.nan, np.inf, -np.inf, 1e-310]] * 3); np.save('edge.npy', x)
np.save('keep.npy', np.ones((2, 2)))
open('short.npy', 'wb').write(open('A.npy', 'rb').read()[:200])
open('text.npy', 'w').write('not a matrix'); open('named.csv', 'w').write('1,2\nred,3\n')
open('seed', 'wb').write(bytes(range(32))); open('seed31', 'wb').write(bytes(31))
"; report $? "operands are made with numpy"

# same A B WAY: checks that C.npy is numpy's product
same() { py "
a, b, c = np.load('$1'), np.load('$2'), np.load('C.npy')
want = np.asarray(a.astype(float) @ b.astype(float))
assert c.dtype == '<f8' and c.shape == want.shape, (c.shape, want.shape)
assert $3, abs(c - want).max()"; }

cluster 3; report $? "three nodes are started, which commands without -n use"
fails 7 '3 local nodes are up: --scheme share with --colluding 2 and --spare 1 needs 6 or more' multiply A.npy B.npy -o C.npy \
    --scheme share --colluding 2 --spare 1 && grep -q 'try: sherd cluster down, then sherd cluster up -n 6, or lower' err
report $? "if they are too few for a scheme, the hint says how to start more"
for scheme in permute plain; do
    for nodes in 1 3; do
        rm -f C.npy; run multiply A.npy B.npy -o C.npy -n $nodes --scheme $scheme --check
        [ $code = 0 ] && silent_out && grep -q 'equal: yes' err && same A.npy B.npy 'np.allclose(c, want, rtol=1e-12, atol=1e-12)'
        report $? "$scheme over $nodes gives numpy's result, in floats"
        rm -f C.npy; run multiply A.npy B.npy -o C.npy -n $nodes --scheme $scheme --check --mode exact
        [ $code = 0 ] && grep -q 'equal: yes, bit for bit' err && same A.npy B.npy 'abs(c - want).max() < 1e-2'
        report $? "$scheme over $nodes is equal bit for bit in fixed point"
    done
done

for pair in "u8.npy f32.npy" "u8.npy i8w.npy" "fortran.npy B.npy" "A.npy col.npy" "row.npy B.npy" "row.npy col.npy" "one.npy one.npy" "none.npy B.npy" "k0a.npy k0b.npy"; do
    # shellcheck disable=SC2086
    set -- $pair
    rm -f C.npy; run multiply "$1" "$2" -o C.npy --check
    [ $code = 0 ] && same "$1" "$2" 'np.allclose(c, want, rtol=1e-12, atol=1e-12)'
    report $? "$1 times $2 works"
done

py "a, b = np.load('A.npy'), np.load('B.npy')
np.savetxt('A.csv', a, delimiter=',', fmt='%.17g', header='x' + ',x' * 28, comments=''); np.savez('B.npz', B=b)
np.savez_compressed('AB.npz', A=a, B=b)"
for pair in "A.csv B.npz" "AB.npz:A B.npy" "A.npy AB.npz:B"; do
    # shellcheck disable=SC2086
    rm -f C.npy; run multiply ${pair% *} ${pair#* } -o C.npy --certificate pair.json
    [ $code = 0 ] && same A.npy B.npy 'np.allclose(c, want, rtol=1e-12, atol=1e-12)' && run verify pair.json ${pair% *} ${pair#* } C.npy
    [ $code = 0 ]; report $? "$pair are read as matrices, and verified"
done
run multiply A.npy B.npy -o C.csv --mode exact && cp C.csv A1.csv && run multiply A.npy B.npy -o C.npy --mode exact
[ $code = 0 ] && py "assert (np.loadtxt('A1.csv', delimiter=',') == np.load('C.npy')).all()"; report $? "a result with a name in .csv is text with the same bits"
run multiply A.npy row.npy -o C.npy; grep -q 'wrote C.npy (a vector of 37, float64)' err; report $? "a vector on the right gives a vector, and the message says so"
run apply exp row.npy -o C.npy; [ $code = 0 ] && py "assert np.load('C.npy').shape == (29,)"; report $? "so does an element-wise function"
py "np.save('flat.npy', np.load('row.npy').reshape(1, -1))"
for pair in "row.npy row.npy" "row.npy flat.npy" "flat.npy row.npy" "flat.npy flat.npy"; do
    # shellcheck disable=SC2086
    run apply minus ${pair% *} ${pair#* } -o C.npy; [ $code = 0 ] && py "assert np.load('C.npy').shape == (np.load('${pair% *}') - np.load('${pair#* }')).shape"
    report $? "an element-wise function of $pair has numpy's shape"
done
fails 2 'AB.npz: has 2 members, the first is A' multiply AB.npz B.npy -o C.npy && grep -q 'try: name one of them as FILE.npz:NAME' err
report $? "an .npz with several arrays needs the name of one"
fails 3 'named.csv:2:1' multiply named.csv B.npy -o C.npy; report $? "a .csv with names is refused with its place"

run multiply u8.npy i8w.npy -o C.npy --mode exact --check -q
[ $code = 0 ] && [ ! -s err ] && same u8.npy i8w.npy '(c == want).all()'
report $? "integers are exact, and --quiet prints nothing"

bad=
for group in 1 3 10 all; do for exposure in uniform balanced; do for rows in "" --shuffle-rows; do
    # shellcheck disable=SC2086
    run multiply A.npy B.npy -o C.npy --mode exact --group $group --exposure $exposure $rows --check --exposure-max 1
    [ $code = 0 ] && grep -q 'equal: yes, bit for bit' err || bad="$bad $group,$exposure,$rows"
done; done; done
[ -z "$bad" ]; report $? "every group, exposure and row order gives the same bits:$bad"

run multiply A.npy B.npy -o C.npy -n 3 --json --check --certificate cert.json
[ $code = 0 ] && json "d['ok'] and d['schema'] == 'sherd/multiply/1' and len(d['nodes']) == 3 and sum(x['planned'] for x in d['nodes']) == 29 and d['check']['equal'] and d['check']['judged'] == 'gamma' and d['local_products'] == 0 and d['domains'] == 'simulated on one host' and all(x['pid'] > 0 and x['bytes_in'] > 0 for x in d['nodes'])"
report $? "--json reports nodes, bytes and the comparison; only --check computes a product locally"
[ "$(stat -c %a cert.json)" = 600 ] && py "d = json.load(open('cert.json')); assert d['inputs'] and d['signature']"
report $? "a certificate is written, with mode 0600 and signed"
run multiply A.npy B.npy -o C.npy --certificate public.json --certificate-public
[ $code = 0 ] && py "assert not any(i.get('sha256') for i in json.load(open('public.json'))['inputs'])"
report $? "a public certificate has no digest of the inputs"

run multiply A.npy B.npy -o C.npy --seed seed --json; cp out first
run multiply A.npy B.npy -o C.npy --seed seed --json
[ $code = 0 ] && py "a, b = json.load(open('first')), json.load(open('out'))
assert [x['planned'] for x in a['nodes']] == [x['planned'] for x in b['nodes']]"
report $? "one seed assigns the same columns twice"

run multiply A.npy B.npy -n 3 --dry-run --json
[ $code = 0 ] && json "d['dry_run'] and len(d['choices']) >= 4 and sum(c['chosen'] for c in d['choices']) == 1 and all(c['bytes_out'] > 0 for c in d['choices'])"
report $? "--dry-run prints the cost of each choice and needs no output"
json "len({c['own_seconds'] for c in d['choices']}) == 1 and not any(c['pays'] for c in d['choices']) and all(c['local'] for c in d['choices'])"
report $? "--dry-run compares all choices with one time of this machine, whose cores local nodes share"
run multiply A.npy B.npy -o C.npy -n 3 --json
[ $code = 0 ] && json "(lambda p: [p['bytes_out'], p['bytes_in']] == [d['work_out'], d['work_in']] and p['seconds'] > 0 and p['bound'] in ('nodes', 'links', 'here', 'cores') and 'pays' in p)(d['predicted']) and d['local_products'] == 0"
report $? "--json has the forecast of the run, exact in bytes, without computing a product locally"
run plan 512x512x512 --remote 3 --link 1G --json
[ $code = 0 ] && json "d['rates']['gflops'] / 100 < d['rates']['node_gflops'] < 2 * d['rates']['gflops'] and d['rates']['node_gflops'] != 1"
report $? "without a connected node the plan has the rate of one core of this machine"
run plan 40000x4x40000 --remote 3 --node-gflops 10 --link 1G
[ $code = 0 ] && grep -q '^  plain  *5.3 MB  *13 GB .* [0-9.]* \(s\|min\|h\)  *[0-9.]*x ' out
report $? "a plan of a result that is too large to measure predicts times, too"
awk 'length > 80 { exit 1 }' out && grep -q '^  scheme .* bound$' out && grep -q '^out, in: bytes' out && grep -q 'as --link says' out
report $? "a plan fits 80 columns and explains its columns"
head -n 2 out >plan.head
run multiply A.npy B.npy -n 3 --dry-run --scheme share
[ $code = 0 ] && [ "$(sed -n 2p out)" = "$(sed -n 2p plan.head)" ] && awk 'length > 80 { exit 1 }' out && grep -q '^out, in: bytes' out
report $? "--dry-run has the columns and the legend of plan"
grep -q 'nodes on this machine share its cores' out && ! grep -q 'it pays' out; report $? "nodes on this machine do not pay"
run multiply A.npy B.npy -o C.npy -n 3 -v
[ $code = 0 ] && [ "$(grep -cE '^node(-[1-3])? +(pid|[0-9]+) ' err)" = 4 ] && ! grep -E '^node(-[1-3])? ' err | grep -q '.\{81\}'
report $? "the table of nodes fits 80 columns"
fails 2 "link: expected a size .*, found '0'" plan A.npy B.npy --remote 3 --link 0; report $? "a link rate of 0 is refused"
deaf=$(realpath "$R/${B:-build/plain}/tests/system/cli/preload_deaf.so")
LD_PRELOAD=$deaf fails 124 'do not listen' multiply A.npy B.npy -o C.npy -n 2 --timeout 3
[ $? = 0 ] && grep -q 'try: allow more time with --timeout' err; report $? "the hint for a --timeout that is too short names --timeout"
[ "$("$S" help node | grep -c ' $')" = 0 ]; report $? "no line of help ends with a blank"

py "r = np.random.default_rng(3); a = r.integers(1, 200, (300, 60)).astype('u1'); a[r.random(a.shape) > .1] = 0
np.save('sparse.npy', a); np.save('tall.npy', r.standard_normal((60, 40)))"
run multiply sparse.npy tall.npy -n 3 --seed seed --dry-run --encoding csr
[ $code = 0 ] && grep -q '^permute, all: A is sent in CSR, without zeros' out && ! grep -q '^permute, 1: ' out
report $? "--dry-run states how A would be sent"
for mode in float exact; do
    rm -f C.npy; run multiply sparse.npy tall.npy -o C.npy --seed seed --mode $mode --encoding dense --json --check
    cp out dense; cp C.npy C-dense.npy; rm -f C.npy
    run multiply sparse.npy tall.npy -o C.npy --seed seed --mode $mode --encoding csr --json --check
    [ $code = 0 ] && py "a, b = json.load(open('dense')), json.load(open('out'))
assert a['encoding'] == 'dense' and a['tasks_csr'] == 0 and b['encoding'] == 'csr' and b['tasks_csr'] == b['tasks']
assert b['bytes_out'] < a['bytes_out'] - 8000 and b['check']['equal']" &&
        { [ $mode = float ] || cmp -s C.npy C-dense.npy; }
    report $? "$mode: CSR sends fewer bytes and gives the result"
done
rm -f C.npy; run multiply sparse.npy tall.npy -o C.npy --encoding csr
[ $code = 0 ] && grep -q 'A was sent in CSR, without zeros, in ' err
report $? "a run reports that zeros were left out"
fails 2 'has no effect under --scheme share' multiply A.npy B.npy -o C.npy -n 3 --scheme share --encoding csr
report $? "--encoding is refused under share"

for op in sigmoid square relu tanh exp; do
    rm -f C.npy; run apply $op edge.npy -o C.npy --check
    [ $code = 0 ] && grep -q 'equal: yes, bit for bit' err && py "
np.seterr(all='ignore')
x, c = np.load('edge.npy'), np.load('C.npy')
want = {'sigmoid': lambda x: 1 / (1 + np.exp(-x)), 'square': np.square, 'relu': lambda x: np.maximum(x, 0), 'tanh': np.tanh, 'exp': np.exp}['$op'](x)
assert np.allclose(c, want, rtol=1e-15, atol=1e-320, equal_nan=True), (c - want)"
    report $? "apply $op gives NaN, infinities and large values as numpy does"
done
for op in minus multiply; do
    rm -f C.npy; run apply $op A.npy fortran.npy -o C.npy --check --json
    [ $code = 0 ] && json "d['check']['equal'] and d['operation'] == '$op' and sum(x['tasks'] for x in d['nodes']) >= 1" &&
        py "a = np.load('A.npy'); assert ((a - a if '$op' == 'minus' else a * a) == np.load('C.npy')).all()"
    report $? "apply $op of two matrices gives numpy's result"
done
fails 2 'did you mean sigmoid' apply sigmiod A.npy -o C.npy -n 2; report $? "an unknown operation is reported with the nearest"
fails 2 'minus takes two matrices' apply minus A.npy -o C.npy -n 2; report $? "a missing operand gives exit code 2"
npy_of() { printf '\223NUMPY\001\000\164\000%-116s' "{'descr':'<f8','fortran_order':False,'shape':($1)}"; }
fails 3 '37 x 29 and B.npy is 29 x 23' apply minus A.npy B.npy -o C.npy -n 2; report $? "operands of different shapes give exit code 3"

fails 4 'gone.npy: cannot open' multiply gone.npy B.npy -o C.npy -n 2; report $? "a missing file gives exit code 4"
fails 3 'short.npy' multiply short.npy B.npy -o C.npy -n 2; report $? "a truncated file gives exit code 3"
fails 3 'text.npy' multiply text.npy B.npy -o C.npy -n 2; report $? "a file that is not a matrix gives exit code 3"
fails 3 'object.npy' multiply object.npy B.npy -o C.npy -n 2; report $? "an array of objects gives exit code 3"
fails 3 'cube.npy' multiply cube.npy B.npy -o C.npy -n 2; report $? "three dimensions give exit code 3"
for shape in 0,2305843009213693952 0,2147483648 2147483648,0; do
    npy_of $shape >empty.npy
    fails 3 "empty.npy: claims .*at most 2^24 in a matrix without values" multiply empty.npy empty.npy -o C.npy -n 2 &&
        fails 3 "empty.npy: claims" apply relu empty.npy -o C.npy -n 2 || break
done
report $? "large dimensions without values are refused before any work"
fails 3 'A.npy is 37 x 29 and B5.npy is 5 x 23' multiply A.npy B5.npy -o C.npy -n 2; report $? "shapes that do not agree give exit code 3"
fails 11 'row 7' multiply nan.npy B.npy -o C.npy -n 2 --mode exact; report $? "NaN in exact mode gives exit code 11 with its place"
run multiply i4w.npy i4b.npy -o C.npy --mode exact --check --json
[ $code = 0 ] && json 'd["primes"] == 0 and d["bits_a"] == d["bits_b"] == 5' && same i4w.npy i4b.npy '(c == want).all()'
report $? "small integers in a wide type take one f64 product, and their bits are reported"
run multiply i4w.npy i4b.npy -o C.npy --bits 5; [ $code = 0 ]; report $? "--bits wide enough for the integers is accepted"
mkdir -m 700 taken; echo x >taken/x # opening a cluster would fail because of it
fails 11 'i4b.npy: row 0, column 2: -9 is beyond 7' multiply i4w.npy i4b.npy -o C.npy -n 2 --bits 4 --record taken
report $? "--bits too narrow for the integers gives exit code 11 with the operand, before nodes are started"
"$S" multiply A.npy B.npy -o full.npy -q --json >/dev/full 2>err </dev/null; code=$?
[ $code = 4 ] && grep -q 'all else was done' err && [ -e full.npy ]
report $? "if only standard output fails, the message says that the result was written"
py "r = np.random.default_rng(9); w = lambda bits, *shape: r.integers(-2**bits, 2**bits, shape)
np.save('w40.npy', w(40, 37, 29)); np.save('w34.npy', w(34, 29, 23)); np.save('w40b.npy', w(40, 29, 23)); np.save('w50.npy', w(50, 37, 29))
np.save('u32a.npy', r.integers(2**31, 2**32, (37, 29), np.uint32)); np.save('u32b.npy', r.integers(2**31, 2**32, (29, 23), np.uint32))"
for pair in "w40.npy w34.npy" "u32a.npy u32b.npy" "w40.npy u32b.npy"; do for way in "--scheme permute" "--group 1" "--encoding csr" "--scheme plain"; do
    # shellcheck disable=SC2086
    run multiply ${pair% *} ${pair#* } -o C.npy --mode exact --check --json $way
    [ $code = 0 ] && json 'd["primes"] == 4 and d["check"]["bit_equal"] == 851'
    report $? "integers beyond 32 bits are exact in residues: $pair $way"
done; done
fails 11 'sums of 29 products of 51 and 41 bits do not fit four primes' multiply w50.npy w40b.npy -o C.npy -n 2 --mode exact
report $? "a result beyond four primes gives exit code 11"
fails 11 'row 7' multiply inf.npy B.npy -o C.npy -n 2 --bits 12; report $? "infinity in exact mode gives exit code 11 with its place"
run multiply nan.npy B.npy -o C.npy --check
[ $code = 0 ] && py "c = np.load('C.npy'); assert np.isnan(c[7]).all() and not np.isnan(np.delete(c, 7, 0)).any()"
report $? "NaN in floats gives NaN in the same entries as in numpy"
grep -q '; 23 of 851 entries are NaN in both, which counts as equal; .* numpy.isclose 100.00 %' err; report $? "--check says how many entries are NaN"
run multiply A.npy B.npy -o C.npy --check
[ $code = 0 ] && ! grep -q NaN err; report $? "without NaN --check does not mention it"
run apply sigmoid edge.npy -o C.npy --check --json
[ $code = 0 ] && json "d['check']['nan'] == 3 and d['check']['judged'] == 'bits'"; report $? "so it is for element-wise operations, in JSON"
py "r = np.random.default_rng(1); sign = lambda *shape: r.choice([-1.0, 1.0], shape)
np.save('large-a.npy', 1e154 * sign(40, 4)); np.save('large-b.npy', 1e153 * sign(4, 40))"
py "np.save('near-a.npy', np.array([[1e308, 1e308, -1e308, -1e308]])); np.save('near-b.npy', np.ones((4, 2)) * [1, 1e-9])"
run multiply near-a.npy near-b.npy -o C.npy --check
[ $code = 0 ] && grep -q 'in every entry, except 1 of 2, for which |A||B| overflows' err
report $? "--check counts the entries that it cannot compare"
py "np.save('near-b.npy', np.ones((4, 1)))"
banned=0
for i in 1 2 3 4 5 6 7 8; do # the draw of columns and weights decides which sums overflow
    run multiply near-a.npy near-b.npy -o C.npy
    { [ $code = 0 ] && ! grep -q banned err; } || banned=1
done
report $banned "no node is banned if only a weight makes a sum of the check overflow"
fails 11 'no entry can be compared' multiply near-a.npy near-b.npy -o near.npy --check && [ ! -e near.npy ]
report $? "--check does not call a result equal if it can compare no entry: exit code 11"
for scheme in permute plain; do
    run multiply large-a.npy large-b.npy -o C.npy --scheme $scheme --check
    [ $code = 0 ] && grep -q 'equal: yes' err && same large-a.npy large-b.npy 'np.isfinite(c).all()' && ! grep -q banned err
    report $? "$scheme bans no node if the sums of the check overflow and the result does not"
done

XDG_RUNTIME_DIR=$T/none fails 2 'no nodes: give -n N or --nodes FILE' multiply A.npy B.npy -o C.npy; report $? "without nodes the error names both options, exit code 2"
fails 2 'cannot be combined' multiply A.npy B.npy -o C.npy -n 2 --nodes x; report $? "-n with --nodes gives exit code 2"
fails 2 'needs --key' multiply A.npy B.npy -o C.npy --nodes x; report $? "--nodes without a key gives exit code 2"
fails 2 'needs -o' multiply A.npy B.npy -n 2; report $? "without an output the exit code is 2"
fails 2 'asks for exact' multiply A.npy B.npy -o C.npy -n 2 --bits 9 --mode float; report $? "--bits with --mode float gives exit code 2"
fails 2 'from 2 to 26' multiply A.npy B.npy -o C.npy -n 2 --bits 27; report $? "too many bits give exit code 2"
fails 3 'exactly 32 bytes, found 31' multiply A.npy B.npy -o C.npy -n 2 --seed seed31; report $? "a seed of another length gives exit code 3"
fails 4 'seed99' multiply A.npy B.npy -o C.npy -n 2 --seed seed99; report $? "a missing seed gives exit code 4"
fails 4 'nowhere' multiply A.npy B.npy -o nowhere/C.npy -n 2; report $? "a missing output folder gives exit code 4"
fails 10 'expos' multiply A.npy B.npy -o C.npy -n 2 --exposure-max 0.05; report $? "a plan beyond --exposure-max gives exit code 10"
SHERD_EXPOSURE_MAX=0.3 run multiply A.npy B.npy -o P.npy -n 2 --scheme plain
[ $code = 0 ] && [ -s P.npy ]; report $? "an option of the environment that the scheme does not read is not used"; rm -f P.npy
mkdir -m 700 full; echo x >full/x # opening a cluster would fail because of it
fails 10 'expos' multiply A.npy B.npy -o C.npy -n 2 --exposure-max 0.05 --record full; report $? "a plan beyond --exposure-max is found before nodes are started"
fails 10 'expos' apply exp A.npy -o C.npy -n 2 --exposure-max 0.05 --record full; report $? "a plan beyond --exposure-max of an element-wise operation is found before nodes are started"
run multiply A.npy B.npy -o C.mat -n 1
[ $code = 0 ] && grep -q 'warning: C.mat: the file will be in the format of .npy' err && grep -q ' 1 task, ' err
report $? "a warning states the format if the name of the output ends like another"
run multiply A.npy B.npy -o C.new -n 1; [ $code = 0 ] && ! grep -q warning err
report $? "other names give no warning"
run keygen me.key
fails 4 'nodes.txt' multiply A.npy B.npy -o C.npy --nodes nodes.txt --key me.key; report $? "a missing node file gives exit code 4"
mkdir -m 700 rec; echo x >rec/x
fails 4 'rec' multiply A.npy B.npy -o C.npy -n 2 --record rec; report $? "a record folder that is not empty gives exit code 4"
run multiply A.npy B.npy -o C.npy -n 2 --record new
[ $code = 0 ] && [ -s new/index.json ] && [ "$(stat -c %a new)" = 700 ]
report $? "a record is written"

if [ "$(df --output=fstype . | tail -1)" ] && (ulimit -f 1) 2>/dev/null; then
    py "np.save('wide.npy', np.ones((29, 400)))"
    cp keep.npy C.npy
    (ulimit -f 1; "$S" multiply A.npy wide.npy -o C.npy -n 2 >out 2>err); code=$?
    [ $code = 4 ] && cmp -s keep.npy C.npy
    report $? "a file limit (as on a full disk) gives exit code 4, and an existing file is kept"
fi

rm -f C.npy; "$S" multiply A.npy B.npy -o - -n 2 2>err </dev/null | cat >C.npy
[ ! -e ./- ] && same A.npy B.npy 'np.allclose(c, want)'
report $? "-o - writes the matrix to standard output, not to a file of that name"
run meta build z=dot:4x3x2 --nodes 2 -o z.npz
all=yes
for words in "meta build z=dot:4x3x2 --nodes 2 -o -" "meta expand z.npz -o -" "meta compact z.npz -o -" "keygen -" \
    "prepare B.npy --rows 9 -o -" "multiply A.npy B.npy -o C.npy -n 2 --certificate -" \
    "multiply A.npy B.npy -o C.npy -n 2 --record -" "multiply A.npy B.npy -o C.npy -n 2 --meta -"; do
    # shellcheck disable=SC2086
    fails 2 ' -: this is written to a file, not to standard output' $words && [ ! -e ./- ] || { echo "# $words: $code"; all=no; }
done
[ $all = yes ]; report $? "- is refused if a file is required, and no file of that name is created"
run keygen ./-; [ $code = 0 ] && [ -s ./- ]; report $? "./- names a file"; rm -f ./-
rm -f C.npy; "$S" multiply A.npy B.npy -o - -n 2 2>err </dev/null >C.npy
[ ! -e ./- ] && same A.npy B.npy 'np.allclose(c, want)'
report $? "-o - works if standard output is a file"

py "r = np.random.default_rng(4); np.save('X.npy', r.standard_normal((3000, 3000)))"
cp keep.npy C.npy
py "
import signal, subprocess, time
p = subprocess.Popen(['$S', 'multiply', 'X.npy', 'X.npy', '-o', 'C.npy', '-n', '3', '--group', '1',
                      '--progress', 'bar'], stdout=open('out', 'w'), stderr=open('err2', 'w'))
while 'tasks' not in open('err2').read() and p.poll() is None: time.sleep(0.01) # until answers arrive
kids = subprocess.run(['ps', '--ppid', str(p.pid), '-o', 'pid='], capture_output=True, text=True).stdout.split()
p.send_signal(signal.SIGINT)
assert p.wait(60) == 130, (p.returncode, open('err2').read())
assert len(kids) == 3, kids
for k in kids: assert not os.path.exists('/proc/' + k), k
"
report $? "Ctrl-C gives exit code 130, and no node remains"
cmp -s keep.npy C.npy && [ "$(find . -name '.*sherd-*' | wc -l)" = 0 ]
report $? "after Ctrl-C no temporary file remains, and an existing output is unchanged"

# cut_short ARGS...: truncates an operand while it is read
cut_short() {
    cp X.npy cut.npy; cp keep.npy C.npy
    "$S" multiply cut.npy cut.npy -o C.npy -n 2 --group 1 --timeout 60 "$@" >out 2>err </dev/null &
    pid=$!
    # the command has read the file's header when its nodes run
    for _ in $(seq 3000); do [ "$(pgrep -c -P $pid)" = 2 ] && break; sleep 0.01; done
    truncate -s 300000 cut.npy
    wait $pid; code=$?
    [ $code = 4 ] && cmp -s keep.npy C.npy && [ "$(find . -name '.*sherd-*' | wc -l)" = 0 ]
}
cut_short && silent_out && grep -q '^sherd: multiply: .*/cut.npy: became shorter' err && grep -q '^  try: ' err
report $? "an operand that is truncated meanwhile gives exit code 4 with its name, not a signal"
cut_short --json && [ ! -s err ] && json "d['schema'] == 'sherd/multiply/1' and not d['ok'] and d['error']['code'] == 4 and d['error']['name'] == 'file' and d['error']['error'] == 'EIO' and 'cut.npy' in d['error']['message'] and d['error']['hint']"
report $? "with --json the truncated operand is reported as an object"

fails 124 '' multiply X.npy X.npy -o C.npy -n 2 --group 1 --timeout 1s; report $? "--timeout gives exit code 124"
for t in 1ms 20ms 50ms 100ms 200ms 400ms; do # before, during and after the start of nodes
    fails 124 'try: ' multiply X.npy X.npy -o C.npy -n 2 --group 1 --timeout $t
    report $? "--timeout $t gives exit code 124"
done

run meta build --network 29,23 --samples 37 --nodes 3 -o meta.npz
run multiply A.npy B.npy -o C.npy --meta meta.npz --mode exact --check
[ $code = 0 ] && grep -q 'bit for bit' err
report $? "a product runs from stored metadata"
run multiply A.npy B.npy -o C.npy --meta meta.npz --mode exact --json
[ $code = 0 ]; report $? "the same operands can use the metadata again"
fails 10 'meta.npz\|metadata\|operands' multiply fortran.npy f32.npy -o C.npy --meta meta.npz; report $? "other operands give exit code 10"
run multiply A.npy f32.npy -o C.npy --meta meta.npz --reuse-metadata
[ $code = 0 ]; report $? "--reuse-metadata allows other operands"
/usr/bin/python3 -c "
import numpy as np
np.save('big.npy', np.array([[1, 2**53 + 1], [3, 4]])); np.save('two.npy', np.eye(2))"
run multiply big.npy two.npy -o big.out.npy -n 2
[ $code = 0 ] && grep -q 'big.npy: integers beyond 2^53 are rounded to float64' err
report $? "a rounded integer is reported in float mode"
fails 11 'big.npy: row 0, column 1: 9007199254740993 is beyond 2^53' multiply big.npy two.npy -o big.out.npy -n 2 --mode exact
report $? "and refused with its place in exact mode"
fails 3 'is for 3 nodes, not for 2' multiply A.npy B.npy -o C.npy -n 2 --meta meta.npz; report $? "metadata for another number of nodes gives exit code 3"
fails 3 'none of its' multiply one.npy one.npy -o C.npy --meta meta.npz
report $? "metadata without an operation of this shape gives exit code 3"
fails 2 'cannot be combined' multiply A.npy B.npy -o C.npy -n 3 --meta meta.npz --seed seed; report $? "--meta with --seed gives exit code 2"

echo "1..$n"
