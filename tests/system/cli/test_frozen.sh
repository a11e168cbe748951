#!/bin/sh
# A node whose loop answers and whose compute thread is blocked: even without --timeout it is named,
# and the others do its work. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
LIAR=$(realpath "$R/${B:-build/plain}/tests/system/node/prog_misbehave")
/usr/bin/python3 -c "
import numpy as np
r = np.random.RandomState(1)
np.save('A.npy', r.randint(-9, 9, (600, 200)).astype(float))
np.save('B.npy', r.randint(-9, 9, (200, 150)).astype(float))
x = r.randn(3000, 20); np.savez('d.npz', x=x, y=(x[:, 0] > 0).astype(int))" 2>err
cat >net.conf <<'E'
input = 20
layer = dense 2000
layer = tanh
layer = dense 2
loss = cross-entropy
data = file
weights = normal 0.1
batch = 1500
order = shuffled
epochs = 2
rate = 0.1
E
# All jobs run at once, since each waits for most of its time. The network is so large that no node
# computes a gradient on its loop thread.
pids=
with() { # name, how node-3 is, and a command
    name=$1 how=$2
    shift 2
    SHERD_TEST_MISBEHAVE=$how@node-3 "$LIAR" "$@" --progress none \
        >"$name.out" 2>"$name.err" </dev/null &
    pids="$pids $name:$!"
}
with plain frozen multiply A.npy B.npy -o plain.npy -n 4 --scheme plain --check
with permute frozen multiply A.npy B.npy -o permute.npy -n 4 --scheme permute --mode exact --check
with share frozen multiply A.npy B.npy -o share.npy -n 5 --scheme share --check
with by-share frozen:2 train net.conf --data d.npz -n 5 --scheme share
with by-gradients frozen train net.conf --data d.npz -n 4 --by gradients
with by-ring frozen train net.conf --data d.npz -n 4 --by gradients --aggregate ring
with by-halving frozen train net.conf --data d.npz -n 4 --by gradients --aggregate halving-doubling
with by-secure frozen train net.conf --data d.npz -n 5 --by gradients --aggregate secure --simulate
for job in $pids; do
    wait "${job#*:}"
    code=$?
    cat "${job%:*}.out" >out
    cat "${job%:*}.err" >err
    [ $code = 0 ] && grep -q 'node-3 (.*\(does not answer tasks\|answers take too long\|does not compute gradients\|does not work\|is slow: .* takes over\|is lost: does not answer\)' err
    report $? "${job%:*}: a node that computes nothing is named, and the others do its work"
done
for job in permute share; do
    cat $job.err >err
    grep -Eq "^the others waited [0-9.]+ s for node-3, which was lost; their answers took .* \(median\)$" err && ! grep -q 'set the pace' err
    report $? "$job: the report names that node as what the others waited for, not the one that took over"
done
echo "1..$n"
