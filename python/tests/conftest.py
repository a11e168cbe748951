"""Shared by the tests: clusters that several tests use, and the line that counts cases."""

import contextlib
import os
import pathlib
import signal

import numpy as np
import pytest

import sherd

ROOT = pathlib.Path(__file__).resolve().parents[2]
MISBEHAVING = ROOT / "build/plain/tests/system/node/prog_misbehave"


@pytest.fixture(scope="session")
def shared():
    """Five nodes under share, one of which may be missing."""
    with sherd.Cluster(5, scheme="share", spare=1) as c:
        yield c


@pytest.fixture(scope="session")
def plain():
    """Two nodes under plain, in float64."""
    with sherd.Cluster(2, scheme="plain") as c:
        yield c


@pytest.fixture
def operands():
    """Integers, whose products under exact schemes equal those of numpy."""
    rng = np.random.default_rng(1)
    return rng.integers(-99, 100, (40, 30)), rng.integers(-99, 100, (30, 20))


@pytest.fixture
def misbehaving(monkeypatch):
    """Opens clusters whose nodes misbehave: misbehaving("wrong@node-2", nodes, ...)."""
    opened = []

    def open_cluster(mode, nodes, **options):
        monkeypatch.setenv("SHERD_TEST_MISBEHAVE", mode)
        opened.append(sherd.Cluster(nodes, program=MISBEHAVING, **options))
        return opened[-1]

    if not os.access(MISBEHAVING, os.X_OK):
        pytest.skip(f"{MISBEHAVING} is not built")
    yield open_cluster
    for c in opened:
        for node in c.nodes:  # one that is busy for a minute would be waited for
            with contextlib.suppress(ProcessLookupError):
                if node.pid:
                    os.kill(node.pid, signal.SIGKILL)
        c.close()


def pytest_terminal_summary(terminalreporter):
    """The sum in the form that tools/run-tests prints, for .ci/run."""
    counts = {
        kind: len(terminalreporter.stats.get(kind, []))
        for kind in ("passed", "failed", "error", "skipped")
    }
    failed = counts["failed"] + counts["error"]
    terminalreporter.write_line(
        f"python: {counts['passed']} passed, {failed} failed, {counts['skipped']} skipped"
    )
