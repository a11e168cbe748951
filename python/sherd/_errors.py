"""
Errors: one class for each error code of libsherd, below a class for the party that has to change.

Every one is an `Error` with message, hint, code and exit code. Those that Python has a class for
are of that class, too: a wrong shape is a ValueError, a file that cannot be opened an OSError.
"""

from __future__ import annotations

import re
from typing import Any

from ._library import ffi, lib, text_of
from ._records import ERRORS

__all__ = [
    "Error",
    "LocalError",
    "PeerError",
    "NetworkError",
    "StoreError",
    "OutOfMemory",
    "InvalidArgument",
    "OutOfRange",
    "InternalError",
    "Interrupted",
    "Timeout",
    "TooFewNodes",
    "ExposureForbidden",
    "Differs",
    "Unsupported",
    "Busy",
    "Stopped",
    "MalformedRecord",
    "AuthenticationFailed",
    "WrongResult",
    "Refused",
    "VersionMismatch",
    "Unasked",
    "Silent",
    "ConnectionLost",
    "CannotConnect",
    "AddressInUse",
    "NetworkFailed",
    "DeviceError",
    "CannotOpen",
    "CannotReadOrWrite",
    "Malformed",
    "WrongShape",
    "BadKey",
    "ChainBroken",
    "ClosedError",
]


class Error(Exception):
    """A call of libsherd failed.

    Attributes:
        message: one sentence: what, where, found and expected
        hint: the remedy, or ""
        name: name of the error code, such as "ESHAPE"
        code: the error code, negative
        exit_code: the exit code of the command `sherd` for this error
        report: the report of the call, if nodes were given work; otherwise None
    """

    name = ""
    code = 0
    exit_code = 1
    report: Any = None

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class LocalError(Error):
    """The user or this machine has to change something."""


class PeerError(Error):
    """A node has failed or lied."""


class NetworkError(Error, ConnectionError):
    """A connection failed."""


class StoreError(Error):
    """A file, a key or a matrix cannot be used."""


class OutOfMemory(LocalError, MemoryError):
    """There is not enough memory."""


class InvalidArgument(LocalError, ValueError):
    """An argument or option is wrong."""


class OutOfRange(LocalError, ValueError):
    """A value is NaN, infinite, or beyond what can be computed exactly."""


class InternalError(LocalError):
    """A defect of sherd: please report it."""


class Interrupted(LocalError):
    """The call was cancelled (Future.cancel, or an exception of a callback)."""


class Timeout(LocalError, TimeoutError):
    """The time limit expired."""


class TooFewNodes(LocalError):
    """Too few nodes or domains are up, or they have too little memory."""


class ExposureForbidden(LocalError):
    """A bound on exposures, or the reuse rule of metadata, forbids the product."""


class Differs(LocalError, ArithmeticError):
    """A result differs from the one that this machine computes, or from the certified one."""


class Unsupported(LocalError, NotImplementedError):
    """These options cannot be combined, or the scheme cannot do this."""


class Busy(LocalError):
    """Another process or call uses the object: try again later."""


class Stopped(LocalError):
    """A training was stopped after a checkpoint, from which it can be resumed."""


class MalformedRecord(PeerError):
    """A node sent a malformed record."""


class AuthenticationFailed(PeerError, PermissionError):
    """A node has another key, or a signature does not match."""


class WrongResult(PeerError, ArithmeticError):
    """A node returned a wrong result, and `strict` was set."""


class Refused(PeerError):
    """A node refused the work."""


class VersionMismatch(PeerError):
    """A node or a file has another version."""


class Unasked(PeerError):
    """A node sent something that was not asked for."""


class Silent(PeerError, TimeoutError):
    """A node was silent for too long."""


class ConnectionLost(NetworkError):
    """A connection was closed."""


class CannotConnect(NetworkError):
    """A node cannot be reached."""


class AddressInUse(NetworkError):
    """A port is in use."""


class NetworkFailed(NetworkError):
    """The network failed otherwise."""


class DeviceError(Error):
    """A device failed, or failed its self-test."""


class CannotOpen(StoreError, OSError):
    """A file cannot be opened."""


class CannotReadOrWrite(StoreError, OSError):
    """A file cannot be read or written, or changed meanwhile."""


class Malformed(StoreError, ValueError):
    """A file or its content is malformed."""


class WrongShape(StoreError, ValueError):
    """Shapes do not agree."""


class BadKey(StoreError, ValueError):
    """A key is malformed, or other users can read it."""


class ChainBroken(StoreError):
    """The chain of checkpoints is broken."""


class ClosedError(InvalidArgument):
    """The cluster is closed, or belongs to the process that this one was forked from."""


_CLASSES: dict[str, type[Error]] = {
    "ENOMEM": OutOfMemory,
    "EINVAL": InvalidArgument,
    "ERANGE": OutOfRange,
    "EINTERNAL": InternalError,
    "EINTERRUPTED": Interrupted,
    "ETIMEOUT": Timeout,
    "EFEWNODES": TooFewNodes,
    "EEXPOSURE": ExposureForbidden,
    "EDIFFERS": Differs,
    "EUNSUPPORTED": Unsupported,
    "EBUSY": Busy,
    "ESTOPPED": Stopped,
    "EFRAME": MalformedRecord,
    "EAUTH": AuthenticationFailed,
    "EWRONG": WrongResult,
    "EREFUSED": Refused,
    "EVERSION": VersionMismatch,
    "EUNASKED": Unasked,
    "ESILENT": Silent,
    "ECLOSED": ConnectionLost,
    "ECONNECT": CannotConnect,
    "EADDRINUSE": AddressInUse,
    "ENET": NetworkFailed,
    "EDEVICE": DeviceError,
    "EOPEN": CannotOpen,
    "EIO": CannotReadOrWrite,
    "EFORMAT": Malformed,
    "ESHAPE": WrongShape,
    "EKEY": BadKey,
    "ECHAIN": ChainBroken,
}

for _code, (_name, _exit, _) in ERRORS.items():
    _CLASSES[_name].code, _CLASSES[_name].name, _CLASSES[_name].exit_code = _code, _name, _exit


# Options of the command in messages of the library, by their names here.
_NAMES = {
    "async": "asynchronous",
    "checkpoint": "checkpoints",
    "meta": "metadata",
    "nodes": "nodes",
}
_SAME = """
    aggregate allow_drop balanced batch bits bits_b by certificate check checkpoint_every
    checkpoint_keep clip coalitions code colluding data delta draw encoding encodings epochs
    examples exposure_max group key labels local_batch local_steps masks memory node_memory
    noise operation public_data public_labels rate record resume right rows same_host_domains
    scheme seed shards shuffle_rows signer simulate spare staleness_max strict survivors threads
    timeout
"""
_NAMES.update((name.replace("_", "-"), name) for name in _SAME.split())
_WORDS = "permute|plain|share1?|blind|ring|secure|halving-doubling|gradients|products"
_OPTION = re.compile(rf"--([a-z][a-z-]*)(?:[ =](\d[\w.]*|{_WORDS})\b)?")


def in_python(text: str) -> str:
    """Returns a message with the options of the command as the arguments that they are here."""

    def argument(found: re.Match[str]) -> str:
        option, value = found.groups()
        if option not in _NAMES:
            return found.group()
        if value is None:
            return _NAMES[option]
        return f"{_NAMES[option]}={value}" if value[0].isdigit() else f'{_NAMES[option]}="{value}"'

    text = text.replace("--mode exact", "exact=True").replace("--reuse-metadata", "reuse=True")
    return re.sub(r"(?<!\w)(?<!cluster up )-n (\d+|N)\b", r"nodes=\1", _OPTION.sub(argument, text))


def error_of(code: int, diag: Any = None) -> Error:
    """Makes the exception for an error code, with the message of a sherd_diag if there is one."""
    name, _, text = ERRORS.get(code, ("EINTERNAL", 1, "unknown error"))
    if diag is None:
        return _CLASSES[name](text)
    return _CLASSES[name](in_python(text_of(diag.message)) or text, in_python(text_of(diag.hint)))


def call(name: str, *arguments: Any) -> None:
    """Calls a function of the library whose last parameter is a sherd_diag; raises its error."""
    diag = ffi.new("sherd_diag *")
    code = getattr(lib, name)(*arguments, diag)
    if code:
        raise error_of(code, diag)
