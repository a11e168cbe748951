"""Which operands a product takes, and what it makes of them."""

import tracemalloc

import numpy as np
import pytest

import sherd

RNG = np.random.default_rng(3)
A = RNG.integers(-9, 10, (24, 18))
B = RNG.integers(-9, 10, (18, 12))


class Array:
    """Any object that numpy converts."""

    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return self.x


class Tensor:
    """An object with DLPack only, as of another library."""

    def __init__(self, x, device=(1, 0)):
        self.x, self.device = x, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **more):
        return self.x.__dlpack__()


class Torch(Tensor):
    """As a tensor of torch: numpy converts it only on the host, and without gradients."""

    requires_grad = True

    def detach(self):
        detached = Torch(self.x, self.device)
        detached.requires_grad = False
        return detached

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad or self.device[0] != 1:
            raise RuntimeError("Can't call numpy() on it")
        return self.x


VIEWS = {
    "Fortran order": np.asfortranarray,
    "a transpose of a copy": lambda x: x.T.copy().T,
    "every second row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "every third column": lambda x: np.repeat(x, 3, axis=1)[:, ::3],
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "unaligned": lambda x: np.frombuffer(b"-" + x.tobytes(), x.dtype, offset=1).reshape(x.shape),
    "a field of a record": lambda x: x.astype([("a", x.dtype), ("b", "u1")])["a"],
    "a list": lambda x: x.tolist(),
    "an object with __array__": Array,
    "an object with DLPack": Tensor,
    "a memoryview": lambda x: memoryview(np.ascontiguousarray(x)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_operands_of_any_strides(plain, name):
    make = VIEWS[name]
    np.testing.assert_array_equal(plain.multiply(make(A), make(B)), A @ B)


@pytest.mark.parametrize(
    "dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
)
@pytest.mark.parametrize("order", "<>")
def test_operands_of_any_numeric_dtype(plain, dtype, order):
    a, b = abs(A).astype(order + dtype), abs(B).astype(order + dtype)
    got = plain.multiply(a, b)
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, abs(A) @ abs(B))


def test_unaligned_operands_are_copied():
    unaligned = VIEWS["unaligned"](A)
    assert not unaligned.flags.aligned
    assert sherd._arrays.numbers(unaligned, "A").flags.aligned


def test_truth_values_are_zeros_and_ones(plain):
    np.testing.assert_array_equal(plain.multiply(A > 0, B > 0), (A > 0) * 1 @ ((B > 0) * 1))


def test_large_unsigned_integers_are_rounded_as_numpy_does(plain):
    a = np.full((2, 2), 2**64 - 1, np.uint64)
    np.testing.assert_array_equal(plain.multiply(a, np.eye(2)), a.astype(float))


@pytest.mark.parametrize(
    ("operand", "message"),
    [
        (A * 1j, "complex128.*its real and its imaginary part"),
        (A.astype(object), "object"),
        (np.array([["a"]]), "<U1"),
        (A.astype(np.longdouble), "float128.*astype"),
        (np.ma.masked_array(A, A > 0), "masked array"),
        (Tensor(A, (2, 0)), "memory of a device; sherd reads host memory"),
    ],
)
def test_other_operands_are_refused_with_a_sentence(plain, operand, message):
    with pytest.raises(TypeError, match=message):
        plain.multiply(operand, B)


def test_tensors_of_torch(plain):
    torch = pytest.importorskip("torch")
    a, b = (
        torch.tensor(A, dtype=torch.float32, requires_grad=True),
        torch.tensor(B).T.contiguous().T,
    )
    np.testing.assert_array_equal(plain.multiply(a, b), A @ B)
    if torch.cuda.is_available():
        with pytest.raises(TypeError, match="memory of a device"):
            plain.multiply(a.detach().cuda(), b)


@pytest.mark.parametrize("make", [Torch, Tensor, Array, list])
def test_labels_of_other_libraries(make):
    x, y = RNG.random((40, 3)), RNG.integers(0, 2, 40)
    recipe = sherd.Recipe.of_layers("dense 4", "relu", "dense 2", input=3, epochs=2)

    def trained(labels):
        return sherd.train(recipe, data=(x, labels), validation=(x, labels), seed=1).parameters

    got, want = trained(make(y)), trained(y)
    assert all(np.array_equal(got[name], want[name]) for name in want)


@pytest.mark.parametrize("which", ["y", "validation_y"])
def test_labels_on_a_device_are_refused(which):
    x, y = RNG.random((40, 3)), RNG.integers(0, 2, 40)
    labels = {"y": y, "validation_y": y, which: Torch(y, (2, 0))}
    with pytest.raises(TypeError, match=f"^{which} is in the memory of a device"):
        sherd.train("spiral", data=(x, labels["y"]), validation=(x, labels["validation_y"]))


def test_arrays_of_jax(plain):
    jnp = pytest.importorskip("jax.numpy")
    np.testing.assert_array_equal(plain.multiply(jnp.asarray(A), jnp.asarray(B).T.copy().T), A @ B)


def test_a_gpu_array_without_dlpack_is_refused(plain):
    class Gpu:
        __cuda_array_interface__ = {}

    with pytest.raises(TypeError, match="memory of a GPU"):
        plain.multiply(Gpu(), B)


def test_a_sparse_matrix_is_refused(plain):
    class Sparse:
        def toarray(self):
            return A

    with pytest.raises(TypeError, match=r"sparse matrix: pass A.toarray\(\)"):
        plain.multiply(Sparse(), B)


def test_vectors_are_those_of_numpy(plain, shared):
    for a, b in ((A[0], B), (A, B[:, 0]), (A[0], B[:, 0])):
        for c in (plain, shared):
            got, want = c.multiply(a, b), a @ b
            assert np.shape(got) == np.shape(want)
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (A, A, "A is 24 x 18 and B is 24 x 18"),
        (A[None], B, "A has 3 dimensions"),
        (A, 3, "B has 0 dimensions"),
        (A, B[:5, 0], "A is 24 x 18 and B is 5 x 1"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(plain, a, b, message):
    with pytest.raises(sherd.WrongShape, match=message) as e:
        plain.multiply(a, b)
    assert e.value.exit_code == 3 and isinstance(e.value, ValueError)


def test_out_receives_the_result(plain):
    out = np.empty((24, 12))
    assert plain.multiply(A, B, out=out) is out
    np.testing.assert_array_equal(out, A @ B)


def test_an_unfit_out_is_refused(plain):
    square = RNG.random((12, 12))
    fixed = np.empty((24, 12))
    fixed.flags.writeable = False
    for out in (np.empty((24, 12), np.float32), np.empty((12, 24)).T, fixed, [[0.0]]):
        with pytest.raises(sherd.InvalidArgument):
            plain.multiply(A, B, out=out)
    with pytest.raises(sherd.WrongShape):
        plain.multiply(A, B, out=np.empty((3, 3)))
    with pytest.raises(sherd.InvalidArgument, match="shares memory"):
        plain.multiply(square, square, out=square)


def test_operands_that_can_be_read_by_strides_are_not_copied(plain):
    a = RNG.random((2000, 1400), np.float32)[::2, 200:].T
    b = RNG.random((1000, 8))
    tracemalloc.start()
    got = plain.multiply(a, b)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(got, a.astype(float) @ b, rtol=1e-12)
    assert peak < a.nbytes / 4, f"{peak} bytes for operands of {a.nbytes}"


@pytest.mark.parametrize("transposed", [False, True])
def test_operands_of_a_kept_product_are_not_copied(plain, transposed):
    """The library holds a copy of the kept one, which tracemalloc does not see; Python none."""
    a = RNG.integers(-9, 10, (2000, 1400), np.int16)[::2, 200:]
    b = RNG.integers(-9, 10, (2400, 1500), np.int16)[::2, 300:500]
    tracemalloc.start()
    kept = plain.keep(a.T if transposed else a)
    peaks = [tracemalloc.get_traced_memory()[1]]
    got = (kept.T if transposed else kept) @ b
    peaks.append(tracemalloc.get_traced_memory()[1] - got.nbytes)
    tracemalloc.stop()
    np.testing.assert_array_equal(got, a.astype(float) @ b)
    assert max(peaks) < b.nbytes / 4, f"{peaks} bytes for operands of {a.nbytes} and {b.nbytes}"
