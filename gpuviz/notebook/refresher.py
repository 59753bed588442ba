"""Periodic calls on a thread, also whenever it is woken."""

import contextvars
import threading
import weakref
from collections.abc import Callable
from types import MethodType

INTERVAL_S = 0.5


class Refresher:
    """Calls a method twice a second, and at once when it is woken.

    It keeps the method's object from going away no longer than a call takes, and ends with it. A
    method that raises is not called again until the next `start`.

    Args:
        refresh: The method; returns whether to go on.
        interval_s: Seconds between two calls if nothing wakes it.
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
        """Whether it calls."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Call from now on; does nothing if it does already."""
        if self.is_running:
            return
        self._stopping = threading.Event()
        # What a widget sends belongs to the cell of the context; ipykernel 7 asks for one.
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run,
            args=(_run, self._refresh, self._woken, self._stopping, self._interval_s),
            name="gpuviz-dashboard",
            daemon=True,
        )
        self._thread.start()

    def wake(self) -> None:
        """Call as soon as possible, on the same thread; returns at once."""
        self._woken.set()

    def stop(self) -> None:
        """Call no more; returns when a call that goes on has ended, unless it calls this."""
        self._stopping.set()
        self._woken.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None


def _run(
    refresh: "weakref.WeakMethod[Callable[[], bool]]",
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
