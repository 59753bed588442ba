"""`LiveViews`: sends views the rows and the numbers of a recording in progress."""

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from gpuviz.conclusions.store import for_views, of_training
from gpuviz.data.tables import Tables
from gpuviz.recorder.feed import Feed, Listener
from gpuviz.recorder.live_categories import LiveCategories
from gpuviz.recorder.live_classification import LiveClassification
from gpuviz.recorder.live_statistics import LiveStatistics
from gpuviz.recorder.status import RecorderStatistics

if TYPE_CHECKING:
    from gpuviz.recorder.live_recording import LiveRecording
    from gpuviz.recording import Recording


class LiveViews:
    """What listeners get of a recording; any thread may add some, also before it begins.

    Args:
        live: The recording.

    Attributes:
        feed: Sends rows.
        statistics: The numbers.
    """

    def __init__(self, live: "LiveRecording") -> None:
        self._live = live
        self.feed = Feed(
            self._contents, lambda: live.elapsed_ns, LiveClassification(self._has_all_rows)
        )
        self.statistics = LiveStatistics()
        self._categories = LiveCategories(live.so_far)

    def subscribe(self, listener: Listener, since: int = -1) -> Callable[[], None]:
        """Send a listener everything recorded up to now, and everything from now on.

        See `gpuviz.Recorder.subscribe`.
        """
        pump = self._live.pump
        if pump is None:
            return self.feed.subscribe(listener, since)
        pump.drain()
        try:
            return self.feed.subscribe(listener, since)
        finally:
            pump.wake()

    def read_statistics(self) -> RecorderStatistics:
        """Return the current numbers, and pass them to all listeners."""
        latest = self.statistics.latest
        if latest is not None and self._live.duration_ns:
            return latest
        if self._live.pump is not None:
            self._live.tracer.flush()
            self._live.pump.drain()
        return self._new_statistics(self._live.elapsed_ns)

    def update(self) -> None:
        """Pass on what follows from all rows stored so far; to be called before they are sent."""
        time_ns = self._live.elapsed_ns
        if self.statistics.is_due(time_ns):
            self._new_statistics(time_ns)
        # Categories are known only of PyTorch's work; to read all rows and find none is slow.
        if self.feed.listeners and self._live.is_active and "torch" in sys.modules:
            self.feed.take_concluded("categories", self._categories.changed())

    def close(self, recording: "Recording") -> None:
        """Send the last numbers and what follows from the finished recording."""
        self.statistics.read(recording.duration_ns, self._live.status())
        self.feed.close(partial(of_training, recording))

    def abandon_after_fork(self) -> None:
        """Remove all listeners in the child of a fork."""
        self.feed.abandon_after_fork()
        self.statistics.abandon_after_fork()

    def _new_statistics(self, time_ns: int) -> RecorderStatistics:
        if self._live.is_active:
            self.statistics.take_used(dict(self._live.source.sample()))
        return self.statistics.read(time_ns, self._live.status())

    def _contents(self) -> tuple[Tables, int]:
        store = self._live.store
        if store is None:
            return {}, 0
        if self._live.duration_ns:
            # The recording has ended, so derived tables of all rows are stored with it.
            recording = store.so_far(self._live.manifest(complete=True))
            rows = {**recording.tables, **recording.derived, **for_views(recording)}
            return rows, recording.manifest.initial_events
        tables, initial_events = store.contents()
        tables = {**tables, "categories": self._categories.known}
        return tables, self._live.initial_events if initial_events is None else initial_events

    def _has_all_rows(self) -> bool:
        return self._live.store is None or self._live.store.dropped_oldest_activities == 0
