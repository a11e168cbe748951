"""Clusters, products over them, and operands that stay at the nodes."""

from __future__ import annotations

import itertools
import logging
import math
import os
import weakref
from typing import TYPE_CHECKING, Any, Callable, NoReturn, Optional, TypeVar, Union

import numpy as np
import numpy.typing as npt

from ._arrays import as_in_numpy, doubles, matrix, result, view
from ._errors import Error, InvalidArgument, WrongShape, call
from ._kept import Kept, KeptTransposed, kept_product
from ._library import ffi, hold, lib, new, path_of, program, wrong_type
from ._node import Key, identity, signer
from ._options import (
    PathLike,
    ProductOptions,
    milliseconds,
    product_options,
    refuse_number_as_text,
    refuse_without_effect,
)
from ._plan import Plan, forecast, operand_views
from ._reading import read
from ._records import Check, Distance, NodeInfo
from ._report import Report, optional, report_of
from ._worker import Future, ProgressOption, Worker, progress_option, unused

if TYPE_CHECKING:
    from typing_extensions import Unpack

_T = TypeVar("_T")
_log = logging.getLogger("sherd")
Array = npt.NDArray[np.float64]


class _Nodes:
    """The open cluster of the library, and what is freed before it. Used on the worker's thread."""

    def __init__(self, pointer: Any) -> None:
        self.pointer = pointer
        self.simulated = bool(lib.sherd_cluster_simulated(pointer))
        self.size = int(lib.sherd_cluster_size(pointer))
        # By number: multiplier, operand, and the report of its last product.
        self.kept: dict[int, tuple[Any, Any, Any]] = {}
        self.numbers = itertools.count()
        self.latest: Optional[tuple[Any, Optional[Check], Optional[Distance]]] = None
        self.known: Optional[Report] = None
        self.diag = ffi.new("sherd_diag *")  # of kept products; a new one after an error

    def release(self, number: int) -> None:
        multiplier, operand, report = self.kept.pop(number, (None, None, None))
        if multiplier is not None:
            self.report()  # which may be that of a product of this operand
            lib.sherd_multiplier_release(multiplier, operand)
            lib.sherd_multiplier_free(multiplier)
            lib.sherd_report_fini(report)

    def note(
        self, report: Any, check: Optional[Check] = None, distance: Optional[Distance] = None
    ) -> bool:
        """Notes that a report is that of the last call; False: the call gave no work to nodes."""
        if not report or not report.nodes:
            self.latest = None
            return False
        self.latest = report, check, distance
        return True

    def report(self) -> Optional[Report]:
        """Reads the report of the last call, while its memory is there."""
        if self.latest:
            report, check, distance = self.latest
            self.known = report_of(self.pointer, report, self.simulated, check, distance)
            self.latest = None
        return self.known

    def close(self) -> None:
        for number in list(self.kept):
            self.release(number)
        lib.sherd_cluster_close(self.pointer)


def _close(worker: Worker, nodes: _Nodes) -> None:
    """Closes a cluster that was not closed: when it is freed, or when the interpreter ends."""
    if not worker.foreign:
        worker.post(nodes.close)
        worker.stop()
        worker.join()


class Cluster:
    """A set of nodes that compute products; they need not be trusted.

    ::

        with sherd.Cluster(7, scheme="share", spare=1) as c:
            Y = c.multiply(X, W, check=True)
            print(c.report)

    nodes: a number of local nodes, which are started as processes of this machine and simulate one
        domain each; or the path of a node file, whose nodes run already; or the lines of such a
        file as a list of str. None with `running`.
    key: the coordinator's key, which nodes of a file must allow: a `Key`, or the path of a file of
        `keygen`.
    running: use the nodes that `sherd cluster up` left running; a path: those of that folder.
    program: the command `sherd` that local nodes run; default: the one that belongs to the library.
    node_memory: budget of each local node in bytes; default: a share of this machine's.
    bind: local nodes have cores of their own where there are enough.
    backend: what local nodes compute with: "cpu" (the default), "cuda", "opencl", or "auto": a GPU
        if there is one.
    device: the devices of each local node, by their numbers: 0, "0,1" or "all"; `sherd node
        --list-devices` lists them. With `devices`: those that are divided among the nodes.
    devices: number of devices that each local node has of its own. Without `backend`, those of the
        first backend with a device other than the processor.
    nodes_min: number of nodes that must be up; default: what the scheme needs.
    connect_timeout: seconds for one node to answer; default 10.
    open_timeout: seconds for opening the cluster; default: no limit.
    same_host_domains: private schemes accept several domains on one host as separate ones.
    record: new folder for all bytes sent to and received from each node, for `audit`.
    progress: True: show a bar of tqdm for each call, if tqdm is installed; or a function that is
        called with a Progress at most ten times a second. A call may have its own.
    options: ProductOptions, the defaults of all products.

    All calls run one after another, on one thread of the cluster while the caller waits; products
    of kept operands run on the caller's thread if no other call runs. Any thread may call. An
    interrupt (Ctrl-C) ends the call and leaves a usable cluster. Messages about lost or banned
    nodes are log records of the logger "sherd". A copy of a cluster is the same cluster. It cannot
    be pickled, and cannot be used in a process that was forked afterwards.

    Raises TooFewNodes, CannotOpen, Malformed (a node file), BadKey, Timeout, InvalidArgument.

    Who learns it: each node learns what the scheme leaves open (`schemes()`), and every node learns
    shapes, sizes and times. Local nodes hide nothing from this machine.
    """

    def __init__(
        self,
        nodes: Union[int, PathLike, list[str], None] = None,
        *,
        key: Union[Key, PathLike, None] = None,
        running: Union[bool, PathLike] = False,
        program: Optional[PathLike] = None,
        node_memory: Optional[int] = None,
        bind: bool = True,
        backend: Optional[str] = None,
        device: Union[int, str, None] = None,
        devices: Optional[int] = None,
        nodes_min: Optional[int] = None,
        connect_timeout: Optional[float] = None,
        open_timeout: Optional[float] = None,
        same_host_domains: bool = False,
        record: Optional[PathLike] = None,
        progress: ProgressOption = None,
        **options: Unpack[ProductOptions],
    ) -> None:
        if (nodes is None) == (running is False):
            raise InvalidArgument(
                "a cluster needs nodes",
                'sherd.Cluster(7), sherd.Cluster("nodes.txt", '
                'key="me.key"), or running=True for the nodes of `sherd cluster up`',
            )
        self._progress = progress_option(progress)
        work = product_options(options)
        refuse_without_effect(options, options.get("scheme", "permute"))
        where = new(
            "sherd_cluster_options",
            work=work,
            **identity(key),
            node_memory=node_memory,
            program=_path(program, "program") or _program(),
            unbound=not _flag(bind, "bind"),
            backend=backend,
            devices=None if device is None else str(device),
            devices_each=devices,
            nodes_min=nodes_min,
            connect_timeout_ms=milliseconds(connect_timeout, "connect_timeout"),
            timeout_ms=milliseconds(open_timeout, "open_timeout"),
            record_dir=_path(record, "record"),
            same_host_domains=same_host_domains,
            running=running is not False,
            **_source(nodes, running),
        )
        worker = Worker("cluster")
        worker.hooks(where.hooks)

        opened: list[_Nodes] = []

        def open_it() -> None:
            out = ffi.new("sherd_cluster **")
            call("sherd_cluster_open", out, where)
            opened.append(_Nodes(out[0]))

        try:
            worker.run(open_it)
        except BaseException:
            if opened:  # an interrupt came when it was open
                worker.post(opened[0].close)
            worker.stop()
            raise
        self._nodes = opened[0]
        self._worker = worker
        self._options: ProductOptions = options
        self._key = key
        self._finish = weakref.finalize(self, _close, worker, self._nodes)

    # ---- life ------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return not self._finish.alive

    def close(self) -> None:
        """Ends local nodes, disconnects from others, and completes the record. A second call does
        nothing.

        Raises CannotReadOrWrite if some of the record could not be written.
        """
        if self.closed or self._worker.foreign:
            return
        self._worker.check_outside()

        def end() -> None:
            for number in list(self._nodes.kept):
                self._nodes.release(number)
            call("sherd_cluster_end", self._nodes.pointer)

        try:
            self._worker.run(end)
        finally:
            self._finish()

    def __enter__(self) -> Cluster:
        self._check()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __copy__(self) -> Cluster:
        return self

    def __deepcopy__(self, memo: object) -> Cluster:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Cluster cannot be pickled, since its connections belong to this process: open "
            "one in the other process"
        )

    def _check(self) -> None:
        if not self._finish.alive:
            raise unused()
        self._worker.check()

    def _run(
        self,
        function: Callable[[], _T],
        progress: ProgressOption = None,
        what: str = "multiply",
        here: bool = False,
    ) -> _T:
        self._check()
        progress = self._progress if progress is None else progress
        return self._worker.run(function, progress, what, here)

    # ---- what it is ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._nodes.size

    @property
    def simulated(self) -> bool:
        """True if all nodes are on one host: they simulate domains, and hide nothing from it."""
        return self._nodes.simulated

    @property
    def options(self) -> ProductOptions:
        """The options that products have by default."""
        return self._options.copy()

    @property
    def nodes(self) -> list[NodeInfo]:
        """The nodes with their present state. It waits for a call that runs."""

        def look() -> list[NodeInfo]:
            found = []
            for i in range(self._nodes.size):
                node = new("sherd_node_info")
                call("sherd_cluster_node_at", self._nodes.pointer, i, node)
                found.append(read(NodeInfo, node))
            return found

        return self._run(look)

    @property
    def report(self) -> Optional[Report]:
        """The report of the last call that gave work to nodes, also of one that failed; or None."""
        if self._nodes.latest and not self.closed:
            return self._run(self._nodes.report)
        return self._nodes.known

    def __repr__(self) -> str:
        if self.closed:
            return "<Cluster: closed>"
        scheme = self._options.get("scheme", "permute")
        host = ", simulated on one host" if self.simulated else ""
        return f"<Cluster: {len(self)} nodes{host}, {scheme}>"

    # ---- products --------------------------------------------------------------------------------

    def _merged(self, options: ProductOptions) -> ProductOptions:
        merged = self._options.copy()
        merged.update(options)
        return merged

    def multiply(
        self,
        a: Any,
        b: Any,
        *,
        check: bool = False,
        certificate: Optional[PathLike] = None,
        key: Optional[PathLike] = None,
        metadata: Optional[PathLike] = None,
        operation: Optional[str] = None,
        reuse: bool = False,
        out: Optional[Array] = None,
        progress: ProgressOption = None,
        **options: Unpack[ProductOptions],
    ) -> Array:
        """Computes A @ B over the nodes; returns a float64 array.

        a: n x k, b: k x m: arrays of any strides and any real dtype, or objects with __array__ or
            DLPack in host memory; one dimension is a vector as in numpy.matmul. Either may be an
            operand that `keep` returned.
        check: also compute the product on this machine and compare: bit for bit if it is exact.
            Raises Differs.
        certificate: file for a signed certificate of the result (`verify`); `key` signs it, by
            default the cluster's key, otherwise a fresh one.
        metadata: metadata file that gives exposures and permutations; `operation`: which of its
            operations, by default the only one that fits; `reuse`: allow one that has served other
            operands.
        out: array for the result: n x m, float64, C-contiguous.
        progress: as for the cluster.
        options: ProductOptions, in place of those of the cluster.

        Raises WrongShape, OutOfRange (exact: NaN, infinity, or too wide integers), TooFewNodes,
        WrongResult (strict), Differs (check), ExposureForbidden, Timeout, ClosedError, TypeError (a
        dtype that is no real number, a tensor of a GPU), CannotOpen and CannotReadOrWrite (files),
        BadKey.

        Who learns it: what the scheme leaves open of A and B; the product stays on this machine.
        """
        product = self._product(
            a, b, check, certificate, key, metadata, operation, reuse, out, options
        )
        return self._run(product, progress, "multiply", here=_is_kept(a, b))

    def submit(
        self,
        a: Any,
        b: Any,
        *,
        check: bool = False,
        certificate: Optional[PathLike] = None,
        key: Optional[PathLike] = None,
        metadata: Optional[PathLike] = None,
        operation: Optional[str] = None,
        reuse: bool = False,
        out: Optional[Array] = None,
        progress: ProgressOption = None,
        **options: Unpack[ProductOptions],
    ) -> Future[Array]:
        """Queues the product and returns at once; otherwise as `multiply`.

        Returns a concurrent.futures.Future that can also be awaited. The operands must not change
        until it is done. Its cancel() ends a product that runs, too.
        """
        product = self._product(
            a, b, check, certificate, key, metadata, operation, reuse, out, options
        )
        self._check()
        return self._worker.submit(
            product, self._progress if progress is None else progress, "multiply"
        )

    def apply(
        self,
        function: str,
        a: Any,
        b: Any = None,
        *,
        check: bool = False,
        certificate: Optional[PathLike] = None,
        key: Optional[PathLike] = None,
        out: Optional[Array] = None,
        progress: ProgressOption = None,
        **options: Unpack[ProductOptions],
    ) -> Array:
        """Computes an element-wise function over the nodes, in float64. It is not private.

        function: "sigmoid", "tanh", "relu", "exp", "square" of A; "minus" or "multiply" of A and B
        of one shape. Otherwise as `multiply`.
        """
        if not isinstance(function, str):
            raise wrong_type("function", function, "a name")
        op = lib.sherd_op_find(function.encode())
        if not op or op == lib.SHERD_OP_PRODUCT:
            raise InvalidArgument(
                f"there is no element-wise function {function!r}",
                "sigmoid, tanh, relu, exp, square, minus, multiply",
            )
        if (b is not None) != (lib.sherd_op_operands(op) == 2):
            raise InvalidArgument(
                f"{function} has {lib.sherd_op_operands(op)} operands, not {1 + (b is not None)}"
            )
        left, ndim = matrix(a, "A")
        right = left if b is None else matrix(b, "B")[0]
        made = result(out, left.shape[0], left.shape[1], (left, right))
        merged = self._merged(options)
        work = self._operation(
            left,
            right,
            made,
            merged,
            op=op,
            check=check,
            certificate=_path(certificate, "certificate"),
            **signer(key or self._key),
        )
        self._run(work, progress, function)
        return made[0] if ndim == 1 else made

    def keep(
        self,
        x: Any,
        *,
        one_way: bool = False,
        progress: ProgressOption = None,
        **options: Unpack[ProductOptions],
    ) -> Kept:
        """Keeps a matrix at the nodes for many products.

        x: n x k. Products are written with `@`: `A @ B`, `B @ A`, `A.T @ D`. Under "share", the
        nodes keep shares of x, which are sent once and serve all of these products; under "permute"
        and "plain", each direction is sent at its first use.

        one_way: x is multiplied from the right only (`A @ B`, `B.T @ A.T`). Under "share", the
            faster code of the shares is then chosen; `A.T @ D` and `D.T @ A` raise Unsupported.
            `code="inner"` implies it.

        The library copies the values now, in the dtype of x, and holds the copy until the operand
        is dropped: it sends x again to the nodes that are left if one is lost or a direction is
        used first, long after the call, and x may have changed or be freed by then.

        options: ProductOptions, for all products of this operand.

        Raises as `multiply`; Unsupported (the scheme keeps nothing, such as "blind").
        """
        array, ndim = matrix(x, "A")
        if ndim == 1:
            raise WrongShape(
                "A has one dimension, and a kept operand is a matrix", "x[None, :] makes a row"
            )
        how = product_options(self._merged(options))
        self._worker.hooks(how.hooks)
        nodes = self._nodes

        def work() -> int:
            multiplier, operand = ffi.new("sherd_multiplier *"), ffi.new("sherd_kept **")
            report = new("sherd_report")
            call("sherd_multiplier_cluster", multiplier, nodes.pointer, how)
            try:
                keeping = new("sherd_keep_options", one_way=one_way)
                call("sherd_multiplier_keep", operand, multiplier[0], view(array), keeping)
                call("sherd_multiplier_report_set", multiplier[0], report)
            except Error:
                lib.sherd_multiplier_free(multiplier[0])
                raise
            number = next(nodes.numbers)
            nodes.kept[number] = (multiplier[0], operand[0], report)
            return number

        number = self._run(work, progress, "keep")
        return Kept(self, number, (array.shape[0], array.shape[1]))

    def plan(
        self,
        a: Any = None,
        b: Any = None,
        *,
        shape: Optional[tuple[int, int, int]] = None,
        measure: bool = True,
        progress: ProgressOption = None,
        **options: Unpack[ProductOptions],
    ) -> Plan:
        """Predicts what the product costs under each scheme, and who learns what. No part of A and
        B is sent.

        a: n x k, b: k x m; or shape: (n, k, m) alone.
        measure: measure this machine, and the links to nodes on others, for the times; it takes
            about half a second.
        options: ProductOptions, in place of those of the cluster. The scheme, if one is set, is
            listed first.
        """
        views, found = operand_views(a, b, shape)
        merged = self._merged(options)
        return self._run(
            lambda: forecast(
                self._worker, views, found, merged, measure, cluster=self._nodes.pointer
            ),
            progress,
            "plan",
        )

    # ---- inside ----------------------------------------------------------------------------------

    def _product(
        self,
        a: Any,
        b: Any,
        check: bool,
        certificate: Optional[PathLike],
        key: Optional[PathLike],
        metadata: Optional[PathLike],
        operation: Optional[str],
        reuse: bool,
        out: Optional[Array],
        options: ProductOptions,
    ) -> Callable[[], Array]:
        """Checks the arguments of a product, and returns the function that computes it."""
        if _is_kept(a, b):
            if (
                check
                or certificate is not None
                or metadata is not None
                or out is not None
                or options
            ):
                raise InvalidArgument(
                    "a product of a kept operand has the options that it was kept with",
                    "pass the array itself for check, certificate, metadata, out and options",
                )
            return kept_product(a, b)
        left, rows = matrix(a, "A")
        right, cols = matrix(b, "B", column=True)
        if left.shape[1] != right.shape[0]:
            raise WrongShape(
                "A is {} x {} and B is {} x {}".format(*left.shape, *right.shape),
                "A needs as many columns as B has rows",
            )
        if options:
            refuse_without_effect(options, self._merged(options).get("scheme", "permute"))
        made = result(out, left.shape[0], right.shape[1], (left, right))
        work = self._operation(
            left,
            right,
            made,
            self._merged(options),
            check=check,
            distance=check,
            certificate=_path(certificate, "certificate"),
            **signer(key or self._key),
            meta=_path(metadata, "metadata"),
            meta_operation=operation,
            meta_reuse=reuse,
        )

        def product() -> Array:
            work()
            return as_in_numpy(made, rows, cols)

        return product

    def _operation(
        self,
        a: npt.NDArray[Any],
        b: npt.NDArray[Any],
        out: Array,
        options: ProductOptions,
        **members: Any,
    ) -> Callable[[], None]:
        how = product_options(options)
        if not how.exact and not lib.sherd_scheme_get(how.scheme).exact_only:
            members.pop("distance", None)
        rounded = {}  # operands that fixed point would round, with profiles for the library
        for name, x in (("A", a), ("B", b)) if "op" not in members else ():
            if x.dtype.kind == "f":
                rounded[name] = (x, _profile(x))
                setattr(how, f"profile_{name.lower()}", rounded[name][1])
        opt = new(
            "sherd_operation_options",
            cluster=self._nodes.pointer,
            product=how,
            a=view(a),
            b=view(b),
            result=doubles(out),
            **members,
        )
        hold(opt, a, b, out)
        _keep_files_of(a, b, members.get("certificate"))
        self._worker.hooks(opt.hooks)
        nodes = self._nodes

        def work() -> None:
            made = ffi.new("sherd_operation **")
            try:
                call("sherd_operation_new", made, opt)
                call("sherd_operation_run", made[0])
            except Error as e:
                e.report = _report(nodes, made[0])
                raise
            else:
                _report(nodes, made[0])
                if rounded:
                    info = new("sherd_operation_info")
                    call("sherd_operation_get", made[0], info)
                    used = info.options
                    bits = {"A": used.bits, "B": used.bits_b or used.bits}
                    for name, (x, profile) in rounded.items() if used.exact else ():
                        _warn_of_rounding(name, x, profile, bits[name])
            finally:
                lib.sherd_operation_free(made[0])

        return work


def _report(nodes: _Nodes, operation: Any) -> Optional[Report]:
    """Keeps the report of an operation as that of the last call. None: nodes were given no work."""
    if operation == ffi.NULL:
        return None
    info = new("sherd_operation_info")
    call("sherd_operation_get", operation, info)
    given = nodes.note(info.report, optional(Check, info.check), optional(Distance, info.distance))
    return nodes.report() if given else None


def _profile(x: npt.NDArray[Any]) -> Any:
    """Makes a sherd_profile of an operand, which must stay valid as long."""
    made = ffi.new("sherd_profile **")
    call("sherd_profile_new", made, view(x))
    return ffi.gc(made[0], lib.sherd_profile_free)


def _sample(x: npt.NDArray[Any], largest: float) -> npt.NDArray[Any]:
    """Returns some 65536 entries of all columns alike, and the largest; x if it has few."""
    step = x.size >> 16
    if step <= 1:
        return x
    while math.gcd(step, x.shape[1]) > 1:
        step += 1
    return np.append(x.flat[::step].astype(np.float64), largest)[np.newaxis]


def _rounding(x: npt.NDArray[Any], bits: int) -> Any:
    """Returns the sherd_rounding of a matrix."""
    made = new("sherd_rounding")
    call("sherd_profile_rounding_get", _profile(x), bits, made)
    return made


def _warn_of_rounding(name: str, x: npt.NDArray[Any], profile: Any, bits: int) -> None:
    """Warns if more than a hundredth of an operand became 0 in fixed point.

    A large operand is sampled: the library has found its largest entry, but another pass over it
    would take some hundredths of the time of a product.
    """
    info = new("sherd_profile_info")
    call("sherd_profile_get", profile, info)
    sample = _sample(x, info.max_abs)
    rounding = _rounding(sample, bits)
    if 100 * rounding.vanished > rounding.nonzeros:
        _log.warning(
            "%s: %d of %d %sentries that are not 0 are too small beside the largest and became 0%s",
            name,
            rounding.vanished,
            rounding.nonzeros,
            "" if sample is x else "sampled ",
            "; bits=26 keeps more" if _rounding(sample, 26).vanished < rounding.vanished else "",
        )


def _keep_files_of(a: Any, b: Any, certificate: Optional[bytes]) -> None:
    """Refuses a certificate that would replace the file of a memory-mapped operand.

    The library compares the paths that it is given, and operands come to it as memory.
    """
    for x in (a, b):
        while certificate is not None and x is not None:
            file = getattr(x, "filename", None)
            if file and os.path.exists(certificate) and os.path.samefile(file, certificate):
                raise InvalidArgument(
                    f"the certificate would replace {file}, which is also an operand",
                    "name another file",
                )
            x = getattr(x, "base", None)


def _is_kept(*operands: Any) -> bool:
    return any(isinstance(x, (Kept, KeptTransposed)) for x in operands)


def _path(path: Optional[PathLike], name: str) -> Optional[bytes]:
    return None if path is None else path_of(path, name)


def _program() -> Optional[bytes]:
    return _path(program(), "program")


def _flag(value: bool, name: str) -> bool:
    if value not in (True, False):
        raise wrong_type(name, value, "True or False")
    return value


def _source(
    nodes: Union[int, PathLike, list[str], None], running: Union[bool, PathLike]
) -> dict[str, Any]:
    """Returns the members of sherd_cluster_options that say which nodes to use."""
    if nodes is None:
        return {} if isinstance(running, bool) else {"running_folder": path_of(running, "running")}
    refuse_number_as_text(nodes)
    if isinstance(nodes, (bool, float)):
        raise wrong_type("nodes", nodes, "a number of nodes, a path or a list of lines")
    if isinstance(nodes, list):
        return {"nodes": "".join(line.rstrip("\n") + "\n" for line in nodes)}
    if isinstance(nodes, (str, os.PathLike)):
        return {"nodes_file": path_of(nodes)}
    if not 0 < nodes <= 1000:
        raise InvalidArgument(f"nodes is {nodes}, and not a number from 1 to 1000")
    return {"local_nodes": int(nodes)}
