"""The table of invalid requests of coordinators: name, state of the session, expected outcome."""
import numpy as np

from .records import EFORMAT, EINVAL

CASES = {}  # name: (makes the Ground, function of the Ground, expected return values)
U64 = (1 << 64) - 1
UNREAD = (EFORMAT, EINVAL)


def case(name, wanted, make, function):
    assert name not in CASES, name
    several = isinstance(wanted, tuple) and wanted[:1] != ("ended",)
    CASES[name] = make, function, wanted if several else (wanted,)


def changed(numbers, at, value):
    out = np.array(numbers, object).reshape(-1)
    out[at] = value
    return out


# Numbers outside the range of an entry.
def wrong(least, most):
    return sorted({x & U64 for x in (least - 1, most + 1, 1 << 32, 1 << 63, U64, 1 << 62)
                   if not least <= x & U64 <= most})


# Texts that are not valid recipes.
RECIPES = {
    "nothing": "", "noise": "\x01\xff\x02" * 50, "zeros": "\0" * 300, "a line without a newline": "layer" * 9999,
    "65,537 bytes": "#" * 65537, "no loss": "input = 4\nlayer = dense 3\n", "no layer":
    "input = 4\nloss = squared\n", "no input": "layer = dense 3\nloss = squared\n",
    "65 layers": "input = 4\n" + "layer = relu\n" * 65 + "loss = squared\n",
    "an unknown key": "input = 4\nlayer = dense 3\nloss = squared\nfriend = 1\n",
    "a layer of 0": "input = 4\nlayer = dense 0\nloss = squared\n",
    "a layer of 2^32": "input = 4\nlayer = dense 4294967296\nloss = squared\n",
    "a layer of 2^31": "input = 4\nlayer = dense 2147483647\nloss = squared\n",
    "layers of 2^20": "input = 4\n" + "layer = dense 1048576\n" * 9 + "loss = squared\n",
    "images of 2^60 pixels": "input = 1048576 x 1048576 x 1048576\nlayer = dense 3\nloss = squared\n",
    "a window larger than the image": "input = 4 x 4 x 1\nlayer = conv2d 3 window 9\nloss = squared\n",
    "a stride of 0": "input = 4 x 4 x 1\nlayer = conv2d 3 window 2 stride 0\nloss = squared\n",
    "a number of 5,000 digits": "input = " + "9" * 5000 + "\nlayer = dense 3\nloss = squared\n",
    "an l2 of NaN": "input = 4\nlayer = dense 3\nloss = squared\nl2 = nan\n",
    "a line twice": "input = 4\ninput = 5\nlayer = dense 3\nloss = squared\n"}


def bytes_of(text):
    return np.frombuffer(text.encode("latin-1"), np.uint8)


