# The loop over fragments, each a value of A times a shuffled row of B, unshuffled and added; then
# the same with shuffled rows kept. Arguments: A.npy, B.npy, fragments. Prints fragments a second.
import sys
import time
import numpy as np

A, B, most = np.load(sys.argv[1]), np.load(sys.argv[2]), int(sys.argv[3])
k, m = B.shape
rng = np.random.default_rng(1)
enshuffles = np.array([rng.permutation(m) for c in range(k)])
unshuffles = np.argsort(enshuffles, axis=1)


def loop(hoist):
    C = np.zeros((A.shape[0], m))
    done, began = 0, time.perf_counter()
    for c in rng.permutation(k):
        row, back = B[c][enshuffles[c]], unshuffles[c]
        for r in np.nonzero(A[:, c])[0]:
            if hoist:
                C[r] += (A[r, c] * row)[back]
            else:
                C[r] += (A[r, c] * B[c][enshuffles[c]])[unshuffles[c]]
            done += 1
            if done >= most:
                return done / (time.perf_counter() - began)
    return done / (time.perf_counter() - began)


print(loop(False), loop(True))
