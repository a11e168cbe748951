#!/bin/sh
# `train` with options for other ways to train in the environment or in a file: they are ignored if they do
# not apply, and the run is that of the command line. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

(umask 077; head -c 32 /dev/zero | tr '\0' e >seed)
printf '%s\n' 'input = 2' 'layer = dense 9' 'layer = tanh' 'layer = dense 3' 'loss = cross-entropy' \
    'data = spiral' 'examples = 60' 'classes = 3' 'batch = 30' 'epochs = 3' 'rate = 0.1' >my.conf
# with NAME SETTINGS WANTED ARGS...: checks that the command writes the same model without the settings,
# with them in the environment, and with them in a file (WANTED: a condition on the run)
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

with "options of gradients are ignored in local training" \
    'SHERD_SHARDS=3 SHERD_ASYNC=1 SHERD_AGGREGATE=secure SHERD_IN_PROCESS=1 SHERD_SURVIVORS=4 SHERD_SIMULATE=1' \
    'says "all data stay on this machine"'
with "options of nodes and schemes are ignored without nodes" \
    'SHERD_SCHEME=share SHERD_COLLUDING=2 SHERD_SPARE=1 SHERD_ENCODING=csr SHERD_ELEMENTWISE=nodes SHERD_CHECK=1 SHERD_BY=products' \
    'says "all data stay on this machine"'
with "options of other schemes are ignored under share" \
    'SHERD_GROUP=1 SHERD_EXPOSURE=balanced SHERD_ENCODING=csr SHERD_MODE=float SHERD_ELEMENTWISE=nodes SHERD_ROUNDING=nearest' \
    'says "under share"' -n 3 --scheme share
with "options of products are ignored with --by gradients" \
    'SHERD_SCHEME=share SHERD_COLLUDING=2 SHERD_MODE=exact SHERD_STRICT=1 SHERD_ROUNDING=stochastic SHERD_GROUP=1' \
    'says "by gradients"' --by gradients -n 2
with "options of asynchronous training are ignored with --check" 'SHERD_ASYNC=1 SHERD_STALENESS_MAX=2 SHERD_ALLOW_DROP=1' \
    'says "bit for bit"' --by gradients -n 2 --check
with "options of local steps are ignored without --local-steps" 'SHERD_LOCAL_BATCH=2 SHERD_AVERAGE=weighted SHERD_STALENESS_MAX=2' \
    'says "by gradients"' --by gradients -n 2
with "--in-process is ignored with sums among nodes" 'SHERD_IN_PROCESS=1 SHERD_ASYNC=1 SHERD_FLOAT_GRADIENTS=1' \
    'says "ring among 2"' --by gradients --aggregate ring -n 2
with "options of checkpoints are ignored without a folder" 'SHERD_CHECKPOINT_EVERY=1 SHERD_CHECKPOINT_KEEP=2' 'says "all data stay on this machine"'
with "--nodes is ignored with --in-process" 'SHERD_NODES=nowhere.txt' 'says "thread"' --by gradients --in-process

with "--in-process is ignored with --aggregate secure" \
    'SHERD_IN_PROCESS=1 SHERD_SHARDS=3 SHERD_ASYNC=1 SHERD_CHECK=1 SHERD_LOCAL_STEPS=2 SHERD_BITS=20' \
    'says "simulated secure aggregation"' --by gradients --aggregate secure --simulate -n 3

SHERD_BY=gradients SHERD_IN_PROCESS=1 fails 2 'f32 is computed' train my.conf --precision f32
report $? "--by gradients of the environment is in effect, and f32 is refused as with the option"
SHERD_CHECK=1 SHERD_ASYNC=1 fails 2 'cannot be combined' train my.conf --by gradients -n 2
report $? "two options from one place that exclude each other are refused"
for bad in '--shards 3' '--check' '--colluding 2' '--rounding stochastic' '--checkpoint-keep 3' '--by gradients --async --check -n 2' \
    '--by gradients -n 3 --aggregate ring --async' '--by gradients -n 3 --aggregate secure --simulate --shards 2'; do
    # shellcheck disable=SC2086
    fails 2 'try:' train my.conf $bad || break
done
[ $code = 2 ]; report $? "the same options on the command line are refused"
echo "1..$n"
