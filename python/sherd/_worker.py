"""
The thread of a cluster. All calls of the library for one cluster run on it, one at a time, while
the callers wait: so a signal (Ctrl-C) reaches Python at once, and the library is asked to end the
call.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import queue
import threading
from collections.abc import Generator
from typing import Any, Callable, Generic, Optional, TypeVar, Union

from ._errors import ClosedError, Error, Interrupted, in_python
from ._library import callback, ffi, lib, text_of
from ._records import Progress

_T = TypeVar("_T")
ProgressOption = Union[bool, Callable[[Progress], object], None]

_log = logging.getLogger("sherd")
_LEVELS = {
    lib.SHERD_LOG_DEBUG: logging.DEBUG,
    lib.SHERD_LOG_INFO: logging.INFO,
    lib.SHERD_LOG_WARN: logging.WARNING,
}


class Future(concurrent.futures.Future, Generic[_T]):  # type: ignore[type-arg]
    """The result of `submit`: a concurrent.futures.Future that can be awaited, too.

    cancel() also asks a call that runs to end; its result is then a CancelledError.
    """

    def __init__(self) -> None:
        super().__init__()
        self._asked = False
        self._failure: Optional[BaseException] = None
        self._progress: Optional[Callable[[Progress], object]] = None

    def __await__(self) -> Generator[Any, None, _T]:
        return asyncio.wrap_future(self).__await__()

    def cancel(self) -> bool:
        """Cancels the call, or asks it to end if it runs. Returns False if it is done."""
        if super().cancel():
            return True
        self._asked = True
        return not self.done()

    def _fail(self, failure: BaseException) -> None:
        """Ends the call with the exception of a callback."""
        self._failure = self._failure or failure
        self._asked = True


# The library calls these on the worker's thread. ctx is a weak handle of the worker.
@callback("bool(void *)", error=True)
def _interrupted(ctx: Any) -> bool:
    running: Future[Any] = ffi.from_handle(ctx)._running
    return running._asked


@callback("void(void *, sherd_log_level, const char *)")
def _message(ctx: Any, level: int, text: Any) -> None:
    _log.log(_LEVELS.get(level, logging.INFO), "%s", in_python(text_of(text)))


log_of_nodes = _message  # nodes call it on threads of their own, without a worker


@callback("void(void *, const sherd_progress *)")
def _progress(ctx: Any, p: Any) -> None:
    running: Future[Any] = ffi.from_handle(ctx)._running
    if running._progress is None:
        return
    try:
        running._progress(Progress(p.done, p.total, p.bytes_out, p.bytes_in, p.nodes_up, p.seconds))
    except BaseException as e:
        running._fail(e)


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


def _reporter(progress: ProgressOption, description: str) -> Optional[Callable[[Progress], object]]:
    if callable(progress):
        return progress
    return _bar(description) if progress else None


class _Idle:
    """What runs when no call does."""

    _asked = False
    _progress = None


class _Thread:
    """The state of the thread. It does not refer to the Worker, whose end is that of the thread."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._running: Any = _Idle
        self.handle = ffi.new_handle(self)

    def serve(self) -> None:
        while True:
            job = self.jobs.get()
            if job is None:
                return
            future, function = job
            if future is None:
                function()
            elif future.set_running_or_notify_cancel():
                self.run(future, function)
            job = future = function = None  # a waiting thread refers to no result

    def run(self, future: Future[Any], function: Callable[[], Any]) -> None:
        self._running = future
        try:
            value = function()
        except BaseException as e:
            self._running = _Idle
            failure = e
            if future._failure is not None:
                failure = future._failure
            elif isinstance(e, Interrupted) and future._asked:
                failure = concurrent.futures.CancelledError()
            future.set_exception(failure)
            del failure, future  # the traceback refers to this frame
        else:
            self._running = _Idle
            future.set_result(value)


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
        if self.foreign:
            raise ClosedError(
                f"the {self._name} belongs to process {self._owner}, from which this process was "
                "forked",
                'open another one in this process, or start processes with the method "spawn"',
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
        if progress:
            future._progress = _reporter(progress, what)
        self._state.jobs.put((future, function))
        return future

    def run(
        self, function: Callable[[], _T], progress: ProgressOption = None, what: str = ""
    ) -> _T:
        """Runs a function on the thread and waits. An interrupt first ends the call."""
        if threading.current_thread() is self._thread:
            raise ClosedError(
                f"a callback of a call of the {self._name} called it",
                "call it when that call is done",
            )
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
        if not self.foreign:
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
