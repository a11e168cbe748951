"""The notebooks run from start to end, and their outputs are those that are kept in them."""

import re

import notebooks
import pytest

RUNS = [
    (path, with_mnist)
    for path in notebooks.PATHS
    for with_mnist in (False, True)
    if not with_mnist or notebooks.uses_mnist(notebooks.read(path))
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("path", "with_mnist"),
    RUNS,
    ids=[f"{path.stem}{'-with-mnist' if with_mnist else ''}" for path, with_mnist in RUNS],
)
def test_a_notebook_runs_and_has_the_outputs_that_are_kept(path, with_mnist, tmp_path):
    if with_mnist and not notebooks.mnist():
        pytest.skip("MNIST is not here: SHERD_MNIST names its folder")
    kept = notebooks.read(path)
    made = notebooks.run(path, tmp_path, notebooks.mnist() if with_mnist else None)
    assert not list((tmp_path / "here").iterdir())  # it runs again, and leaves no secrets
    if notebooks.kept_with_mnist(kept) != with_mnist:
        return  # the assertions of the notebook hold, and its outputs are others
    for one, other in zip(kept.cells, made.cells):
        if "varies" in one.metadata.get("tags", []):
            assert len(notebooks.texts(one)) == len(notebooks.texts(other)), one.source
        else:
            assert notebooks.texts(one) == notebooks.texts(other), one.source


@pytest.mark.parametrize("path", notebooks.PATHS, ids=lambda path: path.stem)
def test_the_kept_outputs_are_complete_and_small(path):
    text, notebook = path.read_text(), notebooks.read(path)
    assert len(text) < notebooks.SIZE_MAX
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
    assert "assert" in "".join(cell.source for cell in code)
    for folder in (notebooks.ROOT, notebooks.mnist()):
        assert str(folder) not in text  # of the machine that made them
    names = re.findall(r"\]\((\d-[\w-]+\.ipynb)\)", text)
    assert all((notebooks.FOLDER / name).exists() for name in names)
