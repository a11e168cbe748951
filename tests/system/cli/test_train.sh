#!/bin/sh
# `train` and `predict` on the command line: recipes by name and file, errors with message and exit code,
# logs, models, the same bits over nodes, interrupted and killed runs. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
pids=
end() { for p in $pids; do kill "$p" 2>/dev/null; done; rm -rf "$T"; }
trap end EXIT

py() { /usr/bin/python3 -c "import gzip, json, re, struct, sys, numpy as np
log = lambda f: [json.loads(l) for l in open(f)]
plotted = lambda f: [np.array([list(map(float, l.split())) for l in b.splitlines()]) for b in re.findall(r'<< END\n(.*?)END\n', open(f).read(), re.S)]
$1" >>err 2>&1; }
json() { /usr/bin/python3 -c "import json
d = json.load(open('out'))
assert $1, d" >>err 2>&1; }
# fails CODE WORDS ARGS...: checks the exit code, words on stderr, and that model.npz is unchanged
fails() {
    want=$1 words=$2; shift 2
    cp keep.npz model.npz
    run "$@"
    [ $code = "$want" ] && grep -q -- "$words" err && cmp -s keep.npz model.npz &&
        [ "$(find . -name '.*sherd-*' | wc -l)" = 0 ]
}
# conf NAME LINES...: writes a valid recipe, with these lines in place of its own
conf() {
    file=$1; shift
    printf '%s\n' 'input = 2' 'layer = dense 8' 'layer = relu' 'layer = dense 3' 'loss = cross-entropy' \
        'data = spiral' 'examples = 90' 'classes = 3' 'rate = 0.5' 'batch = 30' 'epochs = 4' >"$file"
    for line_ in "$@"; do sed -i "/^${line_%% *} =/d" "$file"; done
    for line_ in "$@"; do echo "$line_" >>"$file"; done
}

py "
open('seed', 'wb').write(bytes(range(32)))
r = np.random.default_rng(1)
x = r.standard_normal((120, 2)); y = (x[:, 0] > 0).astype(np.int64) + (x[:, 1] > 0)
np.savez('data.npz', x=x, y=y); np.save('data.npy', np.c_[x, y])
np.savez('split.npz', x_train=np.asfortranarray(x[:90]), y_train=y[:90], x_test=x[90:], y_test=y[90:])
y[17] = 3; np.savez('label.npz', x=x, y=y); np.savez('half.npz', x=x)
np.savez('short.npz', x=x, y=y[:-1]); x[5, 1] = np.nan; np.savez('nan.npz', x=x, y=y * 0)
np.savez('wide.npz', x=r.standard_normal((9, 3)), y=np.zeros(9)); np.savez('half_label.npz', x=r.standard_normal((9, 2)), y=np.full(9, .5))
np.savez('keep.npz', a=np.ones(2)); np.savez('values.npz', x=np.linspace(-1, 1, 40), y=np.linspace(-1, 1, 40) ** 2)
def idx(name, a):
    open(name, 'wb').write(bytes([0, 0, 8, a.ndim]) + b''.join(struct.pack('>I', d) for d in a.shape) + a.tobytes())
import os
for d in 'good', 'cut', 'far': os.mkdir(d)
px = r.integers(0, 256, (50, 4, 4), np.uint8); lb = (px[:, 0, 0] > 127).astype(np.uint8)
for d in 'good', 'cut', 'far':
    idx(d + '/train-images-idx3-ubyte', px); idx(d + '/train-labels-idx1-ubyte', lb)
idx('good/t10k-images-idx3-ubyte', px[:20]); idx('good/t10k-labels-idx1-ubyte', lb[:20])
b = open('cut/train-images-idx3-ubyte', 'rb').read(); open('cut/train-images-idx3-ubyte', 'wb').write(b[:-7])
lb[31] = 9; idx('far/train-labels-idx1-ubyte', lb)
"; report $? "data are made with numpy"
conf small.conf

# ---- recipes, by name and from files

run train spiral --epochs 3000 --seed seed --log a.jsonl -o a.npz --json
json "d['schema'] == 'sherd/train/1' and d['ok'] and d['epochs'][-1]['accuracy'] > 0.93 and len(d['epochs']) == 6"
report $? "spiral is learned, and JSON lists its epochs"
cp "$R/examples/train/spiral.conf" . && run train spiral.conf --epochs 20 --seed seed -o b.npz -q &&
    run train spiral --epochs 20 --seed seed -o c.npz -q && cmp -s b.npz c.npz
report $? "a name and its file are the same recipe, and the same seed gives the same bits"
run train parabola -q --seed seed --json
json "d['epochs'][-1]['loss'] < 0.1 < d['epochs'][0]['loss'] and len(d['epochs']) == 40 and 'accuracy' not in d['epochs'][0]"
report $? "the loss of parabola falls to some hundredths, and accuracy is reported for labels only"
for name in mnist mnist-proper lenet; do
    run train $name --examples 200 --batch 50 --epochs 1 -o $name.npz
    [ $code = 0 ] && grep -q 'no --data DIR: training on digits that come with sherd' err && grep -q '200 for validation' err
    report $? "$name without --data trains on generated digits and reports that"
done
run train deep --examples 20 --batch 10 --epochs 1 -q; [ $code = 0 ] && grep -q '2 steps in' out
report $? "the recipe deep runs"

py "
z = np.load('lenet.npz')
assert set(z) == {'recipe', 'w1', 'b1', 'w2', 'b2', 'w3', 'b3', 'w4', 'b4'}
assert z['w1'].shape == (9, 20) and z['b2'].shape == (50,) and z['w3'].dtype == np.float64
open('again.conf', 'wb').write(z['recipe'].tobytes())"; report $? "numpy reads a model"
py "
r = np.random.default_rng(2)
np.savez('first.npz', w1=np.asfortranarray(r.standard_normal((2, 8))), b1=r.standard_normal((1, 8)), w2=r.standard_normal((8, 3)).astype(np.float32), b2=r.standard_normal(3))"
run train small.conf --initial first.npz --rate 1e-300 -q -o same.npz
py "a = np.load('first.npz'); b = np.load('same.npz'); assert all((a[k].reshape(b[k].shape) == b[k]).all() for k in a)"
report $? "without a step the model has the initial weights, layer by layer"
run train again.conf -q; report $code "the recipe in a model is accepted as a recipe"

# ---- precision

run train spiral --epochs 3000 --seed seed --precision f32 -o f32.npz --json; json "d['epochs'][-1]['accuracy'] > 0.93"; report $? "spiral is learned in f32"
for p in f64 f32; do run train small.conf --seed seed --precision $p -q -o near-$p.npz; done
py "
a = np.load('near-f64.npz'); b = np.load('near-f32.npz')
assert b['w1'].dtype == np.float32 and b'precision = f32' in b['recipe'].tobytes() and 0 < np.abs(a['w1'] - b['w1']).max() < 1e-5"
report $? "a few steps in f32 end near those in f64, and members are float32"
run predict f32.npz data.npz -o f32.npy -q && py "
z = np.load('f32.npz'); x = np.load('data.npz')['x']
assert np.abs(np.load('f32.npy') - (np.maximum(x @ z['w1'] + z['b1'], 0) @ z['w2'] + z['b2'])).max() < 1e-4"
report $? "predictions in f32 equal numpy's"
for how in '-n 2' '--bits 17'; do
    # shellcheck disable=SC2086
    fails 2 'f32 is computed on this machine and in floats only' train spiral --precision f32 -o model.npz $how
    report $? "f32 with $how is refused"
done
conf adam.conf 'method = adam' 'rate = 0.01'
for p in f64 f32; do
    run train adam.conf --seed seed --precision $p --epochs 6 -q -o whole.npz
    run train adam.conf --seed seed --precision $p --epochs 3 -q --checkpoint part-$p
    run train adam.conf --precision $p --epochs 6 -q --checkpoint part-$p --resume -o part.npz
    [ $code = 0 ] && cmp -s whole.npz part.npz; report $? "$p: a training resumed from a checkpoint gives the same model"
    run train adam.conf --precision $p --epochs 6 -q --checkpoint part-$p --resume -o again.npz
    [ $code = 0 ] && cmp -s whole.npz again.npz && grep -q 'nothing to do' out
    report $? "$p: a training resumed at its end reports that and writes the same model"
done

# ---- data

for f in data.npz data.npy split.npz; do
    run train small.conf --data $f --epochs 60 -q --json
    json "d['epochs'][-1]['accuracy'] > 0.85"; report $? "train reads $f"
done
json "d['epochs'][-1]['validation_accuracy'] > 0.7"; report $? "x_test is the validation set"
conf held.conf 'holdout = 0.25' 'data = file' 'examples = all'; sed -i '/classes/d' held.conf; run train held.conf --data data.npy -q --json
json "'90 examples' in d['data'] and '30 for validation' in d['data'] and 'validation_accuracy' in d['epochs'][-1]"
report $? "held-out examples are the validation set and are not trained on"
conf values.conf 'input = 1' 'loss = squared' 'layer = dense 1' 'targets = values' 'data = file'; sed -i '/classes/d' values.conf
run train values.conf --data values.npz -q --json; json "d['ok'] and 'accuracy' not in d['epochs'][-1]"
report $? "targets = values trains on values"
conf images.conf 'input = 4 x 4 x 1' 'divide_inputs = 256' 'data = idx' 'examples = all'; sed -i '/classes/d' images.conf
run train images.conf --data good -q --json; json "'50 examples of 16 numbers and 20 for validation' in d['data']"
report $? "train reads a folder of IDX files"

# ---- errors, which leave all files unchanged

refuses() { want_=$1 words_=$2 name_=$3; shift 3; fails "$want_" "$words_" train "$@" -o model.npz; report $? "$name_"; }
refuses 4 'did you mean spiral' "an unknown recipe is reported with the nearest" sprial
for line in 'rat = 1:unknown key' 'layer = dens 4:did you mean dense' 'rate = 0:expected a number above 0' \
    'epochs = 0:epochs: expected' 'steps = 4:both epochs and steps' 'classes = 0:classes: expected'; do
    conf bad.conf "${line%%:*}"
    refuses 3 "${line#*:}" "${line%%:*} is exit 3" bad.conf
done
conf bad.conf 'rate = 0'; refuses 3 'TRAINING.md lists the values' "the hint for a wrong value names the document that lists the values" bad.conf
conf bad.conf; sed -i '/^rate/d' bad.conf; refuses 3 'bad.conf: the key rate is missing' "a missing key is named" bad.conf
conf bad.conf 'input = 4 x 4 x 1' 'layer = conv2d 3 window 9'; refuses 3 'bad.conf: a conv2d window of 9' "layers that do not fit give exit code 3" bad.conf
for line in 'targets = values' 'data = parabola'; do
    conf bad.conf "$line"; [ "$line" = 'targets = values' ] || sed -i '/^classes/d' bad.conf
    refuses 3 "cross-entropy is for labels, and $line has values" "values are not accepted as labels: $line" bad.conf
done
refuses 2 'a batch of 30 is larger than the data: there are 20' "a batch larger than the data is refused" small.conf --examples 20
refuses 3 'label.npz: row 17 has the label 3: expected one below 3' "a label out of range names its row" small.conf --data label.npz
refuses 3 'half_label.npz: y: row 0: expected a label, found 0.5' "a fraction is not accepted as a label" small.conf --data half_label.npz
refuses 3 'half.npz: has x but not y' "an archive without targets is refused" small.conf --data half.npz
refuses 3 'short.npz: x has 120 rows and y has 119' "rows that do not agree are refused" small.conf --data short.npz
refuses 11 'nan.npz: row 5, column 1 is' "NaN in the data names its place" small.conf --data nan.npz
refuses 3 'wide.npz: examples have 3 numbers: the network takes 2' "examples of another length are refused" small.conf --data wide.npz
mv good/t10k-labels-idx1-ubyte labels
refuses 4 'has no t10k-labels-idx1-ubyte' "an incomplete test set is refused, not ignored" images.conf --data good
mkdir good/t10k-labels-idx1-ubyte
refuses 4 'Is a directory' "a folder in place of a file is refused" images.conf --data good
rmdir good/t10k-labels-idx1-ubyte; : >good/t10k-labels-idx1-ubyte
refuses 3 't10k-labels-idx1-ubyte: is empty' "an empty file is refused" images.conf --data good
mv labels good/t10k-labels-idx1-ubyte
refuses 3 'train-images-idx3-ubyte: ' "a truncated IDX file is refused" images.conf --data cut
refuses 3 'far: row 31 has the label 9' "a label of an IDX file out of range names its row" images.conf --data far
refuses 4 'no such file' "missing data give exit code 4" small.conf --data nowhere
refuses 3 'seed: unknown kind of data file' "data of an unknown format are refused" small.conf --data seed
refuses 3 'init.npz\|w1' "initial weights of another shape are refused" small.conf --initial a.npz
refuses 3 'the member w1 is missing' "initial weights without the members of layers are refused" small.conf --initial data.npz
refuses 2 'log would replace' "the log does not replace the data" small.conf --data data.npy --log data.npy
refuses 2 'trace would replace' "the trace does not replace the data" small.conf --data data.npy --trace data.npy --by gradients --in-process
fails 2 'would replace small.conf' train small.conf --data data.npy -o small.conf; report $? "the model does not replace the recipe"
fails 4 'nowhere/model.npz: cannot write' train small.conf --data data.npy -o nowhere/model.npz && [ ! -s out ]
report $? "a missing folder of the model is reported before the first epoch"
run train spiral --epochs 1 -o spiral; [ $code = 0 ] && run train spiral --epochs 1 -o spiral; [ $code = 0 ]
report $? "the name of a built-in recipe is not taken for a file that would be replaced"
for scheme in share1 blind; do
    refuses 2 "scheme $scheme is refused for a network" "$scheme is refused with the reason" small.conf -n 3 --scheme $scheme
done
refuses 2 'scheme has no effect without nodes' "a scheme without nodes is refused" small.conf --scheme share
refuses 2 'check compares bit for bit' "--check of floats is refused" small.conf -n 3 --check
refuses 2 'check has no effect without nodes' "--check without nodes is refused" small.conf --check
refuses 2 'would show the activations' "--elementwise nodes is refused under share" small.conf -n 3 --scheme share --elementwise nodes
refuses 2 'group has no effect under --scheme share' "--group has no effect under share" small.conf -n 3 --scheme share --group 4
refuses 2 'a training needs both' "--code inner is refused for a training" small.conf -n 3 --scheme share --code inner
refuses 2 'mode float cannot be hidden' "floats cannot be hidden" small.conf -n 3 --scheme share --mode float
conf wild.conf 'loss = squared' 'rate = 1e6' 'layer = dense 3' 'epochs = 100'
refuses 11 'step [0-9]*, epoch [0-9]*: .*diverged' "a rate that diverges gives exit code 11 with step and epoch" wild.conf --log wild.jsonl
py "l = log('wild.jsonl'); assert l[-1]['event'] == 'end' and not l[-1]['ok'] and l[-1]['code'] == 11 and 'diverged' in l[-1]['message'], l[-1]" && is_log wild.jsonl
report $? "the log of a diverging run ends with its exit code"
refuses 124 'timeout expired' "--timeout ends training" spiral --epochs 100000000 --timeout 500ms -q

# ---- over nodes: the same bits

for words in 'plain --mode exact' 'permute --bits 20' 'share' 'plain --mode exact --elementwise nodes'; do
    # shellcheck disable=SC2086
    run train small.conf --seed seed -n 3 --scheme $words --check --json -o over.npz
    json "d['check'] == {'equal': True, 'epochs': 4} and d['nodes'] == 3 and d['bytes_out'] > 1000 and d['epochs'][-1]['float64_accuracy'] > 0.3"
    report $? "$words: every parameter equals that of local training, epoch by epoch"
done
run train mnist --examples 2000 --epochs 3 --seed seed -n 3 --scheme plain --bits 17 --check -q --json
json "abs(d['epochs'][-1]['accuracy'] - d['epochs'][-1]['float64_accuracy']) < .005 and d['epochs'][-1]['accuracy'] > .1"
report $? "gradients of a large batch are not lost in 17 bits"
run train small.conf --seed seed --mode exact -q -o here.npz; cmp -s here.npz over.npz
report $? "local training in fixed point writes the same file"
run train small.conf --seed seed -n 5 --scheme share --spare 1 -q -o five.npz; cmp -s here.npz five.npz
report $? "training over five nodes writes the same file"
run train small.conf --seed seed -n 3 --scheme plain -q --json; json "d['ok'] and d['bits'] == 0"; report $? "training in floats over nodes works"
run train spiral --examples 3 --epochs 2 -n 5 --scheme share --check -q; report $code "training with more nodes than examples works"
py "
r = np.random.default_rng(3); x = r.standard_normal((45048, 40)); y = (x[:, 0] > 0).astype(np.int64)
for name, k in ('tested', 2048), ('crowded', 45048):
    np.savez(name + '.npz', x_train=x[:48], y_train=y[:48], x_test=x[48:k], y_test=y[48:k])"
conf tested.conf 'input = 40' 'data = file' 'examples = all' 'batch = 24'; sed -i '/classes/d' tested.conf
run train tested.conf --data tested.npz -n 3 --scheme share -q --json
json "max(b['bytes_out'] - a['bytes_out'] for a, b in zip(d['epochs'], d['epochs'][1:])) < 2000 * 40 * 18 < d['epochs'][0]['bytes_out']"
report $? "validation data are sent to the nodes once"
conf crowded.conf 'input = 40' 'data = file' 'examples = all' 'batch = all' 'epochs = 2'; sed -i '/classes/d' crowded.conf
run train crowded.conf --data crowded.npz -n 3 --scheme share -q --json --node-memory 16M
json "d['epochs'][1]['bytes_out'] - d['epochs'][0]['bytes_out'] > 45000 * 40 * 18"
report $? "validation data are sent for each epoch if nodes have no memory to keep them"
conf conv.conf 'input = 4 x 4 x 1' 'layer = conv2d 3 window 2' 'layer = max-pool 2' 'layer = tanh' 'layer = flatten' \
    'layer = dense 3' 'data = idx' 'examples = all' 'method = adam' 'rate = 0.01'; sed -i '/classes/d' conv.conf
run train conv.conf --data good -n 3 --scheme share --check -q --json; json "d['check']['equal']"
report $? "a convolution over nodes equals the local one"

# ---- predict

run predict a.npz data.npz -o here.npy -q --bits 17; report $code "a model predicts"
run predict a.npz data.npz -o over.npy -n 3 --scheme share --check --json
json "d['checked'] and d['rows'] == 120 and d['scheme'] == 'share' and d['outputs'] == 3"; report $? "a model predicts over nodes under share"
cmp -s here.npy over.npy; report $? "predictions over nodes equal the local ones bit for bit"
run predict a.npz data.npz -o over.npy -n 3 --scheme share --check
[ $code = 0 ] && grep -q 'equal: yes, bit for bit (360 outputs' err && grep -q 'wrote over.npy' err; report $? "predict reports the comparison and the file written"
py "r = np.random.default_rng(4); np.savez('pixels.npz', x=r.integers(0, 256, (70, 784)).astype(np.uint8), y=np.zeros(70))"
run train lenet --examples 128 --epochs 1 --seed seed -q -o lenet.npz && run predict lenet.npz pixels.npz -o lenet-here.npy -q --bits 17 &&
    run predict lenet.npz pixels.npz -o lenet-over.npy -n 3 --scheme share --json
json "d['scheme'] == 'share' and d['rows'] == 70" && cmp -s lenet-here.npy lenet-over.npy
report $? "predictions with convolutions and pools equal the local ones"
run predict a.npz data.npz -o over.npy -n 2 --scheme share
[ $code = 7 ] && grep -q 'try: -n 3$' err; report $? "two nodes are too few for share, which is reported before they are started"
run predict a.npz data.npy -o labels.npy --labels --json
py "y = np.load('here.npy'); l = np.load('labels.npy')[:, 0]; d = json.load(open('out')); t = np.load('data.npz')['y']
assert y.shape == (120, 3) and (y.argmax(1) == l).all() and abs((l == t).mean() - d['accuracy']) < 1e-12"
report $? "--labels writes the index of the largest output, and known labels give an accuracy"
py "
z = np.load('a.npz'); x = np.load('data.npz')['x']
y = np.maximum(x @ z['w1'] + z['b1'], 0) @ z['w2'] + z['b2']; np.save('numpy.npy', y)"
run predict a.npz data.npz -o float.npy -q
py "assert np.abs(np.load('float.npy') - np.load('numpy.npy')).max() < 1e-10"; report $? "numpy computes the same from the model"
cp keep.npz model.npz; run predict keep.npz data.npz -o model.npz; [ $code = 3 ] && grep -q 'expected a model' err && cmp -s keep.npz model.npz
report $? "an archive that is not a model is refused"
run predict a.npz wide.npz -o model.npz; [ $code = 3 ] && grep -q 'the network takes 2' err && cmp -s keep.npz model.npz
report $? "rows of another length are refused"
run predict a.npz data.npz -o model.npz -n 3 --scheme share1; [ $code = 2 ] && cmp -s keep.npz model.npz; report $? "share1 is refused for predictions"

# ---- log, interruption

py "
l = log('a.jsonl')
assert [x['schema'] for x in l] == ['sherd/train-log/2'] * 8 and l[0]['event'] == 'start' and l[-1] == {'schema': 'sherd/train-log/2', 'event': 'end', 'ok': True, 'step': 3000}
assert [x['epoch'] for x in l[1:-1]] == list(range(500, 3001, 500)) and all(x['loss'] > 0 and x['seconds'] > 0 and x['examples_per_second'] > 0 for x in l[1:-1])"
report $? "the log has a line for each reported epoch"
bad=$(printf 'b\377d.conf'); cp small.conf "$bad"
long=x$(printf '%0126d' 0 | sed 's/00/é/g').npy; cp data.npy "$long" # a message has room for half of an é
run train "$bad" --data "$long" -q --log odd.jsonl --json
[ $code = 0 ] && is_log odd.jsonl && py "d = json.load(open('out')); assert d['name'] == r'b\\xffd.conf' and d['data'], d"
report $? "log and result are JSON whatever a file's name is"
sed 's/^report_every .*/report_every = 10/' spiral.conf >often.conf
# started NAME ARGS...: starts a training in the background and waits until its log has three lines
started() {
    log_=$1; shift
    rm -f "$log_"
    "$S" train often.conf --epochs 100000000 -q --log "$log_" -o model.npz "$@" >out 2>err </dev/null & last=$!
    pids="$pids $last"
    i=0
    while [ "$(cat "$log_" 2>/dev/null | wc -l)" -lt 3 ] && [ $i -lt 600 ]; do sleep 0.05; i=$((i + 1)); done
}
cp keep.npz model.npz; started int.jsonl; kill -TERM $last; wait $last; code=$?
[ $code = 130 ] && grep -q 'interrupted after [0-9]* of .* steps; nothing was saved' err && cmp -s keep.npz model.npz; report $? "an interrupted run gives exit code 130 and writes no model"
grep -q 'try: with --checkpoint FOLDER, .* --resume continues it' err; report $? "the message says how to keep an interrupted training"
py "l = log('int.jsonl'); assert l[-1]['event'] == 'end' and l[-1]['code'] == 130" && is_log int.jsonl; report $? "the log of an interrupted run ends with its exit code"
started kill.jsonl -n 2 --scheme plain; kill -9 $last; wait $last 2>/dev/null
py "l = log('kill.jsonl'); assert len(l) >= 3 and l[-1]['event'] == 'epoch'" && is_log kill.jsonl; report $? "the log of a run ended by kill -9 can be parsed"
cmp -s keep.npz model.npz; report $? "kill -9 leaves an existing model unchanged"
run train small.conf --log /dev/full; [ $code = 4 ] && grep -q '/dev/full: cannot write' err; report $? "a log that cannot be written ends the run"

# ---- the table

conf held.conf 'holdout = 0.2' 'examples = 120' # 96 examples: four steps are an epoch
run train held.conf --seed seed --epochs 25; [ $code = 0 ] &&
    head -n 1 out | grep -qx 'epoch       loss  accuracy  val. loss  val. acc.      time  examples/s' &&
    [ "$(sed -n '2,26s/^ *\([0-9]*\) .*/\1/p' out | tr '\n' ' ')" = "$(seq -s ' ' 25) " ] && ! grep -q 'not shown' out &&
    ! grep -v ' steps in \| holdout' out | grep -q '.\{80\}' && grep -q 'held.conf: 51 parameters, 25 epochs of 4 steps, 30 examples each' err
report $? "each epoch is a line of 80 columns, with the figures of validation"
run train values.conf --data values.npz; [ $code = 0 ] && head -n 1 out | grep -qx 'epoch       loss      time  examples/s'
report $? "figures that a training does not have have no column"
run train held.conf --seed seed --epochs 1001 --log many.jsonl; [ $code = 0 ] && [ "$(sed -n 's/^ *\([0-9]*\)  .*s  *[0-9]*$/\1/p' out | tr '\n' ' ')" = \
    "$(seq -s ' ' 100) $(seq -s ' ' 102 2 300) $(seq -s ' ' 305 5 800) $(seq -s ' ' 810 10 1000) 1001 " ] &&
    grep -qxF '... 680 of 1001 reports are not shown; the log has them all' out && [ "$(wc -l <many.jsonl)" = 1003 ]
report $? "a table that leaves reports out says so, and ends with the last one"
run train held.conf --seed seed --epochs 2 --json -v; [ $code = 0 ] && grep -q '^    2  ' err && json "len(d['epochs']) == 2"
report $? "with --json, -v writes the table to standard error"
# A line takes seconds, so that a buffer of lines is not written within the minute of await.
"$S" train often.conf --epochs 100000000 --report-every 10000 >live 2>err </dev/null & last=$!
pids="$pids $last"
has_rows() { [ "$(grep -c '^ *[0-9]*0  .*s  *[0-9]*$' live)" -ge 1 ]; }
await has_rows; status=$?
kill -TERM $last; wait $last; code=$?
[ $status = 0 ] && [ $code = 130 ]
report $? "lines of the table are written while the training runs"

run train held.conf --seed seed --report-every 3steps --epochs 2 --log steps.jsonl
[ $code = 0 ] && [ "$(sed -n 's/^ *\([0-9]*\)  *\([0-9]*\)  [01]\..*s  .*/\1:\2/p' out | tr '\n' ' ')" = '1:3 2:6 2:8 ' ] &&
    py "assert [(x['epoch'], x['step']) for x in log('steps.jsonl')[1:-1]] == [(1, 3), (2, 6), (2, 8)]
assert all('validation_loss' in x and x['seconds'] > 0 for x in log('steps.jsonl')[1:-1]) and log('steps.jsonl')[0]['steps_per_epoch'] == 4" &&
    is_log steps.jsonl
report $? "--report-every N steps reports within an epoch"
run train held.conf --seed seed --report-every 2 --epochs 5 --json; json "[x['epoch'] for x in d['epochs']] == [2, 4, 5]"
report $? "--report-every N reports every N epochs"
refuses 2 "report-every: expected a number of epochs, or of steps, found 'often'" "a wrong interval of reports is an error" \
    held.conf --report-every often

# ---- early stopping

conf soon.conf 'holdout = 0.2' 'examples = 120' 'method = adam' 'rate = 0.3' 'epochs = 400'
run train soon.conf --seed seed --patience 4 --log soon.jsonl -o soon.npz --json
py "
d = json.load(open('out')); e = d['epochs']; best = min(e, key=lambda x: x['validation_loss']); end = log('soon.jsonl')[-1]
assert d['stopped_early'] and len(e) < 400 and d['best_step'] == best['step'] and e[-1]['epoch'] == best['epoch'] + 4, d
assert d['best_loss'] == best['validation_loss'] and d['best_accuracy'] == best['validation_accuracy'] and d['steps'] == e[-1]['step']
assert end['ok'] and end['stopped_early'] and end['best_step'] == best['step'] and end['step'] == e[-1]['step']
open('best', 'w').write('%d' % best['epoch']); open('end', 'w').write('%d' % e[-1]['step'])" && is_log soon.jsonl &&
    run train soon.conf --seed seed --epochs "$(cat best)" -o best.npz -q &&
    py "a, b = np.load('soon.npz'), np.load('best.npz'); assert all((a[k] == b[k]).all() for k in ('w1', 'b1', 'w2', 'b2'))"
report $? "--patience stops early and saves the model with the lowest validation loss"
run train soon.conf --seed seed --patience 4
[ $code = 0 ] && grep -q "^stopped early: the model is that of epoch $(cat best), step [0-9]*, which had the lowest validation loss: 0" out
report $? "the last lines say that training stopped early, and which model was kept"
same_stop() { # NAME ARGS...: stops at the same step with the same model, over nodes, stopped and resumed
    name=$1; shift
    rm -rf whole.d part.d
    run train soon.conf --seed seed --patience 4 -o whole.npz --json "$@" && cp out whole.out &&
        run train soon.conf --seed seed --patience 4 --checkpoint part.d --epochs 3 -q "$@" &&
        run train soon.conf --seed seed --patience 4 --checkpoint part.d --resume -o part.npz --json "$@" && cmp whole.npz part.npz 2>>err &&
        py "a, b = json.load(open('whole.out')), json.load(open('out'))
assert a['stopped_early'] and b['stopped_early'] and a['steps'] == b['steps'] and a['best_step'] == b['best_step'], (a, b)
same = lambda d: [(x['epoch'], x['step'], x['loss'], x['accuracy'], x['validation_loss'], x['validation_accuracy']) for x in d['epochs']]
assert same(a) == same(b)"
    report $? "$name"
}
same_stop "a resumed training stops at the same step, with the same model and all reports"
same_stop "so does one by products under share" -n 3 --scheme share
same_stop "so does one by gradients over nodes" -n 2 --by gradients --check
same_stop "so does one by all-reduce" -n 3 --by gradients --aggregate ring
same_stop "so does one by simulated secure sums" -n 3 --by gradients --aggregate secure --simulate
refuses 2 'small.conf: patience needs validation data, and there are none' "patience without validation data is an error" small.conf --patience 2

# ---- plots

run train spiral --epochs 500 --seed seed --plot p.svg --log p.jsonl -q
if command -v gnuplot >/dev/null; then [ $code = 0 ] && grep -q '<svg' p.svg && [ ! -s err ]; else [ $code = 0 ] && [ -s p.svg.gnuplot ]; fi
report $? "--plot draws with gnuplot"
mkdir none; SHERD_PATH=$PATH; PATH="$T/none" run train spiral --epochs 500 --seed seed --plot q.svg -o q.npz -q; PATH=$SHERD_PATH
[ $code = 0 ] && grep -q gnuplot err && [ ! -e q.svg ] && [ -s q.svg.gnuplot ]; report $? "without gnuplot data and script are kept, which is reported"
py "
curve, points, regions = plotted('q.svg.gnuplot')
l = [x for x in log('p.jsonl') if x['event'] == 'epoch']
assert (curve[:, 0] == [x['epoch'] for x in l]).all() and (curve[:, 1] == [x['loss'] for x in l]).all() and (curve[:, 3] == [x['accuracy'] for x in l]).all()
z = np.load('q.npz'); p = lambda x: (np.maximum(x @ z['w1'] + z['b1'], 0) @ z['w2'] + z['b2']).argmax(1)
assert points.shape == (450, 4) and (np.bincount(points[:, 2].astype(int)) == 150).all() and np.abs(np.hypot(points[:150, 0], points[:150, 1]) - np.linspace(0, 1, 150)).max() < 1e-12
low, high = regions[:, (0, 2)].min(0), regions[:, (1, 3)].max(0); cell = (high - low) / 300
grid = np.stack(np.meshgrid(*(l + (np.arange(300) + .5) * c for l, c in zip(low, cell))), -1).reshape(-1, 2); seen = np.full(90000, -1)
for left, right, bottom, top, kind, _ in regions: seen[(grid > (left, bottom)).all(1) & (grid < (right, top)).all(1)] = kind
assert (p(grid) == seen).mean() > .9999 and set(seen) == {0, 1, 2}
assert (high > points[:, :2].max(0)).all() and (low < points[:, :2].min(0)).all()"
report $? "the plot's curves are those of the log, its points the data, its regions the network's decisions"
run train held.conf --seed seed --epochs 3 --checkpoint plotted -q && PATH="$T/none" run train held.conf --seed seed --epochs 7 \
    --checkpoint plotted --resume --plot again.svg -q; PATH=$SHERD_PATH
[ $code = 0 ] && py "assert list(plotted('again.svg.gnuplot')[0][:, 0]) == [1, 2, 3, 4, 5, 6, 7]"
report $? "the plot of a resumed run has the epochs of the runs before"
echo mine >mine.svg.gnuplot
refuses 4 'mine.svg.gnuplot: exists, and is not a script that sherd wrote' "the script of a plot never replaces a file of others" \
    spiral --plot mine.svg
refuses 2 "expected the name of an .svg or .png file" "a plot of an unknown file type is refused before training" spiral --plot p.gif

# ---- the published run

if [ -n "$MNIST" ] && [ -r "$MNIST" ]; then
    py "r = np.random.RandomState(402); np.savez('init.npz', w1=.01 * r.randn(784, 128), b1=np.zeros(128), w2=.01 * r.randn(128, 10), b2=np.zeros((1, 10)))"
    run train mnist --data "$MNIST" --initial init.npz --epochs 2 --log mnist.jsonl -q
    py "
l = [x for x in log('mnist.jsonl') if x['event'] == 'epoch']
assert np.abs(np.array([x['loss'] for x in l]) - [1.2512294, 1.0071909]).max() < 1e-5
assert np.abs(np.array([x['accuracy'] for x in l]) - [.10437, .1206]).max() < 1e-3"
    report $? "two epochs on MNIST give the published costs and accuracies"
else
    skip "two epochs on MNIST give the published costs and accuracies" "no MNIST (SHERD_MNIST names its folder)"
fi
echo "1..$n"
