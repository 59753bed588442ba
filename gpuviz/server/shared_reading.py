"""One slow reading, shared by concurrent requests."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

KEPT_S = 1.0

T = TypeVar("T")


class SharedReading(Generic[T]):
    """Reads on a separate thread, one reading at a time, and at most once in `KEPT_S` seconds.

    To be used from one event loop. A reading that never ends blocks only its own requests, and not
    the exit of the process.
    """

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._latest: Future[T] | None = None
        self._until = 0.0

    async def latest(self) -> T:
        """Return a result at most `KEPT_S` seconds old, or raise the exception of the reading."""
        latest = self._latest
        if latest is None or (latest.done() and time.monotonic() >= self._until):
            latest = self._latest = Future()
            # A cancelled request must not cancel the reading that others share.
            latest.set_running_or_notify_cancel()
            threading.Thread(
                target=self._run, args=(latest,), name="gpuviz-devices", daemon=True
            ).start()
        return await asyncio.wrap_future(latest)

    def _run(self, reading: Future[T]) -> None:
        try:
            value = self._read()
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            self._until = time.monotonic() + KEPT_S
            reading.set_exception(error)
        else:
            self._until = time.monotonic() + KEPT_S
            reading.set_result(value)
