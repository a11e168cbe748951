"""The declarations are those of the headers, and the records those of the library's tables."""

import importlib.util
import subprocess
import sys

import pytest
from conftest import ROOT

PYTHON = ROOT / "python"


def test_the_checked_in_declarations_are_the_generated_ones(tmp_path):
    pytest.importorskip("pycparser")
    library = ROOT / "build/plain/libsherd.so"
    subprocess.run(
        [sys.executable, PYTHON / "generate.py", ROOT / "include", library, tmp_path], check=True
    )
    for name in ("sherd.cdef", "sherd/_records.py"):
        assert (tmp_path / name).read_text() == (PYTHON / name).read_text(), (
            f"{name} is out of date: run make python-declarations"
        )


def test_the_c_compiler_accepts_every_declaration(tmp_path):
    """API mode: the compiler compares each with the headers, and cffi the size of each struct."""
    spec = importlib.util.spec_from_file_location("declarations", PYTHON / "declarations.py")
    declarations = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(declarations)
    ffi = declarations.declare("_sherd_api", "#include <sherd/sherd.h>")
    source = tmp_path / "_sherd_api.c"
    ffi.emit_c_code(str(source))
    include = subprocess.run(
        [sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('include'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    run = subprocess.run(
        ["cc", "-Werror=incompatible-pointer-types", "-Werror=int-conversion", "-O0", "-c"]
        + ["-I", ROOT / "include", "-I", include, "-fsyntax-only", source],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
