#!/bin/sh
# Local nodes that outlive a command: start them once, multiply several times, stop them.
#
#   examples/cluster.sh
#
# Needs `sherd` on the PATH, python3 and numpy (to make matrices and to look at the result).
set -eu
work=$(mktemp -d)
trap 'sherd cluster down >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
cd "$work"

python3 -c "
import numpy as np
rng = np.random.default_rng(1)
np.save('A.npy', rng.standard_normal((300, 200)))
np.save('B.npy', rng.standard_normal((200, 100)))"

sherd cluster up -n 7
sherd cluster status

# Without -n and --nodes the running cluster is used. In floats first, then in fixed point, where
# --check compares every bit with the product computed here.
sherd multiply A.npy B.npy -o C.npy --scheme permute
sherd multiply A.npy B.npy -o E.npy --scheme permute --bits 24 --check

# An element-wise operation over the same nodes.
sherd apply sigmoid C.npy -o S.npy

python3 -c "
import numpy as np
A, B, C, E, S = (np.load(n + '.npy') for n in 'ABCES')
assert np.allclose(C, A @ B), 'float product'
assert np.allclose(E, A @ B, atol=1e-3), 'fixed-point product'
assert np.allclose(S, 1 / (1 + np.exp(-C))), 'sigmoid'
print('numpy agrees')"

sherd cluster down
