#!/bin/sh
# `train --by gradients` on the command line: the same bits over any number of nodes, in threads and after
# --resume; the report of who sees what; options without effect; traces. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

run() { "$S" train "$@" --progress none >out 2>err </dev/null; code=$?; }
py() { /usr/bin/python3 -c "import json, sys
$1" >>err 2>&1; }

(umask 077; head -c 32 /dev/zero >seed)
cat >small.conf <<'END'
input = 2
layer = dense 30
layer = relu
layer = dense 3
loss = cross-entropy
l2 = 0.001
data = spiral
examples = 90
classes = 3
weights = normal 0.1
batch = all
order = shuffled
steps = 60
rate = 1
END
sed 's/batch = all/batch = 32/; s/shuffled/batches/; s/steps = 60/epochs = 20/' small.conf >batches.conf

run small.conf --by gradients --in-process -n 3 --seed seed -o want.npz
ok=$code
for nodes in 1 2 3; do
    run small.conf --by gradients -n $nodes --seed seed -o got.npz
    cmp -s want.npz got.npz || ok=1
done
report $ok "one, two and three nodes give the model of threads"

run small.conf --by gradients -n 2 --seed seed --check -o got.npz
[ $code = 0 ] && cmp -s want.npz got.npz && grep -q 'checked: all 183 parameters' out
report $? "--check also trains in this process, and every bit agrees"

sed 's/steps = 60/steps = 3/' small.conf >few.conf
run few.conf --by gradients -n 2 --seed seed --json -o few.npz
[ $code = 0 ] && /usr/bin/python3 -c "import json
e = json.load(open('out'))['epochs'][-1]; assert e['bytes_out'] > 183 * 8 * 3 and e['bytes_in'] > 183 * 3, e" 2>>err
report $? "the traffic of a short run is reported completely"
run small.conf --by gradients -n 2 --seed seed --check -o got.npz

grep -q 'nodes see examples and weights in clear' out && grep -q 'nodes see examples' err
report $? "before and after, the output states that nodes see examples and weights in clear"

run batches.conf --by gradients --in-process -n 1 --seed seed -o want2.npz
ok=$code
run batches.conf --by gradients -n 2 --seed seed -o got.npz
[ $ok = 0 ] && [ $code = 0 ] && cmp -s want2.npz got.npz
report $? "repeated batches are kept at the nodes, with the same bits"

run small.conf --by gradients -n 3 --seed seed --epochs 25 --checkpoint kept --checkpoint-every 5
ok=$code
run small.conf --by gradients -n 2 --seed seed --checkpoint kept --resume -o got.npz
[ $ok = 0 ] && [ $code = 0 ] && cmp -s want.npz got.npz
report $? "a run resumed with other nodes ends with the same bits"

# Many parameters and few examples: a step is mostly transfer. The run is ended by a signal.
sed 's/dense 30/dense 3000/; s/batch = all/batch = 4/; s/steps = 60/steps = 1000000/' small.conf >wide.conf
warned() { grep -q 'a step takes about [0-9.e-]* m*s over these nodes and [0-9.e-]* ms on this machine alone: leave' err; }
warns() {
    "$S" train wide.conf "$@" --progress none >out 2>err </dev/null &
    await warned
    ok=$?
    kill -TERM $!
    wait $!
    code=$?
    return $ok
}
warns -n 2 --by gradients && warns -n 2
report $? "a step that takes longer over nodes than here is announced with both times before the first one"
sed 's/steps = 1000000/steps = 10/' wide.conf >short.conf
run short.conf -n 2 --by gradients; [ $code = 0 ] && ! warned
report $? "for a short training no time is stated"
run short.conf -n 2 --by gradients -v; [ $code = 0 ] && warned
report $? "unless -v asks for details"

fails 3 'another arithmetic' small.conf --by gradients -n 1 --shards 4 --seed seed \
    --checkpoint kept --resume && fails 3 'another arithmetic' small.conf --seed seed \
    --checkpoint kept --resume
report $? "other shards, or training by products, do not continue it"

run small.conf --by gradients -n 2 --async --staleness-max 2 --trace trace.jsonl --json
[ $code = 0 ] && py "
d = json.load(open('out'))
assert d['by'] == 'gradients' and 'scheme' not in d
g = d['gradients']
assert g['async'] and g['updates'] > 60 and g['staleness_most'] <= 2, g
lines = [json.loads(l) for l in open('trace.jsonl')]
updates = [l for l in lines if l['event'] == 'update']
assert [u['version'] for u in updates] == list(range(g['updates']))
assert max(u['staleness'] for u in updates) == g['staleness_most']
assert sum(u['examples'] for u in updates) == 60 * 90
passes = [l for l in lines if l['event'] == 'pass']
assert all(0 <= p['forward'] <= p['computed'] and p['asked'] <= p['answered'] for p in passes)
assert {p['node'].split()[0] for p in passes} == {'node-1', 'node-2'}"
report $? "asynchronous: the trace has versions, staleness and passes, and the bound holds"

run small.conf --by gradients -n 2 --local-steps 4 --local-batch 5 --average weighted --seed seed \
    -o got.npz
ok=$code
run small.conf --by gradients --in-process --local-steps 4 --local-batch 5 --average weighted \
    --seed seed -o got2.npz
[ $ok = 0 ] && [ $code = 0 ] && cmp -s got.npz got2.npz && ! cmp -s got.npz want.npz
report $? "local steps between averages give the same bits over nodes and in threads"

run small.conf --by gradients -n 2 --float-gradients --seed seed -o got.npz
[ $code = 0 ]
report $? "--float-gradients trains in floats"

fails 2 'nodes see examples and weights in clear' small.conf --by gradients -n 2 --scheme share &&
    fails 2 'no effect with --by products' small.conf -n 2 --shards 3 &&
    fails 2 'cannot be combined' small.conf --by gradients -n 2 --async --check &&
    fails 2 'needs --async' small.conf --by gradients -n 2 --staleness-max 3 &&
    fails 2 'needs --local-steps' small.conf --by gradients -n 2 --average weighted &&
    fails 2 'cannot be combined' small.conf --by gradients -n 2 --float-gradients --bits 20 &&
    fails 2 'cannot be combined' small.conf --by gradients -n 2 --in-process --allow-drop &&
    fails 2 'f64' small.conf --by gradients --in-process --float-gradients --precision f32
report $? "options without effect are refused, with the reason"

sed 's/batch = all/batch = 2/' small.conf >tiny.conf
fails 2 '300 nodes for steps of 2 examples' tiny.conf --by gradients -n 300 &&
    ! grep -q starting err &&
    fails 2 '3 threads for steps of 2 examples' tiny.conf --by gradients --in-process -n 3
report $? "more nodes than examples are refused before any is started"

sed 's/rate = 1/rate = 1e200/' small.conf >wild.conf
fails 11 'diverged' wild.conf --by gradients -n 2 -o none.npz && [ ! -e none.npz ]
report $? "training that diverges reports it and writes nothing"

echo "1..$n"
