#!/bin/sh
# `sherd train` in fixed point compared with tests/oracle/train_v1.py, which trains the same network with
# 64-bit integers and no code of sherd: every parameter, bit for bit. Writes TAP.
O=$(realpath "$(dirname "$0")/../../oracle/train_v1.py")
. "$(dirname "$0")/../../support/tap.sh"
unset SHERD_SCHEME SHERD_BITS
unset SHERD_MODE SHERD_BATCH SHERD_EPOCHS SHERD_RATE SHERD_ROUNDING
export PYTHONDONTWRITEBYTECODE=1

cat >make.py <<'PY'
import sys
import numpy as np
r = np.random.RandomState(3)
sizes = [20, 11, 7, 3]
for folder, whole in ('floats', False), ('bytes', True):
    x = r.uniform(-1, 1, (150, 20)) * 10.0 ** r.randint(-3, 2, (1, 20))
    y = (x[:, 0] > 0).astype(np.uint8) + (x[:, 1] * x[:, 2] > 0)
    if whole: x = (x * x * 200 % 256).astype(np.uint8)
    np.savez(folder + '/data.npz', x=x, y=y.astype(np.uint8))
    first = {}
    for i in range(3):
        first['w%d' % (i + 1)] = r.normal(0, .01 if whole else .4, (sizes[i], sizes[i + 1]))
        first['b%d' % (i + 1)] = r.normal(0, .1, sizes[i + 1])
    np.savez(folder + '/initial.npz', **first)
PY
mkdir floats bytes
cat >floats/net.conf <<'CONF'
input = 20
layer = dense 11
layer = relu
layer = dense 7
layer = relu
layer = dense 3
loss = squared
l2 = 0.001
data = file
batch = 32
order = given
epochs = 3
method = momentum 0.9
rate = 0.05
CONF
sed 's/^rate.*/rate = 0.001/; s/^batch.*/batch = 49/' floats/net.conf >bytes/net.conf
head -c 32 /dev/zero | tr '\0' 's' >seed && chmod 600 seed
/usr/bin/python3 make.py >out 2>err || { echo "Bail out! no numpy"; exit 1; }

train() { # folder, options
    folder=$1; shift
    (cd "$folder" && rm -f model.npz && "$S" train net.conf --data data.npz --initial initial.npz \
        --seed ../seed -o model.npz "$@") >out 2>err </dev/null
    code=$?
}
agrees() { /usr/bin/python3 "$O" "$@" >>out 2>>err; }

train floats --mode exact
[ $code = 0 ] && agrees floats
report $? "local training in fixed point equals the oracle"
for scheme in share plain permute; do
    train floats -n 5 --scheme $scheme --bits 17 --check
    [ $code = 0 ] && agrees floats
    report $? "training over five nodes under $scheme equals the oracle"
done
train bytes -n 3 --scheme share --check
[ $code = 0 ] && agrees bytes
report $? "training on bytes, which are not rounded, equals the oracle"
train floats -n 6 --scheme share --spare 1 --bits 11
[ $code = 0 ] && agrees floats 11
report $? "training in 11 bits, with a spare node, equals the oracle"
! agrees floats 12
report $? "12 bits give another result"
train floats -n 5 --scheme share --rounding stochastic --check
[ $code = 0 ] && agrees floats 17 seed
report $? "stochastic rounding over five nodes equals the oracle"
! agrees floats
report $? "stochastic rounding gives another result than rounding to nearest"
train bytes --mode exact --rounding stochastic
[ $code = 0 ] && agrees bytes 17 seed
report $? "stochastic rounding in local training equals the oracle"
rm -rf rec
train floats -n 5 --scheme share --record ../rec
[ $code = 0 ] && { "$S" audit rec --json >audit.json 2>>err; code=$?; } &&
    /usr/bin/python3 -c "import json
d = json.load(open('audit.json'))
assert d['ok'] and d['flagged'] == 0 and d['tests'] > 5000 and d['colluding'] == 1, d" 2>>err
report $? "the audit of a complete training finds nothing"
train floats --rounding stochastic
[ $code = 2 ] && grep -q "no effect on floats" err && [ ! -e floats/model.npz ]
report $? "stochastic rounding is refused for floats"
train floats --mode exact
/usr/bin/python3 -c "
import numpy as np
m = dict(np.load('floats/model.npz'))
m['w2'][3, 4] = np.nextafter(m['w2'][3, 4], 9)
np.savez('floats/model.npz', **m)"
! agrees floats && grep -q 'w2: 1 of 77 differ, the first is entry 25' err
report $? "one flipped bit of one parameter is detected"
echo "1..$n"
