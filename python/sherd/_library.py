"""
The shared library: finds libsherd, loads it, and refuses another version than that of the
    declarations.

The library is, in this order: the file that SHERD_LIBRARY names; the one in the package, if a wheel
brought it; that of pkg-config; that of the dynamic linker.
"""

from __future__ import annotations

import os
import reprlib
import subprocess
import weakref
from collections.abc import Iterator
from typing import Any, Callable, Optional, TypeVar, Union

from ._cffi import ffi
from ._records import VERSION

__all__ = [
    "LibraryError",
    "callback",
    "ffi",
    "hold",
    "lib",
    "library",
    "new",
    "path_of",
    "program",
    "text_of",
    "wrong_type",
]

_F = TypeVar("_F", bound=Callable[..., Any])
_held: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
_PACKAGE = os.path.dirname(os.path.abspath(__file__))


class LibraryError(ImportError):
    """No usable libsherd was found, or only one of another version.

    Attributes:
        message: what was found and expected
        hint: the remedy
        exit_code: 1
    """

    exit_code = 1

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message} ({hint})", name="sherd")
        self.message = message
        self.hint = hint


def _of_pkg_config() -> Optional[str]:
    try:
        run = subprocess.run(
            ["pkg-config", "--variable=libdir", "sherd"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    path = os.path.join(run.stdout.strip(), "libsherd.so")
    return path if run.returncode == 0 and os.path.exists(path) else None


def _candidates() -> Iterator[str]:
    named = os.environ.get("SHERD_LIBRARY")
    if named:
        yield named
        return
    bundled = os.path.join(_PACKAGE, "lib", "libsherd.so")
    if os.path.exists(bundled):
        yield bundled
        return
    installed = _of_pkg_config()
    if installed:
        yield installed
    yield f"libsherd.so.{VERSION.split('.')[0]}"


def _load() -> tuple[Any, str]:
    reasons = []
    for path in _candidates():
        try:
            loaded = ffi.dlopen(path)
        except OSError as e:
            reasons.append(str(e))
            continue
        try:
            found = ffi.string(loaded.sherd_version()).decode()
        except (AttributeError, ffi.error):
            found = "unknown"
        if found != VERSION:
            raise LibraryError(
                f"{path} has version {found}, and this package needs {VERSION}",
                "install the package and the library from the same release, or let "
                "SHERD_LIBRARY name the file of another library",
            )
        return loaded, path
    raise LibraryError(
        "libsherd cannot be loaded: " + "; ".join(reasons),
        "install libsherd (make install); in a folder of your own, let PKG_CONFIG_PATH name its "
        "lib/pkgconfig, or SHERD_LIBRARY the file libsherd.so",
    )


lib, library = _load()


def program() -> Optional[str]:
    """Returns the `sherd` command of the package; None: the library finds its own."""
    bundled = os.path.join(_PACKAGE, "bin", "sherd")
    return bundled if os.path.exists(bundled) else None


def text_of(chars: Any) -> str:
    """Returns a terminated text of the library."""
    return str(ffi.string(chars).decode("utf-8", "replace"))


def callback(signature: str, error: Any = None, onerror: Any = None) -> Callable[[_F], _F]:
    """Makes a function that C can call.

    error: what it returns if the Python function raises; onerror: what is then called, with the
    exception's class, the exception and its traceback. None: print them.
    """
    made: Callable[[_F], _F] = ffi.callback(signature, error=error, onerror=onerror)
    return made


def path_of(path: Union[str, os.PathLike[str]], name: str = "path") -> bytes:
    """Returns a path as the library takes it. name: the argument, in errors."""
    try:
        return os.fsencode(path)
    except TypeError:
        raise wrong_type(name, path, "a path (str or os.PathLike)") from None


def wrong_type(name: str, value: Any, expected: str) -> TypeError:
    """Makes the error for an argument of a wrong type."""
    return TypeError(f"{name} is {reprlib.repr(value)}, and not {expected}")


# Options whose members have other names.
_OPTIONS = {
    "async": "asynchronous",
    "local_nodes": "nodes",
    "meta_operation": "operation",
    "meta_reuse": "reuse",
    "seed_number": "seed",
}
_EXPECTED = {"_Bool": "True or False", "double": "a number", "char *": "a text"}


def _wrong_member(struct: Any, member: str, value: Any, error: Exception) -> Exception:
    """Makes the error for an option that does not fit its member."""
    from ._errors import InvalidArgument

    kind = dict(ffi.typeof(struct).item.fields)[member].type
    name = _OPTIONS.get(member, member)
    expected = _EXPECTED.get(kind.cname, "a whole number")
    if isinstance(error, OverflowError) and kind.cname != "_Bool":
        wrong = "below 0" if value < 0 else "too large"
        return InvalidArgument(f"{name} is {reprlib.repr(value)}, which is {wrong}")
    return wrong_type(name, value, expected)


def new(struct: str, **members: Any) -> Any:
    """Makes a zeroed struct with its size and these members; None: the default.

    Texts (str, bytes) are copied. The copies, and the memory that members point to, live as long as
    the struct.
    """
    made = ffi.new(struct + " *")
    made.size = ffi.sizeof(struct)
    for name, given in members.items():
        value = given
        if value is None:
            continue
        if isinstance(value, str):
            value = value.encode()
        if isinstance(value, bytes):
            value = ffi.new("char[]", value)
        if isinstance(value, ffi.CData):
            hold(made, value)
        try:
            setattr(made, name, value)
        except (TypeError, OverflowError) as e:
            raise _wrong_member(made, name, given, e) from None
    return made


def hold(struct: Any, *objects: Any) -> None:
    """Keeps objects as long as a struct of `new`."""
    _held.setdefault(struct, []).extend(objects)
