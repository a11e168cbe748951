"""Metadata files from Python."""

import pickle

import numpy as np
import pytest

import sherd


def build(**more):
    return sherd.metadata.build({"z": (30, 20, 10), "a": ("sigmoid", 30, 10)}, nodes=3, **more)


def test_permutations_and_their_inverses():
    meta = build()
    assert list(meta) == ["z", "a"] and len(meta) == 2 and meta.settings.nodes == 3
    z, a = meta["z"], meta["a"]
    assert (z.kind, z.shape, a.kind, a.shape) == ("dot", (30, 20, 10), "sigmoid", (30, 10))
    assert z.exposures.shape == (20,) and set(z.exposures) <= {0, 1, 2}
    np.testing.assert_array_equal(np.bincount(z.exposures, minlength=3), z.exposure_counts)
    assert z.enshuffles.shape == z.unshuffles.shape == (20, 10) and a.enshuffles.shape == (30, 10)
    np.testing.assert_array_equal(
        np.take_along_axis(z.enshuffles, z.unshuffles.astype(int), axis=1), [range(10)] * 20
    )
    np.testing.assert_array_equal(z.table("enshuffles", start=3, stop=5), z.enshuffles[3:5])
    assert not (z.table("enshuffles", step=1) == z.enshuffles).all()


def test_a_seed_makes_it_again(tmp_path):
    one, other = build(seed=bytes(32)), build(seed=bytes(32))
    np.testing.assert_array_equal(one["z"].enshuffles, other["z"].enshuffles)
    assert not (one["z"].enshuffles == build()["z"].enshuffles).all()


def test_both_forms_are_saved_and_loaded(tmp_path):
    meta = build(shuffle_rows=True)
    small = meta.save(tmp_path / "m.npz")
    large = meta.save(tmp_path / "e.npz", expanded=True, without_seed=True)
    assert small < large and oct((tmp_path / "m.npz").stat().st_mode)[-3:] == "600"
    for path, expanded in (("m.npz", False), ("e.npz", True)):
        loaded = sherd.metadata.load(tmp_path / path)
        loaded.verify()
        assert loaded.expanded is expanded
        np.testing.assert_array_equal(loaded["z"].table("unrows"), meta["z"].table("unrows"))
    with np.load(tmp_path / "e.npz") as z:
        assert any("z" in name for name in z.files)
    with pytest.raises(sherd.Unsupported):
        loaded["z"].table("enshuffles", step=2)
    with pytest.raises(sherd.InvalidArgument):
        loaded.save(tmp_path / "again.npz")


def test_a_network_is_eleven_operations():
    meta = sherd.metadata.build(network=(784, 128, 10), samples=50, nodes=3)
    assert len(meta) == 11 and meta["z1"].shape == (50, 784, 128)


def test_a_product_takes_its_exposures(tmp_path):
    rng = np.random.default_rng(1)
    a, b = rng.integers(-9, 10, (30, 20)), rng.integers(-9, 10, (20, 10))
    meta = build()
    meta.save(tmp_path / "m.npz")
    with sherd.Cluster(3) as c:
        for _ in range(2):
            got = c.multiply(a, b, metadata=tmp_path / "m.npz", exact=True)
            np.testing.assert_array_equal(got, a @ b)
        assert c.report.planned == meta["z"].exposure_counts.tolist()
        with pytest.raises(sherd.ExposureForbidden) as e:
            c.multiply(a + 1, b, metadata=tmp_path / "m.npz")
        assert e.value.exit_code == 10
        c.multiply(a + 1, b, metadata=tmp_path / "m.npz", operation="z", reuse=True)
        with pytest.raises(sherd.Malformed):
            c.multiply(a, b, metadata=tmp_path / "m.npz", operation="y")
    assert sherd.metadata.load(tmp_path / "m.npz")["z"].used


@pytest.mark.parametrize(
    ("operations", "more", "error"),
    [
        ({"z": (1, 2)}, {}, sherd.InvalidArgument),
        ({"z": ("sine", 1, 2)}, {}, sherd.InvalidArgument),
        ({"z": ()}, {}, sherd.InvalidArgument),
        ({"z!": (1, 2, 3)}, {}, sherd.InvalidArgument),
        ({"z" * 40: (1, 2, 3)}, {}, sherd.InvalidArgument),
        ({"z": (0, 2, 3)}, {"nodes": 0}, sherd.InvalidArgument),
        (None, {}, sherd.InvalidArgument),
        ({}, {"network": (3, 2)}, sherd.InvalidArgument),
        ({"z": (1, 2, 3)}, {"seed": b"short"}, sherd.InvalidArgument),
    ],
)
def test_wrong_arguments(operations, more, error):
    with pytest.raises(error):
        sherd.metadata.build(operations, **{"nodes": 3, **more})


def test_wrong_rows_and_tables():
    z = build()["z"]
    for arguments in (("shuffles",), ("enshuffles", 0, 5, 99), ("enshuffles", 0, 5, 2)):
        with pytest.raises(sherd.InvalidArgument):
            z.table(arguments[0], **dict(zip(("step", "start", "stop"), arguments[1:])))
    with pytest.raises(sherd.InvalidArgument):
        z.table("rows")
    with pytest.raises(KeyError):
        build()["y"]


def test_wrong_files(tmp_path):
    with pytest.raises(sherd.CannotOpen):
        sherd.metadata.load(tmp_path / "none.npz")
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    with pytest.raises(sherd.Malformed):
        sherd.metadata.load(tmp_path / "bad.npz")


def test_pickling_is_refused_with_a_sentence():
    with pytest.raises(TypeError, match="a Metadata cannot be pickled: save it"):
        pickle.dumps(build())
