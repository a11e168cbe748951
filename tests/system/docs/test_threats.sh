#!/bin/sh
# The figures of docs/THREATS.md are those of the audits in docs/audit-mnist.json, and these are what an
# audit gives today. Speaks TAP.
set -u
S=$(realpath "${SHERD:-build/sherd}")
MNIST=${SHERD_MNIST:-../shared/data/mnist}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
unset SHERD_JSON SHERD_QUIET SHERD_CONFIG
export HOME="$T" XDG_CONFIG_HOME="$T/config"

/usr/bin/python3 tools/audit-table.py table docs/audit-mnist.json >"$T/table" && [ -s "$T/table" ] &&
    /usr/bin/python3 -c "import sys
assert open(sys.argv[1]).read() in open('docs/THREATS.md').read()" "$T/table" 2>"$T/err"
if [ $? -eq 0 ]; then echo "ok 1 - the table is that of the audits"
else echo "not ok 1 - the table is that of the audits"; sed 's/^/# expected: /' "$T/table"; fi

if [ -d "$MNIST" ]; then
    "$S" audit --simulate permute-published --coalitions 0 --json -q \
        --data "$MNIST/train-images-idx3-ubyte.gz" --labels "$MNIST/train-labels-idx1-ubyte.gz" \
        --public-data "$MNIST/t10k-images-idx3-ubyte.gz" --public-labels "$MNIST/t10k-labels-idx1-ubyte.gz" \
        >"$T/now.json" 2>"$T/err" && /usr/bin/python3 tools/audit-table.py sum published="$T/now.json" >"$T/sum" &&
        /usr/bin/python3 -c "
import json, sys
now, then = (json.load(open(p))['runs']['published'] for p in (sys.argv[1], 'docs/audit-mnist.json'))
assert (now['rows'], now['nodes'], now['public_rows']) == (then['rows'], then['nodes'], then['public_rows'])
assert len(now['figures']) == len(then['figures']) == 8
for a, b in zip(now['figures'], then['figures']):
    assert a['test'] == b['test'] and a['statistic'] == b['statistic'] and a['findings'] == b['findings']
    for k in 'median', 'worst', 'chance':
        assert abs(a[k] - b[k]) < .03, (a, b) # BLAS cores round differently, which may turn a match
" "$T/sum" 2>>"$T/err"
    if [ $? -eq 0 ]; then echo "ok 2 - an audit of today gives the same figures"
    else echo "not ok 2 - an audit of today gives the same figures"; sed 's/^/# /' "$T/err"; fi
else
    echo "ok 2 - an audit of today gives the same figures # SKIP no $MNIST"
fi
echo "1..2"
