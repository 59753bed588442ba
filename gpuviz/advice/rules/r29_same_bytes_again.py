"""R29: the same bytes are copied to the GPU again and again."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.finding import Finding
from gpuviz.advice.host.host_arguments import copies_of_arguments
from gpuviz.advice.host.host_gaps import host_gaps
from gpuviz.advice.host.staging import fits_copy, uploaded_bytes
from gpuviz.advice.host_lines import line_of, longest_lines, text_of
from gpuviz.advice.replay.copied_contents import are_filled, with_known_content, without_copies
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.replay.trace import COPY
from gpuviz.advice.rule import Rule
from gpuviz.analysis.device_replay import total_memory
from gpuviz.analysis.grouping import components
from gpuviz.analysis.launches import stacks_of
from gpuviz.analysis.peak import peak
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_bytes, format_count, format_counted, format_duration

RULES = (
    Rule(
        "R29",
        "the same bytes copied to the GPU again",
        "a line copies at least 1 MiB from the host at least four times with the same bytes, as "
        "far as 64 places of the source tell, where they are not all zeros or ones, and which no "
        "copy to the host brought, or several lines do so for arrays that nothing else writes to; "
        "the GPU has room for them beside its peak; the saving is without all of these copies but "
        "the first",
        "copy them once, before the loop, and keep the array",
    ),
)

_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_TO_DEVICE, _TO_HOST = map(_COPY_KINDS.index, ("host_to_device", "device_to_host"))
_READ = DICTIONARIES["launch_blocks", "mode"].index("read")
# Fewer copies may be the parts of a program that know nothing of each other.
_LEAST_COPIES = 4
# Each line costs a replay of the schedule.
_MOST_LINES = 8


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find lines that copy what they, or others, have copied before.

    Trigger: at least four copies of a line from the host to one GPU have the same size and the same
    ``content``, which the table ``launch_blocks`` has for copies of at least 1 MiB, and the GPU has
    room for one array of each beside its peak. The bytes are not all zeros or ones where they are
    compared, as those of masks and sparse arrays can be that differ elsewhere. No copy to the host
    has that ``content``: what comes back from the GPU may be an array that kernels changed
    elsewhere. Copies of several lines count together if nothing else writes to their arrays.

    Saving: the recording's `Schedule`, replayed without these copies but the first of each content,
    and without their calls. CuPy first copies an array to pinned memory: a time before a call that
    fits this vanishes, too. The content is compared at 64 places only: ``likely``.
    """
    work, content = _with_content(schedule, _TO_DEVICE)
    is_new = ~np.isin(content, _with_content(schedule, _TO_HOST)[1])
    is_new &= ~copies_of_arguments(schedule)[work]  # those of R65
    sizes = plain(schedule.recording.tables["activities"]["bytes"])[schedule.rows[work]]
    is_new &= ~are_filled(content, sizes)
    work, content, sizes = work[is_new], content[is_new], sizes[is_new]
    if not len(work):
        return
    device = schedule.device[work]
    group = _numbers(sizes, content.view(np.int64), device)
    line = np.unique(schedule.lines[work], return_inverse=True)[1].ravel()
    part = _numbers(group, line)
    by_line = np.bincount(part)[part] >= _LEAST_COPIES
    unchanged = _are_only_read(schedule, work) & ~np.isin(group, group[by_line])
    together = unchanged & (np.bincount(group, unchanged)[group] >= _LEAST_COPIES)
    copied = np.flatnonzero(by_line | together)
    if not len(copied):
        return
    # Lines that copy the same arrays are one finding.
    of_array = np.where(by_line, part, int(part.max()) + 1 + group)[copied]
    arrays = np.unique(of_array, return_index=True, return_inverse=True)
    again = np.ones(len(copied), bool)
    again[arrays[1]] = False
    place = _numbers(line[copied], device[copied])
    cause = components(int(place.max()) + 1, place[arrays[1]][arrays[2].ravel()], place)[place]
    spent = np.bincount(cause, np.where(again, schedule.duration[work[copied]], 0))
    for each in np.argsort(-spent, kind="stable")[:_MOST_LINES].tolist():
        own = cause == each
        if not own.any():
            continue
        copies, is_again = work[copied[own]], again[own]
        kept_bytes = int(sizes[copied[own]][~is_again].sum())
        if _have_room(schedule, int(schedule.device[copies[0]]), kept_bytes):
            yield _finding(schedule, copies, is_again, kept_bytes)


def _numbers(*columns: np.ndarray) -> np.ndarray:
    """Return a number for each row of some columns, equal for equal rows."""
    numbers: np.ndarray = np.unique(np.stack(columns), axis=1, return_inverse=True)[1].ravel()
    return numbers


def _are_only_read(schedule: Schedule, copies: np.ndarray) -> np.ndarray:
    """Return whether each copy is all that writes to its array."""
    used = schedule.touches
    if used is None:
        return np.zeros(len(copies), bool)
    written = np.flatnonzero(used.mode != _READ)
    writes = np.bincount(used.block[written], minlength=len(used.blocks))
    by_copy = written[np.isin(used.activity[written], schedule.rows[copies])]
    alone = used.activity[by_copy[writes[used.block[by_copy]] == 1]]
    found: np.ndarray = np.isin(schedule.rows[copies], alone)
    return found


def _with_content(schedule: Schedule, kind: int) -> tuple[np.ndarray, np.ndarray]:
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


def _finding(
    schedule: Schedule, copies: np.ndarray, is_again: np.ndarray, kept_bytes: int
) -> Finding:
    recording, again = schedule.recording, copies[is_again]
    sizes = plain(recording.tables["activities"]["bytes"])[schedule.rows[again]]
    staged = _staged(schedule, again)
    change = without_copies(schedule, again, staged)
    copied = format_bytes(int(sizes.sum()))
    spent = format_duration(int(schedule.duration[again].sum()))
    calls, device = distinct(schedule.call[again]), int(schedule.device[again[0]])
    host_ns = int((schedule.returned - schedule.called)[calls].sum())
    host_ns += int(host_gaps(recording, device).length[staged].sum())
    contents = int(np.count_nonzero(~is_again))
    which = "the same bytes" if contents == 1 else f"one of {format_count(contents)} sets of bytes"
    more = len(distinct(schedule.lines[copies])) - 1
    shown = copies if more else again
    stacks = stacks_of(recording.tables, schedule.call[shown])
    what, does, once = text_of(line_of(recording, int(stacks[0]), spent)), "copies", "the loop"
    if more:
        what += f" and {format_counted(more, 'more line')}"
        does, once = "copy", "the first of these lines, pass the array to each of them"
    return Finding(
        rule="R29",
        title=f"{what} {does} {which} to the GPU {format_count(len(again))} more times "
        f"than needed, {copied} in all.",
        reason=f"These copies take {spent} on the GPU and {format_duration(host_ns)} of the host. "
        "Their sources have the same size and the same bytes at 64 places, spread evenly over "
        "them.",
        change=f"Copy them once, before {once}, and keep the "
        f"{format_bytes(kept_bytes)} on the GPU. If kernels change an array, copy it there from "
        "one that is kept.",
        certainty="likely",
        device=device,
        saved_ns=schedule.saved_alone(change),
        lines=longest_lines(recording, stacks, schedule.duration[shown]),
        evidence=schedule.evidence(again),
        schedule=change,
    )


def _staged(schedule: Schedule, copies: np.ndarray) -> np.ndarray:
    """Return the calls of copies from pinned memory that the host filled right before."""
    calls = schedule.call[copies]
    gap = host_gaps(schedule.recording, int(schedule.device[copies[0]])).length[calls]
    staged = np.zeros(len(schedule.called), bool)
    staged[calls[fits_copy(uploaded_bytes(schedule.recording, calls), gap)]] = True
    return staged
