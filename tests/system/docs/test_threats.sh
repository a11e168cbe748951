#!/bin/sh
# The figures of docs/THREATS.md are those of the audits in docs/audit-mnist.json, and a new audit gives
# the same figures. Prints TAP.
. "$(dirname "$0")/../../support/tap.sh"

table() { /usr/bin/python3 "$R/tools/audit-table.py" "$@"; }

table table "$R/docs/audit-mnist.json" >out 2>err && [ -s out ] && /usr/bin/python3 -c "import sys
assert open('out').read() in open(sys.argv[1]).read()" "$R/docs/THREATS.md" 2>>err
report $? "the table of docs/THREATS.md is that of the audits"

if [ -d "$MNIST" ]; then
    run audit --simulate permute-published --coalitions 0 --json -q \
        --data "$MNIST/train-images-idx3-ubyte.gz" --labels "$MNIST/train-labels-idx1-ubyte.gz" \
        --public-data "$MNIST/t10k-images-idx3-ubyte.gz" --public-labels "$MNIST/t10k-labels-idx1-ubyte.gz"
    [ $code = 0 ] && table sum published=out >sum 2>>err && /usr/bin/python3 -c "
import json, sys
now, then = (json.load(open(p))['runs']['published'] for p in ('sum', sys.argv[1]))
assert (now['rows'], now['nodes'], now['public_rows']) == (then['rows'], then['nodes'], then['public_rows'])
assert len(now['figures']) == len(then['figures']) == 8
for a, b in zip(now['figures'], then['figures']):
    assert a['test'] == b['test'] and a['statistic'] == b['statistic'] and a['findings'] == b['findings']
    for k in 'median', 'worst', 'chance':
        assert abs(a[k] - b[k]) < .03, (a, b) # BLAS cores round differently, which may change a match
" "$R/docs/audit-mnist.json" 2>>err
    report $? "a new audit gives the same figures"
else
    skip "a new audit gives the same figures" "no MNIST at ../shared/data/mnist"
fi
echo "1..2"
