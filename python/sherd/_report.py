"""The report of one call over a cluster."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Optional

from ._errors import call
from ._library import ffi, new
from ._reading import read
from ._record import notes_html, size_text, table_html, table_text, time_text
from ._records import Check, Distance, ReportFields, ReportNode


@dataclass(frozen=True)
class Report(ReportFields):
    """What the nodes did in one call; str() is a text for people, as is a cell of a notebook.

    Beside the members of ReportFields:

    Attributes:
        by_node: the part of each node
        simulated: the nodes are on one host and simulate domains, which hides nothing from that
            host
        check: the comparison with the result of this machine, if it was asked for
        distance: of an exact product that was checked: the distance from the product in float64
    """

    by_node: list[ReportNode]
    simulated: bool
    check: Optional[Check]
    distance: Optional[Distance]

    @property
    def slowest(self) -> Optional[str]:
        """Name of the node that the others waited for, which may have been lost.

        None if no node was significantly slower.
        """
        return self.by_node[self.pace_node - 1].name if self.pace_node else None

    @property
    def liars(self) -> list[str]:
        """Names of the nodes that are banned, for a wrong answer or a violation of the protocol."""
        return [n.name for n in self.by_node if n.state == "banned"]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        head = ["node", "state", "of A", "of B", "out", "in"]
        return head, [
            [
                n.name,
                n.state,
                f"{100 * n.exposed_a:.1f} %",
                f"{100 * n.exposed_b:.1f} %",
                size_text(n.bytes_out),
                size_text(n.bytes_in),
            ]
            for n in self.by_node
        ]

    def _strength(self) -> str:
        if self.check_tolerant:
            return "answers were checked for gross errors only (float64)"
        if not 0 < self.check_error < 1:
            return "every answer was checked"
        passes = f"2^{math.log2(self.check_error):.0f}"
        return f"every answer was checked: a wrong one passes with probability {passes}"

    def _notes(self) -> list[str]:
        notes = [
            f"{time_text(self.seconds)}: {size_text(sum(self.bytes_out))} out, "
            f"{size_text(sum(self.bytes_in))} in, {self.tasks} tasks, "
            f"{self.tasks_repeated} sent again"
        ]
        if self.bits_a:
            notes.append(
                f"exact: {self.bits_a} and {self.bits_b} bits, "
                f"exponents {self.scale_a} and {self.scale_b}"
            )
        if self.slowest:
            state = self.by_node[self.pace_node - 1].state
            end = "" if state == "up" else f", which was {state}"
            notes.append(
                f"the others waited for {self.slowest}{end}: {time_text(self.pace_seconds)}, "
                f"they took {time_text(self.pace_others)}"
            )
        if self.nodes_lost:
            notes.append(f"{self.nodes_lost} of {self.nodes} nodes were lost")
        if self.nodes_banned:
            notes.append(f"banned: {self.banned}")
        notes.append(self._strength())
        if self.check:
            how = "bit for bit" if self.check.judged == "bits" else "within the bound of rounding"
            equal = "equal" if self.check.equal else "not equal"
            notes.append(
                f"{equal} to the result of this machine, {how} ({self.check.entries} entries"
                + (f", of which {self.check.nan} are NaN in both)" if self.check.nan else ")")
            )
        if self.simulated:
            notes.append("the nodes are on one host, from which nothing is hidden")
        return notes

    def __str__(self) -> str:
        return "\n".join([table_text(*self._table(), left=2), *self._notes()])

    def _repr_html_(self) -> str:
        return table_html(*self._table(), left=2) + notes_html(self._notes())


def report_of(
    cluster: Any,
    report: Any,
    simulated: bool,
    check: Optional[Check] = None,
    distance: Optional[Distance] = None,
) -> Report:
    """Reads a sherd_report of a cluster."""
    figures = read(ReportFields, report)
    by_node = []
    for i in range(figures.nodes):
        node = new("sherd_report_node")
        call("sherd_report_node_at", report, cluster, i, node)
        by_node.append(read(ReportNode, node))
    return Report(
        **figures.to_dict(), by_node=by_node, simulated=simulated, check=check, distance=distance
    )


def optional(cls: Any, pointer: Any) -> Any:
    """Reads a record that may not be there."""
    return None if pointer == ffi.NULL else read(cls, pointer)
