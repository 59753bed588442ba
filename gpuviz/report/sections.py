"""The sections of a report: what is above the charts, and the tabs of its drawer."""

from typing import TYPE_CHECKING

import pyarrow as pa

from gpuviz.analysis.device_summary import summarize
from gpuviz.conclusions.recording_numbers import figures, headline
from gpuviz.conclusions.shown import findings_of, hazards_of
from gpuviz.conclusions.wording import nothing_found, unknown
from gpuviz.hazards.known import unknown as unknown_hazards
from gpuviz.hazards.text import NOTHING_FOUND
from gpuviz.present.section import Part, Section, facts, heading, numbers, text
from gpuviz.present.section_table import ANY_DEVICE, section_table
from gpuviz.report.collectives import collectives_section
from gpuviz.report.default_stream import default_stream_section
from gpuviz.report.facts import environment
from gpuviz.report.facts import facts as facts_of
from gpuviz.report.graph_pools import graph_pools_section
from gpuviz.report.host_work import host_work_section
from gpuviz.report.iterations import iterations_section
from gpuviz.report.modules import modules_section
from gpuviz.report.other_memory import other_memory_section
from gpuviz.report.waterfall import waterfall
from gpuviz.report.what_if import what_if_section

if TYPE_CHECKING:
    from gpuviz.recording import Recording

# Memory events; packing the blocks of more would take a noticeable part of writing a report.
_MOST_PACKED = 200_000
_ABOUT = (
    'This page works offline and contains the recording: `gpuviz.load("report.html")` returns it. '
    "Times are relative to the start of the recording; sizes use binary units (1 MiB = 1,048,576 "
    "B)."
)


def sections(recording: "Recording") -> list[tuple[int, list[Section]]]:
    """Return the sections about each device, and then those about the recording as a whole."""
    summaries = [summarize(recording, device) for device in recording.devices]
    about = facts(facts_of(recording, summaries) | environment(recording))
    whole = Section("environment", "Environment", (about, text(_ABOUT)))
    of_devices = [(each.device, device_sections(recording, each.device)) for each in summaries]
    return [*of_devices, (ANY_DEVICE, [whole])]


def sections_table(recording: "Recording") -> pa.Table:
    """Return all sections as the table from which a browser draws them."""
    return section_table(sections(recording))


def device_sections(recording: "Recording", device: int) -> list[Section]:
    """Return the sections about a device; the first one is above its charts."""
    found = (
        _top(recording, device),
        modules_section(recording, device),
        iterations_section(recording, device),
        _findings(recording, device),
        _hazards(recording, device),
        default_stream_section(recording, device),
        collectives_section(recording),
        graph_pools_section(recording, device),
        host_work_section(recording, device),
        other_memory_section(recording, device),
        what_if_section(recording, device),
        _summary(recording, device),
    )
    return [section for section in found if section is not None]


def _top(recording: "Recording", device: int) -> Section:
    shown = tuple(findings_of(recording, device))
    parts = (
        heading(summarize(recording, device).title, "device"),
        numbers(figures(recording, device), "figures"),
        Part("first", items=shown) if shown else text(nothing_found(())),
    )
    return Section("", "", parts)


def _findings(recording: "Recording", device: int) -> Section:
    shown = tuple(findings_of(recording, device))
    nothing = nothing_found(each.said for each in shown)
    parts = (
        *([text(nothing)] if nothing else []),
        Part("findings", items=shown),
        *map(text, unknown(recording)),
    )
    return Section("findings", "Findings", parts, len(shown))


def _hazards(recording: "Recording", device: int) -> Section | None:
    """Return the section about the hazards of a device.

    Without any there is none, unless they were asked for when the recording was made.
    """
    shown = tuple(hazards_of(recording, device))
    if not shown and not recording.manifest.hazards:
        return None
    why = text(unknown_hazards(recording) or NOTHING_FOUND)
    part = Part("hazards", items=shown) if shown else why
    return Section("hazards", "Hazards", (part,), len(shown))


def _summary(recording: "Recording", device: int) -> Section:
    is_long = recording.tables["memory_events"].num_rows > _MOST_PACKED
    chain = recording.peak_chain(device, seconds=None if is_long else 0.0)
    found = headline(recording, summarize(recording, device))
    return Section("summary", "Summary", (numbers(found), *waterfall(chain)))
