"""The thread that changes the state of a recording."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, NoReturn, TypeVar

Result = TypeVar("Result")

# How often a waiting caller checks that the thread is alive.
ALIVE_S = 1.0


class Worker:
    """Runs calls one after the other on a daemon thread, and another one between them regularly.

    Python runs signal handlers on the main thread, between any two steps. A Ctrl-C can therefore
    interrupt a caller that waits for its call, but not the call, which still completes.

    Args:
        name: The name of the thread.
        regular: What to call regularly; an exception does not end that.
        pause_s: Returns the pause before the next regular call, in seconds.
    """

    def __init__(
        self, name: str, regular: Callable[[], object], pause_s: Callable[[], float]
    ) -> None:
        self._regular = regular
        self._pause_s = pause_s
        self._calls: SimpleQueue[_Call[Any]] = SimpleQueue()
        self._is_over = False
        self._due_s = float("inf")
        # ipykernel 7.0 needs the context of a cell to send a message.
        self._thread: threading.Thread | None = threading.Thread(
            target=copy_context().run, args=(self._run,), name=name, daemon=True
        )

    def start(self) -> None:
        """Start the thread; before, calls run on the caller's thread."""
        if self._thread is not None:
            self._thread.start()

    def submit(self, function: Callable[[], Result]) -> Callable[[], Result]:
        """Run a function on the thread, in the caller's context; return what waits for its result.

        On the thread itself, and without it, the function runs when its result is waited for.
        """
        thread = self._thread
        if thread is None or thread is threading.current_thread() or not thread.is_alive():
            return function
        call = _Call(function)
        self._calls.put(call)
        return lambda: call.result(thread)

    def wake(self) -> None:
        """Ask again how long the pause is."""
        self._calls.put(_Call(lambda: None))

    def end(self) -> None:
        """End the thread after the calls that wait; to be called on it."""
        self._is_over = True

    def join(self) -> None:
        """Wait for the end of the thread, unless called on it."""
        thread = self._thread
        if thread is not None and thread.is_alive() and thread is not threading.current_thread():
            thread.join()

    def abandon_after_fork(self) -> None:
        """Run calls on the caller's thread, in the child of a fork, which lacks this one."""
        self._thread = None

    def _run(self) -> None:
        try:
            while not self._is_over:
                # A fault of one turn, such as a lack of memory, must not end the thread.
                with suppress(BaseException):
                    self._turn()
        finally:
            self._is_over = True
            while self._next(0):
                pass

    def _turn(self) -> None:
        """Run the next call, or what is regular when it is due."""
        self._due_s = min(self._due_s, time.monotonic() + self._pause_s())
        if not self._next(self._due_s - time.monotonic()):
            self._due_s = float("inf")
            _Call(self._regular).run()

    def _next(self, timeout_s: float) -> bool:
        try:
            self._calls.get(timeout=max(timeout_s, 0)).run()
        except Empty:
            return False
        return True


class _Call(Generic[Result]):
    def __init__(self, function: Callable[[], Result]) -> None:
        self._function = function
        self._context = copy_context()
        self._outcomes: SimpleQueue[Callable[[], Result]] = SimpleQueue()

    def run(self) -> None:
        try:
            result = self._context.run(self._function)
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            self._outcomes.put(partial(_raise, error))
        else:
            self._outcomes.put(lambda: result)

    def result(self, thread: threading.Thread) -> Result:
        """Wait for the outcome; if the thread has ended without one, run the function here."""
        while True:
            with suppress(Empty):
                return self._outcomes.get(timeout=ALIVE_S)()
            if not thread.is_alive() and self._outcomes.empty():
                return self._function()


def _raise(error: BaseException) -> NoReturn:
    raise error
