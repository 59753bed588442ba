"""R45: arrays that nothing uses any more are still allocated at the peak."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.deletions import (
    BY_CALLER,
    deletion,
    generator_advice,
    is_of_with_block,
    named_later,
)
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.line_changes import changes_by_line
from gpuviz.advice.arrays.mapped_lists import (
    LEAST_MAPPED,
    are_used_together,
    kept_since,
    mapped_by_peak_line,
    mapped_lists,
)
from gpuviz.advice.finding import Finding, is_of_backward, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.data.implied_columns import assigned_names
from gpuviz.quantities import format_bytes, format_count

RULES = (
    Rule(
        "R45",
        "arrays that nothing uses any more at the peak",
        "they are last used by a line that ends before the peak, and freed after it",
        "`del` after that line; several arrays of one line: drop the references, such as a list; "
        "of a list that the line maps to another one, also in each round of a loop, replace each "
        "array by its result",
    ),
)

# With fewer, they are rather variables than a list.
_LEAST_OTHERS = 2


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find the lines whose arrays are dead at the peak.

    Trigger: blocks that one line allocated are allocated at the peak, the statement of their last
    use ends before it, and they are freed after it. The saving is the decrease of the peak if every
    block of that line were freed right after its last use. Blocks that the recording does not free
    are not counted: a later cell may use them. Neither are those that nothing reads, which R01
    finds, nor those that only the garbage collector frees, nor those without a call stack: nobody
    could tell which variable to delete. If others of the line are used after it and these are not,
    as of the best result so far or of states to go back to, only those count that the line itself
    replaces at the peak.

    Also find the arrays of a list that the line of the peak maps to as many others, as in ``[f(x)
    for x in arrays]``, and that nothing uses afterwards: a loop can replace each of them. The lists
    that this line makes and maps again in other rounds count, too, and if that saves more, other
    lists that it uses up, freed after the line; see `gpuviz.advice.arrays.mapped_lists`.
    """
    end = np.where(device.is_freed & device.is_used, device.last, device.end)
    dead = device.at_peak & (end <= device.peak_place) & ~device.is_unread & (device.stack != 0)
    dead &= ~device.is_collected
    for blocks, change in changes_by_line(device, dead, device.begin, end):
        is_within = device.lines.are_held_at_peak(blocks)
        if (
            is_within
            and _is_map(len(blocks), kept_since(device, blocks))
            and are_used_together(device, blocks)
            and device.lines.have_one_last_line(blocks)
        ):
            yield _mapped(device, blocks, change, device.after_lines(device.last_known))
        elif not device.is_stuck[blocks].any() and not device.is_for_later[blocks].all():
            yield _finding(device, blocks, change, is_within=is_within)
        elif not device.is_stuck[blocks].any():
            replacing = _replaced(device, blocks)
            early = np.intersect1d(blocks, replacing.blocks[replacing.end <= device.peak_place])
            if len(early):
                yield _finding(device, early, replacing, is_within=is_within)
    kept, spent, places = mapped_by_peak_line(device)
    for site in np.unique(device.site[spent]).tolist():
        blocks = np.flatnonzero(spent & (device.site == site))
        change = Change(blocks, device.begin[blocks], places[blocks])
        if _is_map(len(blocks), int(np.count_nonzero(kept))):
            yield _mapped(device, blocks, change, places)


def _replaced(device: DeviceBlocks, blocks: np.ndarray) -> Change:
    """Return the change that frees what the line of some blocks replaces before it makes another.

    The variable or the bounded list that gets the new array drops the old one anyway.
    """
    old, new = device.replacements.old, device.replacements.new
    is_own = device.site[old] == device.site[blocks[0]]
    old, new = old[is_own], new[is_own]
    return _freed(device, old, np.maximum(device.last[old], device.begin[new]))


def _is_map(spent: int, made: int) -> bool:
    """Return whether a line makes one array of each; that of the newest may be in use."""
    return spent >= LEAST_MAPPED and made in {spent, spent + 1}


def _mapped(
    device: DeviceBlocks, blocks: np.ndarray, change: Change, places: np.ndarray
) -> Finding:
    line, last_use = device.lines.line_of(blocks), device.lines.last_use(blocks)
    lists = mapped_lists(device, last_use[0], blocks)
    own = np.append(change.blocks, np.setdiff1d(lists.own, change.blocks))
    ends = np.append(change.end, places[own[len(change.blocks) :]])
    ends = np.maximum(ends, lists.result[own])
    change = _freed(device, own, ends)
    deleting = _freed(device, np.append(own, lists.others), np.append(ends, lists.end))
    others = ""
    if device.replay.saving(deleting) > device.replay.saving(change):
        change = deleting
        other = device.lines.line_of(lists.others)
        others = (
            " That line is the last use of another list, too: delete the arrays from "
            f"{named(other.site, other.source)} after the loop."
        )
    size = format_bytes(int(device.size[blocks].sum()))
    return Finding(
        rule="R45",
        title=f"{size} from {named(line.site, line.source)} is still allocated at the peak, while "
        f"{named(*last_use)} makes a new array of each.",
        reason=f"That line is the last use of these {len(blocks)} arrays, and keeps all of them "
        "until it has made the last of the new ones.",
        change="Replace each array as soon as the new one is made (`arrays[i] = f(arrays[i])` in a "
        f"loop) instead of making a second list or dictionary.{others}",
        certainty="likely",
        device=device.device,
        lines=(line,),
        evidence=device.lines.evidence(blocks),
        lifetimes=change,
    )


def _freed(device: DeviceBlocks, blocks: np.ndarray, end: np.ndarray) -> Change:
    """Return the change that frees blocks at some places, if they are freed later."""
    begin = device.begin[blocks]
    return Change(blocks, begin, np.clip(end, begin, device.end[blocks]))


def _finding(
    device: DeviceBlocks,
    blocks: np.ndarray,
    change: Change,
    *,
    is_within: bool,
) -> Finding:
    line, deleted = device.lines.holding_line_of(blocks), deletion(device, blocks)
    is_one, after, when = len(blocks) == 1, deleted.after, deleted.when
    advice = (
        f"Delete {deleted.variable} (`del`) {when}."
        if is_one
        else f"Drop all references to them {when}: variables, attributes, and lists that collect "
        "them."
    )
    same = device.at_peak & (device.stack == device.stack[blocks[0]])
    others = int(np.count_nonzero(same)) - 1
    if (
        is_one
        and not is_of_backward(after)
        and others >= _LEAST_OTHERS
        and "," not in assigned_names(line.source)
    ):
        advice += (
            f" If a list keeps it with the {format_count(others)} other arrays of its line, remove "
            "it there too (`pop`)."
        )
    if is_of_with_block(device, line):
        advice = f"End the `with` block {when}, and delete its variable (`del`)."
    else:
        advice += generator_advice(device, line)
        advice += named_later(device, int(blocks[0])) if is_one else ""
    if is_within and is_one and device.lines.is_returned_within(blocks):
        advice = (
            f"Split the line, and delete the array (`del`) after the part that ends with {after}."
        )
    elif is_within and is_one:
        advice += BY_CALLER
    if device.lines.have_views(blocks):
        them = "it" if is_one else "them"
        advice += f" Views of {them}, such as slices, keep {them} too."
    return Finding(
        rule="R45",
        title=f"{format_bytes(int(device.size[blocks].sum()))} from "
        f"{named(line.site, line.source)} is still allocated at the peak, "
        "where nothing uses it any more.",
        reason=f"Nothing uses {'the array' if is_one else f'these {len(blocks)} arrays'} after "
        f"{after}. The peak is reached by {named(*device.lines.peak_line)}.",
        change=advice,
        certainty="likely",
        device=device.device,
        lines=(line,),
        evidence=device.lines.evidence(blocks),
        lifetimes=change,
    )
