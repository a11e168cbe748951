"""Trainings, predictions and models."""

import gc
import math
import os
import pickle
import signal
import weakref

import numpy as np
import pytest

import sherd

RNG = np.random.default_rng(6)
X = RNG.random((240, 4))
Y = (X.sum(axis=1) > 2).astype(np.int32)
SMALL = {"steps": 20, "report_every": "10 steps"}


def network(**settings):
    return sherd.Recipe.of_layers("dense 8", "relu", "dense 2", input=4, **settings)


def same(a, b):
    return all((a.parameters[k] == b.parameters[k]).all() for k in a.parameters)


# ---- recipes ---------------------------------------------------------------------------------


def test_a_recipe_is_a_name_a_path_a_text_or_layers(tmp_path):
    assert "spiral" in sherd.recipes()
    named = sherd.Recipe("spiral", epochs=3, batch="all")
    assert named.name == "spiral" and "epochs = 3" in named.text
    (tmp_path / "my.conf").write_text(named.text)
    for same_one in (
        sherd.Recipe(tmp_path / "my.conf"),
        sherd.Recipe(named.text),
        sherd.Recipe(named),
        pickle.loads(pickle.dumps(named)),
    ):
        assert same_one.text == named.text
    layers = network(epochs=2, standardise=True)
    assert "layer = dense 8" in layers.text and "standardise = yes" in layers.text


@pytest.mark.parametrize(
    ("arguments", "settings", "error"),
    [
        (("spirel",), {}, sherd.CannotOpen),
        (("input = 4\nlayer = wide 3\n",), {}, sherd.Malformed),
        (("spiral",), {"epoch": 3}, sherd.Malformed),
        (("spiral",), {"rate": "fast"}, sherd.Malformed),
    ],
)
def test_a_wrong_recipe_is_an_error(arguments, settings, error):
    with pytest.raises(error) as e:
        sherd.Recipe(*arguments, **settings)
    assert e.value.message


# ---- trainings -------------------------------------------------------------------------------


def test_a_training_on_arrays():
    seen = []
    m = sherd.train(
        network(epochs=30), data=(X, Y), validation=(X[:50], Y[:50]), seed=1, on_epoch=seen.append
    )
    assert [e.epoch for e in m.history] == list(range(1, 31)) == [e.epoch for e in seen]
    assert m.history[-1].loss < m.history[0].loss and m.history[-1].validation_accuracy > 0.8
    assert str(seen[0]).startswith("epoch 1, step 8: loss 0.") and "validation" in str(seen[0])
    assert (m.inputs, m.outputs, m.report.seed_number) == (4, 2, 1)
    assert m.confusion.sum() == 50 and m.classes is None
    out, labels = m.predict(X), m.predict(X, labels=True)
    assert out.shape == (240, 2) and (out.argmax(axis=1) == labels).all()
    assert same(m, sherd.train(network(epochs=30), data=(X, Y), seed=1))
    assert not same(m, sherd.train(network(epochs=30), data=(X, Y), seed=2))


def test_a_private_training_is_compared_bit_for_bit(shared):
    m = sherd.train("spiral", cluster=shared, settings=SMALL, check=True, seed=7)
    assert m.report.scheme == "share" and m.report.epochs_checked > 0 and m.report.bytes_out > 0
    here = sherd.train("spiral", settings=SMALL, seed=7, exact=True)
    assert same(m, here)
    x = RNG.random((10, 2))
    got = m.predict(x, cluster=shared, check=True)
    assert m.prediction.checked and "nodes learn shapes" in m.prediction.sees
    np.testing.assert_allclose(got, m.predict(x), atol=1e-3)


def test_a_training_by_gradients(plain):
    m = sherd.train("spiral", cluster=plain, by="gradients", settings=SMALL, seed=7, shards=4)
    here = sherd.train("spiral", by="gradients", settings=SMALL, seed=7, shards=4, threads=1)
    assert m.report.by == "gradients" and m.report.nodes == 2 and same(m, here)


def test_updates_are_reported(plain):
    seen = []
    m = sherd.train(
        "spiral",
        cluster=plain,
        by="gradients",
        settings=SMALL,
        asynchronous=True,
        on_update=seen.append,
    )
    assert len(seen) == m.gradients.updates >= 20 and m.gradients.async_
    assert [u.version for u in seen] == list(range(len(seen)))
    assert max(u.staleness for u in seen) == m.gradients.staleness_most
    assert sum(u.examples for u in seen) == m.report.examples and {u.by for u in seen} <= {0, 1}
    assert sherd.train("spiral", settings=SMALL).gradients is None


def test_an_exception_in_on_update_ends_a_training():
    def stop(update):
        seen.append(update)
        raise RuntimeError("enough")

    seen = []
    with pytest.raises(RuntimeError, match="enough"):
        sherd.train("spiral", by="gradients", settings=SMALL, on_update=stop)
    assert len(seen) == 1


def test_a_training_begins_with_given_parameters(tmp_path):
    first = sherd.train(network(epochs=1), data=(X, Y), seed=1)
    first.save(tmp_path / "first.npz")
    others = [
        sherd.train(network(epochs=2), data=(X, Y), seed=2, initial=initial)
        for initial in (first, tmp_path / "first.npz", first.parameters)
    ]
    assert all(same(m, others[0]) for m in others)
    assert not same(others[0], sherd.train(network(epochs=2), data=(X, Y), seed=2))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"w1": np.zeros((4, 7))}, sherd.WrongShape),
        ({"w2": np.full((8, 2), np.nan)}, sherd.OutOfRange),
        ({"b2": None}, sherd.Malformed),
    ],
)
def test_wrong_first_parameters_are_refused(change, error):
    good = sherd.train(network(epochs=1), data=(X, Y)).parameters
    initial = {k: v for k, v in {**good, **change}.items() if v is not None}
    with pytest.raises(error) as e:
        sherd.train(network(epochs=1), data=(X, Y), initial=initial)
    assert next(iter(change)) in e.value.message


def test_the_data_of_a_recipe_and_of_a_training():
    digits = sherd.load_data("mnist", examples=30)
    assert digits.info.embedded and digits.info.examples == 30 and "digits" in repr(digits)
    assert digits.x.shape == (30, 784) and digits.x.dtype == np.uint8 and digits.x.max() == 255
    assert digits.y.shape == (30,) and digits.y.dtype == np.int64
    assert digits.validation_x.shape == (30, 784) and set(digits.validation_y) <= set(range(10))
    assert (sherd.load_data("mnist-proper", examples=30).x == digits.x / 256).all()
    points = sherd.load_data("parabola", seed=bytes(32))
    assert points.x.shape == (50, 1) and np.allclose(points.y, points.x**2)
    assert points.validation_x.shape == (0, 1) and points.validation_y is None
    assert (sherd.load_data("parabola", seed=bytes(32)).x == points.x).all()
    m = sherd.train("spiral", settings=SMALL, seed=4)
    assert m.data.x.shape == (450, 2) and np.bincount(m.data.y).tolist() == [150] * 3
    back = sherd.train(network(epochs=1), data=(X[::-1], Y[::-1])).data
    assert (back.x == X[::-1]).all() and (back.y == Y[::-1]).all()
    again = sherd.train("spiral", settings=SMALL, seed=4)
    assert (again.data.x == m.data.x).all()


def test_data_that_cannot_be_loaded_is_an_error(tmp_path):
    for arguments, error in (
        (("mnist", tmp_path / "none"), sherd.CannotOpen),
        ((network(),), sherd.InvalidArgument),
        (("spirel",), sherd.CannotOpen),
    ):
        with pytest.raises(error):
            sherd.load_data(*arguments)
    with pytest.raises(sherd.InvalidArgument):
        sherd.load_data("spiral", seed=b"short")


def test_a_training_by_all_reduce(plain):
    m = sherd.train("spiral", cluster=plain, by="gradients", aggregate="ring", settings=SMALL)
    assert m.report.by == "circle" and m.report.step == 20


def test_images_are_flattened():
    images = RNG.integers(0, 256, (64, 5, 5, 1), dtype=np.uint8)
    recipe = sherd.Recipe.of_layers("dense 3", input="5 x 5 x 1", epochs=1, divide_inputs=256)
    m = sherd.train(recipe, data=(images, np.arange(64) % 3))
    assert m.predict(images).shape == (64, 3)


def test_values_are_targets_if_the_recipe_says_so():
    recipe = sherd.Recipe.of_layers("dense 1", input=4, loss="squared", targets="values", epochs=40)
    m = sherd.train(recipe, data=(X, X @ [1.0, 2, 3, 4]), seed=1)
    assert m.history[-1].loss < m.history[0].loss / 2
    assert math.isnan(m.history[-1].accuracy)


def test_a_training_is_resumed_from_a_checkpoint(tmp_path):
    whole = sherd.train(network(epochs=6), data=(X, Y), seed=5)
    folder = tmp_path / "run"

    def stop(e):
        if e.epoch == 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        sherd.train(network(epochs=6), data=(X, Y), seed=5, checkpoints=folder, on_epoch=stop)
    m = sherd.train(network(epochs=6), data=(X, Y), checkpoints=folder, resume=True)
    assert same(m, whole) and m.report.first_step > 0


def test_an_interrupt_ends_a_training():
    def interrupt(e):
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        sherd.train("spiral", settings={"report_every": "1 steps"}, on_epoch=interrupt)


def test_metadata_of_a_training(tmp_path):
    recipe = sherd.Recipe("spiral", **SMALL)
    meta = sherd.metadata.build(recipe=recipe, examples=450, nodes=2)
    assert "forward_1" in meta
    meta.save(tmp_path / "m.npz")
    with sherd.Cluster(2) as c:
        m = sherd.train(recipe, cluster=c, meta=tmp_path / "m.npz")
        assert m.report.meta == str(tmp_path / "m.npz") and not m.report.meta_reused
    assert [e.operation for e in m.exposures] == [name for name in meta for node in range(2)]
    first = [e for e in m.exposures if e.operation == "forward_1"]
    assert [e.node for e in first] == [0, 1] and all(e.calls == 20 for e in first)
    assert sum(e.exposed_a for e in first) == 1
    assert sherd.train(recipe).exposures == ()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"data": (X, Y[:-1])}, sherd.WrongShape),
        ({"data": (X[:, :3], Y)}, sherd.Error),
        ({"data": (X * np.nan, Y)}, sherd.OutOfRange),
        ({"data": (X, Y + 7)}, sherd.Error),
        ({"data": X}, sherd.InvalidArgument),
        ({"data": "/nowhere.npz"}, sherd.CannotOpen),
        ({"validation": (X, Y)}, sherd.InvalidArgument),
        ({"data": (X, Y), "by": "magic"}, sherd.InvalidArgument),
        ({"data": (X, Y), "aggregate": "magic"}, sherd.InvalidArgument),
        ({"data": (X, Y), "check": True}, sherd.Error),
        ({"data": (X, Y), "seed": b"short"}, sherd.InvalidArgument),
        ({"data": (X, Y), "shard": 3}, TypeError),
        ({"data": (X, Y), "settings": {"layer": "dense 3"}}, sherd.Unsupported),
    ],
)
def test_wrong_arguments_of_a_training(arguments, error):
    with pytest.raises(error):
        sherd.train(network(epochs=1), **arguments)


def test_a_diverging_training_names_the_step():
    with pytest.raises(sherd.OutOfRange, match="step"):
        sherd.train(network(method="sgd", rate=1e300), data=(X * 1e3, Y))


def test_schemes_that_would_show_the_weights_are_refused(shared):
    with pytest.raises(sherd.Error):
        sherd.train("spiral", cluster=shared, scheme="share1", settings=SMALL)


# ---- models ----------------------------------------------------------------------------------


def test_a_model_is_saved_and_pickled(tmp_path):
    m = sherd.train(network(epochs=1), data=(X, Y))
    m.save(tmp_path / "m.npz")
    for other in (sherd.Model(tmp_path / "m.npz"), pickle.loads(pickle.dumps(m))):
        assert same(m, other) and other.recipe.text == m.recipe.text
        np.testing.assert_array_equal(other.predict(X), m.predict(X))
        with pytest.raises(sherd.InvalidArgument, match="its training is not known"):
            _ = other.confusion
    with np.load(tmp_path / "m.npz") as z:
        assert (z["w1"] == m.parameters["w1"]).all()


def test_classes_with_names(tmp_path):
    path = tmp_path / "iris.csv"
    names = np.where(Y, "large", "small")
    path.write_text("".join(f"{','.join(map(str, x))},{n}\n" for x, n in zip(X, names)))
    m = sherd.train(network(epochs=2), data=path)
    assert sorted(m.classes) == ["large", "small"]
    assert set(m.predict(X, labels=True)) <= {"large", "small"}


def test_wrong_inputs_of_a_prediction():
    m = sherd.train(network(epochs=1), data=(X, Y))
    with pytest.raises(sherd.WrongShape, match="x is 240 x 3, and the model has 4 inputs"):
        m.predict(X[:, :3])
    with pytest.raises(sherd.WrongShape, match=r"x is 4, .*4 inputs .*x\[None\] .* X\[:1\]"):
        m.predict(X[0])
    with pytest.raises(sherd.InvalidArgument, match="scheme='share' has no effect without nodes"):
        m.predict(X, scheme="share")
    with pytest.raises(sherd.OutOfRange):
        m.predict(X * np.nan)
    with pytest.raises(sherd.CannotOpen):
        sherd.Model("/nowhere.npz")


def test_data_is_held_by_the_model():
    """A confusion matrix reads it later."""
    x = X.copy()
    data = weakref.ref(x)
    m = sherd.train(network(epochs=1), data=(x, Y))
    del x
    gc.collect()
    assert data() is not None and m.confusion.sum() == 240
    del m
    gc.collect()
    assert data() is None
