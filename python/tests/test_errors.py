"""One class for each error code, with message, hint and exit code."""

import numpy as np
import pytest

import sherd
from sherd import _errors
from sherd._library import ffi, lib, text_of
from sherd._records import ERRORS

BUILTIN = {
    "ENOMEM": MemoryError,
    "EINVAL": ValueError,
    "ERANGE": ValueError,
    "ETIMEOUT": TimeoutError,
    "EUNSUPPORTED": NotImplementedError,
    "EAUTH": PermissionError,
    "ECONNECT": ConnectionError,
    "EOPEN": OSError,
    "ESHAPE": ValueError,
}


@pytest.mark.parametrize("code", ERRORS)
def test_every_code_has_a_class_of_its_own(code):
    e = _errors.error_of(code)
    name, exit_code, text = ERRORS[code]
    assert (e.code, e.name, e.exit_code, e.message) == (code, name, exit_code, text)
    assert e.exit_code == lib.sherd_err_exit(code)
    assert text_of(lib.sherd_err_name(code)) == name
    assert isinstance(e, sherd.Error) and isinstance(e, BUILTIN.get(name, Exception))
    assert type(e).__name__ in sherd.__all__
    assert [c for c in _errors._CLASSES.values() if c is type(e)] == [type(e)]


def test_an_error_has_the_message_and_the_hint_of_the_library():
    d = ffi.new("sherd_diag *", {"code": -403, "message": b"A is 2 x 3", "hint": b"transpose it"})
    e = _errors.error_of(-403, d)
    assert (e.message, e.hint, str(e)) == (
        "A is 2 x 3",
        "transpose it",
        "A is 2 x 3 (transpose it)",
    )


def test_a_class_says_who_has_to_change():
    for name, base in (
        ("EINVAL", sherd.LocalError),
        ("EWRONG", sherd.PeerError),
        ("ENET", sherd.NetworkError),
        ("EIO", sherd.StoreError),
    ):
        assert issubclass(_errors._CLASSES[name], base)


def test_options_of_the_command_are_arguments_here():
    said = _errors.in_python(
        "-n 2: --scheme share with --colluding 5 needs 11; -n N --mode exact, or lower --bits-b; "
        "--epsilon none, `sherd keygen --show FILE`, sherd cluster up -n 6 and well-known are left"
    )
    assert said == (
        'nodes=2: scheme="share" with colluding=5 needs 11; nodes=N exact=True, or lower bits_b; '
        "--epsilon none, `sherd keygen --show FILE`, sherd cluster up -n 6 and well-known are left"
    )
    assert _errors.in_python("give fewer --rows or --encodings (--public-labels)") == (
        "give fewer rows or encodings (public_labels)"
    )


X, W = np.ones((4, 3)), np.ones((3, 2))


def of_product(**options):
    return lambda c: c.multiply(X, W, **options)


def of_training(**options):
    return lambda c: sherd.train("spiral", **options)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (of_product(bits="17"), TypeError, "bits is '17', and not a whole number"),
        (of_product(bits=17.0), TypeError, "bits is 17.0, and not a whole number"),
        (of_product(bits=-1), sherd.InvalidArgument, "bits is -1, which is below 0"),
        (of_product(memory=2**64), sherd.InvalidArgument, "memory is 184467.*, which is too large"),
        (of_product(exposure_max="x"), TypeError, "exposure_max is 'x', and not a number"),
        (of_product(check="yes"), TypeError, "check is 'yes', and not True or False"),
        (of_product(timeout="15s"), TypeError, "timeout is '15s', and not a number of seconds"),
        (of_product(seed=-1), TypeError, "seed is -1, and not 32 bytes"),
        (of_product(seed=b"x"), sherd.InvalidArgument, "seed has 1 bytes, and not 32"),
        (of_product(certificate=3), TypeError, "certificate is 3, and not a path"),
        (of_product(mode="exact"), TypeError, "no option 'mode': exact=True computes in fixed"),
        (lambda c: c.multiply("A.npy", W), TypeError, r"A is 'A.npy', .*numpy.load\('A.npy'\)"),
        (lambda c: c.multiply(X, None), TypeError, "B is None, and not an array"),
        (lambda c: c.keep("A.npy"), TypeError, r"numpy.load\('A.npy'\)"),
        (lambda c: c.apply(3, X), TypeError, "function is 3, and not a name"),
        (
            lambda c: c.plan(shape=(4096, 784)),
            sherd.WrongShape,
            r"shape is \(4096, 784\), .* three",
        ),
        (lambda c: sherd.plan(shape=(1, 1, 1), nodes="3"), sherd.InvalidArgument, "nodes is '3'"),
        (lambda c: sherd.Cluster("3"), sherd.InvalidArgument, "3 without quotes is a number of"),
        (lambda c: sherd.Cluster(3, bind="no"), TypeError, "bind is 'no', and not True or False"),
        (lambda c: sherd.Cluster(3, node_memory="1G"), TypeError, "node_memory is '1G', and not"),
        (of_training(epochs=5), TypeError, "'epochs': it is a key of .*settings={'epochs': 5}"),
        (of_training(epoch=5), TypeError, "a training has no option 'epoch'$"),
        (of_training(settings=5), TypeError, "settings is 5, and not a dict"),
        (of_training(scheme="share"), sherd.InvalidArgument, r"add cluster=sherd.Cluster\(3\)"),
        (of_training(seed=-1), sherd.InvalidArgument, "seed is -1, and not a number from 0"),
        (of_training(seed=1.5), TypeError, "seed is 1.5"),
        (of_training(cluster=3), TypeError, "cluster is 3, and not a Cluster"),
        (of_training(on_epoch=3), TypeError, "on_epoch is 3, and not a function"),
        (of_training(data=(X, ["a", "b", "a", "b"])), TypeError, "y has texts, .*return_inverse"),
    ],
)
def test_a_wrong_value_is_reported_with_its_option_and_what_to_write(plain, call, error, words):
    with pytest.raises(error, match=words):
        call(plain)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"operations": "z=dot:300x200x100"}, "operations is 'z=dot.*a dict, such as"),
        ({"operations": {"z": "300x200x100"}}, "operation 'z' is '300x200x100' .write"),
        ({"operations": {"z": (300, 200, 1.5)}}, r"operation 'z' is \(300, 200, 1.5\) .write"),
        ({"network": 3}, "network is 3, and not the widths"),
        ({"operations": {"z": (3, 2, 1)}, "seed": 3}, "seed is 3, and not 32 bytes"),
    ],
)
def test_wrong_values_of_metadata_are_reported(arguments, words):
    with pytest.raises((TypeError, sherd.InvalidArgument), match=words):
        sherd.metadata.build(nodes=3, **arguments)


def test_a_file_that_is_no_key_is_not_said_to_be_a_key(tmp_path):
    path = tmp_path / "A.npy"
    np.save(path, X)
    path.chmod(0o644)
    with pytest.raises(sherd.BadKey, match="not a private key"):
        sherd.fingerprint(path)


def test_values_of_numpy_are_taken(plain):
    options = {"bits": np.int64(17), "timeout": np.float32(9), "check": True}
    assert np.array_equal(plain.multiply(X, W, **options), X @ W)
