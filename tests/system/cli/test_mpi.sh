#!/bin/sh
# Training among processes that mpirun starts: the bits of threads and of a parameter server, traffic in
# clear only where that was said, and an end for all of them when one fails. Speaks TAP.
. "$(dirname "$0")/../../support/tap.sh"
b=$(dirname "$S")
M=$b/sherd-mpi
[ -x "$M" ] && command -v mpirun >/dev/null || { echo "1..0 # SKIP no Open MPI: make mpi needs libopenmpi-dev, openmpi-bin"; exit 0; }
export XDG_RUNTIME_DIR="$T" TMPDIR="$T" OPENBLAS_NUM_THREADS=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
# One machine: shared memory, and loopback for what mpirun itself has to say.
export OMPI_MCA_btl=self,vader OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_plm_rsh_agent=false

mpi() { # processes, arguments
    count=$1; shift
    timeout 60 mpirun -n "$count" "$M" "$@" >out 2>err </dev/null; code=$?
}
py() { /usr/bin/python3 -c "import json, os, numpy as np
$1" >>err 2>&1; }
head -c 32 /dev/zero | tr '\0' s >seed
cat >my.conf <<END
input = 2
layer = dense 23
layer = tanh
layer = dense 3
loss = cross-entropy
l2 = 0.001
data = spiral
examples = 151
classes = 3
batch = 40
order = shuffled
steps = 60
rate = 0.05
method = momentum
END
set -- train my.conf --by gradients --seed seed -q

"$S" "$@" --in-process -n 1 -o one.npz >out 2>err; code=$?
[ $code = 0 ] && "$S" "$@" -n 2 -o nodes.npz >out 2>err && cmp one.npz nodes.npz >>err 2>&1
report $? "threads and nodes give one model"
same=0
for p in 1 2 3 4 7; do
    mpi $p "$@" --trusted-network -o "m$p.npz"
    [ $code = 0 ] && cmp one.npz "m$p.npz" >>err 2>&1 || { same=1; break; }
done
report $same "1, 2, 3, 4 and 7 processes give the same model, bit for bit"
mpi 3 "$@" --trusted-network --json --log log.jsonl
[ $code = 0 ] && ! grep -q 'all of it here' out err && py "o = json.load(open('out')); assert o['gradients']['among'] == {'by': 'MPI, in clear', 'processes': 3}
lines = [json.loads(l) for l in open('log.jsonl')]; assert lines and 'in clear' in open('log.jsonl').read()" && is_log log.jsonl
report $? "one process speaks, and result and log say that traffic is in clear"

mpi 3 train my.conf --by gradients -q --trusted-network -o fresh.npz # a seed of its own
[ $code = 0 ] && py "w = np.load('fresh.npz'); assert all(np.isfinite(w[k]).all() for k in ('w1', 'b1', 'w2', 'b2'))"
report $? "without --seed the processes agree on a fresh one"
mpi 2 "$@" -o never.npz
[ $code = 2 ] && grep -q 'trusted-network' err && [ ! -e never.npz ]
report $? "without --trusted-network nothing is sent"
refused=0
for bad in "multiply A B" "train my.conf --trusted-network" "train my.conf --by gradients --async --trusted-network" \
    "train my.conf --by gradients -n 2 --trusted-network" "train my.conf --by gradients --float-gradients --trusted-network" \
    "train my.conf --by gradients --aggregate secure --trusted-network" "train my.conf --by gradients --aggregate ring --trusted-network"; do
    mpi 2 $bad
    [ $code = 2 ] || refused=1
done
report $refused "what equals cannot do is exit 2, in all of them"
SHERD_AGGREGATE=ring SHERD_ASYNC=1 SHERD_LOCAL=2 SHERD_CHECKPOINT_EVERY=3 mpi 2 "$@" --trusted-network -o set.npz
[ $code = 0 ] && cmp one.npz set.npz >>err 2>&1
report $? "what the environment sets for other runs is forgotten"
SHERD_AGGREGATE=secure mpi 2 "$@" --trusted-network
[ $code = 2 ] && grep -q 'aggregate has no meaning' err
report $? "but not that gradients be hidden"
SHERD_BY=gradients mpi 2 train my.conf --precision f32 --trusted-network
[ $code = 2 ] && grep -q 'f32 is computed' err
report $? "f32 is refused, whoever says by gradients"
"$S" "$@" --trusted-network >out 2>err; code=$?
[ $code = 2 ]
report $? "the command itself has no such option"

mpi 3 "$@" --trusted-network --checkpoint run --checkpoint-every 20 --epochs 8
[ $code = 0 ] && mpi 2 "$@" --trusted-network --checkpoint run --checkpoint-every 20 --resume -o go.npz
[ $code = 0 ] && cmp one.npz go.npz >>err 2>&1 && "$S" verify run 2>>err
report $? "what three began and two resumed is the same model"
mpi 3 "$@" --trusted-network -o no/such/folder.npz
[ $code = 4 ]
report $? "a failure of the first ends all of them with its code"
cat >rank.sh <<END
cp my.conf "mine\$OMPI_COMM_WORLD_RANK.conf"
[ "\$OMPI_COMM_WORLD_RANK" = 1 ] && sed -i 's/examples = .*/examples = 140/' mine1.conf
exec "$M" train "mine\$OMPI_COMM_WORLD_RANK.conf" --by gradients --trusted-network --seed seed
END
timeout 60 mpirun -n 3 sh rank.sh >out 2>err; code=$?
[ $code = 3 ] && grep -q 'process 1 has another recipe or other data' err
report $? "a process with other data is named"
cat >rank.sh <<END
unset OPENBLAS_NUM_THREADS
[ "\$OMPI_COMM_WORLD_RANK" = 1 ] && export LD_PRELOAD="$b/tests/system/cli/preload_threads.so"
exec "$M" train my.conf --by gradients --trusted-network --seed seed -q -o "alone.npz"
END
if [ "$(nproc)" -gt 1 ]; then # bound to one of them OpenBLAS starts no thread
    timeout 60 mpirun --bind-to none -n 2 sh rank.sh >out 2>err; code=$?
    [ $code = 0 ] && cmp one.npz alone.npz >>err 2>&1 && [ "$(grep -c 'no thread can be started' err)" = 1 ] &&
        grep -q 'no thread can be started in 1 of 2 processes' err
    report $? "a process that can start no thread uses one, and the first says so"
else
    skip "a process that can start no thread uses one, and the first says so" "one processor: OpenBLAS starts no thread"
fi
sed 's/dense 23/dense 1000000\nlayer = relu\nlayer = dense 1000000/' my.conf >large.conf
mpi 3 train large.conf --by gradients --trusted-network
[ $code = 1 ] && grep -q 'takes .* of memory or more in 3 processes of this host' err && [ "$(grep -c '^sherd: ' err)" = 1 ] &&
    mpi 3 train large.conf --by gradients --trusted-network --json && [ $code = 1 ] &&
    py "assert 'in 3 processes' in json.load(open('out'))['error']['message']" && ! grep -q '^sherd: ' err
report $? "memory that is not there for all of them is refused by one, for all"
py "r = np.random.default_rng(3); x = r.standard_normal((90, 2)); y = (x[:, 0] > 0) * 1
v = dict(x_test=x[:20], y_test=y[:20])
np.savez('mine0.npz', x_train=x, y_train=y, **v)
z = y.copy(); z[7] ^= 1; np.savez('label1.npz', x_train=x, y_train=z, **v)
z = y[:20].copy(); z[7] ^= 1; np.savez('judge1.npz', x_train=x, y_train=y, x_test=x[:20], y_test=z)"
differ=0
for how in "--data label" "--data judge" SHERD_SHARDS=3 SHERD_BITS=12; do
    case $how in --data*) does="file=${how#--data }1.npz" ;; *) does="export $how" ;; esac
    cat >rank.sh <<END
file=mine0.npz
[ "\$OMPI_COMM_WORLD_RANK" = 1 ] && $does
exec "$M" train my.conf --data \$file --by gradients --trusted-network --seed seed
END
    timeout 60 mpirun -n 2 sh rank.sh >out 2>err; code=$?
    [ $code = 3 ] && grep -q 'process 1 has another recipe or other data' err || { differ=1; break; }
done
report $differ "so is one with other labels, examples to judge by, shards or width of numbers"
rm -rf run; mkdir first
mpi 3 "$@" --trusted-network --checkpoint run --tra first/t.jsonl --out first/m.npz
[ $code = 0 ] && cmp one.npz first/m.npz >>err 2>&1 && [ "$(ls first | wc -l)" = 2 ] &&
    [ "$(wc -l <first/t.jsonl)" = "$(sort -u first/t.jsonl | wc -l)" ] &&
    mpi 3 "$@" --trusted-network --checkpoint run --res && [ $code = 0 ]
report $? "what the first alone writes is its own, however it is abbreviated"
rm -rf run
cat >rank.sh <<END
[ "\$OMPI_COMM_WORLD_RANK" = 1 ] && echo \$\$ >pid
[ "\$OMPI_COMM_WORLD_RANK" = 0 ] && export DISK_SLOW="$T/slow" LD_PRELOAD="$b/tests/system/cli/preload_disk.so"
exec "$M" train my.conf --by gradients --trusted-network --seed seed --epochs 100000000 --checkpoint run --checkpoint-every 50
END
timeout 60 mpirun -n 2 sh rank.sh >out 2>err &
mpirun=$!
some_are_kept() { ls run 2>/dev/null | grep -q 00000100; }
await some_are_kept && : >slow && kill -TERM "$(cat pid)" # the last checkpoint takes seconds
wait $mpirun; code=$?
[ $code = 13 ] && grep -q 'interrupted after' err && ! grep -q 'no model was written' err && ! grep -q 'the time of' err && "$S" verify run 2>>err
report $? "one that is told to stop stops all of them, and training goes on with --resume"
echo "1..$n"
