"""Objects of the library that Python owns."""

from __future__ import annotations

import threading
import weakref
from typing import Any, Callable, NoReturn, TypeVar

from ._library import ffi
from ._worker import ProgressOption, Worker, run_alone

_T = TypeVar("_T")


class Handle:
    """An object of the library that is freed with this object. One thread at a time uses it."""

    def __init__(self, pointer: Any, free: Callable[[Any], object]) -> None:
        self._pointer = pointer
        self._lock = threading.RLock()
        self._finish = weakref.finalize(self, free, pointer)
        self._finish.atexit = False

    def _run(
        self, what: str, function: Callable[[Worker], _T], progress: ProgressOption = None
    ) -> _T:
        """Runs a call that takes time, so that it can be interrupted."""
        with self._lock:
            return run_alone(what, function, progress)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be pickled: save it, and load the file")


def made(kind: str) -> Any:
    """Returns memory for the pointer that a call of the library returns."""
    return ffi.new(f"{kind} **")
