#!/bin/sh
# Nodes that -n starts on devices: of PoCL, which has two here, and of the stand-in for CUDA. A
# training over several devices has the parameters of the processor, also where one of them is lost.
. "$(dirname "$0")/../../support/tap.sh"
B=$(cd "$R" && realpath "${BUILD:-build/plain}")
export POCL_DEVICES="pthread pthread"
stand_in() { # faults, then a command
    export SHERD_TEST_CUDA="$1" SHERD_CUDA_LIBRARY="$B/tests/system/node/preload_cuda.so"
    shift
    "$@"
    unset SHERD_TEST_CUDA SHERD_CUDA_LIBRARY
}
trained() { # recipe, result, then options: trains by gradients, a few steps of 8 shards
    recipe=$1 to=$2
    shift 2
    run train "$recipe" --examples 256 --epochs 1 --seed 3 --by gradients -o "$to.npz" "$@"
    [ $code = 0 ]
}

# --- training --------------------------------------------------------------------------------------
trained lenet cpu -n 1 && trained mnist-proper dense -n 1
report $? "networks are trained on the processor"

trained lenet pocl -n 1 --backend opencl --devices 2 && cmp -s pocl.npz cpu.npz &&
    grep -q '^node-1: 2 devices of opencl, the first is' out
report $? "one node on two devices of PoCL has the same parameters, and the report names them"

stand_in devices=3,meet=520 trained mnist-proper cuda -n 1 --devices 3 && cmp -s cuda.npz dense.npz &&
    grep -q '^node-1: 3 devices of cuda' out
report $? "without --backend the first one with devices is taken, and its devices compute at the same time"

small() { run train lenet --examples 64 --epochs 2 --seed 3 --by gradients "$@"; } # the stand-in is slow
has_epochs() {
    /usr/bin/python3 - "$1" <<'END'
import json, sys
epochs = [x for x in map(json.loads, open(sys.argv[1])) if x["event"] == "epoch"]
assert len(epochs) == 2 and all(x["validation_accuracy"] > 0 and x["seconds"] > 0 for x in epochs), epochs
END
}
small -n 1 -o lenet.npz && stand_in devices=3 small -n 1 --devices 3 -o lenet3.npz --log lenet.jsonl && cmp -s lenet.npz lenet3.npz &&
    grep -q '^node-1: 3 devices of cuda' out && grep -q '^epoch .*val. acc. .*time' out && has_epochs lenet.jsonl
report $? "convolutions on three stand-ins have the same parameters, with validation accuracy and time for each epoch"

stand_in devices=2 trained mnist-proper each -n 2 --devices 1 && cmp -s each.npz dense.npz &&
    grep -q '^node-1: cuda, Stand-in GPU 0' out && grep -q '^node-2: cuda, Stand-in GPU 1' out
report $? "two nodes have a device each, and the same parameters"

stand_in devices=2,dies=360 trained mnist-proper lost -n 1 --devices 2 && cmp -s lost.npz dense.npz
report $? "a device that is lost in the middle of a training does not change its parameters"

stand_in devices=4,meet=360 trained mnist-proper ring -n 2 --devices 2 --aggregate ring && cmp -s ring.npz dense.npz
report $? "members of an all-reduce group compute on several devices at the same time, with the same parameters"

good=0
for how in "pocl --backend opencl --device 0" "pair --backend opencl --device all"; do
    # shellcheck disable=SC2086
    trained mnist-proper $how -n 1 --float-gradients || good=1
done
[ $good = 0 ] && cmp -s pocl.npz pair.npz
report $? "gradients in floats have the same bits on one device and on two"

run train mnist-proper --examples 256 --epochs 2 --seed 3 --by gradients -n 1 --backend opencl --device all --log log.jsonl --json
[ $code = 0 ] && /usr/bin/python3 - out <<'END' && has_epochs log.jsonl
import json, sys
r = json.load(open(sys.argv[1]))
d, = r["devices"]
assert d["name"] == "node-1" and d["backend"] == "opencl" and d["devices"] == 2 and d["gflops"] > 0, d
END
report $? "result and log have devices, and for each epoch validation accuracy and time"

# --- other verbs -----------------------------------------------------------------------------------
/usr/bin/python3 -c "
import numpy as np
rng = np.random.default_rng(1)
np.save('a.npy', rng.standard_normal((60, 40)))
np.save('b.npy', rng.standard_normal((40, 30)))"
run multiply a.npy b.npy --bits 20 -n 2 -o cpu.npy && run multiply a.npy b.npy --bits 20 -n 2 --backend opencl --device 1 -o one.npy &&
    cmp -s cpu.npy one.npy && [ "$(grep -c '^node-[12]: opencl, ' err)" = 2 ]
report $? "a product over nodes on one device that they share has the bits of the processor"

export XDG_RUNTIME_DIR="$T"
budgets() { # faults, memory of each node, then options of the nodes
    faults=devices=2,memory=200000000${1:+,$1} want=$2
    shift 2
    stand_in "$faults" run cluster up "$@" && run cluster status --nodes sherd/nodes --key sherd/key --json &&
        [ "$(grep -o '"memory":[0-9]*' out | sort | uniq -c | tr -s ' ')" = " $want" ] && run cluster down
}
budgets '' '3 "memory":53333333' -n 3 --backend cuda && budgets taken=50000000 '2 "memory":60000000' -n 2 --backend auto &&
    budgets '' '2 "memory":160000000' -n 2 --devices 1 && budgets '' '1 "memory":160000000' -n 1 --backend cuda
report $? "nodes that use the same device divide the memory that others leave"

run cluster up -n 1 --backend opencl --devices 2 && run cluster status --nodes sherd/nodes --key sherd/key -v &&
    grep -q 'backend opencl, 2 devices' out && run multiply a.npy b.npy --scheme plain --bits 20 -o up.npy &&
    cmp -s cpu.npy up.npy && run multiply a.npy b.npy -o up.npy --devices 2
[ $code = 2 ] && grep -q -- '--devices has no effect without -n' err
report $? "nodes on devices stay up for later commands"
run cluster down

# --- bad input -------------------------------------------------------------------------------------
good=0
refuses() { # words, then options
    words=$1
    shift
    run multiply a.npy b.npy -o c.npy "$@"
    [ $code = 2 ] && grep -q -- "$words" err && [ ! -e c.npy ] || { good=1 && echo "# $words: $*"; }
}
refuses '3 nodes with 1 device each need 3, and backend opencl has 2' -n 3 --backend opencl --devices 1
refuses '1 node with 2 devices each needs 2, and backend opencl has 1 of those' -n 1 --backend opencl --device 1 --devices 2
refuses 'try: --backend opencl computes on it' -n 2 --devices 1
refuses 'no device but the processor was found' -n 2 --devices 1
refuses 'backend cpu has no devices to choose from' -n 2 --backend cpu --devices 1
refuses '--devices has no effect without -n' --nodes none.txt --key none.key --devices 1
refuses 'there is no device 7' -n 2 --backend opencl --device 7
SHERD_DEVICES=1 run multiply a.npy b.npy -o c.npy --nodes none.txt --key none.key
! grep -q -- '--devices' err || good=1 # of the environment: meant for other commands
stand_in devices=3,old=2 refuses '2 nodes with 1 device each need 2, and backend cuda has 1' -n 2 --devices 1
stand_in none refuses 'and backend cuda has 0' -n 2 --devices 1 --backend cuda
run train spiral --devices 2
[ $code = 2 ] && grep -q -- '--devices has no effect without nodes' err || good=1
run train spiral --by gradients -n 2 --in-process --backend opencl
[ $code = 2 ] && grep -q -- '--backend and --in-process cannot be combined' err || good=1
report $good "devices that are not there, and options without effect, are one sentence"
echo "1..$n"
