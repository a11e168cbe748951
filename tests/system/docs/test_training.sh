#!/bin/sh
# Runs the tutorial of docs/TRAINING.md. Prints TAP.
. "$(dirname "$0")/../../support/tap.sh"

# The block without a language that follows the heading "## 2.".
awk '/^## 2\./ { here = 1 } here && /^```$/ { n++; next } n == 1' "$R/docs/TRAINING.md" >my.conf
/usr/bin/python3 -c "
import numpy as np
draw = np.random.default_rng(1)
for i in range(150):
    print(*(f'{v:.3f}' for v in draw.normal(i % 3, 0.5, 4)), i % 3, sep=',')" >my.csv
run train my.conf --data my.csv -o model.npz --json
[ $code = 0 ] && /usr/bin/python3 -c "
import json, numpy
assert json.load(open('out'))['epochs'][-1]['validation_accuracy'] > .8
z = numpy.load('model.npz')
assert z['w1'].shape == (4, 16) and z['w2'].shape == (16, 3) and 'dense 16' in z['recipe'].tobytes().decode()" 2>>err
report $? "the recipe of the tutorial trains a model that numpy opens"

"$S" train my.conf --data my.csv --epochs 1000000 --checkpoint run -q >log 2>&1 &
pid=$!
trap 'kill -9 $pid 2>/dev/null; rm -rf "$T"' EXIT
second() { [ "$(ls run 2>/dev/null | grep -c '^checkpoint')" -gt 1 ]; } # the first one is of the initial weights
await second
kill -9 $pid
wait $pid 2>/dev/null
run train my.conf --data my.csv --epochs 1000000 --checkpoint run --resume --timeout 1 -q
[ $code = 124 ] && [ "$(awk "NR == 2 { print \$1 }" out)" -gt 1 ] && run verify run && [ $code = 0 ]
report $? "a killed run is resumed and its checkpoints are verified"
echo "1..2"
