"""What happened to the memory of a device, and what dominates it, whether or not a rule applies."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from gpuviz.advice.evidence import Evidence, Line
from gpuviz.advice.finding import Finding
from gpuviz.advice.host.dominant import dominant
from gpuviz.advice.rule import LEAST_BYTES
from gpuviz.analysis.categories import block_categories, category_bytes, is_training, phase_at
from gpuviz.analysis.device_summary import summarize
from gpuviz.analysis.sites import sites
from gpuviz.data.codes import CATEGORIES
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS
from gpuviz.out_of_memory.failures import first_failure
from gpuviz.quantities import format_bytes, format_counted, format_duration, format_share

_CATEGORIES = {
    "parameter": "parameters and buffers",
    "gradient": "gradients",
    "optimizer_state": "optimizer states",
    "input": "inputs",
    "activation": "activations",
    "temporary": "temporary",
    "workspace": "workspaces of libraries",
}
_WORKSPACE = CATEGORIES.index("workspace")
_MUCH_UNUSED = 0.25
_MOST_LINES = 3
# The rule about arrays of failed attempts, which later attempts find allocated.
_OF_ATTEMPTS = "R73"
_FREE_ATTEMPTS = (
    "Free the arrays of each attempt that fails before the next one: later requests failed while "
    "those were still allocated; see R73."
)
_INDEX = re.compile(r"\[[^\[\]]*\](?= in |$)")
# Of the recording's length, on each side of a moment.
_AROUND = 0.02
# What follows from no rule, and needs no change of its own.
_said = partial(Finding, rule="", change="", certainty="certain")


def failures(
    recording: RecordingData, device: int, found: Sequence[Finding] = ()
) -> Iterator[Finding]:
    """Yield what failed or nearly did on a device.

    Args:
        recording: The recording.
        device: Ordinal.
        found: The findings of the recording, one of which may be the cause.
    """
    summary = summarize(recording, device)
    if summary.out_of_memory:
        failed = _out_of_memory(recording, device, summary.out_of_memory)
        kept = any(each.rule == _OF_ATTEMPTS and each.device == device for each in found)
        is_cause = kept and summary.out_of_memory > 1
        yield replace(failed, change=_FREE_ATTEMPTS) if is_cause else failed
    if summary.retries:
        yield _said(
            kind="failure",
            device=device,
            title=f"{format_counted(summary.retries, 'allocation')} succeeded only after cached "
            "segments were released.",
            reason="Releasing segments waits for the device, and they are requested again later.",
        )


def other_facts(recording: RecordingData) -> Iterator[Finding]:
    """Yield what dominates each device, and facts about its memory."""
    largest = dominant(recording)
    for device in recording.devices:
        for fact in largest:
            if fact.device == device:
                yield _said(
                    kind="fact", device=device, title=fact.text, reason="", lines=(fact.line,)
                )
        yield from training_peak(recording, device)
        yield from _unused(recording, device)
        yield from _still_allocated(recording, device)


def around(recording: RecordingData, time_ns: int) -> tuple[int, int]:
    """Return the window that shows a moment."""
    start, end = recording.time_range
    half = max(int((end - start) * _AROUND), 1000)
    return max(time_ns - half, start), min(time_ns + half, max(end, start + half))


def _out_of_memory(recording: RecordingData, device: int, count: int) -> Finding:
    events = recording.tables["memory_events"]
    is_ours = plain(events["device"]) == device
    rows = np.flatnonzero(is_ours & (codes(events["action"], ACTIONS) == ACTIONS.index("oom")))
    first = first_failure(recording, device)
    size, time_ns = (plain(events[name])[rows[0]] for name in ("requested_size", "time"))
    if first is not None and first.time_ns != time_ns:
        first = None
    sites_of = map(recording.call_stacks.call_site, plain(events["stack"])[rows].tolist())
    free = None if first is None else first.device_free
    on_device = "" if free is None else f", when {format_bytes(free)} of the device were free"
    verdict = "" if first is None else f" {first.summary}"
    return _said(
        kind="failure",
        device=device,
        title=f"{format_counted(count, 'allocation')} failed: out of memory.",
        reason=f"The first requested {format_bytes(size)} at "
        f"{format_duration(time_ns)}{on_device}.{verdict}",
        lines=tuple(
            Line(site, source, format_counted(times, "time"))
            for (site, source), times in Counter(sites_of).most_common(_MOST_LINES)
        ),
        evidence=Evidence("memory_events", tuple(rows.tolist()), around(recording, int(time_ns))),
    )


def training_peak(recording: RecordingData, device: int) -> Iterator[Finding]:
    """Yield what the memory at the peak of a training program is, if something is known of it."""
    if not is_training(recording):
        return
    summary = summarize(recording, device)
    if not summary.allocated_peak:
        return
    moment = summary.allocated_peak_ns
    sizes = category_bytes(recording, device, moment)
    unknown = sizes.pop("", 0)
    parts = [f"{_CATEGORIES[name]} {format_bytes(size)}" for name, size in sizes.items()]
    parts += [f"unknown {format_bytes(unknown)}"] if unknown else []
    phase, module = phase_at(recording, device, moment)
    during = f" in the {phase} of `{module}`" if module else f" in the {phase}"
    yield _said(
        kind="fact",
        device=device,
        title=f"{format_bytes(summary.allocated_peak)} at the peak{during if phase else ''}: "
        f"{', '.join(parts)}.",
        reason="",
        evidence=Evidence("memory_events", (), around(recording, moment)),
    )


def _unused(recording: RecordingData, device: int) -> Iterator[Finding]:
    summary = summarize(recording, device)
    unused = summary.free_at_peak / max(summary.reserved_at_peak, 1)
    if unused > _MUCH_UNUSED and summary.free_at_peak >= LEAST_BYTES:
        yield _said(
            kind="fact",
            device=device,
            title=f"{format_share(unused)} of the reserved memory was free at the peak.",
            reason=f"{format_bytes(summary.free_at_peak)} of "
            f"{format_bytes(summary.reserved_at_peak)}; the largest free block had "
            f"{format_bytes(summary.largest_free_at_peak)}, and "
            f"{format_share(summary.fragmentation_at_peak)} of the free bytes were elsewhere.",
            evidence=Evidence("memory_events", (), around(recording, summary.allocated_peak_ns)),
        )


def _held_by(recording: RecordingData, device: int) -> str:
    """Return a sentence about what holds large blocks at the end; empty if unknown."""
    rows = recording.tables["held_blocks"].to_pylist()
    holders = [row["holder"] for row in rows if row["device"] == device]
    alike: dict[str, list[str]] = {}
    for each in holders:
        alike.setdefault(_INDEX.sub("[…]", each), []).append(each)
    named = [text if len(of) > 1 else of[0] for text, of in alike.items()]
    more = len(named) - _MOST_LINES
    *others, last = [f"`{each}`" for each in named[:_MOST_LINES]] or [""]
    if more > 0:
        others, last = [*others, last], f"{more} more"
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"Known holders of large blocks: {listed}." if listed else ""


def _still_allocated(recording: RecordingData, device: int) -> Iterator[Finding]:
    summary = summarize(recording, device)
    if not summary.allocations_end:
        return
    count, size = _workspaces_at_end(recording, device)
    if count == summary.allocations_end:
        return
    of_libraries = f", {format_bytes(size)} of it workspaces of libraries" if size else ""
    blocks = format_counted(summary.allocations_end, "block")
    were = "was" if summary.allocations_end == 1 else "were"
    rows = sites(recording, "line", at="end", device=device).slice(0, _MOST_LINES)
    yield _said(
        kind="fact",
        device=device,
        title=f"{blocks} ({format_bytes(summary.allocated_end)}) {were} still allocated at the "
        f"end{of_libraries}.",
        reason=_held_by(recording, device),
        lines=tuple(
            Line(
                row["site"],
                row["source"],
                f"{format_bytes(row['live_bytes'])} in "
                f"{format_counted(row['live_count'], 'block')}",
                row["stack"],
            )
            for row in rows.to_pylist()
            if row["live_count"]
        ),
    )


def _workspaces_at_end(recording: RecordingData, device: int) -> tuple[int, int]:
    """Return how many blocks a device's libraries still have at the end, and their bytes."""
    if not is_training(recording):
        return 0, 0
    blocks, categories = block_categories(recording)
    left = (blocks.device == device) & (blocks.end < 0) & (categories == _WORKSPACE)
    return int(np.count_nonzero(left)), int(blocks.size[left].sum())
