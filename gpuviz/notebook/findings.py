"""The findings of a recorder in a dashboard, computed again after each cell."""

import time
from html import escape
from typing import TYPE_CHECKING

import ipywidgets

from gpuviz.advice.text import NOTHING_FOUND, short_saving, unknown
from gpuviz.notebook.charts import MOST_OF_TIME
from gpuviz.notebook.refresher import Refresher
from gpuviz.quantities import format_counted, format_duration
from gpuviz.report.markup import with_code

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuviz.advice.finding import Finding
    from gpuviz.recording.recording import Recording

MOST_SHOWN = 3
# Findings that take no longer are computed after each cell, others at most 1 % of the time.
SHORT_S = 0.1

_STYLE = """<style>
.gpuviz-found{margin:2px;line-height:1.5;color:var(--jp-ui-font-color1,inherit);
font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:13px}
.gpuviz-found summary{cursor:pointer}
.gpuviz-found div{margin-left:16px}
.gpuviz-found__saving{display:inline-block;min-width:72px;font-weight:600;
font-variant-numeric:tabular-nums}
</style>"""


class Findings(ipywidgets.HTML):  # type: ignore[misc] # ipywidgets has no types
    """What would save memory or time in a recording, most saving first.

    A thread of its own computes the findings, so that numbers beside them move meanwhile.

    Args:
        recording: Returns the recording, or None.
    """

    def __init__(self, recording: "Callable[[], Recording | None]") -> None:
        self._recording = recording
        self._refresher = Refresher(self._tick)
        self._is_due = True
        self._has_computed = False
        self._not_before_s = 0.0
        super().__init__()

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
        """Stop the thread, and close the widget."""
        self._refresher.stop()
        super().close()

    def _tick(self) -> bool:
        if self.comm is None:
            return False
        self.refresh_if_due()
        return True

    def refresh_if_due(self) -> None:
        """Compute and show the findings if that was requested and is affordable."""
        if not self._is_due or time.monotonic() < self._not_before_s:
            return
        self._is_due = False
        began = time.thread_time()
        recording = self._recording()
        if recording is None or _is_empty(recording):
            self.value = ""
            return
        found = findings_html(recording.findings(), unknown(recording), recording.duration_ns)
        self.value = found
        took = time.thread_time() - began
        # The first time includes the imports.
        if self._has_computed and took > SHORT_S:
            self._not_before_s = time.monotonic() + took / MOST_OF_TIME
        self._has_computed = True


def findings_html(
    found: "Sequence[Finding]", not_looked_at: "Sequence[str]", duration_ns: int
) -> str:
    """Return findings as HTML, a line each that opens to the reason; all texts are escaped.

    Args:
        found: The findings, most saving first.
        not_looked_at: Sentences on what could not be looked at.
        duration_ns: Of the recording that they are about, to which a running cell adds.
    """
    of = f"<div>Findings in the first {format_duration(duration_ns)}:</div>"
    first = "".join(map(_item, found[:MOST_SHOWN])) or f"<div>{escape(NOTHING_FOUND)}</div>"
    rest = "".join(map(_item, found[MOST_SHOWN:]))
    if rest:
        more = format_counted(len(found) - MOST_SHOWN, "more finding")
        rest = f"<details><summary>{more}</summary>{rest}</details>"
    notes = "".join(f"<div>{escape(sentence)}</div>" for sentence in not_looked_at)
    return f'{_STYLE}<div class="gpuviz-found">{of}{first}{rest}{notes}</div>'


def _is_empty(recording: "Recording") -> bool:
    return not any(len(recording.tables[name]) for name in ("memory_events", "activities"))


def _item(finding: "Finding") -> str:
    lines = (f"{line.amount}: {line.site}" for line in finding.lines)
    details = "".join(
        f"<div>{with_code(text)}</div>" for text in (finding.reason, finding.change, *lines)
    )
    return (
        f'<details><summary><span class="gpuviz-found__saving">{short_saving(finding)}</span>'
        f"{with_code(finding.title)}</summary>{details}</details>"
    )
