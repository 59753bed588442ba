"""The findings of a recorder in a dashboard, computed again after each cell."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpuviz.conclusions.ranking import conclusions
from gpuviz.conclusions.wording import unknown
from gpuviz.notebook.drawer_sections import is_short
from gpuviz.notebook.refresher import Refresher
from gpuviz.present.conclusions_html import notebook_list
from gpuviz.quantities import format_duration
from gpuviz.report.iterations import iterations_text

if TYPE_CHECKING:
    from gpuviz.recording import Recording

NONE_YET = "Findings appear here after each cell."
# Findings that take no longer are computed after each cell, others at most 1 % of the time.
SHORT_S = 0.1
MOST_OF_TIME = 0.01


class Findings:
    """What would save memory or time in a recording, most saving first.

    A thread of its own computes the findings, so that numbers beside them move meanwhile.

    Args:
        recording: Returns the recording, or None.
        show: Takes the findings as HTML.
        explain: Takes the recording when it has ended, and None when another one goes on.
    """

    def __init__(
        self,
        recording: "Callable[[], Recording | None]",
        show: Callable[[str], None],
        explain: "Callable[[Recording | None], None]",
    ) -> None:
        self._recording, self._show, self._explain = recording, show, explain
        self._explained: Recording | None = None
        self._refresher = Refresher(self._tick)
        self._is_due = True
        self._has_computed = False
        self._not_before_s = 0.0

    def start(self) -> None:
        """Start the thread, which computes the findings now and at each request."""
        self._refresher.start()
        self._refresher.wake()

    def request(self, *, at_once: bool = False) -> None:
        """Compute the findings soon, if that does not take too much of the time.

        Args:
            at_once: Whether the time does not matter.
        """
        if at_once:
            self._not_before_s = 0.0
        self._is_due = True
        self._refresher.wake()

    def close(self) -> None:
        """Stop the thread."""
        self._refresher.stop()

    def _tick(self) -> bool:
        self.refresh_if_due()
        return True

    def refresh_if_due(self) -> None:
        """Compute and show the findings if that was requested and is affordable."""
        if not self._is_due or time.monotonic() < self._not_before_s:
            return
        self._is_due = False
        began = time.thread_time()
        recording = self._recording()
        if recording is not self._explained:
            self._explained = None
            self._explain(None)
        if recording is None or _is_empty(recording):
            self._show(NONE_YET)
            return
        # A running cell adds to the recording, so the heading says how much was read. The notes
        # are left out if the drawer shows them.
        heading = f"Findings in the first {format_duration(recording.duration_ns)}:"
        has_sections = recording.manifest.complete and is_short(recording)
        notes = [] if has_sections else [*_about_iterations(recording), *unknown(recording)]
        self._show(notebook_list(conclusions(recording), heading, notes, has_charts=True))
        if has_sections and self._explained is None:
            self._explain(recording)
            self._explained = recording
        took = time.thread_time() - began
        # The first time includes the imports.
        if self._has_computed and took > SHORT_S:
            self._not_before_s = time.monotonic() + took / MOST_OF_TIME
        self._has_computed = True


def _about_iterations(recording: "Recording") -> list[str]:
    found = recording.iterations()
    return [" ".join(iterations_text(found))] if found.num_rows else []


def _is_empty(recording: "Recording") -> bool:
    return not any(len(recording.tables[name]) for name in ("memory_events", "activities"))
