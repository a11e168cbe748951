#!/bin/sh
# `multiply --scheme share` as it is typed: what is refused and with which sentence and exit code, what
# is told, and what certificates and node files must say. Speaks TAP.
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
# fails CODE WORDS ARGS...: exit code, words on stderr, C.npy as it was
fails() {
    want=$1 words=$2; shift 2
    cp keep.npy C.npy
    run "$@"
    [ $code = "$want" ] && grep -q -- "$words" err && [ ! -s out ] && cmp -s keep.npy C.npy &&
        [ "$(find . -name '.*sherd-*' | wc -l)" = 0 ]
}
# refuses CODE WORDS MORE...: of A and B in shares
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
report $? "X times X: what rounding made of X is said once"
py "np.save('small.npy', np.random.default_rng(1).standard_normal((9, 9)) * 1e-6)"
run multiply small.npy small.npy -o C.npy -n 3 --bits 17
[ $code = 0 ] && grep -q 'became 0: fixed point of 17 bits ends at 2^-16: multiply them by a power' err
report $? "numbers that are all too small for fixed point are told with the remedy, and not by the largest"
rm -f C.npy

# ---- what is refused before a node is asked

refuses 2 'colluding: expected a whole number from 1' -n 5 --colluding 0
report $? "--colluding 0 would hide nothing and is exit 2"
for words in "--group 1" "--shuffle-rows" "--exposure balanced" "--exposure-max 0.5" "--seed seed" "--meta m.npz" "--encoding csr" "--masks B.masks"; do
    # shellcheck disable=SC2086
    refuses 2 "${words%% *} has no effect under --scheme share" -n 5 $words
    report $? "${words%% *} has no effect on shares and is exit 2"
done
refuses 2 'mode float cannot be hidden: --scheme share is exact' -n 5 --mode float
report $? "floats cannot be hidden, which is exit 2 and no silent change to exact"
refuses 2 'public: expected b' -n 5 --public a; report $? "A is never public"
for scheme in permute plain; do
    for words in "--colluding 1" "--spare 1" "--public b" "--bits-b 9"; do
        # shellcheck disable=SC2086
        fails 2 "${words%% *} has no effect under --scheme $scheme, which is not private" multiply A.npy B.npy -o C.npy -n 5 --scheme $scheme $words
        report $? "${words%% *} promises nothing under $scheme: exit 2"
    done
done

# ---- operands that fixed point or the primes cannot hold

fails 11 'nan.npy: row 7, column 3 is NaN' multiply nan.npy B.npy -o C.npy -n 3 --scheme share
[ $? = 0 ] && grep -q 'try: clean the data$' err
report $? "NaN is exit 11 and says where, and no floats are named that this scheme does not have"
fails 11 'inf.npy: row 7, column 3 is -inf' multiply inf.npy B.npy -o C.npy -n 3 --scheme share
report $? "infinity is exit 11 and says where"
fails 11 'wide.npy: row 6, column 5: 65536 is beyond 65535, the largest that 17 bits hold' multiply wide.npy B.npy -o C.npy -n 3 --scheme share
report $? "an integer wider than 17 bits is exit 11 and says which"
grep -q 'try: give more bits, 26 at most' err; report $? "with a remedy that there is under this scheme"
py "w = np.load('wide.npy').astype('i8'); w[6, 5] = 1 << 27; np.save('wider.npy', w)"
fails 11 'is beyond 33554431' multiply wider.npy B.npy -o C.npy -n 3 --scheme share --bits 26
[ $? = 0 ] && grep -q 'try: scale the data' err; report $? "and another where no bits would do"
run multiply wide.npy B.npy -o C.npy -n 3 --scheme share --bits 18 --check
[ $code = 0 ] && grep -q 'equal: yes, bit for bit' err; report $? "--bits 18 hold it"
run multiply fits.npy u8.npy -o C.npy -n 3 --scheme share --check
[ $code = 0 ] && py "a, b, c = (np.load(f) for f in ('fits.npy', 'u8.npy', 'C.npy')); assert (c == a.astype(float) @ b).all()"
report $? "integers that fit are multiplied as they are"
fails 11 'b300.npy: row 0, column 0: 300 is beyond 255, the largest that 9 bits hold' multiply A.npy b300.npy -o C.npy -n 3 --scheme share --bits-b 9
report $? "--bits-b is B's width"
fails 2 'u8.npy: contains bytes (u8), which take 9 bits with their sign, and 8 were requested' multiply A.npy u8.npy -o C.npy -n 3 --scheme share --bits-b 8
[ $? = 0 ] && grep -q 'try: give --bits-b 9 or more' err; report $? "bytes need 9 bits, and fewer --bits-b are exit 2 and say so"
mkdir -m 700 full; echo x >full/x # a cluster that is opened fails for it
fails 11 'wide.npy: row 6, column 5: 65536 is beyond 65535' multiply wide.npy B.npy -o C.npy -n 3 --scheme share --record full &&
    fails 11 'b300.npy: row 0, column 0: 300 is beyond 255' multiply A.npy b300.npy -o C.npy -n 3 --scheme share1 --bits-b 9 --record full &&
    fails 2 'u8.npy: contains bytes' multiply A.npy u8.npy -o C.npy -n 3 --scheme share --bits-b 8 --record full
report $? "what bits do not hold is found before nodes are started"
fails 11 'wide.npy: row 6, column 5: 65536 is beyond 65535' multiply wide.npy B.npy -o C.npy -n 3 --scheme share --dry-run
report $? "--dry-run names the file too, and prints no table"
fails 11 'wide.npy: row 0, column 0: -37815 is beyond 2047' plan wide.npy B.npy -n 3 --bits 12 --record full &&
    fails 11 'nan.npy: row 7, column 3 is NaN' plan nan.npy B.npy -n 3 --mode exact --record full
report $? "plan: what no choice can hold is found before nodes are started"
run plan wide.npy B.npy --remote 3 --node-gflops 10 --link 1G
[ $code = 0 ] && grep -q '^  share, 1 colluding  wide.npy: row 6, column 5: 65536 is beyond 65535' out && grep -q '^  plain  *[0-9]' out
report $? "and what one cannot is said in its row"
run multiply wide.npy B.npy -n 3 --dry-run
[ $code = 0 ] && grep -q '^  share, 1 colluding  wide.npy: row 6, column 5: 65536 is beyond 65535' out && grep -q '^\* permute, all  *[0-9]' out
report $? "as in the table of --dry-run"
run multiply wide.npy B.npy -n 3 --dry-run --json
[ $code = 0 ] && json "[c['choice'].split(',')[0] for c in d['choices'] if 'impossible' in c] == ['share', 'share1'] and [c['choice'] for c in d['choices'] if c['chosen']] == ['permute, all']"
report $? "and in its JSON"
# All zeros: the range proof is about shapes and widths, not values.
run multiply long.npy tall.npy -o C.npy -n 3 --scheme share --json
[ $code = 0 ] && json "d['primes'] == 3"; report $? "the primes follow from shapes and --bits: three for 2^17 zeros"

# ---- too few nodes, and whose they are

refuses 7 '-n 2: --scheme share with --colluding 1 and --spare 0 needs 3 or more' -n 2 --record full
[ $? = 0 ] && grep -q "try: -n 3$" err
report $? "two nodes are too few for share: exit 7 with the number that is enough, before any is started"
refuses 7 '-n 4: --scheme share with --colluding 2 and --spare 1 needs 6 or more' -n 4 --colluding 2 --spare 1
report $? "two that collude and one spare need six"
refuses 7 '-n 1: --scheme share1 with --colluding 1 and --spare 0 needs 2 or more' -n 1 --public b
report $? "a public B needs two"

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
report $? "a node without domain= is exit 3 and names the line, before anybody is connected to"
cp lines nodes.txt
refuses 3 'node file, lines 1 and 2: .*(domain site-1) and .*(domain site-2) are one host, whose operator sees both' --nodes nodes.txt --key me.key
report $? "two domains on one host are exit 3"
grep -q 'try: give them one domain, or use --same-host-domains' err; report $? "and the remedy is said"
to '' --same-host-domains --check
[ $code = 0 ] && grep -q 'equal: yes, bit for bit' err && grep -q 'domains: simulated on one host' err
report $? "--same-host-domains takes them, and the output says what that is worth"
grep -q 'with connecting to the nodes' err; report $? "of nodes that were not started here it does not say that they were"
{ cat lines; echo "127.0.0.1:9 $me name=gone domain=site-4"; } >four
run multiply A.npy B.npy -o C.npy --scheme share --nodes four --key me.key --same-host-domains
[ $code = 0 ] && grep -q ' by 3 of 4 nodes' err && grep -q 'any 1 of 3 domains together' err
report $? "a node that was not there at the start is not said to have taken part"
to 's/domain=site-[23]/domain=site-2/' --same-host-domains
[ $code = 7 ] && grep -q 'nodes.txt:3: domain=site-2 is that of line 2, too: 3 nodes of 2 domains are listed, and 3 domains or more' err
report $? "two nodes of one domain are one adversary: exit 7, and the lines are named"
to 's/domain=site-[23]/domain=site-2/; s/^127\.0\.0\.1:/127.0.0.9:/' --same-host-domains
[ $code = 7 ] && grep -q 'nodes.txt:3: domain=site-2' err && grep -q 'try: list nodes of other operators' err
report $? "before anybody is connected to, and the remedy is said"
sed 1q lines >nodes.txt; sed 1q lines >>nodes.txt; sed -n 3p lines >>nodes.txt
refuses 3 'nodes.txt' --nodes nodes.txt --key me.key --same-host-domains
report $? "two lines with one key are exit 3"
run multiply A.npy B.npy -o C.npy --nodes lines --key me.key
[ $code = 0 ]; report $? "permute takes the same file"

# ---- what is told

share -n 5 --spare 2 --bits 14 --bits-b 9 --json
[ $code = 0 ] && json "[d[f] for f in ('ok', 'scheme', 'colluding', 'spare', 'blocks', 'threshold', 'shares', 'encodings', 'mode')] == [True, 'share', 1, 2, 1, 3, 5, 1, 'exact']
assert [d['bits_a'], d['bits_b'], d['primes'], d['local_products']] == [14, 9, 2, 0]
assert 0 < d['check_error'] < 2**-42 and not d['check_tolerant'] and d['tasks'] >= 3 and 'seed' not in d
assert all(x['exposed_a'] == x['exposed_b'] == 0 for x in d['nodes'])"
report $? "--json tells code, widths, primes and that nothing of A or B was shown"
run multiply A.npy B.npy -o C.npy -n 5 --scheme share --public b --json
[ $code = 0 ] && json "[d['scheme'], d['blocks'], d['threshold'], d['shares']] == ['share1', 4, 5, 5]"
report $? "--public b is share1, with more blocks"
share -n 5; [ $code = 0 ] && grep -q 'any 1 of 5 domains together learn nothing of A or B; 5 answers give the product' err
report $? "people are told who learns what"
run multiply A.npy B.npy -o C.npy -n 5 --scheme share1
[ $code = 0 ] && grep -q 'learn nothing of A; B is public' err; report $? "and under share1 that B is public"
run multiply A.npy B.npy -n 7 --scheme share --dry-run
[ $code = 0 ] && grep -q '^\* share, 1 colluding ' out && grep -q '^  share1, 1 colluding ' out && grep -q '^  plain ' out
report $? "--dry-run has rows of share and share1 beside the others"
run multiply A.npy B.npy -n 7 --dry-run --json
[ $code = 0 ] && json "[c['exposure_a'] for c in d['choices'] if c['choice'] == 'share, 1 colluding'] == [0]"
report $? "also where another scheme is chosen"
json "[[c['blocks'], c['threshold'], c['shares']] for c in d['choices'] if c['choice'].startswith('share, ')] == [[3, 7, 7]] and not any('threshold' in c for c in d['choices'] if not c['choice'].startswith('share'))"
report $? "with the blocks of each and how many answers decode"
run multiply A.npy B.npy -n 9 --scheme share --spare 2 --dry-run
[ $code = 0 ] && grep -q '^\* share, 1 colluding .* 7 of 9  *- ' out; report $? "as the table says"
run multiply A.npy B.npy -n 2 --scheme share --dry-run
[ $code = 7 ] && grep -q 'needs 3 or more' err; report $? "and is exit 7 where there are too few"
same=yes
for way in "--colluding 1" "--colluding 2" "--spare 3" "--public b"; do
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
report $? "there are no groups of columns under share, and nothing is said of them"
share -n 5 --colluding 2 --key me.key --certificate C.json
[ $code = 0 ] && py "d = json.load(open('C.json'))
assert [d['scheme']['name'], d['scheme']['colluding'], d['scheme']['seed_commitment']] == ['share', 2, None]
assert d['arithmetic']['mode'] == 'exact' and d['arithmetic']['primes'] == [5931641, 5931637] and not d['arithmetic']['norms_leaked']
assert 'group' not in d['scheme']
assert d['nodes']['domains'] == 5 and d['nodes']['domains_simulated'] and d['verification']['freivalds_trials'] == 2"
report $? "a certificate states scheme, colluding, primes, trials and domains"
run verify C.json A.npy B.npy C.npy --signer "$me"
[ $code = 0 ] && grep -q 'equal: yes, bit for bit' err && grep -q 'scheme: share, against any 2 of 5 domains together' err
report $? "it verifies against its key, and verify says what was promised"
run verify C.json A.npy B.npy C.npy --json
[ $code = 0 ] && json "[d['scheme'], d['colluding'], d['primes'], d['equal']] == ['share', 2, 2, True]"
report $? "also to programs"
# C altered, and the certificate made to fit it by somebody who lacks the key.
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
[ $code = 6 ] && grep -q 'signature does not fit' err; report $? "under the old key's name its signature does not fit: exit 6"
run verify new-key.json A.npy B.npy C2.npy --signer "$me"
[ $code = 6 ] && grep -q 'not by' err; report $? "under another key it is a stranger's: exit 6"
run verify new-key.json A.npy B.npy C2.npy
[ $code = 9 ] && grep -q '1 of 851 entries differ' err; report $? "and whoever does not ask for a key finds it by computing again: exit 9"
echo "1..$n"
