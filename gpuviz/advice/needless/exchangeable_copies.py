"""Copies of whole arrays whose sources are not needed afterwards: names could be swapped."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ, WRITE
from gpuviz.advice.host_lines import line_numbers
from gpuviz.advice.needless.whole_writes import may_overwrite, overwrites
from gpuviz.advice.replay.trace import COPY
from gpuviz.advice.source.copied_names import copied_names
from gpuviz.advice.source.taken_parts import tree_of_line
from gpuviz.analysis.grouping import components
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import plain
from gpuviz.data.strings import are_named

_COPY_KERNEL = re.compile(r"cupy_copy__(\w+)_\1$")
# Functions of libraries that only copy what they get.
_COPIES = ("copy", "copyto", "clone")
# Fewer copies may be parts of a program that know nothing of each other.
_LEAST_ROUNDS = 4
_NEVER = 2**62
# A copy uses two blocks.
_PAIR = 2
# How a source ends: it is needed, nothing is known, it is freed, or a call overwrites it, perhaps.
NEEDED, OPEN, FREED, OVERWRITTEN, PERHAPS = range(5)


@dataclass(frozen=True, eq=False, slots=True)
class ExchangeableCopies:
    """Copies of lines that rotate the same arrays, in the order of their calls, in columns.

    Attributes:
        work: Their numbers in the schedule.
        source: What they copy, indices of the device's blocks.
        target: What they write.
        is_new: Whether each target is a new array, which the copy writes first.
        end: How the source of each ends, from `OPEN` to `PERHAPS`.
        overwritten_by: The row of ``api_calls`` that overwrites the source of each; -1 if none.
        names: The target and the source in the text of each copy of the lines.
        is_rotation: Whether exchanging these names is all that has to be done.
        is_renamed: Whether each is on a line whose new targets could be their sources themselves,
            since nothing overwrites any of these.
    """

    work: np.ndarray
    source: np.ndarray
    target: np.ndarray
    is_new: np.ndarray
    end: np.ndarray
    overwritten_by: np.ndarray
    names: tuple[tuple[str, str], ...]
    is_rotation: bool
    is_renamed: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class _Copies:
    """Copies of whole blocks, as in `ExchangeableCopies`, with their calls."""

    call: np.ndarray
    work: np.ndarray
    source: np.ndarray
    target: np.ndarray
    is_new: np.ndarray
    end: np.ndarray
    overwritten_by: np.ndarray

    def of(self, chosen: np.ndarray) -> "_Copies":
        """Return some of them."""
        return _Copies(*(getattr(self, name)[chosen] for name in self.__slots__))


def exchangeable_copies(device: DeviceBlocks) -> Iterator[ExchangeableCopies]:
    """Yield the lines that copy whole arrays, round after round, although names could be swapped.

    A line copies a block to another of its size at least four times, by a memcpy or by CuPy's copy
    kernel: to the same one each time, or to a new one that is freed before the second copy after
    it. The next use of each source overwrites all of it, unless its kernel leaves something out, or
    it is freed first. So the target could have been the source itself, and the source what the
    target was before. Only the last copy of a line may be followed by a use of its source.

    The program's text shows that the copy changes nothing: see
    `gpuviz.advice.source.copied_names.copied_names`. Not in a training, where gradients refer to
    arrays too, and not what a line copies of its own temporary results.
    """
    if device.training is not None:
        return
    copies = _copies(device)
    if not len(copies.call):
        return
    stacks = stacks_of(device.recording.tables, copies.call)
    lines = line_numbers(device.recording, stacks)
    names: dict[int, list[tuple[str, str]]] = {}
    for line in np.unique(lines).tolist():
        rows = np.flatnonzero(lines == line)
        if len(rows) >= _LEAST_ROUNDS and (copies.end[rows] >= FREED).any():
            found = _names(device, np.unique(stacks[rows]))
            if found and _rotates(device, copies.of(rows), len(found)):
                names[line] = found
    chosen = np.flatnonzero(np.isin(lines, list(names)) & (copies.end != NEEDED))
    copies, lines = copies.of(chosen), lines[chosen]
    groups = _groups(copies, lines)
    for group in np.unique(groups).tolist():
        own = copies.of(np.flatnonzero(groups == group))
        known = [names[line] for line in dict.fromkeys(lines[groups == group].tolist())]
        yield _found(device, own, tuple(each for pairs in known for each in pairs))


def _copies(device: DeviceBlocks) -> _Copies:
    """Return the copies of whole blocks to others of their size that the program makes itself."""
    used = device.used
    read, written = _pairs(device)
    source, target = device.place[used.block[read]], device.place[used.block[written]]
    able = device.is_seen & ~device.is_shared & ~device.is_used_at_any_time
    able = np.append(able, False)
    chosen = able[source] & able[target] & (source != target)
    chosen &= used.blocks.requested[used.block[read]] == used.blocks.requested[used.block[written]]
    streams = used.blocks.stream
    chosen &= streams[used.block[read]] == streams[used.block[written]]
    call = used.call[read]
    # The line has no name for what it makes itself.
    chosen &= device.call_times[call] >= np.append(device.made_until, 0)[source]
    chosen[chosen] = _are_own(device, call[chosen])
    read, written = read[chosen], written[chosen]
    end, overwritten_by = _ends(device, read)
    return _Copies(
        call=call[chosen],
        work=device.schedule.number[used.activity[read]],
        source=source[chosen],
        target=target[chosen],
        is_new=used.first[used.block[written]] == call[chosen],
        end=end,
        overwritten_by=overwritten_by,
    )


def _pairs(device: DeviceBlocks) -> tuple[np.ndarray, np.ndarray]:
    """Return the touches by which copies read a whole block, and those by which they write one."""
    used, tables = device.used, device.recording.tables
    requested = used.blocks.requested[used.block]
    kinds = device.schedule.kind[device.schedule.number[used.activity]]
    names, size = (plain(tables["activities"][name]) for name in ("name", "bytes"))
    able = (used.activity >= 0) & (kinds == COPY) & (size[used.activity] >= requested)
    by_kernel = are_named(tables, names, _COPY_KERNEL.match)
    able |= (used.activity >= 0) & by_kernel[used.activity] & _are_whole(device)
    count = tables["api_calls"].num_rows
    able &= used.at_begin & (np.bincount(used.call, minlength=count) == _PAIR)[used.call]
    read, written = np.full(count, -1), np.full(count, -1)
    for rows, mode in ((read, READ), (written, WRITE)):
        chosen = np.flatnonzero(able & (used.mode == mode))
        rows[used.call[chosen]] = chosen
    calls = np.flatnonzero((read >= 0) & (written >= 0))
    calls = calls[np.argsort(device.call_times[calls], kind="stable")]
    return read[calls], written[calls]


def _are_whole(device: DeviceBlocks) -> np.ndarray:
    """Return which touches are by elementwise functions that write all elements of a block."""
    launches = device.elementwise
    found: np.ndarray = np.isin(device.used.call, launches.call[launches.is_whole])
    return found


def _are_own(device: DeviceBlocks, calls: np.ndarray) -> np.ndarray:
    """Return which calls the program makes, perhaps by functions of libraries that only copy."""
    recording = device.recording
    stacks, place = np.unique(stacks_of(recording.tables, calls), return_inverse=True)
    frames_of = recording.call_stacks.frames
    own = np.zeros(len(stacks), bool)
    for row, stack in enumerate(stacks.tolist()):
        frames = frames_of(stack)
        outer = [number for number, each in enumerate(frames) if not each.is_installed]
        own[row] = bool(outer) and all(each.name in _COPIES for each in frames[: outer[0]])
    found: np.ndarray = own[place.ravel()]
    return found


def _ends(device: DeviceBlocks, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how each source that some touches read ends, and the call that overwrites it."""
    used, schedule = device.used, device.schedule
    order = np.argsort(used.block, kind="stable")
    block, call = used.block[order], used.call[order]
    # The place after all touches of the same block by the same call.
    begins = np.append(True, (block[1:] != block[:-1]) | (call[1:] != call[:-1]))
    starts = np.flatnonzero(begins)
    number = np.cumsum(begins) - 1
    only = np.logical_and.reduceat(used.mode[order] == WRITE, starts)
    work = schedule.number[used.activity[order]]
    work = np.where(used.activity[order] >= 0, work, 0)
    seen = used.activity[order] >= 0
    surely = seen & (overwrites(device, order, work) | _are_all_elements(device, order))
    maybe = seen & may_overwrite(device, order, work)
    surely, maybe = (np.logical_and.reduceat(each, starts) & only for each in (surely, maybe))
    place = np.empty(len(order), np.int64)
    place[order] = number
    following = place[rows] + 1
    has_next = following < len(starts)
    following = np.minimum(following, len(starts) - 1)
    has_next &= block[starts[following]] == used.block[rows]
    freed = used.blocks.end[used.block[rows]] >= 0
    end = np.where(has_next, NEEDED, np.where(freed, FREED, OPEN))
    end[has_next & maybe[following]] = PERHAPS
    end[has_next & surely[following]] = OVERWRITTEN
    by = np.where(np.isin(end, (OVERWRITTEN, PERHAPS)), call[starts[following]], -1)
    return end, by


def _are_all_elements(device: DeviceBlocks, touches: np.ndarray) -> np.ndarray:
    """Return which touches write each element of a block, of which the recording has the bytes.

    gpuviz knows them of kernels that access all elements of each array that they get.
    """
    used, launches = device.used, device.elementwise
    requested = used.blocks.requested[used.block[touches]]
    whole = used.at_begin[touches] & (used.bytes[touches] >= requested) & (requested > 0)
    found: np.ndarray = whole & ~np.isin(used.call[touches], launches.call)
    return found


def _rotates(device: DeviceBlocks, copies: _Copies, of_round: int) -> bool:
    """Return whether a line copies in rounds, to the same arrays or to ones that replace others.

    Args:
        device: The blocks of a device.
        copies: The copies of the line.
        of_round: How many of them it makes in each round.
    """
    if (copies.end[:-of_round] == NEEDED).any():
        return False
    _, place, counts = np.unique(copies.target, return_inverse=True, return_counts=True)
    again = counts[place.ravel()] >= _LEAST_ROUNDS
    ends = device.used.blocks.end[device.number[copies.target]]
    ends = np.where(ends < 0, _NEVER, ends)
    later = 2 * of_round
    times = np.append(device.call_times[copies.call], [_NEVER] * later)[later:]
    replaced = copies.is_new & (ends <= times)
    return bool((again | replaced).all())


def _names(device: DeviceBlocks, stacks: np.ndarray) -> list[tuple[str, str]]:
    """Return the targets and sources in the text of a line; none if it may do something else."""
    for stack in stacks.tolist():
        tree = tree_of_line(device.recording, stack)
        found = [] if tree is None else copied_names(tree)
        if found:
            return found
    return []


def _groups(copies: _Copies, lines: np.ndarray) -> np.ndarray:
    """Return a number for each copy, equal for lines of which one copies what another has made."""
    known, number = np.unique(lines, return_inverse=True)
    number = number.ravel()
    blocks = np.union1d(copies.source, copies.target)
    touched = np.concatenate([copies.source, copies.target])
    nodes = len(known) + np.searchsorted(blocks, touched)
    labels = components(len(known) + len(blocks), np.append(number, number), nodes)
    found: np.ndarray = labels[number]
    return found


def _found(
    device: DeviceBlocks, copies: _Copies, names: tuple[tuple[str, str], ...]
) -> ExchangeableCopies:
    lines = line_numbers(device.recording, stacks_of(device.recording.tables, copies.call))
    is_renamed = ~np.isin(lines, lines[~copies.is_new | (copies.end >= OVERWRITTEN)])
    return ExchangeableCopies(
        work=copies.work,
        source=copies.source,
        target=copies.target,
        is_new=copies.is_new,
        end=copies.end,
        overwritten_by=copies.overwritten_by,
        names=names,
        is_rotation=_is_rotation(device, copies, lines),
        is_renamed=is_renamed,
    )


def _is_rotation(device: DeviceBlocks, copies: _Copies, lines: np.ndarray) -> bool:
    """Return whether what each new target replaces is unused then, or copied itself.

    Then it can take the place of the source. Otherwise another name has it.
    """
    used, times = device.used, device.call_times[copies.call]
    again = np.flatnonzero(copies.is_new & (copies.end >= OVERWRITTEN))
    for line in np.unique(lines[again]).tolist():
        rows = again[lines[again] == line]
        replaced = copies.target[rows[:-1]]
        last = np.append(device.call_times, -1)[used.last[device.number[replaced]]]
        is_copied = np.isin(replaced, copies.source)
        if ((last > times[rows[1:]]) & ~is_copied).any():
            return False
    return True
