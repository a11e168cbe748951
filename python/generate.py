#!/usr/bin/env python3
"""
Generates the parts of the Python package that repeat the C library:

    generate.py INCLUDE LIBRARY FOLDER

INCLUDE: the folder that contains sherd/; LIBRARY: libsherd.so. Writes to FOLDER
sherd.cdef (the public headers, without what cffi cannot read) and sherd/_records.py (the version,
the error codes, and a class for each table of fields). `make python-declarations` calls it, and
`make lint` compares its output with the files of the tree.
"""

import keyword
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples"))
from sherd_cffi import cffi, preprocess  # noqa: E402

# The structs that the package returns as records, with the names of their classes.
RECORDS = {
    "sherd_report": ("ReportFields", "The figures of one call over a cluster."),
    "sherd_report_node": ("ReportNode", "The part of one node in a call."),
    "sherd_node_info": ("NodeInfo", "What a cluster knows of one node."),
    "sherd_forecast": ("Forecast", "The predicted cost of one way to compute a product."),
    "sherd_check": ("Check", "A comparison with the result that this machine computes."),
    "sherd_distance": ("Distance", "The distance of an exact product from the product in float64."),
    "sherd_scheme_info": ("Scheme", "What a scheme hides, from whom, and which options it reads."),
    "sherd_certificate_info": ("CertificateInfo", "What a certificate states."),
    "sherd_certificate_matrix": ("CertificateMatrix", "One matrix of a certificate."),
    "sherd_certificate_node": ("CertificateNode", "One node of a certificate."),
    "sherd_masks_info": ("Masks", "A file of one-time masks."),
    "sherd_meta_operation": ("OperationFields", "One operation of a metadata file."),
    "sherd_meta_settings": (
        "MetadataSettings",
        "Settings that all operations of a metadata file share.",
    ),
    "sherd_data_info": ("DataInfo", "A data set."),
    "sherd_epoch": ("EpochFields", "The figures of one report of a training."),
    "sherd_train_report": ("TrainingReport", "The figures of a whole training."),
    "sherd_train_gradients": ("Gradients", "How the gradients of a training were computed."),
    "sherd_train_update": ("Update", "One update of the parameters, by gradients."),
    "sherd_train_exposure": (
        "Exposure",
        "What one node was shown of the operands of one operation of a step.",
    ),
    "sherd_predict_report": ("Prediction", "The figures of a prediction."),
    "sherd_audit_info": ("AuditInfo", "What was audited, and the result."),
    "sherd_audit_finding": ("Finding", "One attack on one subject by one node or coalition."),
    "sherd_audit_control": (
        "Control",
        "A scheme that was broken on purpose, which an audit must flag.",
    ),
    "sherd_node_report": ("NodeReport", "The counters of a node."),
    "sherd_progress": ("Progress", "How far a call is."),
}
TYPES = ["bool", "int", "int", "int", "int", "float", "str", "Optional[str]", "str", "Bytes"]
PROGRESS = [
    ("done", "int", "", "tasks, rows or steps that are done"),
    ("total", "int", "", "of how many"),
    ("bytes_out", "int", "bytes", "sent to nodes"),
    ("bytes_in", "int", "bytes", "received from nodes"),
    ("nodes_up", "int", "", "nodes that are up"),
    ("seconds", "float", "s", "since the call began"),
]


def fields(ffi, lib, struct):
    """Returns (name, Python type, unit, text) of the members that a table lists."""
    if struct == "sherd_progress":  # has no table
        return PROGRESS
    text = lambda chars: ffi.string(chars).decode("ascii")  # noqa: E731
    count = ffi.new("size_t *")
    table = getattr(lib, struct + "_fields")(count)
    found = []
    for row in table[0 : count[0]]:
        kind = TYPES[row.type]
        name = text(row.name).replace(".", "_")
        found.append(
            (
                name + "_" * keyword.iskeyword(name),
                f"list[{kind}]" if row.length else kind,
                text(row.unit),
                text(row.text),
            )
        )
    return found


def record(name, about, members):
    """Returns the text of one class."""
    lines = [
        "",
        "",
        "@dataclass(frozen=True)",
        f"class {name}(Record):",
        f'    """{about}',
        "",
        "    Attributes:",
    ]
    for member, _, unit, text in members:
        lines.append(f"        {member}: {text}" + (f" [{unit}]" if unit else ""))
    lines += ['    """', ""]
    for member, kind, _, _ in members:
        lines.append(f"    {member}: {kind}" + (" = field(repr=False)" if kind == "Bytes" else ""))
    return lines


def records(ffi, lib, version, errors):
    lines = [
        '"""Version, error codes and records of libsherd. Written by generate.py: do not edit."""',
        "from __future__ import annotations",
        "",
        "from dataclasses import dataclass, field",
        "from typing import Optional",
        "",
        "from ._record import Record",
        "",
        "Bytes = bytes  # some records have a member of that name",
        "",
        f'VERSION = "{version}"',
        "",
        "ERRORS = {",
    ]
    lines += [f'    {number}: ("{name}", {exit}, "{text}"),' for number, name, exit, text in errors]
    lines += ["}"]
    units = []
    for struct, (name, about) in RECORDS.items():
        members = fields(ffi, lib, struct)
        lines += record(name, about, members)
        units.append(
            f"{name}._units = { ({m: u for m, _, u, _ in members if u})!r}".replace("'", '"')
        )
        units.append(f'{name}._struct = "{struct}"')
    return "\n".join(lines + ["", ""] + units) + "\n"


def main(include, library, folder):
    def header(name):
        with open(os.path.join(include, "sherd", name), encoding="ascii") as f:
            return f.read()

    declarations = preprocess(os.path.join(include, "sherd", "sherd.h"), include)
    version = re.search(r'SHERD_VERSION "(.*)"', header("version.h")).group(1)
    errors = re.findall(r'XX\((-\d+), (\w+), (\d+), "(.*)"\)', header("err.h"))
    ffi = cffi.FFI()
    ffi.cdef(declarations)
    lib = ffi.dlopen(library)
    if ffi.string(lib.sherd_version()).decode() != version:
        sys.exit(f"{library} is not of version {version}")
    with open(os.path.join(folder, "sherd.cdef"), "w", encoding="ascii") as f:
        f.write(f"/* Generated from the headers of libsherd {version}: do not edit. */\n")
        f.write(
            "\n".join(
                re.sub(r"\s+", " ", x).strip() for x in declarations.splitlines() if x.strip()
            )
            + "\n"
        )
    os.makedirs(os.path.join(folder, "sherd"), exist_ok=True)
    with open(os.path.join(folder, "sherd", "_records.py"), "w", encoding="ascii") as f:
        f.write(records(ffi, lib, version, errors))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
