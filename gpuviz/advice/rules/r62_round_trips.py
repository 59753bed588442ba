"""R62: arrays that go from the GPU to the host and straight back."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpuviz.advice.finding import Finding
from gpuviz.advice.host.host_arguments import copies_of_arguments
from gpuviz.advice.host_lines import line_numbers, line_of, longest_lines, text_of
from gpuviz.advice.replay.copied_contents import with_known_content, without_copies
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.replay.trace import COPY, KERNEL
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.codes import CallKind
from gpuviz.data.columns import codes, plain
from gpuviz.data.once import Once
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_bytes, format_count, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    # Copies to the host, and for each the one of the same bytes to the GPU.
    _Trips = tuple[np.ndarray, np.ndarray]

RULES = (
    Rule(
        "R62",
        "a round trip through the host",
        "at least four times, one line copies 1 MiB or more to the host, and one line copies as "
        "many bytes to the same GPU that are equal at 64 places, different ones at least three "
        "times; the array is still on the GPU then, or no kernel was launched meanwhile; the "
        "saving is without both copies and their waits",
        "`torch.from_dlpack`, `cupy.from_dlpack`: libraries share an array on the GPU",
    ),
)

_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_TO_DEVICE, _TO_HOST = map(_COPY_KINDS.index, ("host_to_device", "device_to_host"))
_PAGEABLE = DICTIONARIES["activities", "host_memory"].index("pageable")
# Fewer copies may be the parts of a program that know nothing of each other.
_LEAST_TRIPS = 4
# Arrays of zeros are equal, too.
_LEAST_CONTENTS = 3
# Each pair of lines costs a replay of the schedule.
_MOST_PAIRS = 8


@dataclass(frozen=True, eq=False, slots=True)
class _Copies:
    """Copies whose bytes are known at 64 places.

    Attributes:
        work: Their activities, in the order of time.
        key: Device, bytes and ``content`` of each.
        to_host: Whether each is a copy to the host.
    """

    work: np.ndarray
    key: np.ndarray
    to_host: np.ndarray


def find(schedule: Schedule) -> "Iterator[Finding]":
    """Find arrays that a program copies to the host and back to the same GPU.

    Trigger: copies to the host that are done when their call returns, and later copies from the
    host of the same size and ``content``, which the table ``launch_blocks`` has for copies of at
    least 1 MiB: at least four times by the same two lines, with at least three contents. The first
    array is still allocated at the second copy, or no kernel was launched between the two: a
    program that moves an array to the host for its memory does something else meanwhile.

    Saving: the recording's `Schedule`, replayed without these copies, their calls and their waits,
    also those in synchronizations on their lines. The content is compared at 64 places only, and
    the host may need the values, too: ``likely``.
    """
    for first, second in round_trips(schedule):
        yield _finding(schedule, first, second)


@Once
def round_trips(schedule: Schedule) -> "tuple[_Trips, ...]":
    """Return the copies to the host of each two lines, and those that bring the arrays back.

    They are computed once for a schedule.
    """
    return tuple(_round_trips(schedule))


def _round_trips(schedule: Schedule) -> "Iterator[_Trips]":
    copies = _with_content(schedule)
    pairs = _pairs(copies)
    if not pairs.size:
        return
    pairs = pairs[:, _is_needless(schedule, *copies.work[pairs])]
    first, second = copies.work[pairs]
    lines = np.stack([schedule.lines[first], schedule.lines[second]])
    _, pair = np.unique(lines, axis=1, return_inverse=True)
    pair = pair.ravel()
    contents = copies.key[2][pairs[1]]
    spent = np.bincount(pair, schedule.duration[first] + schedule.duration[second])
    for each in np.argsort(-spent, kind="stable")[:_MOST_PAIRS].tolist():
        chosen = pair == each
        distinct = len(np.unique(contents[chosen]))
        if chosen.sum() >= _LEAST_TRIPS and distinct >= _LEAST_CONTENTS:
            yield first[chosen], second[chosen]


def calls_of_trips(schedule: Schedule, copies: np.ndarray) -> np.ndarray:
    """Return the calls of copies, and the synchronizations on their lines that wait only for them.

    A function such as `torch.Tensor.cpu` synchronizes after its copy.
    """
    constraints = schedule.constraints
    waits = np.flatnonzero((constraints.work >= 0) & (constraints.call >= 0))
    work, call = constraints.work[waits], constraints.call[waits]
    is_copy = np.isin(work, copies)
    work, call = (each[is_copy & ~np.isin(call, call[~is_copy])] for each in (work, call))
    both = np.concatenate([call, schedule.call[work]])
    lines = line_numbers(schedule.recording, stacks_of(schedule.recording.tables, both))
    of_call, of_work = np.split(lines, 2)
    calls: np.ndarray = np.union1d(schedule.call[copies], call[of_call == of_work])
    return calls


def _with_content(schedule: Schedule) -> _Copies:
    activities = schedule.recording.tables["activities"]
    kinds = codes(activities["copy_kind"], _COPY_KINDS)[schedule.rows]
    memories = codes(activities["host_memory"], DICTIONARIES["activities", "host_memory"])
    # Another copy to the host may go on when its call returns.
    is_done = memories[schedule.rows] == _PAGEABLE
    is_done |= np.append(schedule.call_kinds == CallKind.MEMCPY, False)[schedule.call]
    work = (schedule.kind == COPY) & (schedule.call >= 0)
    work &= (kinds == _TO_DEVICE) | ((kinds == _TO_HOST) & is_done)
    work &= ~copies_of_arguments(schedule)  # those of R65
    rows, content = with_known_content(schedule, np.flatnonzero(work))
    size = plain(activities["bytes"])[schedule.rows[rows]]
    key = np.stack([schedule.device[rows].astype(np.int64), size, content.view(np.int64)])
    return _Copies(rows, key, kinds[rows] == _TO_HOST)


def _pairs(copies: _Copies) -> np.ndarray:
    """Return pairs of copies, one to the host and the next of the same bytes, which is back."""
    _, group = np.unique(copies.key, axis=1, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    ordered, to_host = group.ravel()[order], copies.to_host[order]
    is_pair = (ordered[1:] == ordered[:-1]) & to_host[:-1] & ~to_host[1:]
    rows = np.flatnonzero(is_pair)
    return np.stack([order[rows], order[rows + 1]])


def _is_needless(schedule: Schedule, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return which arrays are still on the GPU at the second copy, or were moved without work."""
    launched = np.sort(schedule.launch_begin()[(schedule.kind == KERNEL) & (schedule.call >= 0)])
    begin, end = (schedule.called[schedule.call[each]] for each in (first, second))
    found: np.ndarray = np.searchsorted(launched, begin) == np.searchsorted(launched, end)
    used = schedule.touches
    if used is not None and len(used.call):
        order = np.argsort(used.call, kind="stable")
        place = np.searchsorted(used.call[order], schedule.call[first])
        touch = order[np.minimum(place, len(order) - 1)]
        ends = used.blocks.end[used.block[touch]]
        found |= (used.call[touch] == schedule.call[first]) & ((ends < 0) | (ends > end))
    return found


def _finding(schedule: Schedule, first: np.ndarray, second: np.ndarray) -> Finding:
    recording = schedule.recording
    work = np.concatenate([first, second])
    without = without_copies(schedule, work)
    removed = np.zeros(len(schedule.called), bool)
    removed[calls_of_trips(schedule, work)] = True
    change = replace(without, without_wait=removed)
    sizes = plain(recording.tables["activities"]["bytes"])[schedule.rows[first]]
    stacks = stacks_of(recording.tables, schedule.call[work])
    spent = format_duration(int(schedule.duration[work].sum()))
    back = line_of(recording, int(stacks[len(first)]), spent)
    return Finding(
        rule="R62",
        title=f"{text_of(back)} copies {format_bytes(int(sizes.sum()))} to the GPU that came from "
        f"it, in {format_count(len(first))} round trips through the host.",
        reason=(
            f"Each array was copied to the host before, and came back with the same bytes at 64 "
            f"places, spread evenly over it. The copies take {spent} on the GPU, and the host "
            "waits for the work before them."
        ),
        change=(
            "Keep the array on the GPU: `torch.from_dlpack(array)` and `cupy.from_dlpack(tensor)` "
            "share its memory without a copy. Copy it there (`.clone()`, `.copy()`) if one of the "
            "two is changed and the other still used. If the host needs the values too, keep the "
            "copy to the host."
        ),
        certainty="likely",
        device=int(schedule.device[first[0]]),
        saved_ns=schedule.saved_alone(change),
        lines=longest_lines(recording, stacks, schedule.duration[work]),
        evidence=schedule.evidence(np.sort(work)),
        schedule=change,
    )
