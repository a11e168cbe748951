#!/bin/sh
# Verification of certificates from real runs: correct ones pass; edited ones, those of other signers and
# false ones get different exit codes. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

py() { /usr/bin/python3 -c "import hashlib, json, numpy as np
$1" >>err 2>&1; }
# says CODE WORDS ARGS...: checks the exit code, words on stderr, and the verdict in the last line
says() {
    want=$1 words=$2; shift 2; run verify "$@"
    case $want in 0) verdict=VERIFIED ;; 2) verdict= ;; *) verdict='NOT VERIFIED' ;; esac
    [ $code = "$want" ] && grep -q -- "$words" err && [ "$(tail -n 1 err | grep VERIFIED)" = "$verdict" ]
}

py "
r = np.random.default_rng(5)
np.save('A.npy', r.standard_normal((31, 17))); np.save('B.npy', r.standard_normal((17, 13)))
np.save('v.npy', r.standard_normal(17)); np.save('u8.npy', r.integers(0, 256, (31, 17), np.uint8))
"; report $? "operands are made with numpy"
run keygen me.key; key=$(cat out)
report $code "a key is made"

run multiply A.npy B.npy -o C.npy -n 3 --mode exact --key me.key --certificate C.json
[ $code = 0 ] && says 0 "equal: yes, bit for bit" C.json A.npy B.npy C.npy --signer "$key"
report $? "an exact product verifies bit for bit, under the key that signed it"
run multiply A.npy B.npy -o F.npy -n 3 --certificate F.json
[ $code = 0 ] && says 0 "within gamma_k" F.json A.npy B.npy F.npy
report $? "a float product verifies within its bound"
run multiply u8.npy v.npy -o V.npy -n 2 --bits 12 --certificate V.json --certificate-public
[ $code = 0 ] && says 0 "has no digests of the inputs" V.json u8.npy v.npy V.npy && ! grep -q notice V.json
report $? "integers by a vector verify, without input digests"
run apply multiply A.npy A.npy -o M.npy -n 2 --certificate M.json
[ $code = 0 ] && says 0 "bit for bit" M.json A.npy A.npy M.npy
report $? "an element-wise product is not verified as a matrix product"
run multiply A.npy B.npy -o W.npy -n 3 --mode exact --bits 26 --certificate W.json
[ $code = 0 ] && says 0 "modulo 2^127-1): a wrong one passed with probability 2^-60" W.json A.npy B.npy W.npy &&
    says 0 "modulo 2^61-1): a wrong one passed with probability 2^-60" C.json A.npy B.npy C.npy &&
    says 0 "gross errors" F.json A.npy B.npy F.npy && says 0 "missed with probability" M.json A.npy A.npy M.npy &&
    py "v = {n: json.load(open(n + '.json'))['verification'] for n in 'CWFM'}
f = lambda c: [c['method'], c['freivalds_trials'], c['freivalds_modulus_bits'], c['freivalds_error_log2']]
assert f(v['C']) == ['freivalds', 1, 61, -60] and f(v['W']) == ['freivalds', 1, 127, -60]
assert f(v['F']) == ['freivalds-float', 1, 0, 0] and f(v['M']) == ['sample', 0, 0, 0]
assert [v[n]['sample_missed_ppm'] > 0 for n in 'CWFM'] == [False, False, False, True]"
report $? "a certificate states the error probability of the check of answers"
run multiply A.npy B.npy -o S.npy -n 3 --scheme share --bits 14 --bits-b 9 --certificate S.json
[ $code = 0 ] && says 0 "modulo each prime): a wrong one passed with probability 2^-43" S.json A.npy B.npy S.npy &&
    grep -q 'float64 differs' err && run verify S.json A.npy B.npy S.npy --json && [ $code = 0 ] &&
    py "d = json.load(open('out'))['from_float64']; s = np.load('S.npy'); f = np.load('A.npy') @ np.load('B.npy')
off = abs(s - f); i = np.unravel_index(off.argmax(), off.shape)
assert 0 < d['largest'] <= d['bound'] and abs(d['largest'] - off.max()) < 1e-9
assert (d['row'], d['col']) == i and abs(d['relative'] - np.linalg.norm(s - f) / np.linalg.norm(f)) < 1e-9"
report $? "a product in shares of two widths verifies, and its distance from float64 is reported separately"
run verify C.json A.npy B.npy C.npy --json
py "d = json.load(open('out')); assert d['ok'] and d['equal'] and d['entries'] == 403 == d['bit_equal']"
report $? "--json prints the result of the verification"

py "n = json.load(open('C.json'))['nodes']['list']
assert [x['name'] for x in n] == ['node-1', 'node-2', 'node-3'] and len({x['key'] for x in n}) == 3
assert all(x['key'].startswith('sha256:') for x in n)"
report $? "a certificate names its nodes and their keys"
run verify C.json A.npy B.npy C.npy --json
py "n = json.load(open('out'))['nodes']; assert n[2]['name'] == 'node-3' and n[2]['domain'] == 'simulated-3'"
report $? "verify prints the nodes"

run meta build z=dot:31x17x13 --nodes 3 -o C3.npz && run multiply A.npy B.npy -o C3.npy -n 3 --meta C3.npz --certificate C3.json
[ $code = 0 ] && py "c = json.load(open('C3.json')); m = json.loads(bytes(np.load('C3.npz')['manifest']))
assert c['scheme']['seed_commitment'] == m['seed_commitment']"
report $? "a certificate names the metadata that its product was made with"

py "a = np.load('A.npy'); a[30, 16] += 1e-9; np.save('A2.npy', a)
c = np.load('C.npy'); c[7, 5] = np.nextafter(c[7, 5], 9); np.save('C2.npy', c)
d = json.load(open('C.json')); d['nodes']['count'] = 8; json.dump(d, open('edited.json', 'w'))
open('cut.json', 'w').write(open('C.json').read()[:300])"
says 3 "A2.npy is not the input" C.json A2.npy B.npy C.npy; report $? "another input is reported"
says 9 "C2.npy is not the result" C.json A.npy B.npy C2.npy; report $? "one changed bit of the result is reported"
says 6 "signature does not fit" edited.json A.npy B.npy C.npy; report $? "an edited certificate is reported"
says 3 "not a JSON object" cut.json A.npy B.npy C.npy; report $? "a truncated certificate is reported"
says 3 "the certificate states 31 x 17" C.json B.npy A.npy C.npy; report $? "swapped inputs are reported"
says 4 "none.json: cannot open" none.json; report $? "a missing certificate or folder is reported"
says 2 "expected 3 files" C.json A.npy C.npy; report $? "a missing matrix is reported"
says 4 "No such file" none.json A.npy B.npy C.npy; report $? "a missing certificate is reported"
says 6 "not by sha256:" F.json A.npy B.npy F.npy --signer "$key"; report $? "a signature by another key is reported"
says 2 "--head is for checkpoints" C.json A.npy B.npy C.npy --head "sha256:$(printf %064d 0)"
report $? "--head with a certificate is refused, not ignored"
says 2 "expected key=sha256:" C.json A.npy B.npy C.npy --signer me; report $? "an invalid key is reported"

# A coordinator that signs a wrong result: only computing it again detects this.
lie() {
    py "d = json.load(open('C.json')); d.pop('signature'); c = np.load('C2.npy')
head = 'sherd-matrix-v1 %s %d %d\n' % (c.dtype.str, *c.shape)
d['result']['sha256'] = hashlib.sha256(head.encode() + c.tobytes()).hexdigest()
json.dump(d, open('lie.json', 'w'))
open('msg', 'w').write('sherd-certificate-v1\n' + json.dumps(d, sort_keys=True, separators=(',', ':')))" &&
        openssl pkeyutl -sign -inkey me.key -rawin -in msg -out sig 2>>err &&
        py "d = json.load(open('lie.json')); s = json.load(open('C.json'))['signature']
s['value'] = open('sig', 'rb').read().hex(); d['signature'] = s; json.dump(d, open('lie.json', 'w'))"
}
lie && says 9 "1 of 403 entries differ.*row 7, column 5" lie.json A.npy B.npy C2.npy --signer "$key"
report $? "a signed wrong result is found by computing it again"

# A chain of checkpoints, written from the description of the format alone.
py "
import os
os.mkdir('run'); before = bytes(32)
for k in (5, 10, 15):
    name = 'checkpoint-%012d.npz' % k
    np.savez('run/' + name, format=np.frombuffer(b'sherd-checkpoint-1', 'u1'), number=np.array([k]),
             previous=np.frombuffer(before, 'u1'), w1=np.full((3, 4), k + .5))
    before = hashlib.sha256(open('run/' + name, 'rb').read()).digest()
open('run/head', 'w').write('%s sha256:%s\n' % (name, before.hex()))"
head=$(cut -d' ' -f2 run/head)
says 0 'checkpoints: 3, complete and in order' run && grep -q "$head" err && says 0 'as given' run --head "$head" &&
    run verify run --json && py "d = json.load(open('out')); assert d['ok'] and d['checkpoints'] == 3 and d['step'] == 15"
report $? "a chain that numpy wrote verifies up to its head"
other=sha256:$(echo "${head#sha256:}" | tr 0123456789 1234567890)
says 12 'not in sha256' run --head "$other" && says 2 '64 hexadecimal' run --head "sha256:12" &&
    says 2 'not signed' run --signer "$key" && says 2 'expected no argument after it' run A.npy && mkdir none &&
    says 12 'has no checkpoints' none && says 2 'matrices after it' C.json A.npy
report $? "another head, an empty folder and extra arguments are refused"
cp -r run bent && py "b = bytearray(open('bent/checkpoint-000000000010.npz', 'rb').read()); b[len(b) // 2] ^= 4
open('bent/checkpoint-000000000010.npz', 'wb').write(b)" && says 12 'checkpoint-000000000010' bent &&
    cp -r run cut && rm cut/checkpoint-000000000015.npz && says 12 'is missing, which head names' cut &&
    run verify cut --json && [ $code = 12 ] && py "assert json.load(open('out'))['error']['code'] == 12" &&
    cp -r run gap && rm gap/checkpoint-000000000010.npz && says 12 'one between them is missing' gap
report $? "a flipped bit, a missing end and a gap give exit code 12"
echo "1..$n"
