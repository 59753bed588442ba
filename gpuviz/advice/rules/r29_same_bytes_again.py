"""R29: the same bytes are copied to the GPU again and again."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.copied_contents import with_known_content, without_copies
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_arguments import copies_of_arguments
from gpuviz.advice.host_gaps import host_gaps
from gpuviz.advice.host_lines import line_of, longest_lines, text_of
from gpuviz.advice.rule import Rule
from gpuviz.advice.schedule import Schedule
from gpuviz.advice.staging import fits_copy, uploaded_bytes
from gpuviz.advice.trace import COPY
from gpuviz.analysis.device_replay import total_memory
from gpuviz.analysis.launches import stacks_of
from gpuviz.analysis.peak import peak
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_bytes, format_count, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

RULES = (
    Rule(
        "R29",
        "the same bytes copied to the GPU again",
        "a line copies at least 1 MiB from the host at least four times with the same bytes, as "
        "far as 64 places of the source tell, which no copy to the host brought, and the GPU has "
        "room for them beside its peak; the saving is without all of these copies but the first",
        "copy them once, before the loop, and keep the array",
    ),
)

_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_TO_DEVICE, _TO_HOST = map(_COPY_KINDS.index, ("host_to_device", "device_to_host"))
# Fewer copies may be the parts of a program that know nothing of each other.
_LEAST_COPIES = 4
# Each line costs a replay of the schedule.
_MOST_LINES = 8


def find(schedule: Schedule) -> "Iterator[Finding]":
    """Find lines that copy what they have copied before.

    Trigger: at least four copies of a line from the host have the same size and the same
    ``content``, which the table ``launch_blocks`` has for copies of at least 1 MiB, and the GPU has
    room for one array of each beside its peak. No copy to the host has that ``content``: what comes
    back from the GPU may be another array of mostly zeros, or one that kernels changed elsewhere.

    Saving: the recording's `Schedule`, replayed without these copies but the first of each content,
    and without their calls. CuPy first copies an array to pinned memory: a time before a call that
    fits this vanishes, too. The content is compared at 64 places only: ``likely``.
    """
    work, content = _with_content(schedule, _TO_DEVICE)
    is_new = ~np.isin(content, _with_content(schedule, _TO_HOST)[1])
    is_new &= ~copies_of_arguments(schedule)[work]  # those of R65
    work, content = work[is_new], content[is_new]
    if not len(work):
        return
    sizes = plain(schedule.recording.tables["activities"]["bytes"])[schedule.rows[work]]
    keys = np.stack([schedule.lines[work], sizes, content.view(np.int64)])
    _, first, group, count = np.unique(
        keys, axis=1, return_index=True, return_inverse=True, return_counts=True
    )
    group = group.ravel()
    again = count[group] >= _LEAST_COPIES
    again[first] = False
    lines = keys[0]
    found, number = np.unique(lines[again], return_inverse=True)
    spent = np.bincount(number, schedule.duration[work[again]])
    for each in np.argsort(-spent, kind="stable")[:_MOST_LINES].tolist():
        of_line = again & (lines == found[each])
        _, kept = np.unique(group[of_line], return_index=True)
        kept_bytes = int(sizes[of_line][kept].sum())
        device = int(schedule.device[work[of_line][0]])
        if _have_room(schedule, device, kept_bytes):
            yield _finding(schedule, work[of_line], len(kept), kept_bytes)


def _with_content(schedule: Schedule, kind: int) -> "tuple[NDArray[Any], NDArray[Any]]":
    """Return copies of a kind whose content is known, in the order of time, and the content."""
    tables = schedule.recording.tables
    kinds = codes(tables["activities"]["copy_kind"], _COPY_KINDS)
    work = np.flatnonzero(
        (schedule.kind == COPY) & (kinds[schedule.rows] == kind) & (schedule.call >= 0)
    )
    return with_known_content(schedule, work)


def _have_room(schedule: Schedule, device: int, kept: int) -> bool:
    """Return whether a device has memory for the arrays beside its peak; yes if unknown."""
    total = total_memory(schedule.recording, device)
    return not total or peak(schedule.recording, device).bytes + kept <= total


def _finding(schedule: Schedule, again: "NDArray[Any]", contents: int, kept_bytes: int) -> Finding:
    recording = schedule.recording
    sizes = plain(recording.tables["activities"]["bytes"])[schedule.rows[again]]
    staged = _staged(schedule, again)
    change = without_copies(schedule, again, staged)
    stacks = stacks_of(recording.tables, schedule.call[again])
    copied = format_bytes(int(sizes.sum()))
    spent = format_duration(int(schedule.duration[again].sum()))
    calls, device = distinct(schedule.call[again]), int(schedule.device[again[0]])
    host_ns = int((schedule.returned - schedule.called)[calls].sum())
    host_ns += int(host_gaps(recording, device).length[staged].sum())
    line = line_of(recording, int(stacks[0]), spent)
    which = "the same bytes" if contents == 1 else f"one of {format_count(contents)} sets of bytes"
    return Finding(
        rule="R29",
        title=f"{text_of(line)} copies {which} to the GPU {format_count(len(again))} more times "
        f"than needed, {copied} in all.",
        reason=f"These copies take {spent} on the GPU and {format_duration(host_ns)} of the host. "
        "Their sources have the same size and the same bytes at 64 places, spread evenly over "
        "them.",
        change="Copy them once, before the loop, and keep the "
        f"{format_bytes(kept_bytes)} on the GPU. If kernels change an array, copy it there from "
        "one that is kept.",
        certainty="likely",
        device=device,
        saved_ns=schedule.saved_alone(change),
        lines=longest_lines(recording, stacks, schedule.duration[again]),
        evidence=schedule.evidence(again),
        schedule=change,
    )


def _staged(schedule: Schedule, copies: "NDArray[Any]") -> "NDArray[Any]":
    """Return the calls of copies from pinned memory that the host filled right before."""
    calls = schedule.call[copies]
    gap = host_gaps(schedule.recording, int(schedule.device[copies[0]])).length[calls]
    staged = np.zeros(len(schedule.called), bool)
    staged[calls[fits_copy(uploaded_bytes(schedule.recording, calls), gap)]] = True
    return staged
