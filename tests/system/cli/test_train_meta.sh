#!/bin/sh
# A training whose exposures and permutations come from a metadata file: what nodes are sent in which step,
# by a second implementation of the tables, results, refusals, and checkpoints. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

out_has() { grep -q -- "$1" out; }
json() { /usr/bin/python3 -c 'import json, sys
d = json.loads(sys.stdin.read())
assert eval("(" + sys.argv[1] + ")"), d' "$1" <out 2>>err; }
python() { PYTHONPATH="$R/tests/oracle" /usr/bin/python3 -W ignore - "$@" >>out 2>>err; }
# conf LINES...: writes a recipe of steps of 30 examples and a last one of 16, and a validation
conf() {
    printf '%s\n' 'input = 4' "$@" 'layer = dense 12' 'layer = tanh' 'layer = dense 3' 'loss = cross-entropy' \
        'data = file' 'batch = 30' 'epochs = 2' 'method = momentum 0.9' 'rate = 0.1' >my.conf
}
build() { rm -f step.npz; run meta build --recipe my.conf --nodes 3 -o step.npz "$@"; }
train() { run train my.conf --by products --data data.npz --meta step.npz --seed seed "$@"; }

(umask 077; head -c 32 /dev/zero | tr '\0' m >seed)
python data.npz <<'PY'
import sys, numpy as np
r = np.random.default_rng(7)
x, t = r.standard_normal((106, 4)), r.standard_normal((41, 4))
np.savez(sys.argv[1], x_train=x, y_train=(x[:, 0] > x[:, 1]) * 1 + (x[:, 2] > 0), x_test=t, y_test=(t[:, 0] > 0) * 1)
PY
cluster 3

# ---- the file

conf 'order = given'
build
[ $code = 0 ] && out_has '^forward_1  *dot  *4 x 30 ' && out_has '^backward_1_weights  *dot  *30 x 4 ' &&
    out_has '^backward_2_input  *A, B  *1-3 ' && ! grep -q 'backward_1_input\|activation' out &&
    [ "$(awk 'length > 80' out | wc -l)" = 0 ]
report $? "the operations of a recipe's step are listed with the exposures of each node, in 80 columns"
run meta show step.npz --json
json '[o["name"] for o in d["operations"]] == ["forward_1", "forward_2", "backward_2_weights", "backward_2_input",
    "backward_1_weights"] and d["operations"][0]["shape"] == [12, 4, 30] and d["operations"][1]["shape"] == [30, 12, 3]
    and all(abs(sum(o["fractions"]) - 1) < 1e-12 and len(o["fractions"]) == 3 for o in d["operations"])'
report $? "JSON has the shapes of a step, and the fraction of each node"
run meta build --recipe my.conf --batch all --data data.npz --nodes 3 -o all.npz --json
json 'd["operations"][0]["shape"] == [12, 4, 106]'; report $? "a step of all examples has as many as the data"
run meta build --recipe spiral --nodes 3 -o all.npz --json
json 'd["operations"][0]["shape"] == [450, 2, 100]'; report $? "data that are generated are counted too"
wrong=0
fails 2 'neither a file nor arrays are given' meta build --recipe my.conf --batch all --nodes 3 -o all.npz || wrong=1
fails 2 'no effect without --recipe' meta build z=dot:2x2x2 --batch 3 --nodes 3 -o all.npz || wrong=2
fails 2 'rows cannot be shuffled in a training' meta build --recipe my.conf --shuffle-rows --nodes 3 -o all.npz || wrong=3
fails 2 'a batch of 107 is larger' meta build --recipe my.conf --batch 107 --data data.npz --nodes 3 -o all.npz || wrong=4
fails 4 'no such recipe' meta build --recipe spirall --nodes 3 -o all.npz || wrong=5
[ $wrong = 0 ]; report $? "what a recipe cannot have is refused by name ($wrong)"

# ---- what nodes are sent

# sent RECORD CHECKPOINTS: the right operands of every step and validation, in the bytes that node 1 to 3 were sent
cat >sent.py <<'PY'
import os, sys
import numpy as np
from perm_v1 import exposures, key_of, row
import json
record, folder, kept, activated = sys.argv[1], sys.argv[2], sys.argv[3] == "kept", sys.argv[4:] == ["activated"]
z = np.load("step.npz")
m = json.loads(z["manifest"].tobytes())
seed = z["seed"].tobytes()
ops = {o["name"]: (i, o["shape"]) for i, o in enumerate(m["operations"])}
data = np.load("data.npz")
x, t = data["x_train"], data["x_test"]
steps = [np.load(folder + "/checkpoint-%012d.npz" % s) for s in range(9)]
nodes = [open(record + "/node-%d.sent" % (i + 1), "rb").read() for i in range(3)]

def deal(name, length):
    i, shape = ops[name]
    return list(exposures(key_of(seed, b"expo-v1", i), shape[1], 3, m["exposure"] == "balanced"))[:length]

def check(name, b, turn, there=True):
    """Each node is sent its rows of B, with the columns in the order of the first of them."""
    i, shape = ops[name]
    given = deal(name, len(b))
    for node in range(3):
        own = [c for c in range(len(b)) if given[c] == node]
        if not own:
            continue
        p = row(key_of(seed, b"perm-v1", i, turn), own[0], b.shape[1])
        block = np.ascontiguousarray(b[own][:, p], "<f8").tobytes()
        assert (block in nodes[node]) == there, (name, turn, node, there)

for s in range(8):
    batch = s % 4
    part = x[30 * batch:30 * batch + 30]
    w1, w2 = steps[s]["w1"], steps[s]["w2"]
    check("forward_2", w2, s)
    check("backward_2_input", np.ascontiguousarray(w2.T), s)
    if kept:
        check("forward_1", np.ascontiguousarray(part.T), batch)
        check("backward_1_weights", part, batch)
    else:
        check("forward_1", w1, s)
    check("backward_2_input", np.ascontiguousarray(w2.T), s + 1, False)
for epoch in (1, 2):
    s = 4 * epoch
    for j in range(2):
        turn = 2 ** 63 + s * 2 ** 20 + j
        check("forward_2", steps[s]["w2"], turn)
        if kept:
            check("forward_1", np.ascontiguousarray(t[30 * j:30 * j + 30].T), 2 ** 63 + j)
        else:
            check("forward_1", steps[s]["w1"], turn)
if activated:
    i, shape = ops["activation_1"]
    for s in range(8):
        part = x[30 * (s % 4):30 * (s % 4) + 30].ravel()
        given = deal("activation_1", len(part))
        mixed = part[row(key_of(seed, b"perm-v1", i, s), 0, len(part))]
        for node in range(3):
            block = mixed[np.array(given) == node].astype("<f8").tobytes()
            assert block in nodes[node], ("activation_1", s, node)
PY
sent() { PYTHONPATH="$R/tests/oracle" /usr/bin/python3 -W ignore sent.py "$@" >>out 2>>err; }
recorded() { rm -rf rec points; run train my.conf --data data.npz --meta step.npz --seed seed -n 3 --record rec \
    --checkpoint points --checkpoint-every 1 "$@"; }
recorded
[ $code = 0 ] && sent rec points kept
report $? "each step has permutations of its own; data that stay at the nodes have those of their batch"
conf 'order = given' 'layer = tanh'
build --elementwise nodes --exposure balanced
recorded --elementwise nodes
[ $code = 0 ] && sent rec points sent activated
report $? "so have activations, and a first layer whose input is computed"

# ---- results

conf 'order = given'
build --json
train --mode exact --check -o with.npz --json --log log.jsonl
[ $code = 0 ] && is_log log.jsonl && grep -q '"meta":"step.npz"' log.jsonl &&
    json 'd["check"]["epochs"] == 2 and d["meta"] == "step.npz" and not d["meta_reused"] and
    [e["operation"] for e in d["exposures"]] == ["forward_1", "forward_2", "backward_2_weights", "backward_2_input",
        "backward_1_weights"] and [e["calls"] for e in d["exposures"]] == [12, 12, 8, 8, 8] and
    all(len(e["exposed_a"]) == len(e["exposed_b"]) == 3 for e in d["exposures"]) and
    d["exposures"][0]["exposed_b"] == d["exposures"][4]["exposed_b"] and
    all(abs(a - b) < 1e-12 for a, b in zip(d["exposures"][1]["exposed_a"], d["exposures"][1]["exposed_b"]))'
report $? "the result lists for each operation and node what was shown of both operands"
run train my.conf --data data.npz --seed seed --mode exact -o without.npz
[ $code = 0 ] && cmp with.npz without.npz 2>>err; report $? "the model has the bits of a training without metadata"
train --mode exact
[ $code = 0 ] && out_has '^exposures and permutations: step.npz' && out_has '^backward_2_input  *A, B  *1-3 ' &&
    [ "$(sed '1,/^exposures/d' out | awk 'length > 80' | wc -l)" = 0 ]
report $? "the same training may use the file again, and prints the table in 80 columns"

# ---- one file, one training

run train my.conf --by products --data data.npz --meta step.npz --mode exact
[ $code = 10 ] && grep -q 'used by another training' err && grep -q 'seed' err
report $? "another seed is another training: exit code 10"
train --mode exact --rate 0.2; [ $code = 10 ]; report $? "so is another rate"
train --mode exact --epochs 3; [ $code = 0 ]; report $? "a longer training is the same"
run train my.conf --by products --data data.npz --meta step.npz --mode exact --reuse-metadata --json
[ $code = 0 ] && grep -q 'warning: step.npz served another training' err && json 'd["meta_reused"]'
report $? "--reuse-metadata allows it, with a warning, and the result states it"
python <<'PY'
import numpy as np
np.save("A.npy", np.ones((30, 12))); np.save("B.npy", np.ones((12, 3)))
PY
fails 10 'used for other operands' multiply A.npy B.npy -o C.npy --meta step.npz --operation forward_2
report $? "an operation that served a training serves no product"
build -q; cp step.npz unused.npz
fails 4 'none.txt' train my.conf --data data.npz --meta step.npz --nodes none.txt && cmp -s step.npz unused.npz; report $? "a training that does not begin leaves the file unused"

# ---- refusals

wrong=0
fails 3 'operation forward_1 is dot of 12 x 4 x 30, but a step of my.conf needs dot of 12 x 4 x 10 (batches of 10)' \
    train my.conf --by products --data data.npz --meta step.npz --batch 10 || wrong=1
fails 3 'is for 3 nodes, not for 2' train my.conf --data data.npz --meta step.npz -n 2 || wrong=2
fails 3 'has no operation activation_1' train my.conf --by products --data data.npz --meta step.npz --elementwise nodes || wrong=3
fails 2 '--meta has no effect under --scheme share' train my.conf --by products --data data.npz --meta step.npz --scheme share || wrong=4
fails 2 '--meta has no effect with --by gradients' train my.conf --data data.npz --meta step.npz --by gradients || wrong=5
fails 2 '--group disagrees with step.npz' train my.conf --by products --data data.npz --meta step.npz --group 2 || wrong=6
fails 2 '--exposure disagrees with step.npz' train my.conf --by products --data data.npz --meta step.npz --exposure balanced || wrong=7
fails 10 'gives node-[123] .* --exposure-max is 0.05' train my.conf --by products --data data.npz --meta step.npz --exposure-max 0.05 || wrong=8
fails 2 'no effect without --meta' train my.conf --by products --data data.npz --reuse-metadata || wrong=9
run meta build z=dot:30x12x3 --nodes 3 --shuffle-rows -o rows.npz
fails 2 'shuffles rows' train my.conf --by products --data data.npz --meta rows.npz || wrong=10
cmp -s step.npz unused.npz || wrong=11
[ $wrong = 0 ]; report $? "metadata that do not fit are refused by name, and stay unused ($wrong)"

# Three nodes, two of which are one domain: each is given a third.
cp step.npz whole.npz
conf 'order = shuffled'
build --exposure balanced --seed seed; cp step.npz third.npz
"$S" keygen me.key >me.pub 2>>err; echo "* $(cat me.pub) role=coordinator" >allow.txt
pids=
trap 'kill $pids 2>/dev/null; "$S" cluster down -q >/dev/null 2>&1; rm -rf "$T"' EXIT
for i in 1 2 3; do
    case $i in 3) domain=site ;; *) domain=acme ;; esac
    "$S" keygen node$i.key >>err 2>&1
    "$S" node --listen 127.0.0.1:0 --key node$i.key --allow allow.txt --domain $domain >line$i 2>>err </dev/null &
    pids="$pids $!"
done
there_are() { cat line1 line2 line3 >lines && [ "$(wc -l <lines)" -eq 3 ]; }
await there_are
together() { run train my.conf --by products --data data.npz --meta step.npz --seed seed --nodes lines --key me.key "$@"; }
together --exposure-max 0.6
[ $code = 10 ] && grep -q "step.npz: gives node-[12]'s domain 0[.][67][0-9]* of .* --exposure-max is 0.6" err &&
    cmp -s step.npz third.npz
report $? "the shares of a domain's nodes are added up before the file is used: exit code 10"
together --exposure-max 1
[ $code = 0 ] && ! cmp -s step.npz third.npz
report $? "with a limit of 1 the domain may have all, also of shuffled examples and their validation"
conf 'order = given'
cp whole.npz step.npz
run meta expand step.npz -o arrays.npz && run meta expand step.npz --without-seed -o shared.npz
fails 2 'has no seed, so its permutations serve one step only' train my.conf --by products --data data.npz --meta shared.npz
report $? "arrays without their seed are refused: they would serve every step"
cp arrays.npz step.npz
train --mode exact -o arrays-model.npz
[ $code = 0 ] && cmp arrays-model.npz without.npz && run meta verify step.npz && [ $code = 0 ] && run meta show step.npz && out_has 'used$'
report $? "arrays with their seed serve a training, which is recorded beside them"
python <<'PY'
import numpy as np
z = {k: v.copy() for k, v in np.load("arrays.npz").items()}
t = z["backward_1_weights.enshuffles"]; t[29, [0, 1]] = t[29, [1, 0]]
np.savez("step.npz", **z)
PY
train; [ $code = 3 ] && grep -q 'operation backward_1_weights, row 29' err
report $? "a changed array is found before anything is sent"

# ---- checkpoints

cp unused.npz step.npz; rm -rf part
train --mode exact --epochs 1 --checkpoint part; [ $code = 0 ] && cp step.npz used.npz
wrong=0
fails 3 'began with metadata' train my.conf --by products --data data.npz --mode exact --checkpoint part --resume || wrong=1
build -q
fails 3 'began with other metadata' train my.conf --by products --data data.npz --mode exact --checkpoint part --resume --meta step.npz || wrong=2
rm -rf plain; run train my.conf --by products --data data.npz --seed seed --mode exact --epochs 1 --checkpoint plain
fails 3 'began without metadata' train my.conf --by products --data data.npz --mode exact --checkpoint plain --resume --meta step.npz || wrong=3
[ $wrong = 0 ]; report $? "a checkpoint continues with its metadata only ($wrong)"
cp used.npz step.npz
run train my.conf --by products --data data.npz --mode exact --checkpoint part --resume --meta step.npz -o resumed.npz
[ $code = 0 ] && cmp resumed.npz without.npz; report $? "with them it has the bits of a training that was not interrupted"
cp unused.npz step.npz; rm -rf part
train --mode exact --epochs 1 --initial without.npz --checkpoint part
[ $code = 0 ] && run train my.conf --by products --data data.npz --mode exact --checkpoint part --resume --meta step.npz
[ $code = 0 ]; report $? "also if its first weights were given"
(umask 077; head -c 32 /dev/zero | tr '\0' n >other)
train --mode exact --epochs 1 --initial without.npz; [ $code = 0 ] &&
    fails 10 'used by another training' train my.conf --by products --data data.npz --meta step.npz --seed other --mode exact --initial without.npz
report $? "the seed counts also with the same first weights: the order of examples derives from it"
echo "1..$n"
