#!/bin/sh
# `multiply --scheme share` on the command line: refused options with their messages and exit codes,
# reports, certificates and node files. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
pids=
end() { for p in $pids; do kill "$p" 2>/dev/null; done; rm -rf "$T"; }
trap end EXIT

share() { run multiply A.npy B.npy -o C.npy --scheme share "$@"; }
py() { /usr/bin/python3 -c "import hashlib, json, numpy as np
$1" >>err 2>&1; }
json() { /usr/bin/python3 -c "import json
d = json.load(open('out'))
assert $1, d" >>err 2>&1; }
# fails CODE WORDS ARGS...: checks the exit code, words on stderr, and that C.npy is unchanged
fails() {
    want=$1 words=$2; shift 2
    cp keep.npy C.npy
    run "$@"
    [ $code = "$want" ] && grep -q -- "$words" err && [ ! -s out ] && cmp -s keep.npy C.npy &&
        [ "$(find . -name '.*sherd-*' | wc -l)" = 0 ]
}
# refuses CODE WORDS MORE...: the same for the product of A and B in shares
refuses() { code_=$1 words_=$2; shift 2; fails "$code_" "$words_" multiply A.npy B.npy -o C.npy --scheme share "$@"; }

py "
r = np.random.default_rng(3)
np.save('A.npy', r.standard_normal((37, 29))); np.save('B.npy', r.standard_normal((29, 23)))
np.save('keep.npy', np.ones((2, 2)))
bad = np.load('A.npy'); bad[7, 3] = np.nan; np.save('nan.npy', bad); bad[7, 3] = -np.inf; np.save('inf.npy', bad)
i = r.integers(-65535, 65536, (37, 29)); np.save('fits.npy', i); i[6, 5] = 65536; np.save('wide.npy', i)
np.save('u8.npy', r.integers(0, 256, (29, 23), np.uint8)); np.save('b300.npy', np.full((29, 23), 300))
np.save('long.npy', np.zeros((1, 1 << 17), np.int8)); np.save('tall.npy', np.zeros((1 << 17, 1), np.int8))
open('seed', 'wb').write(bytes(range(32)))
"; report $? "operands are made with numpy"
py "x = np.ones((9, 9)); x[0, 0] = 1e300; np.save('dwarfed.npy', x)"
run multiply dwarfed.npy dwarfed.npy -o C.npy -n 3 --scheme share
[ $code = 0 ] && [ "$(grep -c 'became 0' err)" = 1 ] && [ "$(grep -c 'was rounded' err)" = 1 ]
report $? "X times X: the rounding of X is reported once"
py "np.save('small.npy', np.random.default_rng(1).standard_normal((9, 9)) * 1e-6)"
run multiply small.npy small.npy -o C.npy -n 3 --bits 17
[ $code = 0 ] && grep -q 'became 0: fixed point of 17 bits ends at 2^-16: scale them by a power' err
report $? "numbers too small for fixed point are reported with the remedy, and without the largest entry"
rm -f C.npy

# ---- errors that are found before nodes are used

refuses 2 'colluding: expected a whole number from 1' -n 5 --colluding 0
report $? "--colluding 0 would hide nothing and gives exit code 2"
for words in "--group 1" "--shuffle-rows" "--exposure balanced" "--exposure-max 0.5" "--seed seed" "--meta m.npz" "--encoding csr" "--masks B.masks"; do
    # shellcheck disable=SC2086
    refuses 2 "${words%% *} has no effect under --scheme share" -n 5 $words
    report $? "${words%% *} has no effect on shares and gives exit code 2"
done
refuses 2 'mode float cannot be hidden: --scheme share is exact' -n 5 --mode float
report $? "--mode float gives exit code 2 instead of a silent change to exact"
refuses 2 'public: expected b' -n 5 --public a; report $? "--public a is refused"
for scheme in permute plain; do
    for words in "--colluding 1" "--spare 1" "--public b" "--bits-b 9"; do
        # shellcheck disable=SC2086
        fails 2 "${words%% *} has no effect under --scheme $scheme, which is not private" multiply A.npy B.npy -o C.npy -n 5 --scheme $scheme $words
        report $? "${words%% *} has no effect under $scheme and gives exit code 2"
    done
done

# ---- operands beyond fixed point or the primes

fails 11 'nan.npy: row 7, column 3 is NaN' multiply nan.npy B.npy -o C.npy -n 3 --scheme share
[ $? = 0 ] && grep -q 'try: clean the data$' err
report $? "NaN gives exit code 11 with its place, and the hint does not mention --mode float"
fails 11 'inf.npy: row 7, column 3 is -inf' multiply inf.npy B.npy -o C.npy -n 3 --scheme share
report $? "infinity gives exit code 11 with its place"
fails 11 'wide.npy: row 6, column 5: 65536 is beyond 65535, the largest that 17 bits hold' multiply wide.npy B.npy -o C.npy -n 3 --scheme share
report $? "an integer wider than 17 bits gives exit code 11 with its place"
grep -q 'try: give more bits, 26 at most' err; report $? "the hint for wide integers is possible under this scheme"
py "w = np.load('wide.npy').astype('i8'); w[6, 5] = 1 << 27; np.save('wider.npy', w)"
fails 11 'is beyond 33554431' multiply wider.npy B.npy -o C.npy -n 3 --scheme share --bits 26
[ $? = 0 ] && grep -q 'try: scale the data' err; report $? "the hint differs if no number of bits is enough"
run multiply wide.npy B.npy -o C.npy -n 3 --scheme share --bits 18 --check
[ $code = 0 ] && grep -q 'equal: yes, bit for bit' err; report $? "--bits 18 is enough for the integer"
run multiply fits.npy u8.npy -o C.npy -n 3 --scheme share --check
[ $code = 0 ] && py "a, b, c = (np.load(f) for f in ('fits.npy', 'u8.npy', 'C.npy')); assert (c == a.astype(float) @ b).all()"
report $? "integers that fit are multiplied unchanged"
fails 11 'b300.npy: row 0, column 0: 300 is beyond 255, the largest that 9 bits hold' multiply A.npy b300.npy -o C.npy -n 3 --scheme share --bits-b 9
report $? "--bits-b sets B's width"
fails 2 'u8.npy: contains bytes (u8), which take 9 bits with their sign, and 8 were requested' multiply A.npy u8.npy -o C.npy -n 3 --scheme share --bits-b 8
[ $? = 0 ] && grep -q 'try: give --bits-b 9 or more' err; report $? "--bits-b below 9 for bytes gives exit code 2 with the width needed"
mkdir -m 700 full; echo x >full/x # opening a cluster would fail because of it
fails 11 'wide.npy: row 6, column 5: 65536 is beyond 65535' multiply wide.npy B.npy -o C.npy -n 3 --scheme share --record full &&
    fails 11 'b300.npy: row 0, column 0: 300 is beyond 255' multiply A.npy b300.npy -o C.npy -n 3 --scheme share1 --bits-b 9 --record full &&
    fails 2 'u8.npy: contains bytes' multiply A.npy u8.npy -o C.npy -n 3 --scheme share --bits-b 8 --record full
report $? "entries beyond the bits are found before nodes are started"
fails 11 'wide.npy: row 6, column 5: 65536 is beyond 65535' multiply wide.npy B.npy -o C.npy -n 3 --scheme share --dry-run
report $? "--dry-run also names the file, and prints no table"
fails 11 'wide.npy: row 0, column 0: -37815 is beyond 2047' plan wide.npy B.npy -n 3 --bits 12 --record full &&
    fails 11 'nan.npy: row 7, column 3 is NaN' plan nan.npy B.npy -n 3 --mode exact --record full
report $? "plan: operands beyond every choice are found before nodes are started"
run plan wide.npy B.npy --remote 3 --node-gflops 10 --link 1G
[ $code = 0 ] && tr -s '\n ' ' ' <out | grep -q ' share, 1 colluding not possible: wide.npy: row 6, column 5: 65536 is beyond 65535' && grep -q '^  plain  *[0-9]' out
report $? "plan: operands beyond one choice are reported in its row"
run multiply wide.npy B.npy -n 3 --dry-run
[ $code = 0 ] && tr -s '\n ' ' ' <out | grep -q ' share, 1 colluding not possible: wide.npy: row 6, column 5: 65536 is beyond 65535' && grep -q '^\* permute, all  *[0-9]' out
report $? "the table of --dry-run reports them in the same way"
run multiply wide.npy B.npy -n 3 --dry-run --json
[ $code = 0 ] && json "[c['choice'].split(',')[0] for c in d['choices'] if 'impossible' in c] == ['share', 'share1'] and [c['choice'] for c in d['choices'] if c['chosen']] == ['permute, all']"
report $? "the JSON of --dry-run reports them, too"
# All zeros: the range depends on shapes and widths, not on values.
run multiply long.npy tall.npy -o C.npy -n 3 --scheme share --json
[ $code = 0 ] && json "d['primes'] == 3"; report $? "the primes follow from shapes and --bits: three for 2^17 zeros"

# ---- too few nodes, and their domains

refuses 7 '-n 2: --scheme share with --colluding 1 and --spare 0 needs 3 or more' -n 2 --record full
[ $? = 0 ] && grep -q "try: -n 3$" err
report $? "two nodes are too few for share: exit code 7 with the number needed, before any is started"
refuses 7 '-n 4: --scheme share with --colluding 2 and --spare 1 needs 6 or more' -n 4 --colluding 2 --spare 1
report $? "two colluding domains and one spare node need six nodes"
refuses 7 '-n 1: --scheme share1 with --colluding 1 and --spare 0 needs 2 or more' -n 1 --public b
report $? "a public B needs two nodes"

run keygen me.key; me=$(cat out)
echo "* $me role=coordinator" >allow.txt
: >lines
for i in 1 2 3; do
    run keygen node$i.key
    "$S" node --listen 127.0.0.1:0 --key node$i.key --allow allow.txt --domain site-$i >line$i 2>log$i </dev/null &
    pids="$pids $!"
done
for i in 1 2 3; do
    tries=0
    while [ ! -s line$i ] && [ $tries -lt 200 ]; do sleep 0.05; tries=$((tries + 1)); done
    cat line$i >>lines
done
to() { sed "$1" lines >nodes.txt; shift; share --nodes nodes.txt --key me.key "$@"; }
[ "$(grep -c ' domain=site-' lines)" = 3 ]; report $? "three nodes listen, and their lines name their domains"
sed '2s/ domain=[^ ]*//' lines >nodes.txt
refuses 3 'has no domain= in the node file: a private scheme must know which nodes are one adversary' --nodes nodes.txt --key me.key
[ $? = 0 ] && grep -q 'nodes.txt:2: ' err && refuses 3 'nodes.txt:2: ' --nodes nodes.txt --key me.key --record full
report $? "a node without domain= gives exit code 3 with the line, before any connection"
cp lines nodes.txt
refuses 3 'nodes.txt, lines 1 and 2: .*(domain site-1) and .*(domain site-2) are one host, whose operator sees both' --nodes nodes.txt --key me.key
report $? "two domains on one host give exit code 3"
grep -q 'try: give them one domain, or use --same-host-domains' err; report $? "the error for two domains on one host has a hint"
run plan 100x100x100 --nodes nodes.txt --key me.key
[ $code = 0 ] && tr -s '\n ' ' ' <out | grep -q 'not possible: nodes.txt, lines 1 and 2: .*; try: .*--same-host-domains'
report $? "plan states the same reason and hint"
to '' --same-host-domains --check
[ $code = 0 ] && grep -q 'equal: yes, bit for bit' err && grep -q 'domains: simulated on one host' err
report $? "--same-host-domains accepts them, and the output states the assumption"
grep -q 'with connecting to the nodes' err; report $? "the output does not claim that nodes of a file were started"
{ cat lines; echo "127.0.0.1:9 $me name=gone domain=site-4"; } >four
run multiply A.npy B.npy -o C.npy --scheme share --nodes four --key me.key --same-host-domains
[ $code = 0 ] && grep -q ' by 3 of 4 nodes' err && grep -q 'any 1 of 3 domains together' err
report $? "a node that was absent at the start is not counted in the result"
to 's/domain=site-[23]/domain=site-2/' --same-host-domains
[ $code = 7 ] && grep -q 'nodes.txt:3: domain=site-2 is that of line 2, too: 3 nodes of 2 domains are listed, and 3 domains or more' err
report $? "two nodes of one domain are one adversary: exit code 7 with their lines"
to 's/domain=site-[23]/domain=site-2/; s/^127\.0\.0\.1:/127.0.0.9:/' --same-host-domains
[ $code = 7 ] && grep -q 'nodes.txt:3: domain=site-2' err && grep -q 'try: list nodes of other operators' err
report $? "shared domains are reported before any connection, with a hint"
sed 1q lines >nodes.txt; sed 1q lines >>nodes.txt; sed -n 3p lines >>nodes.txt
refuses 3 'nodes.txt' --nodes nodes.txt --key me.key --same-host-domains
report $? "two lines with one key give exit code 3"
run multiply A.npy B.npy -o C.npy --nodes lines --key me.key
[ $code = 0 ]; report $? "permute accepts the same node file"

# ---- reports

share -n 5 --spare 2 --bits 14 --bits-b 9 --json
[ $code = 0 ] && json "[d[f] for f in ('ok', 'scheme', 'colluding', 'spare', 'blocks', 'threshold', 'shares', 'encodings', 'mode')] == [True, 'share', 1, 2, 1, 3, 5, 1, 'exact']
assert [d['bits_a'], d['bits_b'], d['local_products']] == [14, 9, 0]
assert d['primes'] == {23: 2, 8: 4}[d['prime_bits']] # 2 * 29 * 2^13 * 2^8 is below 2^27 and 251*241*239*233
assert 0 < d['check_error'] < {23: 2**-42, 8: 2**-122}[d['prime_bits']] and not d['check_tolerant'] and d['tasks'] >= 3 and 'seed' not in d
assert all(x['exposed_a'] == x['exposed_b'] == 0 for x in d['nodes'])"
report $? "--json reports code, widths, primes and an exposure of 0 for A and B"
run multiply A.npy B.npy -o C.npy -n 5 --scheme share --public b --json
[ $code = 0 ] && json "[d['scheme'], d['blocks'], d['threshold'], d['shares']] == ['share1', 4, 5, 5]"
report $? "--public b is share1, with more blocks"
share -n 5 --code lagrange; [ $code = 0 ] && grep -q 'any 1 of 5 domains together learn nothing of A or B; 5 answers give the product' err &&
    share -n 5 --code inner && grep -q 'any 1 of 5 domains together learn nothing of A or B; code inner: all 5 answers give the product' err
report $? "the output states who learns what"
run multiply A.npy B.npy -o C.npy -n 5 --scheme share1
[ $code = 0 ] && grep -q 'learn nothing of A; B is public' err; report $? "the output of share1 states that B is public"
run multiply A.npy B.npy -n 7 --scheme share --dry-run
[ $code = 0 ] && grep -q '^\* share, 1 colluding ' out && grep -q '^  share1, 1 colluding ' out && grep -q '^  plain ' out
report $? "--dry-run has rows of share and share1 beside the others"
run multiply A.npy B.npy -n 7 --dry-run --json
[ $code = 0 ] && json "[c['exposure_a'] for c in d['choices'] if c['choice'] == 'share, 1 colluding'] == [0]"
report $? "they are listed if another scheme is chosen, too"
json "[[c['blocks'], c['threshold'], c['shares'], c['code']] for c in d['choices'] if c['choice'].startswith('share, ')] == [[5, 7, 7, 'inner']] and not any('threshold' in c for c in d['choices'] if not c['choice'].startswith('share'))"
report $? "JSON lists the blocks of each choice and the number of answers needed"
run multiply A.npy B.npy -n 9 --scheme share --spare 2 --dry-run
[ $code = 0 ] && grep -q '^share, 1 colluding: any 7 of 9 answers' out; report $? "the table lists the number of answers needed"
run multiply A.npy B.npy -n 7 --scheme share --code inner --dry-run
[ $code = 0 ] && grep -q '^share, 1 colluding: code inner, which needs the answers of all 7 nodes$' out
report $? "the table states that a code needs all nodes"
share -n 7 --code inner --json
[ $code = 0 ] && json "[d[f] for f in ('code', 'blocks', 'threshold', 'shares', 'encodings')] == ['inner', 5, 7, 7, 1]"
report $? "--json reports the inner-product code"
fails 2 '--code inner needs the answers of all nodes, and --spare 1 lets some be missing' multiply A.npy B.npy -o C.npy -n 5 --scheme share --code inner --spare 1
[ $? = 0 ] && grep -q 'try: use --code lagrange' err && ! grep -q starting err
report $? "--code inner with --spare gives exit code 2 with the remedy, before nodes are started"
fails 2 '--code inner hides both operands, and --scheme share1 only one' multiply A.npy B.npy -o C.npy -n 5 --scheme share --public b --code inner
report $? "--code inner with a public B gives exit code 2"
share -n 8 --spare 1 --json; json "d['code'] == 'lagrange'"
report $? "with spare nodes the code is one that can do without them"
run multiply A.npy B.npy -n 2 --scheme share --dry-run
[ $code = 7 ] && grep -q 'needs 3 or more' err; report $? "with too few nodes the exit code is 7"
same=yes
for way in "--code lagrange" "--code inner" "--colluding 1" "--colluding 2" "--code inner --colluding 3" "--spare 3" \
    "--public b"; do
    # shellcheck disable=SC2086
    share -n 7 $way; [ $code = 0 ] || same="$way: $code"
    [ -e first.npy ] || cp C.npy first.npy
    cmp -s C.npy first.npy || same="$way: other bits"
done
run multiply A.npy B.npy -o C.npy -n 3 --scheme plain --mode exact
cmp -s C.npy first.npy || same=plain
[ "$same" = yes ]; report $? "every code gives the bits of plain in exact mode: $same"

# ---- certificates

share -n 5 --json
[ $code = 0 ] && json "d['threshold'] == 5 and 'group' not in d and 'shuffle_rows' not in d"
report $? "certificates of share do not mention groups of columns"
share -n 5 --colluding 2 --key me.key --certificate C.json
[ $code = 0 ] && py "d = json.load(open('C.json'))
assert [d['scheme']['name'], d['scheme']['colluding'], d['scheme']['seed_commitment']] == ['share', 2, None]
primes, trials = d['arithmetic']['primes'], d['verification']['freivalds_trials']
assert d['arithmetic']['mode'] == 'exact' and (primes, trials) in (([5931641, 5931637], 2), ([251, 241, 239, 233, 229], 16)) and not d['arithmetic']['norms_leaked']
assert 'group' not in d['scheme']
assert d['nodes']['domains'] == 5 and d['nodes']['domains_simulated']"
report $? "a certificate states scheme, colluding, primes, trials and domains"
run verify C.json A.npy B.npy C.npy --signer "$me"
[ $code = 0 ] && grep -q 'equal: yes, bit for bit' err && grep -q 'scheme: share, against any 2 of 5 domains together' err
report $? "a certificate verifies against its key, and verify prints the scheme's guarantee"
run verify C.json A.npy B.npy C.npy --json
[ $code = 0 ] && json "[d['scheme'], d['colluding'], d['equal']] == ['share', 2, True] and d['primes'] in (2, 5)"
report $? "verify --json has the guarantee, too"
# C is altered, and the certificate adapted to it without the key.
forge() {
    run keygen other.key
    py "c = np.load('C.npy'); c[7, 5] += 1; np.save('C2.npy', c)
d = json.load(open('C.json')); s = d.pop('signature')
head = 'sherd-matrix-v1 %s %d %d\n' % (c.dtype.str, *c.shape)
d['result']['sha256'] = hashlib.sha256(head.encode() + c.tobytes()).hexdigest()
open('msg', 'w').write('sherd-certificate-v1\n' + json.dumps(d, sort_keys=True, separators=(',', ':')))
json.dump([d, s], open('parts', 'w'))" &&
        openssl pkeyutl -sign -inkey other.key -rawin -in msg -out sig 2>>err &&
        openssl pkey -in other.key -pubout -outform DER 2>>err | tail -c 32 >pub &&
        py "d, s = json.load(open('parts')); sig = open('sig', 'rb').read().hex()
d['signature'] = dict(s, value=sig); json.dump(d, open('old-key.json', 'w'))
d['signature'] = dict(s, value=sig, key=open('pub', 'rb').read().hex()); json.dump(d, open('new-key.json', 'w'))"
}
forge; report $? "a certificate is forged"
run verify old-key.json A.npy B.npy C2.npy --signer "$me"
[ $code = 6 ] && grep -q 'signature does not fit' err; report $? "with the original key its signature does not match, exit code 6"
run verify new-key.json A.npy B.npy C2.npy --signer "$me"
[ $code = 6 ] && grep -q 'not by' err; report $? "signed with another key it is refused with --signer, exit code 6"
run verify new-key.json A.npy B.npy C2.npy
[ $code = 9 ] && grep -q '1 of 851 entries differ' err; report $? "without --signer it is found by computing again, exit code 9"
echo "1..$n"
