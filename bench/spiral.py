# One iteration of 2-100-3 on 450 points of three spirals, ReLU, softmax cross-entropy, L2: all
# points at once, every operation in place. Arguments: dtype, iterations. Prints the median of the
# iterations in microseconds, then the accuracy reached.
import sys
import time
import numpy as np

kind, iterations = np.dtype(sys.argv[1]), int(sys.argv[2])
rate, l2, n, classes = kind.type(1), kind.type(1e-3), 150, 3
rng = np.random.default_rng(1)
m = n * classes
x = np.empty((m, 2), kind)
labels = np.repeat(np.arange(classes), n)
for j in range(classes):
    radius = np.linspace(0, 1, n)
    angle = np.linspace(4 * j, 4 * (j + 1), n) + 0.2 * rng.normal(size=n)
    x[j * n:(j + 1) * n] = np.c_[radius * np.sin(angle), radius * np.cos(angle)]
w1, w2 = 0.1 * rng.normal(size=(2, 100)).astype(kind), 0.1 * rng.normal(size=(100, 3)).astype(kind)
b1, b2 = np.zeros(100, kind), np.zeros(3, kind)
h, dh, off = np.empty((m, 100), kind), np.empty((m, 100), kind), np.empty((m, 100), bool)
p, top = np.empty((m, 3), kind), np.empty((m, 1), kind)
dw1, dw2, db1, db2 = (np.empty_like(v) for v in (w1, w2, b1, b2))
every = np.arange(m)


def iteration():
    np.dot(x, w1, out=h)
    np.add(h, b1, out=h)
    np.maximum(h, 0, out=h)
    np.dot(h, w2, out=p)
    np.add(p, b2, out=p)
    np.max(p, axis=1, keepdims=True, out=top)
    np.subtract(p, top, out=p)
    np.exp(p, out=p)
    np.sum(p, axis=1, keepdims=True, out=top)
    np.divide(p, top, out=p)
    cost = -np.log(p[every, labels]).mean() + l2 / 2 * (np.vdot(w1, w1) + np.vdot(w2, w2))
    p[every, labels] -= 1
    np.divide(p, m, out=p)
    np.dot(h.T, p, out=dw2)
    np.add.reduce(p, 0, out=db2)
    np.dot(p, w2.T, out=dh)
    np.less_equal(h, 0, out=off)
    np.putmask(dh, off, 0)
    np.dot(x.T, dh, out=dw1)
    np.add.reduce(dh, 0, out=db1)
    for w, dw in ((w1, dw1), (w2, dw2)):
        dw += l2 * w
        dw *= rate
        w -= dw
    for b, db in ((b1, db1), (b2, db2)):
        db *= rate
        b -= db
    return cost


took = np.empty(iterations)
for i in range(-20, iterations):
    began = time.perf_counter()
    iteration()
    took[i] = time.perf_counter() - began
accuracy = np.mean((np.maximum(x @ w1 + b1, 0) @ w2 + b2).argmax(1) == labels)
print(np.median(took) * 1e6, accuracy)
