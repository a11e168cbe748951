"""Operands that stay at the nodes, and their products."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Callable, NoReturn, Union

import numpy as np
import numpy.typing as npt

from ._arrays import as_in_numpy, doubles, matrix, view
from ._errors import ClosedError, Error, InvalidArgument, WrongShape, error_of
from ._library import ffi, lib

if TYPE_CHECKING:
    from ._cluster import Cluster
    from ._worker import Worker

Array = npt.NDArray[np.float64]


def _release(worker: Worker, nodes: Any, number: int) -> None:
    if not worker.foreign:
        worker.post(lambda: nodes.release(number))


def _dropped() -> Error:
    return ClosedError("the kept operand was dropped", "keep the matrix again")


class _Operand:
    """What an operand and its transpose have in common."""

    cluster: Cluster
    ndim = 2
    __array_ufunc__ = None  # so that ndarray @ operand is __rmatmul__

    def __matmul__(self, other: Any) -> Array:
        return self.cluster._run(kept_product(self, other), here=True)

    def __rmatmul__(self, other: Any) -> Array:
        return self.cluster._run(kept_product(other, self), here=True)

    def __array__(self, *arguments: Any, **more: Any) -> NoReturn:
        raise TypeError("a kept operand is at the nodes: keep the array if you need its values")

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a kept operand cannot be pickled, since it belongs to a cluster of this process"
        )


class Kept(_Operand):
    """A matrix K that `Cluster.keep` keeps at the nodes.

    ``K @ B``, ``A @ K``, ``K.T @ D`` and ``A @ K.T`` compute products over the nodes; all of them
    use the same shares. Of a matrix that is kept one way, the first and the last one do. B, A and D
    are as in `Cluster.multiply`; the results are float64 arrays.
    The nodes drop K when the object is freed, by `free`, or with the cluster.

    Attributes:
        shape: (rows, columns)
        cluster: the cluster whose nodes keep it

    Raises as `Cluster.multiply`.
    """

    def __init__(self, cluster: Cluster, number: int, shape: tuple[int, int]) -> None:
        self.cluster = cluster
        self.shape = shape
        self._number = number
        self._freed = False
        self._finish = weakref.finalize(self, _release, cluster._worker, cluster._nodes, number)
        self._finish.atexit = False

    @property
    def T(self) -> KeptTransposed:  # noqa: N802
        """The transpose, which uses the same shares."""
        return KeptTransposed(self)

    def free(self) -> None:
        """Drops the operand at the nodes. A second call does nothing."""
        self._freed = True  # a product may overtake the release
        self._finish()

    def __repr__(self) -> str:
        return f"<Kept: {self.shape[0]} x {self.shape[1]} at {len(self.cluster)} nodes>"


class KeptTransposed(_Operand):
    """The transpose of a kept operand."""

    def __init__(self, kept: Kept) -> None:
        self.T = kept
        self.cluster = kept.cluster
        self.shape = (kept.shape[1], kept.shape[0])

    def __repr__(self) -> str:
        return f"<transpose of {self.T!r}>"


AnyKept = Union[Kept, KeptTransposed]


def kept_product(a: Any, b: Any) -> Callable[[], Array]:
    """Checks a product of which one operand is kept, and returns the function that computes it.

    A @ K is computed as the transpose of K.T @ A.T.
    """
    if isinstance(a, _Operand) and isinstance(b, _Operand):
        raise InvalidArgument(
            "both operands of a product are kept",
            "keep one of them, and pass the other as an array",
        )
    left = isinstance(a, _Operand)
    operand = a if left else b
    other, ndim = matrix(b, "B", column=True) if left else matrix(a, "A")
    inner, outer = (other.shape[0], other.shape[1]) if left else (other.shape[1], other.shape[0])
    if inner != operand.shape[1 if left else 0]:
        shapes = operand.shape + other.shape if left else other.shape + operand.shape
        raise WrongShape(
            "A is {} x {} and B is {} x {}".format(*shapes), "A needs as many columns as B has rows"
        )
    transposed = isinstance(operand, KeptTransposed)
    kept = operand.T if transposed else operand
    if kept._freed:
        raise _dropped()
    rows = operand.shape[0 if left else 1]
    out = np.empty((rows, outer))
    factor = other if left else other.T
    nodes = kept.cluster._nodes

    def product() -> Array:
        multiplier, pointer, report = nodes.kept.get(kept._number, (None, None, None))
        if multiplier is None:
            raise _dropped()
        code = lib.sherd_multiplier_multiply_kept(
            multiplier, pointer, transposed == left, view(factor), doubles(out), outer, nodes.diag
        )
        given = nodes.note(report)
        if code:
            e, nodes.diag = error_of(code, nodes.diag), ffi.new("sherd_diag *")
            e.report = nodes.report() if given else None
            raise e
        if ndim == 2:
            return out if left else out.T
        return as_in_numpy(out, 2, 1) if left else as_in_numpy(out.T, 1, 2)

    return product
