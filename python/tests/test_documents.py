"""The Python blocks of the documents run, in order, and `help` lists what there is."""

import os
import pydoc
import re
import subprocess
import sys

import pytest
from conftest import ROOT

import sherd


@pytest.mark.parametrize("name", ["README.md", "docs/PYTHON.md", "python/README.md"])
def test_the_blocks_of_a_document_run(name, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.M | re.S)
    assert blocks
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert max(map(len, run.stdout.splitlines())) <= 100  # an epoch has one line


def test_every_public_name_has_a_text():
    text = pydoc.render_doc(sherd, renderer=pydoc.plaintext)
    for name in sherd.__all__:
        thing = getattr(sherd, name)
        assert name in text
        assert not getattr(thing, "__module__", "").startswith("sherd."), name
        if callable(thing):
            assert (thing.__doc__ or "").strip(), name
            assert not thing.__doc__.startswith(f"{name}("), f"{name} has the text of dataclass"


def test_public_methods_have_a_text():
    for cls in (sherd.Cluster, sherd.Kept, sherd.Model, sherd.Plan, sherd.Report, sherd.Audit):
        for name, method in vars(cls).items():
            if not name.startswith("_") and callable(method):
                assert method.__doc__, f"{cls.__name__}.{name}"
