"""Forecasts: what a product costs under each scheme, and who learns what."""

from __future__ import annotations

import operator
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Union

from ._arrays import matrix, shape_view, view
from ._errors import Error, InvalidArgument, WrongShape, call
from ._library import ffi, lib, new, path_of, text_of
from ._options import PathLike, ProductOptions, product_options, refuse_number_as_text
from ._reading import read
from ._record import notes_html, size_text, table_html, table_text, time_text
from ._records import Forecast
from ._worker import ProgressOption, Worker, run_alone

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class Choice:
    """One way to compute a product.

    Attributes:
        name: scheme and setting, such as "share, 2 colluding"
        learns: what each node learns, in one sentence
        private: at least A is hidden from each node
        forecast: the predicted cost; None if the product cannot be computed in this way
        error: why it cannot, otherwise None
    """

    name: str
    learns: str
    private: bool
    forecast: Optional[Forecast]
    error: Optional[Error]


class Plan:
    """The forecasts of all ways to compute one product; str() is a table, as is a cell of a
    notebook.

    Attributes:
        shape: (rows of A, columns of A, columns of B)
        choices: the ways, the preferred one first if a scheme was given
    """

    def __init__(self, shape: tuple[int, int, int], choices: list[Choice]) -> None:
        self.shape = shape
        self.choices = choices

    def __len__(self) -> int:
        return len(self.choices)

    def __getitem__(self, i: int) -> Choice:
        return self.choices[i]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        head = ["scheme", "out", "in", "of A", "of B", "node", "time", "ratio", "bound"]
        rows = []
        for c in self.choices:
            f = c.forecast
            if f is None:
                rows.append([c.name, *["-"] * 8])
                continue
            ratio = f"{f.seconds / f.own_seconds:.3g}x" if f.own_seconds and f.seconds else "-"
            rows.append(
                [
                    c.name,
                    size_text(f.bytes_out),
                    size_text(f.bytes_in),
                    f"{100 * f.exposure_a:.0f}%",
                    f"{100 * f.exposure_b:.0f}%",
                    size_text(f.node_memory),
                    time_text(f.seconds) if f.seconds else "-",
                    ratio,
                    f.bound.split()[0] if f.bound else "-",
                ]
            )
        return head, rows

    def _title(self) -> str:
        n, k, m = self.shape
        return f"{n} x {k} times {k} x {m}"

    def _notes(self) -> list[str]:
        notes = [
            "out, in: bytes to and from the nodes; of A, of B: how much of it the most exposed "
            "domain is given; node: most memory that a node uses; time: predicted; ratio: to the "
            "time of this machine alone"
        ]
        for c in self.choices:
            scheme = c.name.partition(",")[0]
            sees = "" if c.private else "not private: "
            note = f"{c.name}: {c.error}" if c.error else f"{scheme}: {sees}{c.learns}"
            if note not in notes:
                notes.append(note)
            if c.forecast:
                notes += _pace_notes(c.name, c.forecast)
        return notes

    def __str__(self) -> str:
        notes = "\n".join(textwrap.fill(x, 79, subsequent_indent="  ") for x in self._notes())
        return f"{self._title()}\n{table_text(*self._table())}\n\n{notes}"

    def __repr__(self) -> str:
        return f"<Plan: {self._title()}, {len(self)} choices>"

    def _repr_html_(self) -> str:
        return notes_html([self._title()]) + table_html(*self._table()) + notes_html(self._notes())


def _pace_notes(name: str, f: Forecast) -> list[str]:
    notes = []
    if f.pace:
        spare = f"; the {f.slack} slowest are spare" if f.slack else ""
        notes.append(f"{name}: {f.pace} sets the pace{spare}")
    if f.seconds and f.bound == "device link":
        copies, products = time_text(f.seconds_copies), time_text(f.seconds_nodes)
        notes.append(
            f"{name}: the device link is the limit: copies take {copies}, products {products}"
        )
    return notes


def _choice(choices: Any, i: int) -> Choice:
    out = new("sherd_forecast")
    how = lib.sherd_choices_options(choices, i)
    info = lib.sherd_scheme_get(how.scheme)
    name, learns = (
        text_of(lib.sherd_choices_name(choices, i)),
        text_of(info.about) if info.about else "not known",
    )
    if how.colluding < 2:
        learns = learns.replace(
            "any --colluding domains together learn nothing", "no single domain learns anything"
        )
    learns = learns.replace("--colluding", str(how.colluding))
    private = bool(lib.sherd_scheme_private(info.scheme))
    try:
        call("sherd_choices_at", choices, i, out)
    except Error as e:
        return Choice(name, learns, private, None, e)
    return Choice(name, learns, private, read(Forecast, out), None)


def operand_views(
    a: Any, b: Any, shape: Optional[tuple[int, int, int]]
) -> tuple[list[Any], tuple[int, int, int]]:
    """Returns the views of two operands with what keeps them, and the shape of the product."""
    if shape is not None:
        if a is not None or b is not None:
            raise InvalidArgument("a plan is for two operands or for a shape, and both were given")
        try:
            n, k, m = (operator.index(x) for x in shape)
        except (TypeError, ValueError):
            n = k = m = 0
        if min(n, k, m) < 1:
            raise WrongShape(
                f"shape is {shape!r}, and not three positive whole numbers",
                "shape=(rows of A, columns of A, columns of B)",
            )
        return [shape_view(n, k), shape_view(k, m)], (n, k, m)
    if a is None or b is None:
        raise InvalidArgument(
            "a plan needs two operands", "or shape=(rows of A, columns of A, columns of B)"
        )
    left, _ = matrix(a, "A")
    right, _ = matrix(b, "B", column=True)
    return [view(left), view(right), left, right], (left.shape[0], left.shape[1], right.shape[1])


def forecast(
    worker: Worker,
    views: list[Any],
    shape: tuple[int, int, int],
    options: ProductOptions,
    measure: bool,
    link: Optional[float] = None,
    **where: Any,
) -> Plan:
    """Forecasts all choices on the worker's thread. where: members of sherd_forecast_options."""
    how = product_options(options)
    f = new("sherd_forecast_options", no_measurements=not measure, **where)
    f.rates.link = link or 0
    worker.hooks(f.hooks)
    worker.hooks(how.hooks)
    choices = ffi.new("sherd_choices **")
    cluster = where.get("cluster")
    try:
        call("sherd_choices_new", choices, views[0], views[1], how)
        if measure and cluster is not None:
            call("sherd_forecast_probe", f)
        call("sherd_choices_forecast", choices[0], f)
        return Plan(
            shape, [_choice(choices[0], i) for i in range(lib.sherd_choices_count(choices[0]))]
        )
    finally:
        lib.sherd_choices_free(choices[0])


def plan(
    a: Any = None,
    b: Any = None,
    *,
    nodes: Union[int, PathLike, None] = None,
    shape: Optional[tuple[int, int, int]] = None,
    remote: bool = False,
    link: Optional[float] = None,
    measure: bool = True,
    progress: ProgressOption = None,
    **options: Unpack[ProductOptions],
) -> Plan:
    """Predicts what a product costs under each scheme, without a cluster. Nothing is sent or
    started.

    a: n x k, b: k x m; or shape: (n, k, m) alone.
    nodes: number of nodes, or the path of a node file.
    remote: the nodes are on other machines.
    link: remote: bytes per second of all links together; default: those of the network interface.
    measure: measure this machine for the times, which takes about half a second.
    options: as `ProductOptions`; with `scheme`, that one is listed first.

    Raises InvalidArgument, WrongShape, OutOfRange (NaN or infinity in the operands of exact
    schemes).
    """
    if nodes is None:
        raise InvalidArgument("a plan needs the number of nodes, or a node file", "nodes=7")
    views, found = operand_views(a, b, shape)
    refuse_number_as_text(nodes)
    where: dict[str, Any] = (
        {"nodes": nodes} if isinstance(nodes, int) else {"nodes_file": path_of(nodes, "nodes")}
    )
    return run_alone(
        "plan",
        lambda worker: forecast(
            worker, views, found, options, measure, link, remote=remote, **where
        ),
        progress,
    )
