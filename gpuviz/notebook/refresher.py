"""Periodic calls on a thread, with bounded cost."""

import contextvars
import threading
import time
import weakref
from collections.abc import Callable
from types import MethodType

INTERVAL_S = 0.5
# What is called may take this share of the time.
MOST_OF_TIME = 0.01


class Refresher:
    """Calls a method at most twice a second, and less often where it takes long.

    What has changed is asked for each time, and must cost nothing; then the call is not put off.

    It keeps the method's object from going away no longer than a call takes, and ends with it. A
    method that raises is not called again until the next `start`.

    Args:
        refresh: The method; returns whether to go on.
        has_changed: A method of the same object: whether to call at once.
        interval_s: Seconds between two calls.
    """

    def __init__(
        self,
        refresh: Callable[[], bool],
        has_changed: Callable[[], bool],
        *,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._refresh = _weak(refresh)
        self._has_changed = _weak(has_changed)
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether it calls."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Call from now on; does nothing if it does already."""
        if self.is_running:
            return
        self._stop = threading.Event()
        # What a widget sends belongs to the cell of the context; ipykernel 7 asks for one.
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run,
            args=(_run, self._refresh, self._has_changed, self._stop, self._interval_s),
            name="gpuviz-dashboard",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """Call no more; returns when a call that goes on has ended, unless it calls this."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None


def _weak(method: Callable[[], bool]) -> "weakref.WeakMethod[Callable[[], bool]]":
    if not isinstance(method, MethodType):
        raise TypeError(f"expected a bound method, got {method!r}")
    return weakref.WeakMethod(method)


def _run(
    refresh: "weakref.WeakMethod[Callable[[], bool]]",
    has_changed: "weakref.WeakMethod[Callable[[], bool]]",
    stop: threading.Event,
    interval_s: float,
) -> None:
    due = 0.0
    while not stop.wait(interval_s):
        call, ask = refresh(), has_changed()
        if call is None or ask is None:
            return
        if time.monotonic() < due and not ask():
            del call, ask
            continue
        began = time.thread_time()
        if not call():
            return
        del call, ask
        due = time.monotonic() + (time.thread_time() - began) / MOST_OF_TIME
