#!/bin/sh
# `train` in an environment, or with a file, that sets options for other ways to train: they are
# forgotten where they do not apply, and the run is the one that was typed. Speaks TAP.
. "$(dirname "$0")/../../support/tap.sh"

(umask 077; head -c 32 /dev/zero | tr '\0' e >seed)
printf '%s\n' 'input = 2' 'layer = dense 9' 'layer = tanh' 'layer = dense 3' 'loss = cross-entropy' \
    'data = spiral' 'examples = 60' 'classes = 3' 'batch = 30' 'epochs = 3' 'rate = 0.1' >my.conf
# with NAME SETTINGS WANTED ARGS...: under those settings, in the environment and then in a file, the
# command makes the model that it makes without them (WANTED: whether the run was as meant)
with() {
    name=$1 settings=$2 wanted=$3; shift 3
    rm -f plain.npz set.npz; rm -rf run
    run train my.conf --seed seed -q -o plain.npz "$@"
    ok=$code
    # shellcheck disable=SC2086,SC2163
    [ $ok = 0 ] && { (export $settings; "$S" train my.conf --seed seed -q -o set.npz "$@") >out 2>err; ok=$?; code=$ok; }
    [ $ok = 0 ] && cmp plain.npz set.npz 2>>err && eval "$wanted" || ok=1
    for s in $settings; do
        printf '%s = %s\n' "$(echo "${s%%=*}" | sed 's/SHERD_//; s/_/-/g' | tr A-Z a-z)" "${s#*=}"
    done >settings
    rm -f set.npz
    [ $ok = 0 ] && { run train my.conf --seed seed -q -o set.npz --config settings "$@"; ok=$code; }
    [ $ok = 0 ] && cmp plain.npz set.npz 2>>err && eval "$wanted" || ok=1
    report $ok "$name"
}
says() { grep -q -e "$1" out; }

with "of gradients, by products here" \
    'SHERD_SHARDS=3 SHERD_ASYNC=1 SHERD_AGGREGATE=secure SHERD_IN_PROCESS=1 SHERD_SURVIVORS=4 SHERD_SIMULATE=1' \
    'says "all of it here"'
with "of nodes and schemes, without nodes" \
    'SHERD_SCHEME=share SHERD_COLLUDING=2 SHERD_SPARE=1 SHERD_ENCODING=csr SHERD_ELEMENTWISE=nodes SHERD_CHECK=1 SHERD_BY=products' \
    'says "all of it here"'
with "of other schemes, under share" \
    'SHERD_GROUP=1 SHERD_EXPOSURE=balanced SHERD_ENCODING=csr SHERD_MODE=float SHERD_ELEMENTWISE=nodes SHERD_ROUNDING=nearest' \
    'says "under share"' -n 3 --scheme share
with "of products, by gradients" \
    'SHERD_SCHEME=share SHERD_COLLUDING=2 SHERD_MODE=exact SHERD_STRICT=1 SHERD_ROUNDING=stochastic SHERD_GROUP=1' \
    'says "by gradients"' --by gradients -n 2
with "of asynchronous training, where it is checked" 'SHERD_ASYNC=1 SHERD_STALENESS_MAX=2 SHERD_ALLOW_DROP=1' \
    'says "bit for bit"' --by gradients -n 2 --check
with "of local steps, where there are none" 'SHERD_LOCAL_BATCH=2 SHERD_AVERAGE=weighted SHERD_STALENESS_MAX=2' \
    'says "by gradients"' --by gradients -n 2
with "threads of one process, among nodes that add up" 'SHERD_IN_PROCESS=1 SHERD_ASYNC=1 SHERD_FLOAT_GRADIENTS=1' \
    'says "ring among 2"' --by gradients --aggregate ring -n 2
with "of checkpoints, without a folder" 'SHERD_CHECKPOINT_EVERY=1 SHERD_CHECKPOINT_KEEP=2' 'says "all of it here"'
with "nodes, where threads were asked for" 'SHERD_NODES=nowhere.txt' 'says "thread"' --by gradients --in-process

with "threads of one process, where nodes hide what they have" \
    'SHERD_IN_PROCESS=1 SHERD_SHARDS=3 SHERD_ASYNC=1 SHERD_CHECK=1 SHERD_LOCAL_STEPS=2 SHERD_BITS=20' \
    'says "simulated secure aggregation"' --by gradients --aggregate secure --simulate -n 3

SHERD_BY=gradients SHERD_IN_PROCESS=1 fails 2 'f32 is computed' train my.conf --precision f32
report $? "gradients that the environment asks for are asked for, and f32 is refused as if it were typed"
SHERD_CHECK=1 SHERD_ASYNC=1 fails 2 'do not go together' train my.conf --by gradients -n 2
report $? "of two from one place neither wins"
for bad in '--shards 3' '--check' '--colluding 2' '--rounding stochastic' '--checkpoint-keep 3' '--by gradients --async --check -n 2' \
    '--by gradients -n 3 --aggregate ring --async' '--by gradients -n 3 --aggregate secure --simulate --shards 2'; do
    # shellcheck disable=SC2086
    fails 2 'try:' train my.conf $bad || break
done
[ $code = 2 ]; report $? "what is typed is refused as before"
echo "1..$n"
