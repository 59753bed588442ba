"""Repeated samples that take a bounded share of the time."""

import time
from collections.abc import Callable
from contextlib import suppress

from gpuviz.quantities import format_counted, format_duration

# What samples may take of a processor, and in all. They may wait for others to give up the GIL, and
# for locks, but somebody may also wait for them meanwhile.
_MOST_OF_TIME = 0.01
_MOST_IN_ALL = 0.1


class Samples:
    """Takes samples, in at most a hundredth of a processor's time and a tenth of the elapsed time.

    Args:
        take: Takes a sample. An exception is ignored, and the sample not counted.
    """

    def __init__(self, take: Callable[[], object]) -> None:
        self._take = take
        self._count = 0
        self._took_s = 0.0
        self._due_s = 0.0

    def take(self, *, is_due: bool = False) -> None:
        """Take a sample, unless it is not due and would take more than its share of the time."""
        if not is_due and time.monotonic() < self._due_s:
            return
        began, worked = time.perf_counter(), time.thread_time()
        with suppress(Exception):
            self._take()
            self._count += 1
        took_s = time.perf_counter() - began
        worked_s = time.thread_time() - worked
        self._took_s += worked_s
        pause_s = max(worked_s / _MOST_OF_TIME, took_s / _MOST_IN_ALL)
        self._due_s = time.monotonic() + pause_s

    @property
    def cost(self) -> str:
        """How many there were, and their time on a processor, as a sentence."""
        samples = format_counted(self._count, "sample")
        return f"{samples} took {format_duration(round(1e9 * self._took_s))}."
