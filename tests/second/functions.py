"""The element-wise operations 16 to 22."""
import numpy as np


def _sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


ONE = {16: _sigmoid, 18: lambda x: x * x, 20: lambda x: np.where(x > 0, x, np.where(x != x, x, 0)),
       21: np.tanh, 22: np.exp}
TWO = {17: np.subtract, 19: np.multiply}


def apply(op, left, right):
    with np.errstate(all="ignore"):
        return ONE[op](left) if op in ONE else TWO[op](left, right)
