#!/bin/sh
# `train --aggregate ring|halving-doubling` on the command line: the bits of local training, with more
# nodes than shards and with killed nodes; two trainings at once on the same nodes; resuming with other
# nodes; options without effect. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
nodes=
trap 'for p in $nodes; do kill "$p" 2>/dev/null; done; wait; rm -rf "$T"' EXIT

run() { "$S" train "$@" --progress none >out 2>err </dev/null; code=$?; }
checked() { [ $code = 0 ] && grep -q 'equal those of the same training computed locally, bit for bit' out; }
key() { "$S" keygen --show "$1" 2>/dev/null | grep -o 'sha256:[A-Za-z0-9+/]*' | head -n 1; }
start() { # number, and options
    k=$1
    shift
    rm -f "line-$k"
    "$S" node --key "node-$k.key" --allow allow.txt --name "n$k" --selftest quick "$@" \
        >"line-$k" 2>"node-$k.err" </dev/null &
    eval "pid_$k=$!"
    nodes="$nodes $!"
    await [ -s "line-$k" ]
}
(umask 077; head -c 32 /dev/zero >seed)

run spiral --epochs 20 --by gradients --aggregate ring -n 5 --shards 3 --check
checked && grep -q 'ring among 5 nodes' out
report $? "more nodes than shards give the bits of local training"

# 2-100-3: each of 5 nodes sends and receives 8/5 of 603 numbers of 8 bytes in each of 20 steps.
run spiral --epochs 20 --by gradients --aggregate ring -n 5 --seed seed --log links.jsonl --json
[ $code = 0 ] && is_log links.jsonl && python3 - <<'E' 2>>err
import json
rows = [json.loads(x) for x in open('links.jsonl')]
epochs = [x for x in rows if x['event'] == 'epoch']
circle = json.load(open('out'))['gradients']['circle']
assert epochs[-1]['links'] == circle['links'], circle
assert [x['node'] for x in circle['links']] == ['node-%d' % k for k in range(1, 6)], circle
assert sum(x['bytes_out'] for x in circle['links']) == circle['link_bytes_out']
assert sum(x['bytes_in'] for x in circle['links']) == circle['link_bytes_in']
for l in circle['links']:
    exact = 20 * 8 * 603 * 8 / 5
    assert abs(l['blocks_in'] - exact) <= 20 * 8 * 8, (l, exact)
    assert exact * 0.98 < l['bytes_out'] < 1.5 * exact and l['bytes_in'] < 0.1 * exact, (l, exact)
E
report $? "log and result list the bytes on each node's links"

run spiral --epochs 3 --batch 37 --by gradients --aggregate halving-doubling -n 3 --check
checked
report $? "batches that do not divide evenly give the bits of local training"

run spiral --epochs 12 --by gradients --aggregate ring -n 3 --seed seed -o whole.npz
run spiral --epochs 5 --by gradients --aggregate ring -n 3 --seed seed --checkpoint kept
run spiral --epochs 12 --by gradients --aggregate halving-doubling -n 2 --seed seed \
    --checkpoint kept --resume -o resumed.npz
[ $code = 0 ] && cmp -s whole.npz resumed.npz
report $? "a training resumed by other nodes, with another sum, ends with the same model"

"$S" keygen one.key >/dev/null 2>&1
"$S" keygen two.key >/dev/null 2>&1
for k in one two; do echo "* key=$(key $k.key) role=coordinator"; done >allow.txt
for k in 1 2 3 4; do "$S" keygen "node-$k.key" >/dev/null 2>&1; start $k; done
cat line-1 line-2 line-3 line-4 >nodes.txt

# One training ends while the other continues, which began earlier or later: each has its own links.
both() { # epochs of the first, of the second
    "$S" train spiral --epochs "$1" --by gradients --aggregate ring --nodes nodes.txt --key one.key \
        --progress none >first 2>&1 </dev/null &
    first=$!
    run spiral --epochs "$2" --by gradients --aggregate ring --nodes nodes.txt --key two.key
    wait $first || bad=1
    [ $code = 0 ] || bad=1
    if grep 'is repeated\|repeat the step' first out err >>all; then bad=1; fi
}
bad=0
: >all
both 300 10
both 50 300
both 100 10
both 20 100
[ $bad = 0 ] || cat all >>err
report $bad "the end of one training does not disturb another one on the same nodes"

# Its log has an epoch soon after its start.
sed 's/^report_every.*/report_every = 5/' "$R/examples/train/spiral.conf" >long.conf
"$S" train long.conf --epochs 1000 --by gradients --aggregate ring --nodes nodes.txt --key one.key \
    --check --progress none --log log.jsonl >out 2>err </dev/null &
long=$!
await [ -s log.jsonl ]
kill -9 "$pid_2"
wait $long
code=$?
checked && grep -q 'n2 .*is lost' err && grep -q 'ring among 3 nodes' out
report $? "a killed node does not change the bits"

start 2 --listen "$(cut -d ' ' -f 1 nodes.txt | sed -n 2p)"
"$S" train long.conf --epochs 1000000 --by gradients --aggregate halving-doubling --nodes nodes.txt \
    --key one.key --seed seed --checkpoint back --checkpoint-every 20 --progress none --log back.jsonl \
    >out 2>err </dev/null &
long=$!
lines() { [ -e "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]; }
await lines back.jsonl 2
kill -9 "$pid_2"
bad=0
await grep -q 'n2 .*is lost' err || bad=1
start 2 --listen "$(cut -d ' ' -f 1 nodes.txt | sed -n 2p)"
await grep -q 'n2 .*is back' err || bad=1
await lines back.jsonl $(($(wc -l <back.jsonl) + 10)) # 45 steps, with two checkpoints
kill -TERM $long
wait $long
[ $? = 13 ] || bad=1
last=$(sed -n 's/^checkpoint-0*\([0-9]*\)\.npz.*/\1/p' back/head)
"$S" train long.conf --epochs "$last" --by gradients --in-process -n 2 --seed seed -o here.npz \
    --progress none >/dev/null 2>>err </dev/null
/usr/bin/python3 - back/checkpoint-*"$last.npz" <<'E' 2>>err || bad=1
import json, sys
import numpy as np
kept, here = np.load(sys.argv[1]), np.load('here.npz')
assert all((kept[k] == here[k]).all() for k in ('w1', 'b1', 'w2', 'b2'))
links = [l['links'] for l in map(json.loads, open('back.jsonl')) if l['event'] == 'epoch']
moved = [{n['node']: n['blocks_in'] for n in l} for l in (links[-2], links[-1])]
assert moved[1]['n2'] > moved[0]['n2'], moved
E
report $bad "a node that is killed and restarted joins the training again, with the same bits"

bad=0
for what in --async --float-gradients --in-process "--survivors 3"; do
    # shellcheck disable=SC2086
    run spiral --epochs 2 --by gradients --aggregate ring -n 3 $what
    [ $code = 2 ] || { bad=1; echo "$what: exit $code" >>err; }
done
report $bad "options without effect on sums among nodes are refused"
echo "1..$n"
