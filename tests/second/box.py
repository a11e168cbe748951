"""libsodium's crypto_box_easy: X25519, HSalsa20, XSalsa20, Poly1305."""
import hmac
import struct

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

SIGMA = np.frombuffer(b"expand 32-byte k", "<u4")


# The words of the four quarter-rounds of a column round, by position in the quarter-round.
QUARTERS = [[0, 5, 10, 15], [4, 9, 14, 3], [8, 13, 2, 7], [12, 1, 6, 11]]
QUARTER_ROUNDS = [*zip(*QUARTERS), (0, 1, 2, 3), (5, 6, 7, 4), (10, 11, 8, 9), (15, 12, 13, 14)]  # columns, rows


def rounds(x):
    """20 rounds of Salsa20 on columns of 16 words; four quarter-rounds at a time."""
    a, b, c, d = (x[places] for places in QUARTERS)

    def quarter(a, b, c, d):
        for out, one, two, by in ((b, a, d, 7), (c, b, a, 9), (d, c, b, 13), (a, d, c, 18)):
            t = one + two
            out ^= t << np.uint32(by) | t >> np.uint32(32 - by)

    for _ in range(10):
        quarter(a, b, c, d)
        # row round: the same words, rotated
        b, c, d = d[[1, 2, 3, 0]], c[[2, 3, 0, 1]], b[[3, 0, 1, 2]]
        quarter(a, b, c, d)
        b, c, d = d[[1, 2, 3, 0]], c[[2, 3, 0, 1]], b[[3, 0, 1, 2]]
    for places, part in zip(QUARTERS, (a, b, c, d)):
        x[places] = part
    return x


def state(key, last, blocks=1):
    """The columns that rounds() takes: the key, and the four words between its halves."""
    k = np.frombuffer(key, "<u4")
    x = np.empty((16, blocks), np.uint32)
    for place, word in zip((0, 5, 10, 15), SIGMA):
        x[place] = word
    x[1:5], x[11:15] = k[:4, None], k[4:, None]
    x[6:10] = last
    return x


def hsalsa(key, sixteen):
    """One block: integers are faster than arrays here."""
    k, n, s = struct.unpack("<8I", key), struct.unpack("<4I", sixteen), SIGMA.tolist()
    x = [s[0], *k[:4], s[1], *n, s[2], *k[4:], s[3]]
    for _ in range(10):
        for a, b, c, d in QUARTER_ROUNDS:
            for out, one, two, by in ((b, a, d, 7), (c, b, a, 9), (d, c, b, 13), (a, d, c, 18)):
                t = x[one] + x[two] & 0xFFFFFFFF
                x[out] ^= (t << by | t >> 32 - by) & 0xFFFFFFFF
    return struct.pack("<8I", *(x[i] for i in (0, 5, 10, 15, 6, 7, 8, 9)))


def stream(key, nonce, size):
    """XSalsa20."""
    blocks = -(-size // 64)
    last = np.zeros((4, blocks), np.uint32)
    last[:2] = np.frombuffer(nonce[16:], "<u4")[:, None]
    last[2] = np.arange(blocks)
    x = state(hsalsa(key, nonce[:16]), last, blocks)
    return np.ascontiguousarray((rounds(x.copy()) + x).T, "<u4").tobytes()[:size]


def poly1305(key, text):
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total, p = 0, (1 << 130) - 5
    for at in range(0, len(text), 16):
        total = (total + int.from_bytes(text[at:at + 16] + b"\x01", "little")) * r % p
    return ((total + int.from_bytes(key[16:], "little")) & (1 << 128) - 1).to_bytes(16, "little")


def shared(secret, public):
    return hsalsa(secret.exchange(X25519PublicKey.from_public_bytes(public)), bytes(16))


def fresh():
    return X25519PrivateKey.generate()


def xored(key, nonce, text):
    whole = np.frombuffer(stream(key, nonce, 32 + len(text)), np.uint8)
    return bytes(whole[:32]), (whole[32:] ^ np.frombuffer(text, np.uint8)).tobytes()


def seal(key, nonce, text):
    one_time, hidden = xored(key, nonce, text)
    return poly1305(one_time, hidden) + hidden


def unseal(key, nonce, sealed):
    """Returns the text, or None if the tag is wrong."""
    one_time, text = xored(key, nonce, sealed[16:])
    return text if hmac.compare_digest(poly1305(one_time, sealed[16:]), sealed[:16]) else None
