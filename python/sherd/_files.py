"""Keys, and one-time masks of the scheme blind."""

from __future__ import annotations

from typing import Any, Optional

from ._arrays import matrix, view
from ._errors import call
from ._library import ffi, new, path_of
from ._node import Key
from ._options import PathLike
from ._reading import read
from ._records import Masks
from ._worker import ProgressOption, Worker, run_alone


def keygen(path: PathLike) -> str:
    """Makes a private key in a new file (mode 0600); returns its fingerprint.

    Nodes allow a coordinator by the fingerprint. Raises CannotOpen if the file exists.
    """
    key = Key()
    key.save(path)
    return key.fingerprint


def fingerprint(path: PathLike) -> str:
    """Returns the fingerprint of a private key, "sha256:...", which is not secret.

    Raises CannotOpen, BadKey.
    """
    return Key(path).fingerprint


def prepare(
    b: Any,
    path: PathLike,
    *,
    rows: int,
    bits: Optional[int] = None,
    bits_b: Optional[int] = None,
    progress: ProgressOption = None,
) -> Masks:
    """Makes a file of one-time masks with which `scheme="blind"` hides A in products with this B.

    b: k x m, which nodes may know.
    path: the file (mode 0600), a secret; it is replaced only when the new one is complete.
    rows: number of rows of all A together that the masks serve; no row is used twice.
    bits, bits_b: widths of A and B; default 17.

    Raises OutOfRange (NaN, infinity, too wide integers), CannotOpen, CannotReadOrWrite.
    """
    array, _ = matrix(b, "B", column=True)
    options = new("sherd_masks_options", rows=rows, bits_a=bits, bits_b=bits_b)
    out = new("sherd_masks_info")

    def work(worker: Worker) -> Masks:
        worker.hooks(options.hooks)
        call("sherd_masks_prepare", path_of(path), view(array), options, out)
        return read(Masks, out)

    return run_alone("prepare", work, progress)


def masks(path: PathLike) -> Masks:
    """Reads what a file of masks is for, and how many of its rows are left."""
    out = new("sherd_masks_info")
    call("sherd_masks_get", path_of(path), ffi.NULL, out)
    return read(Masks, out)
