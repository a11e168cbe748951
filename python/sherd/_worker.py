"""
The thread of a cluster. Calls of the library for one cluster run on it, one at a time, while the
callers wait: so a signal (Ctrl-C) reaches Python at once, and the library is asked to end the call.

A call that takes less time than waking two threads (a small product of a kept operand) runs on the
thread of its caller if no other call runs. A signal then reaches Python in the hooks of the
library, which it calls ten times a second.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import queue
import threading
from collections.abc import Generator
from types import TracebackType
from typing import Any, Callable, Generic, Optional, TypeVar, Union

from ._errors import ClosedError, Error, Interrupted, in_python
from ._library import callback, ffi, lib, text_of, wrong_type
from ._records import Progress

_T = TypeVar("_T")
ProgressOption = Union[bool, Callable[[Progress], object], None]

_log = logging.getLogger("sherd")
_LEVELS = {
    lib.SHERD_LOG_DEBUG: logging.DEBUG,
    lib.SHERD_LOG_INFO: logging.INFO,
    lib.SHERD_LOG_WARN: logging.WARNING,
}


class _Running:
    """What the hooks know of the call that runs."""

    _asked = False
    _failure: Optional[BaseException] = None
    _progress: Optional[Callable[[Progress], object]] = None

    def _fail(self, failure: BaseException) -> None:
        """Ends the call with the exception of a callback."""
        self._failure = self._failure or failure
        self._asked = True


class Future(concurrent.futures.Future, _Running, Generic[_T]):  # type: ignore[type-arg]
    """The result of `submit`: a concurrent.futures.Future that can be awaited, too.

    cancel() also asks a call that runs to end; its result is then a CancelledError.
    """

    def __await__(self) -> Generator[Any, None, _T]:
        return asyncio.wrap_future(self).__await__()

    def cancel(self) -> bool:
        """Cancels the call, or asks it to end if it runs. Returns False if it is done."""
        if super().cancel():
            return True
        self._asked = True
        return not self.done()


# The library calls these on the thread of the call. ctx is a weak handle of the worker's state.
def _failed(kind: type[BaseException], failure: BaseException, trace: TracebackType) -> None:
    """Takes an exception of a hook, such as the KeyboardInterrupt of a signal that came in it."""
    state: _Thread = ffi.from_handle(trace.tb_frame.f_locals["ctx"])
    state.running._fail(failure)


@callback("bool(void *)", error=True, onerror=_failed)
def _interrupted(ctx: Any) -> bool:
    state: _Thread = ffi.from_handle(ctx)
    return state.running._asked


def _log_message(ctx: Any, level: int, text: Any) -> None:
    _log.log(_LEVELS.get(level, logging.INFO), "%s", in_python(text_of(text)))


_MESSAGE = "void(void *, sherd_log_level, const char *)"
_message = callback(_MESSAGE, onerror=_failed)(_log_message)
log_of_nodes = callback(_MESSAGE)(_log_message)  # on threads of nodes, without a worker


@callback("void(void *, const sherd_progress *)", onerror=_failed)
def _progress(ctx: Any, p: Any) -> None:
    state: _Thread = ffi.from_handle(ctx)
    show = state.running._progress
    if show is not None:
        show(Progress(p.done, p.total, p.bytes_out, p.bytes_in, p.nodes_up, p.seconds))


def _bar(description: str) -> Optional[Callable[[Progress], object]]:
    """Returns a progress bar of tqdm; None if tqdm is not installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    bar = tqdm(desc=description, leave=False)

    def show(p: Progress) -> None:
        bar.total = p.total or None
        bar.n = p.done
        bar.refresh()
        if p.total and p.done >= p.total:
            bar.close()

    return show


def progress_option(progress: ProgressOption) -> ProgressOption:
    """Returns the argument `progress` if it is one."""
    if progress is None or isinstance(progress, bool) or callable(progress):
        return progress
    raise wrong_type("progress", progress, "True, False or a function")


def _reporter(progress: ProgressOption, description: str) -> Optional[Callable[[Progress], object]]:
    progress = progress_option(progress)
    if callable(progress):
        return progress
    return _bar(description) if progress else None


_IDLE = _Running()  # when no call runs


class _Thread:
    """The state of the thread. It does not refer to the Worker, whose end is that of the thread."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.gate = threading.RLock()  # held while a call is queued, or the end
        self.ended = False  # nothing that is queued now would run
        self.lock = threading.Lock()  # held by the thread that calls the library
        self.inside: set[int] = set()  # that thread, and those that wait for the lock
        self.running = _IDLE
        self.handle = ffi.new_handle(self)

    def serve(self) -> None:
        while True:
            job = self.jobs.get()
            if job is None:
                return
            future, function = job
            if future is None:
                self.call(_Running(), function)
            elif future.set_running_or_notify_cancel():
                self.run(future, function)
            job = future = function = None  # a waiting thread refers to no result

    def run(self, future: Future[Any], function: Callable[[], Any]) -> None:
        try:
            value = self.call(future, function)
        except BaseException as e:
            future.set_exception(e)
            del future  # the traceback refers to this frame
        else:
            future.set_result(value)

    def call(self, running: _Running, function: Callable[[], _T]) -> _T:
        """Calls a function when no other call runs; the hooks are those of `running`."""
        me = threading.get_ident()
        try:
            self.inside.add(me)
            with self.lock:
                self.running = running
                try:
                    value = function()
                finally:
                    self.running = _IDLE  # refers to no result
        except Interrupted:
            if not running._asked:
                raise
            failure = running._failure or concurrent.futures.CancelledError()
        except BaseException as e:
            failure = running._failure or e
        else:
            if running._failure is None:
                return value
            failure = running._failure
        finally:
            self.inside.discard(me)
        try:
            raise failure
        finally:
            running._failure = None
            del failure, running  # the traceback refers to this frame


class Worker:
    """A thread that runs calls of the library one after another."""

    def __init__(self, name: str) -> None:
        self._state = _Thread()
        self._owner = os.getpid()
        self._name = name
        thread = threading.Thread(target=self._state.serve, name=f"sherd {name}", daemon=True)
        thread.start()
        self._thread = thread

    @property
    def foreign(self) -> bool:
        """True in a process that was forked after the worker was made: its thread is not there."""
        return self._owner != os.getpid()

    def check(self) -> None:
        """Raises an error if this process is not the worker's."""
        if self._owner != os.getpid():
            raise ClosedError(
                f"the {self._name} belongs to process {self._owner}, from which this process was "
                "forked",
                'open another one in this process, or start processes with the method "spawn"',
            )

    def check_outside(self) -> None:
        """Raises an error in a call of this thread, for whose end the caller would wait forever."""
        if self._state.lock.locked() and threading.get_ident() in self._state.inside:
            raise ClosedError(
                f"a callback of a call of the {self._name}, or the handler of a signal that came "
                "during one, called it",
                "call it when that call is done",
            )

    def hooks(self, to: Any) -> None:
        """Fills a sherd_hooks."""
        to.interrupted, to.log, to.progress, to.ctx = (
            _interrupted,
            _message,
            _progress,
            self._state.handle,
        )

    def post(self, function: Callable[[], object]) -> None:
        """Runs a function on the thread, later. It must not raise."""
        self._state.jobs.put((None, function))

    def submit(
        self, function: Callable[[], _T], progress: ProgressOption = None, what: str = ""
    ) -> Future[_T]:
        """Queues a function, which calls the library with `hooks`."""
        self.check()
        future: Future[_T] = Future()
        if progress is not None:
            future._progress = _reporter(progress, what)
        with self._state.gate:
            if self._state.ended:
                raise unused()
            self._state.jobs.put((future, function))
        return future

    def run(
        self,
        function: Callable[[], _T],
        progress: ProgressOption = None,
        what: str = "",
        here: bool = False,
    ) -> _T:
        """Runs a function on the thread and waits. An interrupt first ends the call.

        here: run it on this thread if no other call runs and no progress is shown. The caller has
            called `check`.
        """
        state = self._state
        if state.lock.locked():
            self.check_outside()
        elif here and (progress is None or progress is False):
            return state.call(_Running(), function)
        future: Optional[Future[_T]] = None
        try:
            future = self.submit(function, progress, what)
            value: _T = future.result()
            return value
        except BaseException:
            if future is not None and not future.done():
                future.cancel()
                while not future.done():
                    try:
                        concurrent.futures.wait([future])
                    except KeyboardInterrupt:
                        continue
            raise

    def stop(self) -> None:
        """Ends the thread after the calls that are queued."""
        if self.foreign:
            return
        with self._state.gate:
            self._state.ended = True
            self._state.jobs.put(None)

    def join(self) -> None:
        """Waits until the thread has ended."""
        if not self.foreign and threading.current_thread() is not self._thread:
            self._thread.join()


def run_alone(name: str, function: Callable[[Worker], _T], progress: ProgressOption = None) -> _T:
    """Runs a call that needs no cluster on a thread of its own, so that it can be interrupted."""
    worker = Worker(name)
    try:
        return worker.run(lambda: function(worker), progress, name)
    finally:
        worker.stop()


def unused() -> Error:
    """Returns the error for an object whose cluster was closed."""
    return ClosedError("the cluster is closed", "open a new one with sherd.Cluster")
