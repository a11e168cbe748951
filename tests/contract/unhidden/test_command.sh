#!/bin/sh
# A scheme that is registered by one line (schemes.c) and hides nothing (unhidden.c): help, plans, reports,
# certificates and trainings of the command state that it is not private. Prints TAP.
SHERD=${BUILD:-build/plain}/tests/contract/unhidden/prog_sherd
. "$(dirname "$0")/../../support/tap.sh"

json() { /usr/bin/python3 -c "import json
d = json.load(open('out'))
assert $1, d" >>err 2>&1; }

/usr/bin/python3 -c "import numpy as np
r = np.random.default_rng(5)
np.save('A.npy', r.standard_normal((40, 30))); np.save('B.npy', r.standard_normal((30, 20)))"
cat >small.conf <<'END'
input = 2
layer = dense 8
layer = relu
layer = dense 3
loss = cross-entropy
data = spiral
examples = 90
classes = 3
rate = 0.5
batch = 30
epochs = 2
END

multiply() { run multiply A.npy B.npy -o C.npy -n 3 "$@"; }

run help multiply
[ $code = 0 ] && tr -s ' \n' '  ' <out | grep -q 'unhidden (not private)'
report $? "help lists the scheme as not private"
tr -s ' \n' '  ' <out | grep -q 'permute, plain: send A dense'
report $? "help of an option names the schemes that read it, and not this one"
run completion bash
grep -q 'share1 blind unhidden' out
report $? "completion lists the scheme"
run plan 40x30x20 --remote 3 --link 100M --json
[ $code = 0 ] && json "[c['private'] for c in d['choices'] if c['choice'] == 'unhidden'] == [False]"
report $? "a plan has a row for the scheme, which is not private"
json "{c['choice'].split(',')[0] for c in d['choices'] if c.get('private')} == {'share', 'share1'}"
report $? "the private schemes of a plan are unchanged"
run multiply A.npy B.npy -n 3 --dry-run --scheme unhidden --json
[ $code = 0 ] && json "[c['private'] for c in d['choices'] if c['chosen']] == [False]"
report $? "--dry-run lists it as not private"

multiply --scheme unhidden --mode exact --check --certificate cert.json
[ $code = 0 ] && grep -q 'unhidden (not private)' err && grep -q 'equal: yes, bit for bit' err
report $? "a product is correct, and its report states that nothing is private"
/usr/bin/python3 -c "import json
s = json.load(open('cert.json'))['scheme']
assert [s['name'], s['colluding'], s['seed_commitment']] == ['unhidden', 0, None], s
assert 'group' not in s" >>err 2>&1
report $? "its certificate claims no privacy"
cp C.npy exact.npy
run verify cert.json A.npy B.npy C.npy
[ $code = 0 ] && grep -q 'scheme: unhidden, which claims no privacy' err
report $? "verify states that it claims no privacy"
multiply --scheme plain --mode exact && cmp -s C.npy exact.npy
report $? "the result has the bits of plain"
multiply --scheme unhidden --json
[ $code = 0 ] && json "[d['scheme'], d['private'], d['mode']] == ['unhidden', False, 'float']"
report $? "floats are accepted, and --json states that they are not private"

for words in '--colluding 2' '--spare 1' '--bits-b 12' '--public b' '--group 4' '--shuffle-rows'; do
    # shellcheck disable=SC2086
    fails 2 "${words%% *} has no effect under --scheme unhidden, which is not private" multiply A.npy B.npy -o C.npy -n 3 --scheme unhidden $words
    report $? "${words%% *} is refused"
done
grep -q 'or use --scheme permute$' err
report $? "the hint names a scheme that reads the option"
fails 2 '--masks has no effect under --scheme unhidden' multiply A.npy B.npy -o C.npy -n 3 --scheme unhidden --masks none
report $? "masks are refused"

head -c 32 /dev/zero >seed
run train small.conf -n 3 --scheme unhidden --bits 17 --seed seed -o a.npz
[ $code = 0 ] && grep -q 'under a scheme that is not private: nodes may see data and weights' err
report $? "a training states that nodes may see data and weights"
run train small.conf -n 3 --scheme plain --bits 17 --seed seed -o b.npz
[ $code = 0 ] && cmp -s a.npz b.npz
report $? "its model has the bits of plain"
run train small.conf -n 3 --scheme unhidden --elementwise nodes -o c.npz
[ $code = 0 ]
report $? "element-wise operations may run on the nodes"
echo "1..$n"
