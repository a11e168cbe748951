"""Records: the reports of the library as immutable objects, and their text."""

from __future__ import annotations

import dataclasses
import html
import math
from typing import Any, ClassVar


def size_text(n: float) -> str:
    """Returns a number of bytes for people, such as "3.4 MB"."""
    if n < 1000:
        return f"{n:.0f} bytes"
    for unit in ("KB", "MB", "GB", "TB"):
        n /= 1000
        if n < 999.5 or unit == "TB":
            return f"{n:.1f} {unit}" if n < 9.95 else f"{n:.0f} {unit}"
    return ""


def time_text(s: float) -> str:
    """Returns a time for people, such as "35.1 ms"."""
    if math.isnan(s):
        return "-"
    if s < 1e-3:
        return f"{s * 1e6:.0f} us"
    return f"{s * 1e3:.1f} ms" if s < 1 else f"{s:.2f} s" if s < 100 else f"{s:.0f} s"


def value_text(value: Any, unit: str = "") -> str:
    """Returns a member of a record for people."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, list):
        return ", ".join(value_text(v, unit) for v in value)
    if isinstance(value, bytes):
        return value.hex()
    if unit == "bytes":
        return size_text(value)
    if unit == "s" and isinstance(value, float):
        return time_text(value)
    if unit == "fraction":
        return f"{100 * value:.1f} %"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def table_html(head: list[str], rows: list[list[str]], left: int = 1) -> str:
    """Returns a table for a notebook; the first `left` columns are aligned to the left."""

    def line(tag: str, cells: list[str]) -> str:
        begin = [
            f'<{tag} style="text-align: {"left" if i < left else "right"}">'
            for i in range(len(cells))
        ]
        return (
            "<tr>" + "".join(f"{b}{html.escape(c)}</{tag}>" for b, c in zip(begin, cells)) + "</tr>"
        )

    return (
        "<table>"
        + (f"<thead>{line('th', head)}</thead>" if head else "")
        + "<tbody>"
        + "".join(line("td", row) for row in rows)
        + "</tbody></table>"
    )


def notes_html(notes: list[str]) -> str:
    """Returns sentences for a notebook, each on a line."""
    return f"<p>{'<br>'.join(html.escape(x) for x in notes)}</p>"


def table_text(head: list[str], rows: list[list[str]], left: int = 1) -> str:
    """Returns a table for a terminal; the first `left` columns are aligned to the left."""
    lines = [head, *rows] if head else rows
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))] if lines else []
    return "\n".join(
        "  ".join(
            c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    )


class Record:
    """A report. Its members are attributes, which the class lists with units; str() is a text."""

    _units: ClassVar[dict[str, str]] = {}
    _struct: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Returns the members by name, as Python values."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def _rows(self) -> list[list[str]]:
        shown = [f.name for f in dataclasses.fields(self) if f.repr]  # type: ignore[arg-type]
        return [
            [name, value_text(getattr(self, name), self._units.get(name, ""))] for name in shown
        ]

    def __str__(self) -> str:
        return table_text([], self._rows(), left=2)

    def _repr_html_(self) -> str:
        return table_html([], self._rows(), left=2)
