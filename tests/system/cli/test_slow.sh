#!/bin/sh
# Nodes of a list that differ: weights, a node that is slow, and what `cluster status` says of them.
# Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

/usr/bin/python3 -c "
import numpy as np
r = np.random.default_rng(1)
np.save('A.npy', r.standard_normal((60, 80))); np.save('B.npy', r.standard_normal((80, 20)))
np.save('big.npy', r.standard_normal((1400, 1400)))"
run keygen me.key
me=$(sed 's/^key=//' out)
echo "* key=$me role=coordinator" >allow.txt
pids= slow=
trap 'kill -CONT $pids 2>/dev/null; kill $slow $pids 2>/dev/null; rm -rf "$T"' EXIT
trap 'exit 1' HUP INT TERM
for i in 1 2 3; do
    run keygen node$i.key
    "$S" node --listen 127.0.0.1:0 --key node$i.key --allow allow.txt --domain site-$i --threads 1 >line$i 2>log$i </dev/null &
    pids="$pids $!"
done
for i in 1 2 3; do await test -s line$i; done
cat line1 line2 line3 >nodes.txt
sed 2s/$/\ weight=0.25/ nodes.txt >weights.txt
to() { list=$1; shift; run "$@" --nodes "$list" --key me.key; }
get() { /usr/bin/python3 -c "import json; o = json.load(open('out')); print($1)"; }

# ---- weights ----
to weights.txt multiply A.npy B.npy -o C.npy --scheme plain --bits 20 --check --json
[ $code = 0 ] && [ "$(get '[n["planned"] for n in o["nodes"]]')" = '[27, 7, 26]' ] && ! grep -q weight err
report $? "rows are divided by weight="
to weights.txt multiply A.npy B.npy -o C.npy --exposure balanced --bits 20 --check --json
[ $code = 0 ] && [ "$(get '[n["planned"] for n in o["nodes"]]')" = '[36, 9, 35]' ] && ! grep -q weight err
report $? "columns are divided by weight="
to weights.txt apply sigmoid A.npy -o S.npy --exposure balanced --check --json
[ $code = 0 ] && [ "$(get '[n["planned"] for n in o["nodes"]]')" = '[36, 9, 35]' ]
report $? "so are the entries of an element-wise operation"
to weights.txt multiply A.npy B.npy -o C.npy --scheme share --same-host-domains --check
[ $code = 0 ] && grep -q 'weight= of node-2 (.*) has no effect: under --scheme share each node is given a share' err
report $? "under share, a warning says that weight= has no effect"
run meta build z=dot:60x80x20 --nodes 3 -o meta.npz
to weights.txt multiply A.npy B.npy -o C.npy --meta meta.npz --check
[ $code = 0 ] && grep -q 'weight= of node-2 (.*) has no effect: the metadata file says what each node is given' err
report $? "with metadata, a warning says that weight= has no effect"
to weights.txt train spiral --by gradients --epochs 3 --shards 9 --trace trace -o m.npz
[ $code = 0 ] && /usr/bin/python3 -c "
import json
parts = [json.loads(l) for l in open('trace')]
print({(p['node'], p['shards']) for p in parts if 'node' in p})" >out && grep -q "node-1.*, 4)" out && grep -q "node-2.*, 1)" out
report $? "shards of a training are divided by weight="
to weights.txt train spiral --by gradients --aggregate ring --epochs 2 -o m.npz
[ $code = 0 ] && grep -q 'weight= of node-2 (.*) has no effect: the members of an all-reduce group have equal parts' err
report $? "in an all-reduce group, a warning says that weight= has no effect"

# ---- status ----
to nodes.txt cluster status
[ $code = 0 ] && [ "$(grep -cE '^node-([123])  site-\1  127.0.0.1:[0-9]+ .* idle$' out)" = 3 ] && [ "$(awk '{ if (length > w) w = length } END { print w }' out err)" -le 80 ]
report $? "cluster status prints name, domain and address of each node of a list in at most 80 columns"
to nodes.txt cluster status -v
[ $code = 0 ] && [ "$(grep -c '^    sherd [0-9.]*, backend cpu, 1 device, .* of memory$' out)" = 3 ]
report $? "with -v it prints the version, the backend and the memory, too"
to nodes.txt cluster status --json
[ $code = 0 ] && get 'all(n["state"] == "up" and n["threads"] == 1 and n["software"].startswith("sherd ") and n["memory_free"] <= n["memory"] and n["uptime"] < 3600 and n["open_tasks"] == 0 and n["sessions"] == 1 and 0 <= n["latency"] < 60 and n["error"] is None for n in o["nodes"])' | grep -q True
report $? "its JSON has version, threads, memory, latency, uptime and tasks"
sed '2s/key=sha256:..../key=sha256:AAAA/' nodes.txt >other.txt
fails 7 '1 of 3 nodes cannot be reached' cluster status --nodes other.txt --key me.key &&
    grep -q '^node-2  site-2  127.0.0.1:[0-9]*  cannot be reached: its key is' out && [ "$(grep -c ' idle$' out)" = 2 ]
report $? "a node with another key is named with the reason, and the exit code is 7"
second=$(echo $pids | cut -d' ' -f2)
kill -STOP "$second"
fails 7 '1 of 3 nodes cannot be reached' cluster status --nodes nodes.txt --key me.key --json
[ "$(get '[n["state"] for n in o["nodes"]], o["nodes"][1]["error"], o["nodes"][1]["why"] != ""')" = "['up', 'lost', 'up'] ESILENT True" ]
report $? "a node that does not answer is named after some seconds"
kill -CONT "$second"
run keygen other.key
fails 7 '3 of 3 nodes cannot be reached' cluster status --nodes nodes.txt --key other.key && [ "$(grep -c 'cannot be reached' out)" = 3 ]
report $? "nodes that do not allow the key are named"
fails 2 'nodes also needs --key' cluster status --nodes nodes.txt
report $? "--nodes needs a key"

# ---- a slow node: it runs a tenth of the time ----
while :; do kill -STOP "$second"; sleep 0.09; kill -CONT "$second"; sleep 0.01; done 2>/dev/null &
slow=$!
named() {
    to nodes.txt multiply big.npy big.npy -o C.npy --bits 20
    grep -q '^node-2 set the pace: its answers took .*, those of the others .* (median); a smaller weight=' err
}
await named
report $? "the report names the node that the others waited for"
named_json() {
    to nodes.txt multiply big.npy big.npy -o C.npy --bits 20 --json
    [ "$(get 'o["pace_node"] == "node-2" and o["pace_seconds"] > 1.5 * o["pace_others"]')" = True ]
}
await named_json
report $? "so does its JSON"
cp C.npy before.npy
relieved() {
    to nodes.txt multiply big.npy big.npy -o C.npy --scheme plain --bits 20 --json
    [ "$(get 'o["tasks_repeated"] > 0')" = True ]
}
await relieved && cmp -s before.npy C.npy
report $? "under plain, idle nodes take over what it has in progress, with the same bits"
named_in_training() {
    to nodes.txt train spiral --scheme permute --epochs 150 -o m.npz
    grep -q 'node-2 (.*) is slow: its answers to [0-9]* products took .* s, those of the others .* s (median)' err
}
await named_in_training
report $? "a training by products names it, too"
printf '%s\n' 'input = 2' 'layer = dense 500' 'layer = relu' 'layer = dense 500' 'layer = relu' 'layer = dense 3' \
    'loss = cross-entropy' 'data = spiral' 'examples = 900' 'classes = 3' 'batch = all' 'rate = 0.1' 'steps = 60' >wide.conf
named_in_ring() {
    to nodes.txt train wide.conf --by gradients --aggregate ring --report-every 60 -o m.npz
    grep -q 'node-2 (.*) is slow: its gradients of [0-9]* rounds took .* s, those of the others .* s (median)' err
}
await named_in_ring
report $? "so does a training by all-reduce"
tr '\n' ' ' <out | grep -q 'node-2 took [0-9.e+]* times as long for a shard as the others (median)'
report $? "which names it at its end, too"
in_its_report() {
    to nodes.txt train wide.conf --by gradients --report-every 60 -o m.npz --json
    [ "$(get 'o["gradients"]["pace_node"] == "node-2" and o["gradients"]["pace_times"] > 1.5')" = True ]
}
await in_its_report
report $? "and so does the JSON of a training whose gradients come here"
kill "$slow" && wait "$slow" 2>/dev/null

# ---- two slow nodes of three: they run a quarter of the time ----
third=$(echo $pids | cut -d' ' -f3)
while :; do kill -STOP "$second" "$third"; sleep 0.03; kill -CONT "$second" "$third"; sleep 0.01; done 2>/dev/null &
slow=$!
sed 's/^steps.*/steps = 30/' wide.conf >short.conf
parts() { # prints the shards of each node in the last step
    /usr/bin/python3 -c "
import json
parts = [json.loads(l) for l in open('trace')]
last = [p for p in parts if 'node' in p and p['version'] == parts[-1]['version']]
print(*[sum(p['shards'] for p in last if p['node'].startswith(n)) for n in ('node-1', 'node-2', 'node-3')])"
}
most_by_the_fast_one() {
    to nodes.txt train short.conf --by gradients --shards 18 --trace trace -o m.npz && [ $code = 0 ] || return 1
    parts >shards && read -r first _ <shards && [ "$first" -ge 11 ] && [ "$first" -le 13 ]
}
await most_by_the_fast_one
report $? "a node four times as fast computes the gradients of about four times as many shards"
sed 1s/$/\ weight=0.5/ nodes.txt >less.txt
to less.txt train short.conf --by gradients --shards 18 --trace trace -o m.npz
[ $code = 0 ] && [ "$(parts)" = "4 7 7" ]
report $? "and weight= of a line overrides this"
kill "$slow" && wait "$slow" 2>/dev/null
slow=
kill -CONT "$second" "$third"
echo "1..$n"
