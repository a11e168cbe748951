# One epoch of 784-128-10, sigmoid, all 60000 examples at once, squared loss, SGD; one sum over all
# of a layer for its biases. Numbers like MNIST's, as f8 or f4, made beforehand; every operation in
# place. Arguments: dtype, examples, epochs. Prints the median of the epochs in ms.
import sys
import time
import numpy as np

kind, m, epochs = np.dtype(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rate, one = kind.type(0.05), kind.type(1)
rng = np.random.default_rng(1)
x = np.empty((m, 784), kind)
for at in range(0, m, 1000):
    part = rng.integers(0, 256, x[at:at + 1000].shape)
    part[rng.random(part.shape) < 0.81] = 0
    x[at:at + 1000] = part
labels = rng.integers(0, 10, m)
t = np.zeros((m, 10), kind)
t[np.arange(m), labels] = 1
w1, w2 = (rng.normal(0, 0.01, s).astype(kind) for s in ((784, 128), (128, 10)))
b1, b2 = np.zeros(128, kind), np.zeros(10, kind)
y1, d1, s1 = (np.zeros((m, 128), kind) for _ in range(3))
y2, d2, s2 = (np.zeros((m, 10), kind) for _ in range(3))
dw1, dw2 = np.empty_like(w1), np.empty_like(w2)


def sigmoid(z):  # an overflow of exp gives 0, which is right
    np.negative(z, out=z)
    np.exp(z, out=z)
    z += one
    np.reciprocal(z, out=z)


def backward(y, s, d, x, dw):
    np.subtract(one, y, out=s)
    s *= y
    d *= s
    np.dot(x.T, d, out=dw)
    return np.add.reduce(d, 0).sum()


def epoch():
    began = time.perf_counter()
    np.dot(x, w1, out=y1)
    np.add(y1, b1, out=y1)
    sigmoid(y1)
    np.dot(y1, w2, out=y2)
    np.add(y2, b2, out=y2)
    sigmoid(y2)
    hits = np.count_nonzero(y2.argmax(1) == labels)
    np.subtract(y2, t, out=d2)
    cost = np.vdot(d2, d2) / (2 * m)
    np.divide(d2, m, out=d2)
    total = backward(y2, s2, d2, y1, dw2)
    np.dot(d2, w2.T, out=d1)
    np.subtract(b2, rate * total, out=b2)
    total = backward(y1, s1, d1, x, dw1)
    np.subtract(b1, rate * total, out=b1)
    for w, dw in ((w1, dw1), (w2, dw2)):
        dw *= rate
        w -= dw
    return time.perf_counter() - began, cost, hits


np.seterr(over='ignore')
epoch()
print(np.median([epoch()[0] for _ in range(epochs)]) * 1e3)
