"""Audits: what did the nodes learn?"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

import numpy as np
import numpy.typing as npt

from ._arrays import matrix, view
from ._errors import InvalidArgument, call, in_python
from ._handle import Handle, made
from ._library import ffi, hold, lib, new, path_of, text_of
from ._options import PathLike
from ._reading import read
from ._record import table_html, table_text
from ._records import AuditInfo, Control, Finding
from ._worker import ProgressOption, Worker, run_alone

_FORMS = {
    "permute": lib.SHERD_AUDIT_PERMUTE,
    "permute-published": lib.SHERD_AUDIT_PERMUTE_PUBLISHED,
    "permute-single": lib.SHERD_AUDIT_PERMUTE_SINGLE,
    "plain": lib.SHERD_AUDIT_PLAIN,
}

_SHOWN = 8  # findings in a text


@dataclass(frozen=True)
class Picture:
    """Some rows of A as one node knows them.

    Attributes:
        name: "truth": the rows; "sent": the values that the node was sent, in their columns;
            "placed": the same values in the columns that an attacker infers; "rebuilt": the rows
            that an attacker rebuilds from them and from the public data
        caption: the same in words
        pixels: rows x columns of A, uint8: 255 is the largest value; 0 is also a value that
            is not known. Of shares, "sent" and "placed" are residues, and 0 to 255 is their range
    """

    name: str
    caption: str
    pixels: npt.NDArray[np.uint8]


def _picture(p: Any) -> Picture:
    pixels = np.frombuffer(ffi.buffer(p.pixels, p.rows * p.cols), np.uint8).reshape(p.rows, p.cols)
    return Picture(text_of(p.name), text_of(p.caption), pixels.copy())


def _note(text: Any) -> str:
    return in_python(text_of(text))


class Audit(Handle):
    """The report of an audit. It shows parts of the data.

    Attributes:
        info: what was audited, and how many findings are beyond chance
        findings: all attacks with their value, the value by chance, and whether they are beyond it
        controls: schemes that were broken on purpose, which an audit must flag
        warnings: notes about the audit
        unseen: what it did not see
        pictures: rows of A as one node knows them (`Picture`), if the audit was given data and
            public data
    """

    def __init__(self, pointer: Any) -> None:
        super().__init__(pointer, lib.sherd_audit_free)
        info = new("sherd_audit_info")
        call("sherd_audit_get", pointer, info)
        self.info = read(AuditInfo, info)
        self.findings = self._list("finding", lambda item: read(Finding, item))
        self.controls = self._list("control", lambda item: read(Control, item))
        self.warnings = self._list("warning", _note)
        self.unseen = self._list("unseen", _note)
        self.pictures: list[Picture] = self._list("picture", _picture)

    def _list(self, name: str, convert: Callable[[Any], Any] = text_of) -> list[Any]:
        found: list[Any] = []
        while True:
            item = getattr(lib, f"sherd_audit_{name}_at")(self._pointer, len(found))
            if not item:
                return found
            found.append(convert(item))

    @property
    def flagged(self) -> list[Finding]:
        """The findings beyond chance, without controls; empty: no attack found anything."""
        return [f for f in self.findings if f.flagged and not f.control]

    @property
    def html(self) -> str:
        """The whole report as a page that loads nothing."""
        return self._text(lambda out: call("sherd_audit_html", self._pointer, 0, out))

    @property
    def json(self) -> str:
        """The whole report as JSON."""
        return self._text(lambda out: call("sherd_audit_json", self._pointer, out))

    def _text(self, write: Any) -> str:
        out = ffi.new("const char **")
        with self._lock:
            write(out)
            return text_of(out[0])

    def save(self, path: PathLike, *, width: int = 0) -> None:
        """Writes the page to a file (mode 0600).

        width: columns of A in a line of a picture; 0: a square, if that is possible.
        """
        with self._lock:
            call("sherd_audit_html_save", self._pointer, width, path_of(path))

    def _rows(self) -> list[list[str]]:
        i = self.info
        return [
            ["audited", i.subject or "-"],
            ["form", i.form or "-"],
            ["nodes", f"{i.nodes} in {i.domains} domains"],
            ["tests", f"{i.tests} (probability of a false flag anywhere: {i.family:.2g})"],
            ["beyond chance", f"{i.flagged} findings"],
        ]

    def __str__(self) -> str:
        lines = [f"{f.who}: {f.sentence}" for f in self.flagged]
        more = [f"and {len(lines) - _SHOWN} more: see findings"] if len(lines) > _SHOWN else []
        wrapped = [textwrap.fill(x, 79, subsequent_indent="  ") for x in lines[:_SHOWN] + more]
        return "\n".join([table_text([], self._rows(), left=2), *wrapped])

    def __repr__(self) -> str:
        return f"<Audit: {self.info.flagged} findings beyond chance in {self.info.tests} tests>"

    def _repr_html_(self) -> str:
        flagged = [[f.who, f.sentence] for f in self.flagged]
        return table_html([], self._rows(), left=2) + (
            table_html([], flagged, left=2) if flagged else ""
        )


def _options(
    data: Any, right: Any, labels: Any, public_data: Any, public_labels: Any, **members: Any
) -> Any:
    kept = []
    for name, x in (
        ("data", data),
        ("right", right),
        ("labels", labels),
        ("public_data", public_data),
        ("public_labels", public_labels),
    ):
        if x is not None:
            array, _ = matrix(x, name)
            if name == "right":
                array, _ = matrix(x, name, column=True)
            elif "data" in name:
                array, _ = (
                    matrix(np.reshape(x, (len(x), -1)), name) if np.ndim(x) > 2 else (array, 2)
                )
            kept.append(array)
            members[name] = view(array)
    made_options = new("sherd_audit_options", **members)
    hold(made_options, *kept)
    return made_options


def _audit(
    function: str, arguments: tuple[Any, ...], options: Any, progress: ProgressOption
) -> Audit:
    def work(worker: Worker) -> Audit:
        worker.hooks(options.hooks)
        out = made("sherd_audit")
        call(function, out, *arguments, options)
        return Audit(out[0])

    return run_alone("audit", work, progress)


def audit(
    records: Union[PathLike, Sequence[PathLike]],
    *,
    data: Any = None,
    right: Any = None,
    labels: Any = None,
    public_data: Any = None,
    public_labels: Any = None,
    colluding: Optional[int] = None,
    coalitions: Optional[int] = None,
    spare: Optional[int] = None,
    encodings: Optional[int] = None,
    rows: Optional[int] = None,
    draw: int = 0,
    show: int = 0,
    progress: ProgressOption = None,
) -> Audit:
    """Audits a run from its record: attacks what was sent to each node, as nodes and coalitions
    could.

    ::

        with sherd.Cluster(5, scheme="share", record="record") as c:
            c.multiply(X, W)
        sherd.audit("record", data=X).html

    records: the folder of a cluster's record (`Cluster(record=...)`), or the folders of records
        that nodes made.
    data, right: the operands A and B, to count what attacks get right; labels: a label (0 to 255)
        for each row of A.
    public_data, public_labels: what the attacker knows: other rows of the same kind.
    colluding: T: coalitions of T and T + 1 domains attack. coalitions: most of each size; default
        200.
    spare: of shares, if the record does not state it. encodings: most right operands, tiles and
        products that are compared; default 8. rows: most rows of a node's view; default 10000.
    draw: selects a random draw of coalitions.
    show: number, from 1, of the node whose pictures are made; default: node 3, if there is one.

    Raises CannotOpen, Malformed (not a record), WrongShape, InvalidArgument (data that are not the
    recorded ones), InternalError (a control was not flagged, so the audit proves nothing).
    """
    folders = [records] if isinstance(records, (str, os.PathLike)) else list(records)
    texts = [ffi.new("char[]", path_of(f)) for f in folders]
    options = _options(
        data,
        right,
        labels,
        public_data,
        public_labels,
        colluding=colluding,
        coalitions=coalitions,
        spare=spare,
        encodings=encodings,
        rows=rows,
        draw=draw,
        show=show,
    )
    return _audit(
        "sherd_audit_records", (ffi.new("char *[]", texts), len(texts)), options, progress
    )


def simulate_audit(
    form: str,
    nodes: int,
    *,
    data: Any = None,
    labels: Any = None,
    public_data: Any = None,
    public_labels: Any = None,
    colluding: Optional[int] = None,
    coalitions: Optional[int] = None,
    rows: Optional[int] = None,
    draw: int = 0,
    show: int = 0,
    progress: ProgressOption = None,
) -> Audit:
    """Audits what nodes would see of `data` in a form, without running anything; otherwise as
    `audit`.

    form: "permute", "permute-published", "permute-single" (groups of one column) or "plain".
    data: the operand A; None: 20000 generated digits.
    """
    if form not in _FORMS:
        raise InvalidArgument(f"there is no form {form!r}", "one of " + ", ".join(_FORMS))
    options = _options(
        data,
        None,
        labels,
        public_data,
        public_labels,
        colluding=colluding,
        coalitions=coalitions,
        rows=rows,
        draw=draw,
        show=show,
    )
    return _audit("sherd_audit_simulate", (_FORMS[form], nodes), options, progress)
