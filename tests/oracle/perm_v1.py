"""perm-v1, expo-v1 and rows-v1, implemented from their description alone, without code of sherd.

Slow and simple. `python3 perm_v1.py FILE.npz` regenerates a metadata file that contains its seed and
compares every array; `python3 perm_v1.py --golden` prints the lines of tests/vectors/perm_v1.txt.
"""
import hashlib
import itertools
import json
import sys

import numpy as np


def chacha20(key, nonce, block, count):
    """`count` blocks, starting at `block`, as little-endian 64-bit words."""
    ctr = block + np.arange(count, dtype=np.uint64)
    fixed = np.frombuffer(b"expand 32-byte k" + key, "<u4")
    x = np.empty((16, count), np.uint32)
    x[:12] = fixed[:, None]
    x[12], x[13] = ctr.astype(np.uint32), (ctr >> np.uint64(32)).astype(np.uint32)
    x[14], x[15] = nonce & 0xFFFFFFFF, nonce >> 32
    s = x.copy()
    for r in range(20):
        for a in range(4):
            b, c, d = ((4 + (a + r % 2) % 4), (8 + (a + 2 * (r % 2)) % 4), (12 + (a + 3 * (r % 2)) % 4))
            for p, q, o, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[p] += x[q]
                x[o] ^= x[p]
                x[o] = x[o] << np.uint32(n) | x[o] >> np.uint32(32 - n)
    return np.ascontiguousarray((x + s).T).view("<u8").ravel().tolist()


def stream(key, nonce, block=0):
    while True:
        yield from chacha20(key, nonce, block, 8)
        block += 8


def key_of(seed, label, op, step=0):
    message = label + b"\0" + op.to_bytes(8, "little") + (step.to_bytes(8, "little") if step else b"")
    return hashlib.blake2b(message, key=seed, digest_size=32).digest()


def batch(i):
    return next((q + 1 for q, b in enumerate((30, 19, 14, 11, 9)) if i > 1 << b), 6 if i > 6 else i - 1)


def words_needed(n):
    count = 0
    while n > 1:
        n, count = n - batch(n), count + 1
    return count


def shuffle(n, words):
    p, i = list(range(n)), n
    while i > 1:
        w, product, draws = next(words), 1, []
        for j in range(i, i - batch(i), -1):
            draws.append(w * j >> 64)
            w, product = w * j & (1 << 64) - 1, product * j
        if w < (1 << 64) % product:
            continue
        for d in draws:
            i -= 1
            p[i], p[d] = p[d], p[i]
    return p


def rows(key, n, first, count):
    own = words_needed(n)
    blocks = (own + 7) // 8
    words = chacha20(key, 0, first * blocks, count * blocks)
    return [shuffle(n, itertools.chain(words[r * blocks * 8:][:own], stream(key, 1 + first + r)))
            for r in range(count)]


def row(key, r, n):
    return rows(key, n, r, 1)[0]


def exposures(key, k, nodes, balanced):
    if balanced:
        return [d % nodes for d in row(key, 0, k)]
    kept = (w for w in stream(key, 0) if (w * nodes & (1 << 64) - 1) >= (1 << 64) % nodes)
    return [w * nodes >> 64 for w in itertools.islice(kept, k)]


def check(path):
    """Reads a file with numpy alone, and compares every array with one generated from the seed."""
    data = np.load(path)
    manifest, seed = json.loads(data["manifest"].tobytes()), data["seed"].tobytes()
    assert hashlib.sha256(b"sherd seed-v1\0" + seed).hexdigest() == manifest["seed_commitment"]
    arrays, balanced = 0, manifest["exposure"] == "balanced"
    for index, op in enumerate(manifest["operations"]):
        name, dot, shape = op["name"], op["kind"] == "dot", op["shape"]
        count, length = shape[1] if dot else shape[0], shape[-1]
        pairs = [(b"perm-v1", length, ".enshuffles", ".unshuffles")]
        if dot and manifest["shuffle_rows"]:
            pairs.append((b"rows-v1", shape[0], ".rows", ".unrows"))
        expo = exposures(key_of(seed, b"expo-v1", index), count if dot else length,
                         manifest["nodes"], balanced)
        assert data[name + ".exposures"].tolist() == expo, name
        arrays += 1 + 2 * len(pairs)
        for label, n, there, back in pairs:
            want = np.array(rows(key_of(seed, label, index), n, 0, count), int).reshape(count, n)
            assert np.array_equal(data[name + there], want), name + there
            assert np.array_equal(data[name + back], np.argsort(want, axis=1)), name + back
            assert data[name + there].dtype == np.min_scalar_type(max(n - 1, 0)), name + there
    assert len(data.files) == 2 + arrays
    print("regenerated", len(manifest["operations"]), "operations,", arrays, "arrays")


def golden():
    key = key_of(bytes(range(32)), b"perm-v1", 3)
    for n in (0, 1, 2, 3, 7, 10, 128, 512, 513, 60000):
        for r in (0, 1, 1000003):
            p = row(key, r, n)
            digest = hashlib.sha256(np.array(p, "<u4").tobytes()).hexdigest()
            print("row", n, r, digest if n > 128 else ",".join(map(str, p)) or "-")
    some = np.array(rows(key, 513, 0, 400), "<u4").tobytes()
    print("table 513 400", hashlib.sha256(some).hexdigest())  # some rows reject a word
    for step in (0, 1, 1 << 40):
        print("key", step, key_of(bytes(range(32)), b"perm-v1", 3, step).hex())
    for nodes, balanced in ((7, 0), (7, 1), (1, 0), (100, 1)):
        got = exposures(key_of(bytes(range(32)), b"expo-v1", 3), 50, nodes, balanced)
        print("exposures", nodes, balanced, ",".join(map(str, got)))
    print("commitment", 0, hashlib.sha256(b"sherd seed-v1\0" + bytes(range(32))).hexdigest())


if __name__ == "__main__":
    golden() if sys.argv[1] == "--golden" else check(sys.argv[1])
