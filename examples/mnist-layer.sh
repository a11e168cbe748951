#!/bin/sh
# Layer 1 of a 784-128-10 network over seven nodes, with metadata that is built first and kept.
#
#   examples/mnist-layer.sh [FOLDER [SAMPLES]]
#
# FOLDER holds MNIST in its own form (train-images-idx3-ubyte, .gz or not); without it, digits-like
# images are drawn. Needs `sherd` on the PATH, python3 and numpy.
set -eu
folder=${1:-}
samples=${2:-2000}
[ -z "$folder" ] || folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 - "$folder" "$samples" <<'END'
import glob
import gzip
import sys

import numpy as np

folder, samples = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(7)
if folder:
    name = sorted(glob.glob(folder + "/train-images*3-ubyte*"))[0]
    data = (gzip.open if name.endswith(".gz") else open)(name, "rb").read()
    count, rows, cols = np.frombuffer(data, ">u4", 3, 4)
    images = np.frombuffer(data, np.uint8, offset=16).reshape(count, rows * cols)[:samples]
else:
    y, x = np.mgrid[0:28, 0:28]
    at = rng.uniform(8, 20, (samples, 2, 1, 1))
    ring = np.abs(np.hypot(y - at[:, 0], x - at[:, 1]) - rng.uniform(3, 8, (samples, 1, 1)))
    images = np.clip(255 * (1.6 - ring), 0, 255).astype(np.uint8).reshape(samples, 784)
np.save("images.npy", np.ascontiguousarray(images))
np.save("weights.npy", rng.uniform(-1, 1, (784, 128)) / 28)
print(f"{len(images)} images, {100 * np.mean(images == 0):.0f} % zeros")
END

# The metadata of one training step: eleven operations; z1 is the product of this layer. In seed form
# it is a few hundred bytes whatever the size of the network.
sherd meta build --network 784,128,10 --samples "$samples" --nodes 7 -o meta.npz
sherd multiply images.npy weights.npy -o z1.npy -n 7 --scheme permute --bits 22 \
    --meta meta.npz --operation z1 --check

python3 -c "
import numpy as np
x, w, z = (np.load(n + '.npy') for n in ('images', 'weights', 'z1'))
print('largest difference from numpy:', np.abs(x.astype(float) @ w - z).max())
assert np.allclose(x.astype(float) @ w, z, atol=1e-2)"
