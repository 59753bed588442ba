"""The part of a page about a device: the headline, the first conclusions and the sections."""

from typing import TYPE_CHECKING

from gpuviz.analysis.device_summary import summarize
from gpuviz.conclusions.numbers import figures, headline
from gpuviz.conclusions.shown import findings_of, hazards_of
from gpuviz.conclusions.wording import unknown
from gpuviz.hazards.known import unknown as unknown_hazards
from gpuviz.hazards.text import NOTHING_FOUND
from gpuviz.present.conclusions_html import (
    conclusions_list,
    first_conclusions,
    nothing_of,
)
from gpuviz.present.markup import joined, panel, part
from gpuviz.report.collectives import collectives_section
from gpuviz.report.default_stream import default_stream_section
from gpuviz.report.graph_pools import graph_pools_section
from gpuviz.report.host_work import host_work_section
from gpuviz.report.iterations import iterations_panel
from gpuviz.report.modules import modules_panel
from gpuviz.report.other_memory import other_memory_section
from gpuviz.report.waterfall import waterfall
from gpuviz.report.what_if import what_if_section

if TYPE_CHECKING:
    from markupsafe import Markup

    from gpuviz.recording import Recording

# Memory events; packing the blocks of more would take a noticeable part of writing a report.
_MOST_PACKED = 200_000


def device_part(recording: "Recording", device: int, title: str = "") -> "Markup":
    """Return the headline, the first conclusions and the sections of a device.

    Args:
        recording: The recording.
        device: Ordinal.
        title: The title of the part and of its charts; without one it has neither.
    """
    shown = findings_of(recording, device)
    sections = (
        part("headline", list(figures(recording, device))),
        first_conclusions(shown),
        modules_panel(recording, device),
        iterations_panel(recording, device),
        panel(
            "Findings",
            conclusions_list(shown, nothing_of(shown), unknown(recording)),
            slug="findings",
            count=len(shown),
        ),
        _hazards(recording, device),
        default_stream_section(recording, device),
        collectives_section(recording),
        graph_pools_section(recording, device),
        host_work_section(recording, device),
        other_memory_section(recording, device),
        what_if_section(recording, device),
        panel("Summary", _summary(recording, device), slug="summary"),
    )
    return part("device", device, title, sections)


def all_device_parts(recording: "Recording") -> "Markup":
    """Return the parts about each device of a recording, for another page."""
    return joined(device_part(recording, device) for device in recording.devices)


def _hazards(recording: "Recording", device: int) -> str:
    """Return the section about the hazards of a device.

    Without any it is empty, unless they were asked for when the recording was made.
    """
    shown = hazards_of(recording, device)
    if not shown and not recording.manifest.hazards:
        return ""
    why = unknown_hazards(recording) or NOTHING_FOUND
    body = conclusions_list(shown, "" if shown else why)
    return panel("Hazards", body, slug="hazards", count=len(shown))


def _summary(recording: "Recording", device: int) -> "Markup":
    is_long = recording.tables["memory_events"].num_rows > _MOST_PACKED
    chain = recording.peak_chain(device, seconds=None if is_long else 0.0)
    numbers = headline(recording, summarize(recording, device))
    return joined([part("numbers", numbers), waterfall(chain)], "\n")
