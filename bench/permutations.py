# Fills tables of permutations and their inverses as published, which shuffles a row and then writes
# each entry of its inverse, and in the fastest way, by one indexed assignment. Arguments: seconds,
# then LENGTH:COUNT, rows of that length with so many indices. Both ways run on a sample of
# rows of every length and are scaled. Prints ns per index of both.
import sys
import time
import numpy as np

limit, loop, best = float(sys.argv[1]), 0., 0.
rng = np.random.default_rng(1)


def sample(n, rows, one):
    en, un = np.zeros((rows, n), int), np.zeros((rows, n), int)
    done, began = 0, time.perf_counter()
    while True:
        for c in range(rows):
            one(en, un, c, n)
        done += rows * n
        took = time.perf_counter() - began
        if took > limit:
            return took / done


def as_published(en, un, c, n):
    en[c] = np.arange(n)
    np.random.shuffle(en[c])
    for i in range(n):
        un[c, en[c, i]] = i


def at_best(en, un, c, n):
    row = np.arange(n)
    rng.shuffle(row)
    en[c] = row
    un[c, row] = np.arange(n)


counts = {}
for arg in sys.argv[2:]:
    n, count = map(int, arg.split(':'))
    counts[n] = counts.get(n, 0) + count
for n, count in counts.items():
    rows = max(1, min(64, 50000 // n))
    loop += count * sample(n, rows, as_published)
    best += count * sample(n, rows, at_best)
total = sum(counts.values())
print(loop / total * 1e9, best / total * 1e9)
