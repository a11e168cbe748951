"""Audits from Python."""

import json

import numpy as np
import pytest

import sherd

RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """The record of one private product, with its operand."""
    folder = tmp_path_factory.mktemp("audit") / "record"
    x, w = RNG.random((200, 40)), RNG.random((40, 10))
    with sherd.Cluster(4, scheme="share", record=folder) as c:
        c.multiply(x, w)
    return folder, x


def test_nothing_is_found_in_the_record_of_a_private_product(record, tmp_path):
    folder, x = record
    a = sherd.audit(folder, data=x, coalitions=5)
    assert a.flagged == [] and a.info.flagged == 0 and a.info.tests > 0 and a.info.nodes == 4
    assert a.findings and all(c.flagged for c in a.controls) and a.unseen
    assert a.html.startswith("<!") and json.loads(a.json)["nodes"] == 4
    assert "beyond chance  0 findings" in str(a) and "<table>" in a._repr_html_()
    a.save(tmp_path / "a.html")
    assert oct((tmp_path / "a.html").stat().st_mode)[-3:] == "600"


@pytest.mark.parametrize("colluding", [1, 2])
def test_nothing_is_found_in_the_record_of_an_operand_kept_by_the_inner_code(tmp_path, colluding):
    x = RNG.integers(0, 99, (500, 300))
    with sherd.Cluster(7, scheme="share", colluding=colluding, record=tmp_path / "record") as c:
        k = c.keep(x, code="inner")
        for _ in range(3):
            w = RNG.integers(-99, 99, (300, 40))
            np.testing.assert_array_equal(k @ w, x @ w)
        assert c.report.code == "inner"
    a = sherd.audit(tmp_path / "record", data=x, coalitions=5)
    assert a.flagged == [] and a.info.tests > 500 and all(c.flagged for c in a.controls)
    assert "both operands as coded residues" in str(a)


def test_permute_is_found_out():
    a = sherd.simulate_audit("permute", 7, data=RNG.random((300, 49)), coalitions=2)
    assert a.flagged and a.flagged[0].sentence and a.info.flagged == len(a.flagged)
    assert repr(a) == f"<Audit: {len(a.flagged)} findings beyond chance in {a.info.tests} tests>"
    assert max(map(len, str(a).splitlines())) <= 80 and a.flagged[0].sentence in a._repr_html_()


def test_wrong_arguments(record, tmp_path):
    folder, x = record
    for call, error in (
        (lambda: sherd.audit(tmp_path), sherd.Error),
        (lambda: sherd.audit("/nowhere"), sherd.StoreError),
        (lambda: sherd.audit(folder, data=x[:9]), sherd.Error),
        (lambda: sherd.simulate_audit("share", 3), sherd.InvalidArgument),
        (lambda: sherd.simulate_audit("plain", 0), sherd.InvalidArgument),
    ):
        with pytest.raises(error):
            call()


def test_pictures_of_what_one_node_knows(tmp_path):
    digits = sherd.load_data("mnist", examples=150)
    x, public = digits.x[:60], digits.validation_x
    for scheme, show in (("permute", 2), ("share", 1)):
        with sherd.Cluster(3, scheme=scheme, record=tmp_path / scheme) as c:
            c.multiply(x, RNG.random((784, 4)))
        a = sherd.audit(
            tmp_path / scheme, data=x, public_data=public, colluding=1, coalitions=1, show=show
        )
        assert [p.name for p in a.pictures] == ["truth", "sent", "placed", "rebuilt"]
        truth, sent = a.pictures[0].pixels, a.pictures[1].pixels
        assert truth.dtype == np.uint8 and sent.shape == truth.shape == (10, 784)
        assert all((x == row).all(axis=1).any() for row in truth)
        if scheme == "permute":
            assert "node-2 was sent" in a.pictures[1].caption
            assert (sent == truth)[sent > 0].all() and 0 < np.sum(sent > 0) < np.sum(truth > 0)
        else:  # bytes that are not those of the rows
            assert np.mean(sent > 0) > 0.9 and a.flagged == []
            assert np.mean((sent == truth)[sent > 0]) < 0.1
    assert sherd.simulate_audit("permute", 3, data=x).pictures == []
