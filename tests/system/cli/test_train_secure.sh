#!/bin/sh
# `train --aggregate secure` on the command line, over nodes with their own data: the result, the
# coordinator's record (no gradient, no example), killed nodes, peers that nodes accept, and options
# without effect. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
nodes=
trap 'for p in $nodes; do kill "$p" 2>/dev/null; done; wait; rm -rf "$T"' EXIT

run() { "$S" train "$@" --progress none >out 2>err </dev/null; code=$?; }
py() { /usr/bin/python3 -c "import sys
import numpy as np
$1" >>err 2>&1; }
key() { "$S" keygen --show "$1" 2>/dev/null | grep -o 'sha256:[A-Za-z0-9+/]*' | head -n 1; }
# The policy of nodes with data in this test. A ledger is kept until `stop`.
loose="--epsilon none --min-rows 1 --any-peers"
start() { # number, options: a node. Its line is awaited as long as it lives
    i=$1; shift
    rm -f "line-$i"
    case " $* " in *" --data "*) policy=$loose ;; *) policy= ;; esac
    "$S" node --key "node-$i.key" --allow allow.txt --name "n$i" --domain "d$i" --selftest quick \
        $policy "$@" >"line-$i" 2>"node-$i.err" </dev/null &
    eval "pid_$i=$!"
    nodes="$nodes $!"
    until [ -s "line-$i" ]; do
        none_lives $! && [ ! -s "line-$i" ] && sed "s/^/# node $i did not start: /" "node-$i.err" && return 1
        sleep 0.1
    done
}
stop() { for p in $nodes; do kill "$p" 2>/dev/null; done; wait; nodes=; rm -f ./*.ledger; }

"$S" keygen here.key >/dev/null 2>&1
echo "* key=$(key here.key) role=coordinator" >allow.txt
for i in 1 2 3 4 5; do "$S" keygen "node-$i.key" >/dev/null 2>&1; done
py '
r = np.random.RandomState(4)
for i in range(1, 6):
    m = 50 + 7 * i
    y = r.randint(0, 3, m)
    t = 2 * y + .4 * r.randn(m)
    x = np.stack([np.sin(t), np.cos(t)], 1) + .2 * r.randn(m, 2)
    np.savez("mine-%d.npz" % i, x=x, y=y)
    np.save("mine-%d.npy" % i, np.concatenate([x, y[:, None]], 1))
' 2>err
cat >small.conf <<'END'
input = 2
layer = dense 10
layer = tanh
layer = dense 3
loss = cross-entropy
data = file
weights = normal 0.5
epochs = 150
report_every = 50
rate = 1
END
(umask 077; head -c 32 /dev/zero >seed)
: >out

start 1 --data mine-1.npz --memory 1000000G
for i in 2 3 4 5; do start $i --data "mine-$i.npz" --memory 100M; done
cat line-1 line-2 line-3 line-4 line-5 >nodes.txt
grep -q 'warning: --epsilon none: .* --min-rows includes empty places, .* can reveal a few examples, or a single one' node-1.err
report $? "a node that joins rounds without noise warns that a round may have few examples"
grep -q 'warning: --memory .* exceeds the .* that are available beside the data' node-1.err && ! grep -q 'exceeds the' node-2.err
report $? "a node whose --memory exceeds the memory beside its data warns that refusals can reveal the data"
run small.conf --by gradients --aggregate secure --examples 90 --nodes nodes.txt --key here.key --seed seed \
    -o got.npz --log log.jsonl --record seen
[ $code = 0 ] && is_log log.jsonl && grep -q 'secure aggregation: sums of gradients on this machine' out && py '
import json
def weights(f): return [np.load(f)[k] for k in ("w1", "b1", "w2", "b2")]
w1, b1, w2, b2 = weights("got.npz")
x = np.concatenate([np.load("mine-%d.npz" % i)["x"] for i in range(1, 6)])
y = np.concatenate([np.load("mine-%d.npz" % i)["y"] for i in range(1, 6)])
hit = np.mean(np.argmax(np.tanh(x @ w1 + b1) @ w2 + b2, 1) == y)
last = [json.loads(l) for l in open("log.jsonl") if "accuracy" in l][-1]
print("accuracy", hit, last)
sys.exit(int(not (hit > .8 and abs(hit - last["accuracy"]) < .02)))'
report $? "five nodes train a network on data that they keep"

cat >search.py <<'END'
import glob, sys
import numpy as np
# Compares every 8 bytes that were received, at every offset, with the needles; prints the number found.
def search(needles, files):
    needles = {n for n in needles if n not in (b"\0" * 8, b"\xff" * 8)}
    found = set()
    for f in files:
        data = open(f, "rb").read()
        for at in range(8):
            a = np.frombuffer(data[at:at + (len(data) - at) // 8 * 8], "V8")
            found |= needles & set(a.tolist())
    return len(found), len(needles)
def of(a, kind): return [v.tobytes() for v in np.asarray(a, kind).ravel()]
END
files=$(find seen -type f -size +0 | tr '\n' ' ')
FILES=$files py '
import os
from search import *
x = np.concatenate([np.load("mine-%d.npz" % i)["x"] for i in range(1, 6)])
n = search(of(x, "<f8"), os.environ["FILES"].split())
print("found", n)
sys.exit(int(n[0] != 0 or n[1] < 600))'
report $? "the coordinator's record contains no example of any node"

"$S" train small.conf --by gradients -n 2 --data mine-1.npz --seed seed --epochs 1 --batch all \
    --shards 1 --record plain -o plain.npz >/dev/null 2>&1
FILES=$(find plain -type f -size +0 | tr '\n' ' ') py '
import os
from search import *
files = [f for f in os.environ["FILES"].split()]
x = np.load("mine-1.npz")["x"]
n = search(of(x, "<f8"), files)
print("found", n)
sys.exit(int(n[0] != n[1]))'
report $? "with --simulate the coordinator's record contains every example"

# Each node's own gradient of each step: from the weights in the checkpoints, in float64 like that of a secure
# sum, by plain aggregation, whose record has it in clear. Then in all forms in which it might occur: at any
# scale, as an integer and as a residue, as a sum and as a mean.
cat >gradients.py <<'END'
import glob
import numpy as np
from search import search
Q = 2**61 - 1
def clear(step, node):
    """the gradient that the record of plain aggregation holds, summed over the examples, and their number"""
    c = np.load(sorted(glob.glob("g-%d-%d/*.npz" % (step, node)))[-1])
    m = np.load("mine-%d.npz" % node)["y"].size
    out = []
    for t in "12":
        want = np.concatenate([c["gradient_w" + t].ravel(), c["gradient_b" + t].ravel()]) * m
        hit = None
        for f in [f for f in glob.glob("clear-%d-%d/**" % (step, node), recursive=True) if f.endswith(".received")]:
            data = open(f, "rb").read()
            for at in range(8):
                a = np.frombuffer(data[at:at + (len(data) - at) // 8 * 8], "<f8")
                for p in range(a.size - want.size + 1):
                    if np.allclose(a[p:p + want.size], want, rtol=1e-9, atol=1e-12): hit = a[p:p + want.size]
        assert hit is not None, (step, node, t)
        out.append(hit)
    return np.concatenate(out), m
def needles(step, node):
    out = set()
    whole, m = clear(step, node)
    for x in whole:
        out |= {x.tobytes(), (x / m).tobytes()}
        v = int(np.rint(abs(x) * 2.0**40))
        for less in range(41):
            r = (v + (1 << less >> 1)) >> less
            # shorter rounded numbers are sometimes equal to times and lengths in the record
            if r < (2**26 if less else 2**20): break
            for s in {r, r - 1, r + 1}: # a tie may go either way
                s = s if x > 0 else -s
                out |= {(s % 2**64).to_bytes(8, "little"), (s % Q).to_bytes(8, "little")}
    return out
END
run small.conf --by gradients --aggregate secure --examples 90 --nodes nodes.txt --key here.key --seed seed --epochs 2 \
    --checkpoint steps --checkpoint-every 1 --record heard
bad=$code
for k in 0 1; do
    for i in 1 2 3 4 5; do
        "$S" train small.conf --by gradients -n 1 --data mine-$i.npz --initial steps/checkpoint-00000000000$k.npz \
            --epochs 1 --batch all --shards 1 --float-gradients --record clear-$k-$i --checkpoint g-$k-$i \
            >>out 2>>err </dev/null || bad=1
    done
done
[ $bad = 0 ] && FILES=$(find heard -name "*.received" -size +0 | tr '\n' ' ') py '
import os
from gradients import *
bad = 0
for step in range(2):
    # Their sum is the secure one: gradients of another arithmetic would be found nowhere.
    c = np.load("steps/checkpoint-%012d.npz" % (step + 1))
    opened = np.concatenate([c["gradient_" + k].ravel() for k in ("w1", "b1", "w2", "b2")]) * 355
    off = np.abs(opened - sum(clear(step, node)[0] for node in range(1, 6))).max()
    print(step, "the sum differs by", off)
    bad |= not off < (5 * 2**-16, 1e-6)[step]
    for node in range(1, 6):
        n = needles(step, node)
        here = search(n, os.environ["FILES"].split())[0]
        plain = search(n, glob.glob("clear-%d-%d/**/*.received" % (step, node), recursive=True))[0]
        print(step, node, "found", here, "where it is in clear", plain, "of", len(n))
        bad |= here != 0 or plain < 60
sys.exit(bad)'
report $? "the record contains no node's gradient at any scale, as bytes or residues; that of plain aggregation does"

run small.conf --by gradients --aggregate secure --examples 90 --nodes nodes.txt --key here.key --seed seed \
    --colluding 2 --survivors 5 -o again.npz
[ $code = 0 ] && py '
a, b = np.load("got.npz"), np.load("again.npz")
d = max(np.abs(a[k] - b[k]).max() for k in ("w1", "b1", "w2", "b2"))
print("difference", d)
sys.exit(int(d != 0))'
report $? "other masks and thresholds give the same bits"

secure() { run small.conf --by gradients --aggregate secure --examples 90 --nodes nodes.txt --key here.key --seed seed \
    --batch 60 "$@"; }
lines_of() { grep -c "$1" "$2" 2>/dev/null || :; } # number of lines with these words; 0 without a file
has_lines() { [ "$(lines_of "$1" "$2")" -ge "$3" ] 2>/dev/null; }
more_epochs() { await has_lines epoch "$1" $(($(lines_of epoch "$1") + 2)); } # in this log: sums continue
newest() { sed -n 's/^checkpoint-0*\([0-9]*\)\.npz.*/\1/p' kept/head 2>/dev/null; }
"$S" train small.conf --by gradients --aggregate secure --examples 90 --nodes nodes.txt --key here.key --seed seed --batch 60 \
    --checkpoint kept --checkpoint-every 7 --epochs 1000000 --progress none >out 2>err </dev/null &
run=$!
at_least() { [ "$(newest || echo 0)" -ge "$1" ] 2>/dev/null; }
await at_least 14
bad=$?
kill -9 $run
wait $run 2>/dev/null
epochs=$(($(newest) / 8 + 3)) # of eight sums each
secure --checkpoint kept --resume --epochs $epochs -o resumed.npz
[ $code = 0 ] || bad=1
secure --epochs $epochs -o straight.npz --log straight.jsonl --plot curves.svg
[ $bad = 0 ] && [ $code = 0 ] && py '
a, b = np.load("resumed.npz"), np.load("straight.npz")
sys.exit(int(not all((a[k] == b[k]).all() for k in ("w1", "b1", "w2", "b2"))))' &&
    "$S" verify kept >out 2>>err
report $? "a killed and resumed training has the weights of an undisturbed one, bit for bit"
[ -n "$(ls curves.*)" ] && grep -q '"event":"epoch"' straight.jsonl
report $? "--plot draws its curves, and --log has its epochs"
fails 3 'trained on other data\|another arithmetic\|another way to train' small.conf --by gradients -n 2 --data mine-5.npz \
    --seed seed --batch 60 --checkpoint kept --resume --epochs $epochs
report $? "another training does not continue its checkpoints"

# Killed long after its last checkpoint; then one of the five nodes is missing, and sums of all five repeat.
"$S" train small.conf --by gradients --aggregate secure --examples 90 --nodes nodes.txt --key here.key --seed seed --batch 60 \
    --checkpoint far --checkpoint-every 1000000 --epochs 1000000 --progress none >out 2>err </dev/null &
run=$!
await has_lines '^step' far/sums 10
kill -9 $run
wait $run 2>/dev/null
epochs=$(($(lines_of '^step' far/sums) / 8 + 3))
address=$(sed 's/ .*//' line-5)
kill $pid_5
wait $pid_5 2>/dev/null
secure --checkpoint far --resume --epochs $epochs -o less.npz
[ $code = 7 ] && grep -q 'a sum over 5 nodes was not opened.*missing: .*n5' err && [ ! -e less.npz ]
bad=$?
start 5 --data mine-5.npz --listen "$address"
secure --checkpoint far --resume --epochs $epochs -o far.npz
[ $code = 0 ] || bad=1
secure --epochs $epochs -o whole.npz
[ $bad = 0 ] && py '
a, b = np.load("far.npz"), np.load("whole.npz")
sys.exit(int(not all((a[k] == b[k]).all() for k in ("w1", "b1", "w2", "b2"))))'
report $? "resuming without a node of the sums fails; with all nodes it gives the same bits"
rm far/sums
fails 3 'sums: does not exist' small.conf --by gradients --aggregate secure --examples 90 --nodes nodes.txt --key here.key \
    --seed seed --batch 60 --checkpoint far --resume --epochs $((epochs + 10))
report $? "resuming without the list of sums fails"

fails 2 'may collude\|expected\|survivors\|threshold' small.conf --by gradients --aggregate secure --examples 90 \
    --nodes nodes.txt --key here.key --survivors 3
report $? "a number of survivors that is not safe is refused"
stop

sed 's/epochs = 150/epochs = 20000/; s/report_every = 50/report_every = 5/' small.conf >long.conf
py 'np.save("large.npy", np.resize(np.load("mine-1.npy"), (10 ** 6, 3)))' # one that would be mapped
start 1 --data large.npy
: >large.npy
for i in 2 3 4 5; do start $i --data "mine-$i.npy"; done
cat line-1 line-2 line-3 line-4 line-5 >nodes.txt
(await has_lines epoch five.jsonl 3; kill -9 $pid_2) &
run long.conf --by gradients --aggregate secure --examples 90 --nodes nodes.txt --key here.key --seed seed \
    --epochs 800 -o got.npz --log five.jsonl
[ $code = 0 ] && grep -q 'n2.* is lost' err && grep -q 'lost nodes did not count' out
report $? "one of five nodes is killed, and the others continue"
kill -0 $pid_1
report $? "truncating a node's data file has no effect, since its examples are in memory"

# Node 2 is absent at first, joins, is killed and joins again; each message about it is awaited.
reported() { await grep -q -- "$1" err; } # on stderr of the current run
address=$(sed 's/ .*//' line-2)
"$S" train long.conf --by gradients --aggregate secure --examples 90 --nodes nodes.txt --key here.key \
    --epochs 1000000 --progress none --log late.jsonl >out 2>err </dev/null &
run=$!
more_epochs late.jsonl
start 2 --data mine-2.npy --listen "$address"
reported 'n2.* has connected, and takes part from the next sum on' && more_epochs late.jsonl && kill -9 $pid_2 &&
    reported 'n2.* is lost' && more_epochs late.jsonl && start 2 --data mine-2.npy --listen "$address" &&
    reported 'n2.* is back, and takes part from the next sum on' && more_epochs late.jsonl && kill -9 $pid_1 &&
    reported 'n1.* is lost' && more_epochs late.jsonl # sums without n1 are sums with n2: four of five are needed
bad=$?
kill -TERM $run 2>/dev/null
wait $run
code=$?
[ $bad = 0 ] && [ $code = 130 ] && ! grep -q 'are needed' err
report $? "a node that starts late, or is killed and restarted, joins the training"
start 1 --data mine-1.npy
cat line-1 line-2 line-3 line-4 line-5 >nodes.txt
(await has_lines epoch few.jsonl 3; kill -9 $pid_3; kill -9 $pid_4) &
run long.conf --by gradients --aggregate secure --examples 90 --nodes nodes.txt --key here.key -o none.npz --log few.jsonl
[ $code = 7 ] && is_log few.jsonl && grep -q '4 are needed to open the sum\|a sum over . nodes was not opened' err && [ ! -e none.npz ]
report $? "with too few remaining nodes the exit code is 7 and no model is written"
# A proxy between coordinator and nodes 3 and 4: SIGUSR1 closes its connections, but it continues to listen.
cat >between.py <<'END'
import signal, socket, sys, threading
open_now = []
def cut(*_):
    while open_now:
        for s in open_now.pop():
            try: s.shutdown(socket.SHUT_RDWR)
            except OSError: pass
def pump(a, b):
    try:
        while data := a.recv(65536): b.sendall(data)
    except OSError: pass
    for s in (a, b):
        try: s.shutdown(socket.SHUT_RDWR)
        except OSError: pass
host, port = sys.argv[1].rsplit(":", 1)
here = socket.create_server(("127.0.0.1", 0))
signal.signal(signal.SIGUSR1, cut)
print("127.0.0.1:%d" % here.getsockname()[1], flush=True)
while True:
    a, _ = here.accept()
    b = socket.create_connection((host, int(port)))
    for s in (a, b): s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    open_now.append((a, b))
    for x, y in ((a, b), (b, a)): threading.Thread(target=pump, args=(x, y), daemon=True).start()
END
for i in 3 4; do
    start $i --data "mine-$i.npy"
    /usr/bin/python3 between.py "$(sed 's/ .*//' line-$i)" >"between-$i" 2>>err &
    eval "between_$i=$!"
    nodes="$nodes $!"
    await [ -s "between-$i" ]
    sed -i "s/^[^ ]*/$(cat "between-$i")/" "line-$i"
done
cat line-1 line-2 line-3 line-4 line-5 >nodes.txt
"$S" train long.conf --by gradients --aggregate secure --examples 90 --nodes nodes.txt --key here.key \
    --epochs 1000000 --progress none --log cut.jsonl >out 2>err </dev/null &
run=$!
bad=0
for cut in 1 2 3 4; do # five nodes, four of which are needed: two are lost and return at the same time
    more_epochs cut.jsonl || bad=1
    kill -USR1 "$between_3" "$between_4"
    for i in 3 4; do await has_lines "n$i.* is back, and takes part from the next sum" err $cut || bad=1; done
done
more_epochs cut.jsonl || bad=1
kill -TERM $run 2>/dev/null
wait $run
code=$?
[ $bad = 0 ] && [ $code = 130 ]
report $? "with too few nodes for a moment training continues when they are back"
stop

cat line-1 line-2 line-3 >peers.txt
loose="--epsilon none --min-rows 1"
for i in 1 2 3 4; do start $i --data "mine-$i.npz" --peers peers.txt; done
loose="$loose --any-peers"
cat line-1 line-2 line-3 line-4 >nodes.txt
run small.conf --by gradients --aggregate secure --examples 90 --nodes nodes.txt --key here.key
[ $code != 0 ] && grep -q "not in --peers of this node" err
report $? "nodes do not aggregate with a node that is not in --peers"
cat line-1 line-2 line-3 >nodes.txt
run small.conf --by gradients --aggregate secure --examples 90 --nodes nodes.txt --key here.key --epochs 2
report $code "nodes aggregate with the nodes in --peers"
stop

# Invalid examples are not counted, and a wrong number of columns is reported.
py '
x = np.load("mine-1.npz")
bad = x["x"].copy(); bad[::2] = np.nan
np.savez("bad-label.npz", x=x["x"], y=x["y"] + 3)
np.savez("bad-number.npz", x=bad, y=x["y"])
np.savez("bad-shape.npz", x=x["x"][:, :1], y=x["y"])' 2>err
for bad in label number shape; do
    start 1 --data "bad-$bad.npz"
    for i in 2 3 4; do start $i --data mine-$i.npz; done
    cat line-1 line-2 line-3 line-4 >nodes.txt
    run small.conf --by gradients --aggregate secure --examples 90 --nodes nodes.txt --key here.key \
        --epochs 3 --trace bad.jsonl
    want=$((64 + 71 + 78))
    [ $bad != number ] || want=$((want + 28))
    [ $code = 0 ] && grep -q "\"examples\": *$want[,}]" bad.jsonl &&
        case $bad in
        shape) grep -q "n1.*: the examples have other columns than the network takes" err ;;
        *) ! grep -q "n1" err ;;
        esac
    report $? "a node with a bad $bad in its data: only a wrong number of columns is reported"
    stop
done

py '
import gzip, os, struct
r = np.random.RandomState(9)
def idx(f, a): f.write(struct.pack(">BBBB", 0, 0, 8, a.ndim) + struct.pack(">%dI" % a.ndim, *a.shape) + a.tobytes())
for i in (1, 2, 3):
    y = r.randint(0, 3, 40).astype("u1")
    x = np.stack([y * 3 + r.randint(0, 3, 40), r.randint(0, 9, 40)], 1).astype("u1")
    np.savez("whole-%d.npz" % i, x=x, y=y)
    np.savez("split-%d.npz" % i, x_train=x, y_train=y, x_test=x[:1], y_test=y[:1])
    rows = np.c_[x, y].tolist()
    open("last-%d.csv" % i, "w").write("".join("%d,%d,%d\n" % tuple(l) for l in rows))
    open("named-%d.csv" % i, "w").write("a,kind,b\n" + "".join("%d,%d,%d\n" % (a, k, b) for a, b, k in rows))
    words = "".join("%s,i%d,%d,%d\n" % (("zebra", "ant", "bee")[k], b, b, a) for a, b, k in rows)
    open("worded-%d.csv" % i, "w").write("kind,id,b,a\n" + words)
    for gz in ("", ".gz"):
        os.makedirs("idx-%d%s" % (i, gz))
        o = gzip.open if gz else open
        idx(o("idx-%d%s/train-images-idx3-ubyte%s" % (i, gz, gz), "wb"), x.reshape(40, 2, 1))
        idx(o("idx-%d%s/train-labels-idx1-ubyte%s" % (i, gz, gz), "wb"), y)
open("hole.csv", "w").write("a,b,kind\n1,2,0\n3,,1\n")' 2>err
bad=$?
trained() { # name, data of three nodes
    start 1 --data $2
    start 2 --data $3
    start 3 --data $4
    cat line-1 line-2 line-3 >nodes.txt
    run small.conf --by gradients --aggregate secure --examples 90 --nodes nodes.txt --key here.key --seed seed \
        --epochs 5 -o "$1.npz"
    [ $code = 0 ] || bad=1
    stop
}
trained whole whole-1.npz whole-2.npz whole-3.npz
trained mixed idx-1 "named-2.csv --label kind" last-3.csv
trained other split-1.npz idx-2.gz "worded-3.csv --label kind --columns a,b --classes zebra,ant,bee"
[ $bad = 0 ] && py '
a = [np.load(f + ".npz") for f in ("whole", "mixed", "other")]
sys.exit(int(not all((a[0][k] == b[k]).all() for b in a[1:] for k in ("w1", "b1", "w2", "b2"))))'
report $? "nodes with .csv, by names or not, IDX, gzipped or not, and .npz give the same model, bit for bit"

refused() { # words, options: a node that does not start
    words=$1; shift
    "$S" node --key node-1.key --allow allow.txt --selftest quick "$@" >out 2>err </dev/null
    code=$?
    [ $code != 0 ] && grep -q -- "$words" err
}
refused 'hole.csv:3:3:' --data hole.csv && refused 'hole.csv:.*absent' --data hole.csv --label absent &&
    refused '--label is for a .csv' --data mine-1.npz --label y && refused 'without --data' --label y &&
    refused 'without --data' --epsilon 3 &&
    refused 'no such file' --data none.csv && refused 'unknown kind of data file' --data small.conf
report $? "invalid data are reported with file, line and column"

start 1 --data mine-1.npz
start 2
start 3 --data mine-3.npz
cat line-1 line-2 line-3 >nodes.txt
run small.conf --by gradients --aggregate secure --examples 90 --nodes nodes.txt --key here.key
[ $code = 7 ] && grep -q 'n2.* has no data of its own' err && grep -q 'needs 3 nodes' err
report $? "a node without data is left out"
stop

run small.conf --by gradients --aggregate secure -n 2 --simulate --data mine-5.npz
[ $code = 7 ] && grep -q 'needs 3 nodes or more, and there are 2' err && grep -q 'try: use -n 3 or more' err
report $? "two nodes are refused before they start"
fails 2 'a batch of 2 is too small for secure sums of 3 nodes' small.conf --by gradients --aggregate secure -n 3 \
    --simulate --data mine-5.npz --batch 2 && grep -q 'try: choose --batch 3 or more; .* need 96' err && ! grep -q starting err
report $? "a batch of fewer examples than nodes is refused before they start"
run small.conf --by gradients --aggregate secure -n 3 --simulate --data mine-5.npz -o sim.npz
[ $code = 0 ] && grep -q 'nothing is hidden' out
report $? "--simulate sends the data to the nodes, and reports that nothing is hidden"
run small.conf --by gradients --aggregate secure -n 3 --simulate --data mine-5.npz --epochs 7 \
    --trace trace.jsonl --log figures.jsonl
[ $code = 0 ] && grep -qx 'trace: trace.jsonl' out && py '
import json
lines = [json.loads(l) for l in open("trace.jsonl")]
assert [l["version"] for l in lines] == list(range(7)), lines
for l in lines:
    assert sorted(l) == ["by", "dropped", "event", "examples", "parts", "staleness", "version"], l
    assert l["event"] == "update" and (l["parts"], l["dropped"], l["examples"], l["by"]) == (3, 0, 85, 0), l
'
report $? "a trace has the figures of sums, and nothing of single nodes"
fails 2 'sends to the nodes are not hidden' small.conf --by gradients --aggregate secure -n 3 \
    --data mine-5.npz && fails 2 'needs --nodes' small.conf --by gradients --aggregate secure -n 3
report $? "data of the coordinator are refused without --simulate"
bad=0
fails 2 "cannot be combined: this process does not have the nodes' examples" small.conf --by gradients \
    --aggregate secure -n 3 --simulate --data mine-5.npz --check || bad=1
for o in '--shards 4' --async '--local-steps 2' --allow-drop --float-gradients '--spare 1'; do
    fails 2 'cannot be combined\|no effect' small.conf --by gradients --aggregate secure -n 3 \
        --simulate --data mine-5.npz $o || { bad=1; echo "# $o"; }
done
for o in --simulate '--survivors 3'; do
    fails 2 'no effect' small.conf --by gradients -n 3 --data mine-5.npz $o || bad=1
done
report $bad "options without effect are refused"
echo "1..$n"
