"""Recording of streams in windows, so that it costs at most a share of the program's time."""

import re
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpuviz.quantities import format_counted, format_duration
from gpuviz.recorder.tracer import PausingTracer

if TYPE_CHECKING:
    from gpuviz import _core

# The shortest window: iterations of most programs are shorter.
WINDOW_NS = 1_000_000_000

_SHARE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*%\s*")
_PERCENT = 100


def share_of(budget: str) -> float:
    """Return the share that a text such as ``2%`` means.

    Raises:
        ValueError: It is no percentage above 0 and below 100.
    """
    found = _SHARE.fullmatch(budget) if isinstance(budget, str) else None
    share = float(found[1]) / _PERCENT if found else 0.0
    if not 0 < share < 1:
        raise ValueError(
            f"budget must be a percentage above 0 and below 100, such as '2%', got {budget!r}"
        )
    return share


class Windows:
    """Decides when streams are recorded. All times are ns since the start of the recording.

    A window lasts at least `WINDOW_NS`. It ends once it has cost more than its share of the time,
    and the next one begins when one that costs as much is affordable. What costs little is recorded
    all the time.

    Args:
        share: The share of the time that recording may cost.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._began_ns: int | None = 0
        self._window_ns = 0
        self._cost_ns = 0

    def is_due(self, now_ns: int, cost_ns: int) -> bool:
        """Return whether the window is to end, or the next one is to begin.

        Args:
            now_ns: The time.
            cost_ns: What recording has cost up to now.
        """
        if self._began_ns is None:
            again_ns = cost_ns + self._cost_ns
            return again_ns <= self._share * (now_ns + max(self._window_ns, WINDOW_NS))
        if now_ns - self._began_ns < WINDOW_NS:
            return False
        return cost_ns > self._share * now_ns

    def begin(self, now_ns: int, cost_ns: int) -> None:
        """Take that a window has begun, and what everything before has cost."""
        self._began_ns, self._cost_ns = now_ns, cost_ns

    def end(self, now_ns: int, cost_ns: int) -> None:
        """Take that the window has ended, and what everything has cost."""
        self._window_ns = now_ns - (self._began_ns or 0)
        self._cost_ns = cost_ns - self._cost_ns
        self._began_ns = None


class BudgetTracing:
    """A tracer that records in windows; see `gpuviz.recorder.tracer.Tracer`.

    Args:
        tracer: What records.
        share: The share of the program's time that it may cost.
    """

    def __init__(self, tracer: PausingTracer, share: float) -> None:
        self._tracer = tracer
        self._share = share
        self._windows = Windows(share)
        self._spans: list[tuple[int, int]] = []
        self._is_paused = False
        self._is_over = False
        # Held while a window ends or begins, which takes up to a second.
        self._changing = threading.Lock()

    def begin(self, session: "_core.Session") -> None:
        """Start recording, if possible."""
        self._tracer.begin(session)
        self._windows.begin(0, 0)

    def end(self) -> None:
        """Stop recording, after everything that was recorded and that the GPU has completed."""
        with self._changing:
            self._is_over = True
            self._tracer.end()

    def flush(self) -> None:
        """Send completed activities to the session now."""
        if not self._changing.acquire(blocking=False):
            return
        try:
            if not self._is_paused:
                self._tracer.flush()
        finally:
            self._changing.release()

    def tend(self, now_ns: int) -> None:
        """End or begin a window if that is due."""
        with self._changing:
            if not self._is_over and self._tracer.is_active:
                self._change_if_due(now_ns)

    def _change_if_due(self, now_ns: int) -> None:
        cost_ns = self._tracer.cost_ns
        if not self._windows.is_due(now_ns, cost_ns):
            return
        if self._is_paused:
            began_ns = self._tracer.resume()
            if began_ns is None:
                return  # another tool has CUPTI now
            self._spans[-1] = (self._spans[-1][0], began_ns)
            # That it began is a part of what it costs.
            self._windows.begin(now_ns, cost_ns)
        else:
            ended_ns = self._tracer.pause()
            self._spans.append((ended_ns, -1))
            self._windows.end(ended_ns, self._tracer.cost_ns)
        self._is_paused = not self._is_paused

    @property
    def unrecorded_spans(self) -> tuple[tuple[int, int], ...]:
        """When nothing was recorded, in ns since the start; -1 as the end of a span that lasts."""
        return tuple(self._spans)

    @property
    def is_active(self) -> bool:
        """Whether activities are, or were, recorded."""
        return self._tracer.is_active

    @property
    def costs(self) -> Mapping[str, tuple[int, int]]:
        """What recording costs a call."""
        return self._tracer.costs

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages for the user, in sentences."""
        return self._tracer.notes

    def span_notes(self, duration_ns: int) -> tuple[str, ...]:
        """Return a sentence on the time in which nothing was recorded; none without such time."""
        if not self._spans:
            return ()
        off_ns = sum((duration_ns if end < 0 else end) - begin for begin, end in self._spans)
        windows = len(self._spans) + (self._spans[-1][1] >= 0)
        recorded = format_duration(duration_ns - off_ns)
        sentence = (
            f"To cost at most {_PERCENT * self._share:g} % of the time, streams were recorded in "
            f"{format_counted(windows, 'window')}, together {recorded} of "
            f"{format_duration(duration_ns)}. What the GPU did in between is unknown; memory is "
            "complete."
        )
        return (sentence,)

    def abandon(self) -> None:
        """Deactivate in the child of a fork, without waiting."""
        self._is_over = True
        self._tracer.abandon()
