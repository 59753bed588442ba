"""Periodic calls of a method on a thread, with early wake-up."""

import threading
import weakref
from collections.abc import Callable
from functools import partial
from types import MethodType

from gpuviz.notebook.background import start_thread

INTERVAL_S = 0.5


class Refresher:
    """Calls a method twice a second, and immediately after `wake`.

    It refers to the method's object weakly except during a call, and ends when the object is
    deleted. After an exception the method is not called again until the next `start`.

    Args:
        refresh: The bound method; returns whether to continue.
        interval_s: Longest time between two calls, in seconds.
    """

    def __init__(self, refresh: Callable[[], bool], *, interval_s: float = INTERVAL_S) -> None:
        if not isinstance(refresh, MethodType):
            raise TypeError(f"expected a bound method, got {refresh!r}")
        self._refresh: weakref.WeakMethod[Callable[[], bool]] = weakref.WeakMethod(refresh)
        self._interval_s = interval_s
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether the thread is running."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Start the thread, unless it is running."""
        if self.is_running:
            return
        self._stopping = threading.Event()
        self._thread = start_thread(
            "gpuviz-dashboard",
            partial(_run, self._refresh, self._woken, self._stopping, self._interval_s),
            partial(_ask_to_end, self._woken, self._stopping),
        )

    def wake(self) -> None:
        """Request a call as soon as possible, on the thread; does not block."""
        self._woken.set()

    def stop(self) -> None:
        """Stop the thread, and wait for a call in progress unless it is the caller."""
        _ask_to_end(self._woken, self._stopping)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None


def _ask_to_end(woken: threading.Event, stopping: threading.Event) -> None:
    stopping.set()
    woken.set()


def _run(
    refresh: weakref.WeakMethod[Callable[[], bool]],
    woken: threading.Event,
    stopping: threading.Event,
    interval_s: float,
) -> None:
    while True:
        woken.wait(interval_s)
        woken.clear()
        call = refresh()
        if call is None or stopping.is_set() or not call():
            return
        del call
