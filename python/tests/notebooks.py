"""
Runs the notebooks of examples/notebooks, and keeps their outputs:

    build/python/main/bin/python python/tests/notebooks.py [NAME...]

runs the notebooks (all, without names) and writes their outputs into them. A notebook whose
metadata say so (sherd.mnist) runs with MNIST, which SHERD_MNIST or ../shared/data/mnist has; the
others run without it. Outputs of cells with the tag "varies" are not the same in each run.
"""

import os
import pathlib
import sys
import tempfile

import nbformat
from nbclient import NotebookClient

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples/notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))
SIZE_MAX = 300_000  # bytes of one notebook


def mnist():
    """Returns the folder of MNIST, or None."""
    folder = pathlib.Path(os.environ.get("SHERD_MNIST") or ROOT.parent / "shared/data/mnist")
    return folder if folder.is_dir() else None


def read(path):
    return nbformat.read(path, as_version=4)


def uses_mnist(notebook):
    return any("SHERD_MNIST" in cell.source for cell in notebook.cells)


def kept_with_mnist(notebook):
    return notebook.metadata.get("sherd", {}).get("mnist", False)


def run(path, folder, data):
    """Returns a notebook with the outputs of a run in FOLDER/here; data: MNIST, or None."""
    notebook, here = read(path), folder / "here"
    here.mkdir()
    kernel = {
        **os.environ,
        "SHERD_MNIST": str(data or folder / "none"),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    client = NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(here)}}
    )
    client.execute(env=kernel)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def joined(outputs):
    """Returns outputs with the parts of one stream together, however they arrived."""
    found = []
    for output in outputs:
        if output.output_type == "stream" and found and found[-1].get("name") == output.name:
            found[-1].text += output.text
        else:
            found.append(output)
    return found


def texts(cell):
    """Returns what a reader reads of the outputs of a cell: not its pictures."""
    found = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            found.append((output.name, output.text))
        elif "image/png" not in output.get("data", {}):
            found.append((output.output_type, output.get("data", output.get("evalue"))))
    return found


def keep(path):
    data = mnist() if kept_with_mnist(read(path)) else None
    if kept_with_mnist(read(path)) and data is None:
        sys.exit(f"{path.name}: its outputs are those of MNIST, which is not here")
    with tempfile.TemporaryDirectory() as folder:
        notebook = run(path, pathlib.Path(folder), data)
    nbformat.write(notebook, path)
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    os.environ.setdefault("SHERD_LIBRARY", str(ROOT / "build/plain/libsherd.so"))
    for chosen in [p for p in PATHS if not sys.argv[1:] or p.name in sys.argv[1:]]:
        keep(chosen)
