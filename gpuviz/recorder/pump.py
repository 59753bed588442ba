"""The thread that moves recorded columns of a session into a store."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from gpuviz.data.tables import Tables
from gpuviz.recorder.device_links import device_links
from gpuviz.recorder.feed import Feed
from gpuviz.recorder.live_statistics import LiveStatistics
from gpuviz.recorder.source import Source
from gpuviz.recorder.transfer import Transfer
from gpuviz.recorder.worker import Worker

if TYPE_CHECKING:
    from gpuviz import _core
    from gpuviz.recorder.store import Store

Result = TypeVar("Result")

# A killed process loses the events since the last drain: those of half a second, and early in a
# recording those of half its time, or of its last 100 ms. docs/reference/files.md says so.
INTERVAL_S = 0.5
FIRST_INTERVAL_S = 0.1
# While a view is visible; longer if the additional drains take more than this share of the time.
WATCHED_INTERVAL_S = 0.1
MOST_OF_TIME = 0.008
# After how long a thread that waits for the GIL gets it from a drain; by default, after 5 ms.
SWITCH_INTERVAL_S = 0.0001


class Pace:
    """Chooses the pause between drains so that the additional ones take at most `MOST_OF_TIME`.

    One drain in each longest pause would happen anyway.

    Args:
        shortest_s: The shortest pause, in seconds.
        longest_s: The longest pause.
    """

    def __init__(self, shortest_s: float, longest_s: float) -> None:
        self._shortest_s = shortest_s
        self._longest_s = longest_s
        self._mean_s = 0.0
        self._last_s = 0.0

    def took(self, seconds: float) -> None:
        """Add the duration of a drain; single outliers are ignored."""
        self._mean_s += (min(seconds, self._last_s) - self._mean_s) / 4
        self._last_s = seconds

    @property
    def interval_s(self) -> float:
        """The pause before the next drain, in seconds."""
        if self._mean_s <= 0:
            return self._shortest_s
        drains_per_s = MOST_OF_TIME / self._mean_s + 1 / self._longest_s
        return max(1 / drains_per_s, self._shortest_s)


def pause_s(elapsed_s: float, usual_s: float) -> float:
    """Return the pause before the next drain, in seconds: at first as long as the recording is.

    Args:
        elapsed_s: Time since the start of the recording.
        usual_s: The pause later on.
    """
    return min(usual_s, max(elapsed_s, FIRST_INTERVAL_S))


class Pump:
    """Drains a session on its own thread, twice a second, or ten times while a view is visible.

    In the first second it drains more often, because short programs are killed too.

    Every drain happens on that thread, where no signal interrupts it. Errors never stop the pump:
    what could not be stored is counted and noted. ``before_drain`` is called before each drain, to
    let sources that must be polled add to the session; ``before_publish`` after all rows are stored
    and before ``feed`` sends them. ``unrecorded_spans`` returns when streams were not recorded.

    Attributes:
        cpu_ns: CPU time of draining.
        notes: Errors, one sentence for each kind.
    """

    def __init__(  # noqa: PLR0913 - the ends between which it moves rows
        self,
        session: "_core.Session",
        source: Source,
        store: "Store",
        feed: Feed,
        statistics: LiveStatistics,
        *,
        before_drain: Callable[[], None] = lambda: None,
        before_publish: Callable[[], None] = lambda: None,
        unrecorded_spans: Callable[[], tuple[tuple[int, int], ...]] = lambda: (),
    ) -> None:
        self._transfer = Transfer(session, source, store, feed, statistics)
        self._before_drain = before_drain
        self._before_publish = before_publish
        self._unrecorded_spans = unrecorded_spans
        self._source = source
        self._store = store
        self._feed = feed
        self._worker = Worker("gpuviz-pump", self._drain_regularly, self._pause_s)
        self._pace = Pace(WATCHED_INTERVAL_S, INTERVAL_S)
        self._started_s = time.monotonic()
        self._is_over = False
        self._has_all_rows = True
        self.cpu_ns = 0
        self.notes: list[str] = []

    @property
    def lost(self) -> int:
        """Events that were drained but could not be stored."""
        return self._transfer.lost

    @property
    def lost_activities(self) -> int:
        """Rows of all other tables that were drained but could not be stored."""
        return self._transfer.lost_activities

    @property
    def stack_notes(self) -> tuple[str, ...]:
        """A sentence on call stacks without all of their frames; empty if there are none."""
        return self._transfer.stack_notes

    def append_known(self, tables: Tables) -> None:
        """Store tables that are known before the recording."""
        self._transfer.append_known(tables)

    def start(self) -> None:
        """Start the thread."""
        self._started_s = time.monotonic()
        self._worker.start()

    def submit(self, function: Callable[[], Result]) -> Callable[[], Result]:
        """Run a function between drains, on the thread; return what waits for its result."""
        return self._worker.submit(function)

    def drain(self) -> int:
        """Move everything from the session to the store, and return the number of events."""
        return self._worker.submit(self._drain)()

    def append_clocks(self) -> None:
        """Store a snapshot of the clocks if one is due."""
        self._worker.submit(partial(self._transfer.append_clocks, is_last=False))()

    def drain_initial_events(self) -> int:
        """Move the events that describe the state before the recording; return their number."""
        self.drain()
        return self._transfer.end_initial_events()

    def drain_the_rest(self) -> None:
        """Move what a stopped session still has; to be called on the thread."""
        self._drain(is_last=True)
        if not self._has_all_rows:
            self._drain(is_last=True)
        self._transfer.give_up()

    def append_held(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Store what holds the memory in use at the end; to be called on the thread."""
        with self._noting("What holds memory could not be stored"):
            self._transfer.append_held(rows)

    def close(self) -> None:
        """Drain nothing from now on, and end the thread; to be called on it."""
        self._is_over = True
        self._worker.end()

    def discard(self) -> None:
        """Drain nothing from now on, for a recording that could not start."""
        self._worker.submit(self.close)()
        self.join()

    def join(self) -> None:
        """Wait for the end of the thread."""
        self._worker.join()

    def wake(self) -> None:
        """Update the pace, because a view may have become visible."""
        self._worker.wake()

    def device_links(self) -> dict[str, list[dict[str, int]]]:
        """Return what joins the devices of the recording, for its manifest."""
        with self._noting("The links between the devices could not be queried"):
            return device_links(self._source.devices(self._transfer.active_devices))
        return {}

    def abandon_after_fork(self) -> None:
        """Drain nothing from now on, in the child of a fork."""
        self._worker.abandon_after_fork()
        self._is_over = True

    def _pause_s(self) -> float:
        usual_s = self._pace.interval_s if self._feed.listeners else INTERVAL_S
        return pause_s(time.monotonic() - self._started_s, usual_s)

    def _drain_regularly(self) -> None:
        # Classifying has a bound of its own.
        began = time.thread_time() - self._feed.classification_s
        self._drain()
        self._pace.took(max(time.thread_time() - self._feed.classification_s - began, 0.0))

    def _drain(self, *, is_last: bool = False) -> int:
        if self._is_over:
            return 0
        began = time.thread_time_ns()
        try:
            with _giving_way():
                return self._move(is_last=is_last)
        finally:
            self.cpu_ns += time.thread_time_ns() - began

    def _move(self, *, is_last: bool) -> int:
        with self._noting("Ranges on streams could not be polled"):
            self._before_drain()
        with self._noting("When streams were not recorded could not be stored"):
            self._transfer.append_unrecorded(self._unrecorded_spans())
        moved = self._move_rows()
        with self._noting("The devices could not be queried"):
            self._transfer.append_devices(is_last=is_last)
        with self._noting("The clocks could not be read"):
            self._transfer.append_clocks(is_last=is_last)
        with self._noting("Events could not be written"):
            self._store.flush()
        with self._noting("The numbers could not be read"):
            self._before_publish()
        with self._noting("Rows could not be sent to views"):
            self._feed.publish()
        return moved

    def _move_rows(self) -> int:
        self._has_all_rows = False
        with self._noting("Names could not be stored"):
            self._transfer.take()
            self._transfer.append_names()
            moved = 0
            while self._transfer.waits:
                with self._noting("Rows could not be stored"):
                    moved += self._transfer.append_next()
                if self._transfer.is_stuck:
                    return moved
            self._has_all_rows = True
            return moved
        return 0

    @contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the recorded program must continue
            note = f"{what}: {type(error).__name__}: {error}"
            if all(not known.startswith(what) for known in self.notes):
                self.notes.append(note)


@contextmanager
def _giving_way() -> Iterator[None]:
    """Let other threads have the GIL soon: the program waits for it after each of its CUDA calls.

    What the program itself sets meanwhile stays.
    """
    usual = sys.getswitchinterval()
    if usual <= SWITCH_INTERVAL_S:
        yield
        return
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    ours = sys.getswitchinterval()
    try:
        yield
    finally:
        if sys.getswitchinterval() == ours:
            sys.setswitchinterval(usual)
