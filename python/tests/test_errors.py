"""One class for each error code, with message, hint and exit code."""

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
        "--epsilon none, `sherd keygen --show FILE` and well-known are left"
    )
    assert said == (
        'nodes=2: scheme="share" with colluding=5 needs 11; nodes=N exact=True, or lower bits_b; '
        "--epsilon none, `sherd keygen --show FILE` and well-known are left"
    )
