#!/bin/sh
# Training that stopped and goes on with --resume, in the ways to train whose state is more than the
# weights: the model is that of a run which nobody stopped. Speaks TAP.
. "$(dirname "$0")/../../support/tap.sh"

(umask 077; head -c 32 /dev/zero | tr '\0' r >seed)
# conf LINES...: a recipe of short steps, with these in it
conf() {
    printf '%s\n' 'input = 2' 'layer = dense 12' 'layer = tanh' 'layer = dense 3' 'loss = cross-entropy' \
        'data = spiral' 'examples = 96' 'classes = 3' 'batch = 32' 'order = shuffled' 'epochs = 12' "$@" >my.conf
}
train() { run train my.conf --seed seed -q --checkpoint "$@"; }
# same NAME ARGS...: the model of all 12 epochs is that of 5 and 7 more, after checkpoints at the same steps
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
same "asynchronous Adam goes on from the updates it made, which are more than the steps" \
    --by gradients --async --in-process -n 1
/usr/bin/python3 -c "import numpy as np
z = np.load('part/checkpoint-000000000036.npz'); assert z['step'] == 36 and z['optimiser_steps'] == 36 * 8, z['optimiser_steps']" >err 2>&1
report $? "and its checkpoint says how many"
conf 'rate = 0.3'
same "local steps between averages" --by gradients --in-process -n 2 --local-steps 3 --local-batch 2
conf 'rate = 0.3' 'method = momentum 0.9'
same "operands that are rounded by chance" --bits 12 --rounding stochastic
echo "1..$n"
