#!/bin/sh
# Training that is stopped and continued with --resume, in the ways to train whose state is more than the
# weights: the model is that of an uninterrupted run. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

(umask 077; head -c 32 /dev/zero | tr '\0' r >seed)
# conf LINES...: writes a recipe of short steps with these lines
conf() {
    printf '%s\n' 'input = 2' 'layer = dense 12' 'layer = tanh' 'layer = dense 3' 'loss = cross-entropy' \
        'data = spiral' 'examples = 96' 'classes = 3' 'batch = 32' 'order = shuffled' 'epochs = 12' "$@" >my.conf
}
train() { run train my.conf --seed seed -q --checkpoint "$@"; }
# same NAME ARGS...: checks that the model of 12 epochs equals that of 5 and 7 more, with equal checkpoints
same() {
    name=$1; shift
    rm -rf whole part
    train whole -o whole.npz "$@"
    [ $code = 0 ] && train part --epochs 5 "$@"
    [ $code = 0 ] && train part --resume -o part.npz "$@"
    [ $code = 0 ] && cmp whole.npz part.npz 2>>err
    report $? "$name"
}

conf 'rate = 0.02' 'method = adam'
same "asynchronous Adam continues from its number of updates, which is larger than that of steps" \
    --by gradients --async --in-process -n 1
/usr/bin/python3 -c "import numpy as np
z = np.load('part/checkpoint-000000000036.npz'); assert z['step'] == 36 and z['optimiser_steps'] == 36 * 8, z['optimiser_steps']" >err 2>&1
report $? "the checkpoint of asynchronous Adam records the number of updates"
conf 'rate = 0.3'
same "local steps between averages continue with the same bits" --by gradients --in-process -n 2 --local-steps 3 --local-batch 2
conf 'rate = 0.3' 'method = momentum 0.9'
same "stochastic rounding continues with the same bits" --bits 12 --rounding stochastic

conf 'rate = 0.3' 'report_every = 5'
rm -rf often seldom
train seldom && [ "$(ls seldom | grep -c npz)" = 4 ] && train often --checkpoint-every 3 && [ "$(ls often | grep -c npz)" = 13 ]
report $? "there is a checkpoint for each reported epoch, before the first step and at the end, or for --checkpoint-every"

/usr/bin/python3 -c "import numpy as np
r = np.random.default_rng(5); x = r.standard_normal((96, 2)); y = (x[:, 0] > 0) * 1; t = r.standard_normal((9, 2)); u = (t[:, 0] > 0) * 1
for n in ('all', 'label', 'judge'):
    p, q = y.copy(), u.copy()
    if n == 'label': p[7] ^= 1
    if n == 'judge': q[7] ^= 1
    np.savez(n + '.npz', x_train=x, y_train=p, x_test=t, y_test=q)"
conf 'rate = 0.3'; sed -i '/^examples/d; /^classes/d; s/^data.*/data = file/' my.conf
rm -rf part
other=0
train part --epochs 2 --data all.npz; [ $code = 0 ] || other=1
for file in label judge; do
    train part --resume --data $file.npz
    [ $code = 3 ] && grep -q 'trained on other data' err || { other=1; break; }
done
[ $other = 0 ] && train part --resume --data all.npz && [ $code = 0 ]
report $? "other labels, or other validation data, do not continue a training"

# ---- the log of a run that was killed

# lines CODE: runs python with the log's objects, and those before and after --resume
lines() { /usr/bin/python3 -c "import json
text = open('log.jsonl').read(); old = open('old.jsonl').read()
assert text.endswith('\\n') and text.startswith(old[:old.rindex('\\n') + 1])
l = [json.loads(x) for x in text.splitlines()]
starts = [i for i, x in enumerate(l) if x['event'] == 'start']
$1" >>err 2>&1; }
conf 'rate = 0.1' 'method = adam'
sed -i 's/epochs = 12/epochs = 3000/' my.conf
rm -rf whole; train whole --checkpoint-every 300 -o whole.npz --log whole.jsonl; cp whole.jsonl old.jsonl
"$S" train my.conf --seed seed -q --checkpoint run --checkpoint-every 300 --log log.jsonl -o part.npz >out 2>err &
while [ ! -e run/checkpoint-000000000600.npz ] || [ "$(wc -l <log.jsonl)" -lt 250 ]; do sleep 0.005; done
kill -9 $!; wait $! 2>/dev/null
cp log.jsonl old.jsonl
printf '{"schema":"sherd/train-log/2","event":"ep' >>log.jsonl # as after a crash of the machine
train run --checkpoint-every 300 --resume --log log.jsonl -o part.npz
[ $code = 0 ] && cmp whole.npz part.npz 2>>err && lines "
want = [json.loads(x) for x in open('whole.jsonl')]
from_step = l[starts[1]]['from_step']
assert len(starts) == 2 and starts[0] == 0 and from_step >= 600 and from_step % 300 == 0
same = lambda x: {k: v for k, v in x.items() if k not in ('seconds', 'examples_per_second')}
kept = [same(x) for x in l[1:starts[1]] if x['step'] <= from_step] + [same(x) for x in l[starts[1] + 1:]]
assert kept == [same(x) for x in want[1:]]" && is_log log.jsonl whole.jsonl
report $? "--log continues after its last complete line, and equals the log of one run up to the checkpoint"
cp log.jsonl old.jsonl; sed -i 's/epochs = 3000/epochs = 6000/' my.conf
(trap '' XFSZ; ulimit -f $(($(wc -c <log.jsonl) / 512 + 8)); "$S" train my.conf --seed seed -q --checkpoint run \
    --checkpoint-every 60000 --resume --log log.jsonl >out 2>err); code=$?
[ $code = 4 ] && grep -q 'log.jsonl: cannot write' err && lines "assert len(starts) == 3 and len(l) > starts[2] + 1"
report $? "a full disk removes nothing from the log of a resumed run"

# ---- a signal while a checkpoint is being written

sed -i 's/epochs = 6000/epochs = 100000000/' my.conf; rm -rf run slow
DISK_SLOW="$T/slow" LD_PRELOAD="$(dirname "$S")/tests/system/cli/preload_disk.so" \
    "$S" train my.conf --seed seed -q --checkpoint run --checkpoint-every 50 >out 2>err &
pid=$!
is_there() { [ -e "$1" ]; }
await is_there run/checkpoint-000000000100.npz && : >slow && was=$(cat run/head)
next_one() { [ "$(cat run/head)" != "$was" ]; }
await next_one && sleep 1 && kill -TERM $pid # the next one is being written; it and the last one take seconds
wait $pid; code=$?
[ $code = 13 ] && grep -q 'interrupted after' err && ! grep -q 'nothing was saved' err && grep -q 'try: the same command with --resume continues it' err && "$S" verify run 2>>err
report $? "a checkpoint is kept even if it takes longer than the time allowed after a signal"
echo "1..$n"
