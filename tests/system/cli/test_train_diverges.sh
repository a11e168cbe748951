#!/bin/sh
# Training that diverges, in each way to train: exit code 11, the step is reported, no model is written, and
# the last checkpoint has finite weights and can be resumed. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
trap 'rm -rf "$T"' EXIT

cat >wild.conf <<'END_OF_RECIPE'
input = 1
layer = dense 4
layer = dense 1
loss = squared
data = parabola
examples = 40
weights = normal 0.5
batch = 40
epochs = 20
rate = 1e160
END_OF_RECIPE

diverges() { # name, options: checks the behaviour described above
    name=$1; shift
    rm -rf kept none.npz
    "$S" train wild.conf --progress none "$@" --checkpoint kept --checkpoint-every 1 -o none.npz \
        >out 2>err </dev/null
    code=$?
    [ $code = 11 ] && [ ! -e none.npz ] && grep -q 'step [0-9]*, epoch [0-9]*: .*\(diverged\|is not finite\)' err &&
        "$S" verify kept >out 2>>err && /usr/bin/python3 - <<'END_OF_CHECK' >>err 2>&1
import glob, sys
import numpy as np
files = sorted(glob.glob("kept/*.npz"))
newest = np.load(files[-1])
assert len(files) >= 1 and all(np.isfinite(newest[k]).all() for k in newest if k[0] in "wb" and k[1:].isdigit())
END_OF_CHECK
    report $? "$name: divergence is reported with its step, and the last checkpoint is complete"
}

diverges "here"
diverges "products in clear, fixed point" -n 3 --scheme plain --mode exact
diverges "products in clear, floats" -n 3 --scheme plain --mode float
diverges "products by permute" -n 3 --scheme permute --mode float
diverges "products by share" -n 3 --scheme share
diverges "gradients" -n 2 --by gradients
diverges "gradients in floats" -n 2 --by gradients --float-gradients
diverges "gradients one by one" -n 2 --by gradients --async
diverges "gradients one by one in floats" -n 2 --by gradients --async --float-gradients
diverges "local steps" -n 2 --by gradients --local-steps 3
diverges "threads" -n 2 --by gradients --in-process
diverges "a ring" -n 3 --by gradients --aggregate ring
diverges "halving and doubling" -n 3 --by gradients --aggregate halving-doubling
diverges "secure sums" -n 3 --by gradients --aggregate secure --simulate
echo "1..$n"
