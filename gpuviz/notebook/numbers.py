"""The numbers of a recorder, as the dashboard, the panel and `%gpuviz status` show them."""

from typing import TYPE_CHECKING, Any

from gpuviz.conclusions.headline_number import Number
from gpuviz.conclusions.live_numbers import live_headline
from gpuviz.present.markup import part
from gpuviz.quantities import format_bytes, format_count, format_counted, format_duration
from gpuviz.recorder.status import RecorderStatistics

if TYPE_CHECKING:
    from gpuviz.recording import Recording

# The numbers that fit into JupyterLab's side panel.
_IN_PANEL = ("Allocated", "Reserved", "GPU busy")
# The details of the others, and long ones, are tooltips: all fit into two lines of a dashboard
# 780 px wide.
_DETAILED = ("Allocated", "GPU busy", "Dropped events")
_LONGEST_DETAIL = 50


def numbers_html(numbers: list[Number]) -> str:
    """Return headline numbers as HTML."""
    return part("live_numbers", numbers, _DETAILED, _LONGEST_DETAIL)


def status_text(statistics: RecorderStatistics | None) -> str:
    """Return the headline numbers and counts of a recorder, one line each."""
    if statistics is None:
        return "Nothing has been recorded yet."
    status = statistics.status
    state = "Recording for" if status.recording else "Recording stopped after"
    rows = [(each.name, each.value, each.detail) for each in live_headline(statistics)[1:]]
    rows += [
        ("Memory events", format_count(statistics.events), ""),
        ("GPU activities", format_count(statistics.activities), ""),
        ("In memory", format_bytes(status.bytes_in_memory), ""),
        ("On disk", format_bytes(status.bytes_on_disk), ""),
    ]
    width = max(len(name) for name, _, _ in rows)
    lines = [
        f"{name:<{width}}  {value}{f' ({detail})' if detail else ''}"
        for name, value, detail in rows
    ]
    notes = (f"note: {note}" for note in status.notes)
    return "\n".join([f"{state} {format_duration(statistics.time_ns)}", *lines, *notes])


def stopped_text(recording: "Recording") -> str:
    """Return one line with the counts of a recording and the next command, then its notes."""
    events = recording.table("memory_events").num_rows - recording.manifest.initial_events
    activities = recording.table("activities").num_rows
    text = (
        f"Recorded {format_duration(recording.duration_ns)}: "
        f"{format_counted(events, 'memory event')}, "
        f"{format_counted(activities, 'GPU activity', 'GPU activities')}. "
        "`%gpuviz report FILE` shows them."
    )
    return "\n".join([text, *recording.notes])


def numbers_message(statistics: RecorderStatistics) -> dict[str, Any]:
    """Return the numbers as sent to a page.

    Keys: ``elapsedNs``; ``counts``, a text with the numbers of events recorded so far; ``numbers``,
    a list of name, value and detail; ``devices``, for each ``device`` the ``allocated`` bytes,
    their ``peak``, the ``reserved`` bytes and the ``busy`` share.
    """
    recorded = live_headline(statistics)[0]
    several = len(statistics.devices) > 1
    shown = [
        (f"{number.name} {device.device}" if several else number.name, number.value, number.detail)
        for device in statistics.devices
        for number in live_headline(statistics, device)
        if number.name in _IN_PANEL
    ]
    if statistics.dropped:
        shown.append(("Dropped events", format_count(statistics.dropped), ""))
    return {
        "elapsedNs": statistics.time_ns,
        "counts": recorded.detail,
        "numbers": shown,
        "devices": [
            {
                "device": each.device,
                "allocated": each.allocated,
                "peak": each.allocated_peak,
                "reserved": each.reserved,
                "busy": each.busy,
            }
            for each in statistics.devices
        ],
    }
