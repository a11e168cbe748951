#!/bin/sh
# Differential privacy and the policy of nodes with data, on the command line: what a node with the defaults
# sends and refuses, what is charged to its ledger and remains there, and the reports of it. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
nodes=
trap 'for p in $nodes; do kill "$p" 2>/dev/null; done; wait; rm -rf "$T"' EXIT

key() { "$S" keygen --show "$1" 2>/dev/null | grep -o 'sha256:[A-Za-z0-9+/]*' | head -n 1; }
py() { /usr/bin/python3 -c "import sys, json
import numpy as np
$1" >>err 2>&1; }
start() { # number, options: a node with mine-NUMBER.npz
    i=$1; shift
    rm -f "line-$i"
    "$S" node --key "node-$i.key" --allow allow.txt --name "n$i" --domain "d$i" --selftest quick \
        --data "mine-$i.npz" "$@" >"line-$i" 2>"node-$i.err" </dev/null &
    eval "pid_$i=$!"
    nodes="$nodes $!"
    await [ -s "line-$i" ]
}
stop() { for p in $nodes; do kill "$p" 2>/dev/null; done; wait; nodes=; }
places=64
train() { "$S" train small.conf --by gradients --aggregate secure --examples $places --nodes nodes.txt \
    --key here.key --progress none "$@" >out 2>err </dev/null; code=$?; }

"$S" keygen here.key >/dev/null 2>&1
echo "* key=$(key here.key) role=coordinator" >allow.txt
for i in 1 2 3 4; do
    "$S" keygen "node-$i.key" >/dev/null 2>&1
    echo "127.0.0.1:70$i$i key=$(key "node-$i.key") domain=d$i" >>peers.txt
done
py '
r = np.random.RandomState(4)
for i in range(1, 5):
    m = 40 + 6 * i
    y = r.randint(0, 2, m)
    x = np.stack([2. * y - 1 + .3 * r.randn(m), r.randn(m)], 1)
    np.savez("mine-%d.npz" % i, x=x, y=y)
' 2>err
cat >small.conf <<'END'
input = 2
layer = dense 2
loss = cross-entropy
data = file
epochs = 4
rate = 1
END
: >out
for i in 1 2 3 4; do start $i --peers peers.txt; done
cat line-1 line-2 line-3 line-4 >nodes.txt

train
[ $code = 7 ] && grep -q 'policy: this node takes part in sums with noise only (--epsilon)' err &&
    [ "$(grep -c 'it no longer takes part' err)" = 4 ]
report $? "a node with data sends nothing without noise unless --epsilon none is given"
train --clip 1 --noise 2 --batch 64
[ $code = 7 ] && grep -q 'policy: .* at least 32 places of each node, the last of an epoch too (--min-rows)' err &&
    tr '\n' ' ' <err | grep -q 'warning: a round goes over 16 places of each node: .*choose --batch 128 or more'
report $? "a node with data refuses a round of few examples; a warning names the batch before"
places=65
train --clip 1 --noise 2 --batch 128
[ $code = 7 ] && grep -q 'policy: .* at least 32 places of each node, the last of an epoch too (--min-rows)' err &&
    tr '\n' ' ' <err | grep -q 'the last round of an epoch goes over 1 of the 65 places .*--examples 96'
report $? "a last round of an epoch with few examples is refused, with a hint"
places=1048577
train --clip 1 --noise 2
[ $code = 7 ] && grep -q 'policy: .* at most 1048576 places of each node (--max-rows)' err &&
    tr '\n' ' ' <err | grep -q 'a round goes over 1048577 places of each node: .*choose a smaller --batch'
report $? "a round with too many places is refused"
places=64
train --noise 2
[ $code = 2 ] && grep -q -- '--noise needs --clip' err
report $? "noise needs a norm that it covers"

train --clip 1 --noise 2 --log log.jsonl -o noisy.npz --json
[ $code = 0 ] && is_log log.jsonl && py '
o = json.load(open("out"))["aggregate"]
lines = [json.loads(l) for l in open("log.jsonl")]
spent = [l["epsilon"] for l in lines if l["event"] == "epoch"]
rho = 4 / (2 * 2.0**2)
def epsilon(rho, delta):
    a = 1 + np.exp(np.linspace(-6, 12, 200000))
    return np.min(a * rho + (np.log(1 / delta) + (a - 1) * np.log1p(-1 / a) - np.log(a)) / (a - 1))
print(o, spent, epsilon(rho, 1e-6))
assert o["rounds"] == 4 and o["clip"] == 1 and o["noise"] == 2 and o["delta"] == 1e-6
assert abs(o["epsilon"] / epsilon(rho, 1e-6) - 1) < 1e-3
assert len(spent) == 4 and spent == sorted(spent) and abs(spent[-1] - o["epsilon"]) < 1e-9'
report $? "with noise nodes train, and log and result report the privacy cost"
kill -USR1 $pid_1
said() { await grep -q 'privacy spent so far: epsilon 5\.2[0-9]* of 8 at delta 1e-06, in 4 uploads' "$1"; }
said node-1.err && [ "$(grep -c '^upload ' mine-1.npz.ledger)" = 4 ] && [ "$(stat -c %a mine-1.npz.ledger)" = 600 ]
report $? "each node reports the privacy cost, and its ledger has every upload"
grep -q 'privacy: epsilon' out || { train --clip 1 --noise 2 --epochs 1; grep -q 'privacy: epsilon 2\.[0-9]* at delta 1e-06' out; }
report $? "the end of a training prints the privacy cost"

grep -q 'warning: .*mine-1.npz.ledger: created an empty privacy ledger' node-1.err &&
    ! grep -q 'without noise' node-1.err
report $? "a node that creates its ledger prints a warning"

# Killed and restarted with the same file: costs are kept.
kill -9 $pid_1
wait $pid_1 2>/dev/null
start 1 --peers peers.txt
cat line-1 line-2 line-3 line-4 >nodes.txt
said5() { grep -q 'privacy spent so far: epsilon 5\.9[0-9]* of 8 at delta 1e-06, in 5 uploads' node-1.err; }
said5 && ! grep -q 'empty privacy ledger' node-1.err
report $? "a killed and restarted node keeps the costs of its ledger"
mv mine-2.npz.ledger away
"$S" node --key node-1.key --allow allow.txt --selftest quick --data mine-2.npz --require-ledger >none 2>lost </dev/null
[ $? = 3 ] && grep -q 'mine-2.npz.ledger: does not exist: it records what was spent' lost && [ ! -e mine-2.npz.ledger ]
report $? "with --require-ledger a lost ledger gives exit code 3, and none is created"
mv away mine-2.npz.ledger
train --clip 1 --noise 2 --epochs 40
[ $code = 7 ] && grep -q "policy: this node's privacy budget is spent (--epsilon)" err &&
    kept=$(grep -c '^upload ' mine-1.npz.ledger) && [ "$kept" -gt 5 ] && [ "$kept" -lt 45 ]
report $? "an exhausted budget ends a training"
tr -s '\n ' ' ' <err >flat
grep -q 'with --noise 2, nodes with the preset --epsilon (8) end this training after 8 of 40 rounds, which cost epsilon 20.6 in all; choose --noise 4.4 or more, or --epochs 8' flat
report $? "a training that the preset budget does not pay for is warned about before it begins"
grep -q "policy: this node's privacy budget is spent (--epsilon); too few nodes are left for a sum try: a node that is started again refuses again, since its ledger keeps what is spent: its owner may change the option" flat &&
    ! grep -q 'start these nodes again\|start nodes again' flat
report $? "the remedy for a spent budget is not to start nodes again"
train --clip 1 --noise 2 --epochs 1
[ $code = 7 ] && [ "$(grep -c '^upload ' mine-1.npz.ledger)" = "$kept" ]
report $? "an exhausted budget prevents another training"
"$S" node --key node-1.key --allow allow.txt --selftest quick --data mine-2.npz >none 2>busy </dev/null
[ $? = 1 ] && grep -q 'another process has this privacy ledger open' busy
report $? "two nodes cannot share a data file"
ln -s mine-2.npz link.npz
"$S" node --key node-1.key --allow allow.txt --selftest quick --data link.npz >none 2>busy </dev/null
[ $? = 1 ] && grep -q 'another process has this privacy ledger open' busy && [ ! -e link.npz.ledger ]
report $? "two nodes cannot share a data file through a link"
stop

# Half of the places in each round: the costs of rounds over disjoint places do not add up.
rm -f ./*.ledger
for i in 1 2 3 4; do start $i --peers peers.txt; done
cat line-1 line-2 line-3 line-4 >nodes.txt
train --clip 1 --noise 2 --batch 128 --epochs 2 --json
[ $code = 0 ] && py '
o = json.load(open("out"))
assert o["steps"] == 4 and o["aggregate"]["rounds"] == 4 and o["aggregate"]["rows"] == 32, o
rho = 2 / (2 * 2.0**2)
a = 1 + np.exp(np.linspace(-6, 12, 200000))
e = np.min(a * rho + (np.log(1e6) + (a - 1) * np.log1p(-1 / a) - np.log(a)) / (a - 1))
assert abs(o["aggregate"]["epsilon"] / e - 1) < 1e-3, (o, e)' &&
    kill -USR1 $pid_2 && await grep -q 'privacy spent so far: epsilon 3.[0-9]* of 8 .* in 4 uploads' node-2.err
report $? "costs of rounds over disjoint places do not add up"
stop

# Noise is small compared with a sum over many examples.
py '
r = np.random.RandomState(5)
for i in range(1, 5):
    y = r.randint(0, 2, 3000)
    x = np.stack([2. * y - 1 + .3 * r.randn(3000), r.randn(3000)], 1)
    np.savez("mine-%d.npz" % i, x=x, y=y)'
rm -f ./*.ledger
for i in 1 2 3 4; do start $i --peers peers.txt --epsilon 50; done
cat line-1 line-2 line-3 line-4 >nodes.txt
accuracy() { py "
w = np.load('$1'); x = np.concatenate([np.load('mine-%d.npz' % i)['x'] for i in range(1, 5)])
y = np.concatenate([np.load('mine-%d.npz' % i)['y'] for i in range(1, 5)])
hit = np.mean(np.argmax(x @ w['w1'] + w['b1'], 1) == y)
print('accuracy', hit)
sys.exit(int(not ($2)))"; }
places=3000
(umask 077; head -c 32 /dev/zero | tr '\0' r >seed) # determines the initial weights; the noise is fresh
train --clip 1 --noise 1 --epochs 6 --seed seed -o good.npz --json
[ $code = 0 ] && py 'assert json.load(open("out"))["aggregate"]["epsilon"] < 20' && accuracy good.npz 'hit > .95'
report $? "a network learns with noise from many examples"
stop

# A node without a list of peers, and options without data.
start 1
grep -q 'joins no sum' node-1.err
bad=$?
stop
for o in '--epsilon 3' '--min-nodes 4' '--max-rounds 7' '--max-rows 9' --any-roster '--ledger x'; do
    "$S" node --key node-1.key --allow allow.txt $o >none 2>busy </dev/null
    [ $? = 2 ] && grep -q 'has no effect without --data' busy || bad=1
done
report $bad "a node reports options of its policy that are missing or have no effect"
echo "1..$n"
