"""
Metadata: exposures and permutations of the operations of one job, as a seed or as arrays.

::

    meta = sherd.metadata.build({"z": (300, 200, 100)}, nodes=7)
    meta["z"].exposures                 # which node is given each column of A
    meta.save("meta.npz")
    c.multiply(X, W, metadata="meta.npz")

Who learns it: every reader of a metadata file can undo the shuffles of the jobs that it served.
    Files have mode 0600.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from ._errors import InvalidArgument, call
from ._handle import Handle, made
from ._library import ffi, lib, new, path_of, wrong_type
from ._options import PathLike, seed_of
from ._reading import read
from ._records import MetadataSettings, OperationFields
from ._worker import ProgressOption, Worker

__all__ = ["Metadata", "Operation", "build", "load"]

Indices = npt.NDArray[np.uint32]
Shape = tuple[Any, ...]


class Operation:
    """One operation of a metadata file.

    Attributes:
        name: its name
        kind: "dot", or the name of an element-wise function
        shape: dot: (n, k, m) for A of n x k and B of k x m; otherwise (n, m)
        used: it has been used with operands, and is refused for others
    """

    def __init__(self, meta: Metadata, index: int, fields: OperationFields) -> None:
        self._meta = meta
        self._index = index
        self._fields = fields
        self.name = fields.name
        self.kind = fields.kind
        self.shape = (
            (fields.n, fields.k, fields.m) if fields.kind == "dot" else (fields.n, fields.m)
        )
        self.used = fields.used

    @property
    def exposures(self) -> Indices:
        """The number of the node that is given each column of A (element-wise: each column)."""
        with self._meta._lock:
            op = lib.sherd_meta_at(self._meta._pointer, self._index)
            out = np.empty(lib.sherd_meta_columns(op), np.uint32)
            call("sherd_meta_exposures", self._meta._pointer, self._index, _indices(out))
        return out

    @property
    def exposure_counts(self) -> npt.NDArray[np.uint64]:
        """The number of columns that each node is given."""
        out = np.empty(self._meta.settings.nodes, np.uint64)
        with self._meta._lock:
            call(
                "sherd_meta_exposure_counts",
                self._meta._pointer,
                self._index,
                ffi.cast("uint64_t *", out.ctypes.data),
            )
        return out

    @property
    def enshuffles(self) -> Indices:
        """The permutations: a row of m indices for each row of B (element-wise: for each row)."""
        return self.table("enshuffles")

    @property
    def unshuffles(self) -> Indices:
        """The inverses of `enshuffles`."""
        return self.table("unshuffles")

    def table(
        self, name: str, *, step: int = 0, start: int = 0, stop: Optional[int] = None
    ) -> Indices:
        """Returns rows start to stop - 1 of a table.

        name: "enshuffles", "unshuffles"; with shuffle_rows also "rows" and "unrows" (k x n: of A's
            rows).
        step: training step; steps after 0 need the seed.

        Raises InvalidArgument (no such table or rows), Unsupported (no seed), Malformed.
        """
        if name not in _TABLES:
            raise InvalidArgument(
                f"there is no table {name!r}", "the tables are " + ", ".join(_TABLES)
            )
        with self._meta._lock:
            op = lib.sherd_meta_at(self._meta._pointer, self._index)
            rows = lib.sherd_meta_table_rows(op)
            stop = rows if stop is None else stop
            if not 0 <= start <= stop <= rows:
                raise InvalidArgument(
                    f"rows {start} to {stop} of {self.name}.{name}, which has {rows}"
                )
            out = np.empty(
                (stop - start, self._fields.n if name in ("rows", "unrows") else self._fields.m),
                np.uint32,
            )
            call(
                "sherd_meta_rows",
                self._meta._pointer,
                self._index,
                _TABLES[name],
                step,
                start,
                stop - start,
                _indices(out),
            )
        return out

    def __repr__(self) -> str:
        return f"<Operation {self.name}: {self.kind} {' x '.join(map(str, self.shape))}>"


class Metadata(Handle, Mapping[str, Operation]):
    """Metadata of a job: a mapping of the names of its operations.

    Attributes:
        settings: number of nodes, and what all operations share
    """

    def __init__(self, pointer: Any) -> None:
        super().__init__(pointer, lib.sherd_meta_free)
        self.settings = read(MetadataSettings, lib.sherd_meta_get(pointer))
        self._operations = {
            op.name: op
            for op in (
                Operation(self, i, read(OperationFields, lib.sherd_meta_at(pointer, i)))
                for i in range(lib.sherd_meta_count(pointer))
            )
        }

    def __getitem__(self, name: str) -> Operation:
        return self._operations[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._operations)

    def __len__(self) -> int:
        return len(self._operations)

    @property
    def expanded(self) -> bool:
        """True if it was loaded from a file with arrays, and not derived from the seed."""
        return bool(lib.sherd_meta_expanded(self._pointer))

    def save(
        self,
        path: PathLike,
        *,
        expanded: bool = False,
        deflate: bool = False,
        without_seed: bool = False,
        progress: ProgressOption = None,
    ) -> int:
        """Writes the file (mode 0600) completely or not at all; returns its size in bytes.

        expanded: with all arrays, which numpy.load opens; otherwise the seed alone.
        deflate: compress the arrays. without_seed: expanded: leave the seed out.

        Raises CannotOpen, CannotReadOrWrite, InvalidArgument (seed form without a seed), Malformed.
        """
        size = ffi.new("uint64_t *")

        def work(worker: Worker) -> int:
            options = new(
                "sherd_meta_save_options",
                expanded=expanded,
                deflate=deflate,
                without_seed=without_seed,
            )
            worker.hooks(options.hooks)
            call("sherd_meta_save", self._pointer, path_of(path), options, size)
            return int(size[0])

        return self._run("metadata", work, progress)

    def verify(self, *, progress: ProgressOption = None) -> None:
        """Checks all of a loaded file: seed, exposures and permutations. Raises Malformed."""

        def work(worker: Worker) -> None:
            options = new("sherd_meta_read_options")
            worker.hooks(options.hooks)
            call("sherd_meta_verify", self._pointer, options)

        self._run("metadata", work, progress)

    def __repr__(self) -> str:
        return f"<Metadata: {len(self)} operations for {self.settings.nodes} nodes>"


_TABLES = {
    "enshuffles": lib.SHERD_META_ENSHUFFLES,
    "unshuffles": lib.SHERD_META_UNSHUFFLES,
    "rows": lib.SHERD_META_ROWS,
    "unrows": lib.SHERD_META_UNROWS,
}


def _indices(array: Indices) -> Any:
    return ffi.cast("uint32_t *", array.ctypes.data)


def _add(meta: Any, name: str, shape: Shape) -> None:
    """Adds an operation: (n, k, m) is a product, (function, n, m) element-wise."""
    written = isinstance(shape, Sequence) and not isinstance(shape, str) and len(shape) > 0
    kind, *sizes = shape if written else ("",)
    if not isinstance(kind, str):
        kind, sizes = "dot", [kind, *sizes]
    product = kind == "dot"
    op = lib.sherd_op_find(kind.encode())
    counted = all(isinstance(x, (int, np.integer)) for x in sizes)
    if not op or not counted or len(sizes) != (3 if product else 2):
        raise InvalidArgument(
            f"operation {name!r} is {shape!r}",
            'write (n, k, m) for a product, and ("sigmoid", n, m) for an element-wise function',
        )
    n, k, m = sizes if product else (sizes[0], 0, sizes[1])
    fields = new("sherd_meta_operation", kind=op, n=n, k=k, m=m)
    encoded = name.encode()
    if len(encoded) >= len(fields.name):
        raise InvalidArgument(f"{name!r} has more than {len(fields.name) - 1} letters")
    fields.name = encoded
    call("sherd_meta_add", meta, fields)


def build(
    operations: Optional[Mapping[str, Shape]] = None,
    *,
    nodes: int,
    network: Optional[Sequence[int]] = None,
    samples: Optional[int] = None,
    recipe: Union[str, PathLike, None] = None,
    examples: Optional[int] = None,
    elementwise: bool = False,
    group: int = 0,
    balanced: bool = False,
    shuffle_rows: bool = False,
    seed: Optional[bytes] = None,
) -> Metadata:
    """Makes metadata.

    operations: by name, (n, k, m) for a product of A (n x k) and B (k x m), (function, n, m) for an
        element-wise one.
    network: instead, the widths of a network of sigmoid layers, such as (784, 128, 10), with
        `samples` rows: the operations of one training step.
    recipe: instead, a recipe: the operations of one step (`examples`: number of examples if its
        batch is all of them;
        `elementwise`: with those of the activations).
    nodes: number of nodes, 1 to 65535. group, balanced, shuffle_rows: as in ProductOptions.
    seed: 32 bytes, a secret; default: a fresh seed.

    Raises InvalidArgument, Malformed (a recipe).
    """
    if sum(x is not None for x in (operations, network, recipe)) != 1:
        raise InvalidArgument(
            "metadata is built from operations, from a network, or from a recipe",
            "give one of them",
        )
    if operations is not None and not isinstance(operations, Mapping):
        raise wrong_type("operations", operations, 'a dict, such as {"z": (300, 200, 100)}')
    if network is not None and (isinstance(network, str) or not isinstance(network, Sequence)):
        raise wrong_type("network", network, "the widths of the layers, such as (784, 128, 10)")
    secret = seed_of(seed)
    settings = new(
        "sherd_meta_settings",
        nodes=nodes,
        group=group,
        balanced=balanced,
        shuffle_rows=shuffle_rows,
    )
    out = made("sherd_meta")
    call("sherd_meta_new", out, settings, secret)
    try:
        if network is not None:
            call(
                "sherd_meta_add_network",
                out[0],
                ffi.new("uint64_t[]", list(network)),
                len(network),
                samples or 0,
            )
        elif recipe is not None:
            from ._training import Recipe

            step = new("sherd_step_options", examples=examples, elementwise=elementwise)
            step_of = Recipe(recipe)
            call("sherd_meta_add_recipe", out[0], step_of._pointer, step)
        else:
            for name, shape in (operations or {}).items():
                _add(out[0], name, shape)
        return Metadata(out[0])
    except BaseException:
        lib.sherd_meta_free(out[0])
        raise


def load(path: PathLike) -> Metadata:
    """Reads a file of either form. Raises CannotOpen, Malformed, WrongShape."""
    out = made("sherd_meta")
    call("sherd_meta_load", out, path_of(path))
    return Metadata(out[0])
