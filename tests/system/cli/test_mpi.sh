#!/bin/sh
# Training by processes that mpirun starts: it gives the bits of threads and of a parameter server, sends
# data in clear only with --trusted-network, and ends in all processes if one fails. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
b=$(dirname "$S")
M=$b/sherd-mpi
[ -x "$M" ] && command -v mpirun >/dev/null || { echo "1..0 # SKIP no Open MPI: make mpi needs libopenmpi-dev, openmpi-bin"; exit 0; }
export XDG_RUNTIME_DIR="$T" TMPDIR="$T" OPENBLAS_NUM_THREADS=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
# One machine: shared memory, and loopback for mpirun's own messages.
export OMPI_MCA_btl=self,vader OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_plm_rsh_agent=false

mpi() { # processes, arguments; cases beside each other need folders of their own for mpirun, too
    count=$1; shift
    TMPDIR=$PWD timeout 60 mpirun -n "$count" "$M" "$@" >out 2>err </dev/null; code=$?
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
report $? "threads and nodes give the same model"

# mpirun waits a second after a failure. Cases that start it often, or fail, are beside each other.
same() { # number of processes, the training
    p=$1
    shift
    mpi "$p" "$@" --trusted-network -o m.npz
    [ $code = 0 ] && cmp one.npz m.npz >>err 2>&1
}
for p in 1 2 3 4 7; do beside "$p processes give the model of one, bit for bit" same $p "$@"; done
joined
refused() { # words, number of processes, arguments; the exit code is 2
    words=$1
    shift
    mpi "$@"
    [ $code = 2 ] && grep -q -- "$words" err
}
for bad in "multiply A B" "train my.conf --trusted-network" "train my.conf --by gradients --async --trusted-network" \
    "train my.conf --by gradients -n 2 --trusted-network" "train my.conf --by gradients --float-gradients --trusted-network" \
    "train my.conf --by gradients --aggregate secure --trusted-network" "train my.conf --by gradients --aggregate ring --trusted-network"; do
    # shellcheck disable=SC2086
    beside "peer processes cannot use: $bad" refused '' 2 $bad
done
unsent() { refused trusted-network 2 "$@" -o never.npz && [ ! -e never.npz ]; }
beside "without --trusted-network nothing is sent" unsent "$@"
SHERD_AGGREGATE=secure beside "an option of the environment that hides gradients is not ignored" \
    refused 'aggregate has no effect' 2 "$@" --trusted-network
SHERD_BY=gradients beside "f32 is refused, whether the command line or the environment sets --by gradients" \
    refused 'f32 is computed' 2 train my.conf --precision f32 --trusted-network
joined

mpi 3 "$@" --trusted-network --json --log log.jsonl
[ $code = 0 ] && ! grep -q 'all data stay on this machine' out err && py "o = json.load(open('out')); assert o['gradients']['among'] == {'by': 'MPI, in clear', 'processes': 3}
lines = [json.loads(l) for l in open('log.jsonl')]; assert lines and 'in clear' in open('log.jsonl').read()" && is_log log.jsonl
report $? "one process prints messages, and result and log state that traffic is in clear"

mpi 3 train my.conf --by gradients -q --trusted-network -o fresh.npz # with a fresh seed
[ $code = 0 ] && py "w = np.load('fresh.npz'); assert all(np.isfinite(w[k]).all() for k in ('w1', 'b1', 'w2', 'b2'))"
report $? "without --seed the processes agree on a fresh one"
SHERD_AGGREGATE=ring SHERD_ASYNC=1 SHERD_LOCAL=2 SHERD_CHECKPOINT_EVERY=3 mpi 2 "$@" --trusted-network -o set.npz
[ $code = 0 ] && cmp one.npz set.npz >>err 2>&1
report $? "options that the environment sets for other runs are ignored"
"$S" "$@" --trusted-network >out 2>err; code=$?
[ $code = 2 ]
report $? "the command without MPI has no such option"

mpi 3 "$@" --trusted-network --checkpoint run --checkpoint-every 20 --epochs 8
[ $code = 0 ] && mpi 2 "$@" --trusted-network --checkpoint run --checkpoint-every 20 --resume -o go.npz
[ $code = 0 ] && cmp one.npz go.npz >>err 2>&1 && "$S" verify run 2>>err
report $? "a training that three processes began and two resumed gives the same model"
py "r = np.random.default_rng(3); x = r.standard_normal((90, 2)); y = (x[:, 0] > 0) * 1
v = dict(x_test=x[:20], y_test=y[:20])
np.savez('mine0.npz', x_train=x, y_train=y, **v)
z = y.copy(); z[7] ^= 1; np.savez('label1.npz', x_train=x, y_train=z, **v)
z = y[:20].copy(); z[7] ^= 1; np.savez('judge1.npz', x_train=x, y_train=y, x_test=x[:20], y_test=z)"
sed 's/examples = .*/examples = 140/' my.conf >mine1.conf
fails_first() { mpi 3 "$@" --trusted-network -o no/such/folder.npz; [ $code = 4 ]; }
beside "a failure of the first process ends all processes with its exit code" fails_first "$@"
differs() { # number of processes, what process 1 does before it trains
    cat >differs.sh <<END
recipe=my.conf data="--data mine0.npz"
[ "\$OMPI_COMM_WORLD_RANK" = 1 ] && $2
exec "$M" train \$recipe \$data --by gradients --trusted-network --seed seed
END
    TMPDIR=$PWD timeout 60 mpirun -n "$1" sh differs.sh >out 2>err
    code=$?
    [ $code = 3 ] && grep -q 'process 1 has another recipe or other data' err
}
beside "a process with another recipe is named" differs 3 'recipe=mine1.conf data='
beside "a process with other labels is named" differs 2 'data="--data label1.npz"'
beside "a process with other validation data is named" differs 2 'data="--data judge1.npz"'
beside "a process with another number of shards is named" differs 2 'export SHERD_SHARDS=3'
beside "a process with another width of numbers is named" differs 2 'export SHERD_BITS=12'
joined
cat >rank.sh <<END
unset OPENBLAS_NUM_THREADS
[ "\$OMPI_COMM_WORLD_RANK" = 1 ] && export LD_PRELOAD="$b/tests/system/cli/preload_threads.so"
exec "$M" train my.conf --by gradients --trusted-network --seed seed -q -o "alone.npz"
END
if [ "$(nproc)" -gt 1 ]; then # on a single processor OpenBLAS starts no thread
    timeout 60 mpirun --bind-to none -n 2 sh rank.sh >out 2>err; code=$?
    [ $code = 0 ] && cmp one.npz alone.npz >>err 2>&1 && [ "$(grep -c 'cannot start another thread' err)" = 1 ] &&
        grep -q 'cannot start another thread in 1 of 2 processes' err
    report $? "processes that cannot start threads use one thread, and the first prints a warning"
else
    skip "processes that cannot start threads use one thread, and the first prints a warning" "one processor: OpenBLAS starts no thread"
fi
sed 's/dense 23/dense 1000000\nlayer = relu\nlayer = dense 1000000/' my.conf >large.conf
mpi 3 train large.conf --by gradients --trusted-network
[ $code = 1 ] && grep -q 'takes .* of memory or more in 3 processes of this host' err && [ "$(grep -c '^sherd: ' err)" = 1 ] &&
    mpi 3 train large.conf --by gradients --trusted-network --json && [ $code = 1 ] &&
    py "assert 'in 3 processes' in json.load(open('out'))['error']['message']" && ! grep -q '^sherd: ' err
report $? "too little memory for all processes is reported once and ends all of them"
rm -rf run; mkdir first
mpi 3 "$@" --trusted-network --checkpoint run --tra first/t.jsonl --out first/m.npz
[ $code = 0 ] && cmp one.npz first/m.npz >>err 2>&1 && [ "$(ls first | wc -l)" = 2 ] &&
    [ "$(wc -l <first/t.jsonl)" = "$(sort -u first/t.jsonl | wc -l)" ] &&
    mpi 3 "$@" --trusted-network --checkpoint run --res && [ $code = 0 ]
report $? "output options apply to the first process only, also if they are abbreviated"
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
[ $code = 13 ] && grep -q 'interrupted after' err && ! grep -q 'nothing was saved' err && ! grep -q 'the time of' err && "$S" verify run 2>>err
report $? "a signal to one process stops all of them, and --resume continues the training"
echo "1..$n"
