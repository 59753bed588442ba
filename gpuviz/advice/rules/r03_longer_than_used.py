"""R01 and R03: arrays are not used at all, or allocated for longer than they are used."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpuviz.advice.arrays.deletions import BY_CALLER, deletion, generator_advice
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import distinct
from gpuviz.quantities import format_bytes, format_count

RULES = (
    Rule(
        "R01",
        "arrays that nothing reads",
        "as R03; the program allocates and frees them, and at most copies and memsets write there",
        "remove the line",
    ),
    Rule(
        "R03",
        "arrays of several lines are allocated for longer than they are used",
        "allocated right before their first use and freed right after the last, the arrays of at "
        "most eight lines lower the peak that the other findings leave; filling an array from the "
        "host or with zeros is no use of it, since the program can do it later, and an array that "
        "is only filled is not needed",
        "as the finding lists: allocate and fill later, `del` earlier, remove",
    ),
)

# More lines than this are another program rather than a change.
_MOST_LINES = 8
# Of the saving; what adds less is left as it is.
_LEAST_PART = 0.02
_QUEUE = "`queue.Queue(maxsize=1)`"


@dataclass(frozen=True, slots=True)
class _Trim:
    """A line whose blocks are allocated right before their first use, freed after the last.

    Attributes:
        line: Its number in ``DeviceBlocks.site``.
        begin: Whether the blocks are allocated later.
        end: Whether they are freed earlier, or not allocated if nothing reads them.
    """

    line: int
    begin: bool = True
    end: bool = True


def find(device: DeviceBlocks, changes: Sequence[Change]) -> Iterator[Finding]:
    """Find lines that lower the peak together, though perhaps none of them alone.

    Trigger: the blocks of at most eight lines, allocated right before their first use and freed
    right after their last one, lower the peak that is left after the changes of other findings. A
    copy from the host and a memset do not count as a first use, because the program can make them
    later. Blocks that only copies and memsets write are not needed at all. The lines are found
    where the peak is: the one with the most unused bytes there is trimmed first, until a peak has
    none; what adds less than 2 % of the saving is dropped. If nothing reads any of the blocks, this
    is R01.

    The saving is the decrease of the peak if every block of these lines had these lifetimes. It is
    ``possible`` if the arrays are filled later, because the host's array may change until then.

    Args:
        device: The blocks.
        changes: The changes that other findings propose.
    """
    trims = _trims(device, changes)
    change = _change(device, trims, changes)
    saved = device.replay.saving(change)
    without = _of_unread(device, change)
    if device.replay.saving(without) >= (1 - _LEAST_PART) * saved:
        change, saved = without, device.replay.saving(without)
    if saved:
        yield _finding(device, trims, changes, change, saved)


def _change(device: DeviceBlocks, trims: Sequence[_Trim], changes: Sequence[Change]) -> Change:
    """Return the lifetimes of the blocks of some lines that no other change has."""
    begins = np.isin(device.site, [each.line for each in trims if each.begin])
    ends = np.isin(device.site, [each.line for each in trims if each.end])
    # Without a use that needs the array, there is no line to allocate it at.
    begins &= device.needed.used[device.number]
    begin = np.where(begins & ~device.is_unread, device.first_needed, device.begin)
    last = np.where(device.is_freed & device.is_used, device.last, device.end)
    ends &= ~device.is_stuck & ~device.is_for_later
    end = np.where(
        ends, np.where(device.is_unread, device.begin, last), device.replacements.ends_with(begin)
    )
    end = np.maximum(begin, end)
    changed = (begin != device.begin) | (end != device.end)
    for change in changes:
        changed[change.blocks] = False
    blocks = np.flatnonzero(changed)
    return Change(blocks, begin[blocks], end[blocks])


def _of_unread(device: DeviceBlocks, change: Change) -> Change:
    """Return a change without the blocks that are read, of lines with others that are not.

    Both are there at the peak, as in a list. In a loop, the program may not know it beforehand.
    """
    site, is_unread = device.site[change.blocks], device.is_unread[change.blocks]
    is_there = device.at_peak[change.blocks]
    mixed = np.intersect1d(site[is_unread & is_there], site[~is_unread & is_there])
    kept = is_unread | ~np.isin(site, mixed)
    return Change(change.blocks[kept], change.begin[kept], change.end[kept])


def _trims(device: DeviceBlocks, changes: Sequence[Change]) -> list[_Trim]:
    """Return the fewest lines and ends whose trimmed blocks lower the peak."""
    every = _change(device, [_Trim(line) for line in distinct(device.site).tolist()], changes)
    site, size = device.site[every.blocks], device.size[every.blocks]
    trims: list[_Trim] = []
    while len(trims) < _MOST_LINES:
        change = _change(device, trims, changes)
        begin, end = device.begin.copy(), device.end.copy()
        begin[change.blocks], end[change.blocks] = change.begin, change.end
        place = device.replay.peak_place_after([*changes, change])
        there = (begin[every.blocks] <= place) & (place < end[every.blocks])
        idle = there & ((every.begin > place) | (every.end <= place))
        idle &= ~np.isin(site, [each.line for each in trims])
        if not idle.any():
            break
        lines, group = np.unique(site[idle], return_inverse=True)
        trims.append(_Trim(int(lines[np.argmax(np.bincount(group, weights=size[idle]))])))
    return _needed(device, trims, changes)


def _needed(device: DeviceBlocks, trims: list[_Trim], changes: Sequence[Change]) -> list[_Trim]:
    """Return the trims without those that add little to the saving."""

    def peak_of(trims: list[_Trim]) -> int:
        return device.replay.peak_after([*changes, _change(device, trims, changes)])

    before = device.replay.peak_after(changes)
    at_most = before - (1 - _LEAST_PART) * (before - peak_of(trims))
    for trim in reversed(trims.copy()):
        place = trims.index(trim)
        for fewer in (
            [],
            [_Trim(trim.line, begin=False)],
            [_Trim(trim.line, end=False)],
        ):
            others = [*trims[:place], *fewer, *trims[place + 1 :]]
            if peak_of(others) <= at_most:
                trims = others
                break
    return sorted(trims, key=lambda trim: trim.line)


def _finding(
    device: DeviceBlocks,
    trims: Sequence[_Trim],
    changes: Sequence[Change],
    change: Change,
    saved: int,
) -> Finding:
    of_lines = [change.blocks[device.site[change.blocks] == trim.line] for trim in trims]
    fills = [
        trim.begin and _is_filled_early(device, of_line)
        for trim, of_line in zip(trims, of_lines, strict=True)
    ]
    blocks = np.concatenate(of_lines)
    size = format_bytes(device.replay.most_at_once(blocks))
    # A cell that has run again is another line with the same text.
    advice = dict.fromkeys(
        _advice(device, trim, [*changes, change], of_line, fill=fill)
        for trim, of_line, fill in zip(trims, of_lines, fills, strict=True)
    )
    which = "one line" if len(advice) == 1 else f"{format_count(len(advice))} lines"
    is_unread = bool(device.is_unread[blocks].all())
    return Finding(
        rule="R01" if is_unread else "R03",
        title=f"{size} from {which} is allocated, but nothing reads it."
        if is_unread
        else f"{size} from {which} is allocated for longer than it is used.",
        reason=(
            f"At most {format_bytes(device.peak.bytes - saved)} would be allocated at once, "
            f"instead of {format_bytes(device.peak.bytes)}."
        ),
        change=" ".join(advice),
        certainty="possible" if any(fills) else "likely",
        device=device.device,
        saved_bytes=saved,
        lines=tuple(device.lines.line_of(_at_peak(device, each)) for each in of_lines),
        evidence=device.lines.evidence(blocks),
        lifetimes=change,
    )


def _at_peak(device: DeviceBlocks, blocks: np.ndarray) -> np.ndarray:
    """Return the blocks of a line that are at the peak; all if none is, as after other changes."""
    there: np.ndarray = blocks[device.at_peak[blocks]]
    return there if len(there) else blocks


def _is_filled_early(device: DeviceBlocks, blocks: np.ndarray) -> bool:
    """Return whether copies or memsets of blocks would have to be made later."""
    is_early = device.is_used[blocks] & (device.first_needed[blocks] > device.first[blocks])
    return bool((is_early & ~device.is_unread[blocks]).any())


def _advice(
    device: DeviceBlocks,
    trim: _Trim,
    changes: Sequence[Change],
    blocks: np.ndarray,
    *,
    fill: bool,
) -> str:
    """Return what to change in a line; its ``blocks`` are among those of the last change."""
    line = device.lines.line_of(blocks)
    name = named(line.site, line.source)
    if device.is_unread[blocks].all():
        every = int(np.count_nonzero(device.site == trim.line))
        if len(blocks) < every:
            count = f"{format_count(len(blocks))} of the {format_count(every)} arrays"
            return f"Leave out {count} of {name}: nothing reads them."
        return f"Remove {name}: nothing reads it."
    later = _moved(device, changes, blocks, are_freed=False)
    earlier = _moved(device, changes, blocks, are_freed=True)
    parts, notes = [], ""
    # A variable has an array, and for a moment the one before it.
    are_several = device.replay.most_at_once(blocks) > 2 * int(device.size[blocks].max())
    # Of two arrays of one line, one may be moved, and the other be deleted.
    is_same = are_several or _share(later, earlier)
    one, other = ("it", "it") if is_same else ("one array", "another")
    if len(later) and device.is_handed_over[later].all():
        first = named(*device.lines.first_need(later))
        parts.append(f"let at most one wait for {first} in another thread ({_QUEUE})")
    elif len(later):
        first = named(*device.lines.first_need(later))
        parts.append(f"allocate{' and fill' if fill else ''} {one} right before {first}")
    if len(earlier) and are_several:
        after = device.lines.after_last_use(blocks)
        parts.append(f"delete each array, from lists too, after its last use, such as {after}")
    elif len(earlier):
        deleted = deletion(device, earlier)
        variable = deleted.variable if deleted.variable != "it" else other
        parts.append(f"delete {variable} (`del`) {deleted.when}")
    if len(earlier):
        notes = generator_advice(device, line)
        if not are_several and device.lines.are_held_at_peak(earlier):
            notes += BY_CALLER
    return f"{name}: {' and '.join(parts)}.{notes}"


def _moved(
    device: DeviceBlocks,
    changes: Sequence[Change],
    blocks: np.ndarray,
    *,
    are_freed: bool,
) -> np.ndarray:
    """Return the blocks of a line that are freed earlier, or allocated later, than recorded.

    Without those that the peak does not need to be, where the uses of others are in other lines.

    Args:
        device: All blocks.
        changes: All changes; the last is of this line, too.
        blocks: Those of the line.
        are_freed: Which of the two.
    """
    *others, change = changes
    whole = change.blocks
    recorded = (device.end if are_freed else device.begin)[whole]
    changed = change.end if are_freed else change.begin
    moved = np.isin(whole, blocks) & (changed != recorded)
    uses = (device.used.last if are_freed else device.needed.first)[device.number[whole]]
    stacks = stacks_of(device.recording.tables, uses)
    lines = distinct(stacks[moved]).tolist()
    peak, needed = device.replay.peak_after(changes), moved
    for line in lines if 1 < len(lines) <= _MOST_LINES else []:
        fewer = needed & (stacks != line)
        places = np.where(fewer, changed, recorded)
        without = replace(change, end=places) if are_freed else replace(change, begin=places)
        if device.replay.peak_after([*others, without]) <= peak:
            needed = fewer
    chosen: np.ndarray = whole[needed if needed.any() else moved]
    return chosen


def _share(some: np.ndarray, others: np.ndarray) -> bool:
    return not len(some) or not len(others) or bool(np.isin(some, others).any())
