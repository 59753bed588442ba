"""R86: arrays are copied in each round where their names could be swapped."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Certainty, Finding
from gpuviz.advice.host_lines import line_of, longest_lines, text_of
from gpuviz.advice.needless.exchangeable_copies import (
    FREED,
    PERHAPS,
    ExchangeableCopies,
    exchangeable_copies,
)
from gpuviz.advice.replay.copied_contents import without_copies
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.recording_data import RecordingData
from gpuviz.quantities import format_bytes, format_counted, format_duration

RULES = (
    Rule(
        "R86",
        "arrays copied where their names could be swapped",
        "at least four times, a line copies an array to another of its size, as `u_old[...] = u`, "
        "`u_old = u.copy()` or `u_old.copy_(u)`: to the same one, or to a new one that the next "
        "copies replace; before anything else uses what it copies, that is freed, or a call "
        "overwrites all of it, for certain or if its kernel writes each element; not in a training;"
        " the saving is without the copies, and without the new arrays whose source is freed",
        "swap the names instead: `u_old, u = u, u_old`",
    ),
)


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find the lines that copy whole arrays although their names could be swapped.

    Trigger: see `gpuviz.advice.needless.exchangeable_copies.exchangeable_copies`.

    Saving: the recording's `Schedule`, replayed without the copies and their calls, and the
    decrease of the peak without the new arrays that copies make of arrays which are then freed:
    these live on instead. ``likely`` if all targets are new and nothing overwrites a source but for
    certain; otherwise other names or views could refer to the arrays, or a kernel could leave
    elements as they are: ``possible``.
    """
    for found in exchangeable_copies(device):
        yield _finding(device, found)


def _finding(device: DeviceBlocks, found: ExchangeableCopies) -> Finding:
    schedule, recording = device.schedule, device.recording
    change = without_copies(schedule, found.work)
    stacks = stacks_of(recording.tables, schedule.call[found.work])
    spent = schedule.duration[found.work]
    lines = longest_lines(recording, stacks, spent)
    more = len(lines) - 1
    what = text_of(lines[0]) + (f" and {format_counted(more, 'more line')}" if more else "")
    size = format_bytes(int(device.requested[found.source].sum()))
    return Finding(
        rule="R86",
        title=f"{what} {'copy' if more else 'copies'} {size} from arrays that are not needed "
        "afterwards.",
        reason=f"{format_counted(len(found.work), 'copy', 'copies')} of whole arrays take "
        f"{format_duration(int(spent.sum()))} on the GPU. {_end_of_sources(recording, found)}",
        change=_change(recording, found),
        certainty=_certainty(found),
        device=device.device,
        saved_ns=schedule.saved_alone(change),
        lines=lines,
        evidence=schedule.evidence(found.work),
        lifetimes=_lifetimes(device, found),
        schedule=change,
    )


def _certainty(found: ExchangeableCopies) -> Certainty:
    return "likely" if found.is_new.all() and (found.end != PERHAPS).all() else "possible"


def _overwriting(recording: RecordingData, calls: list[int]) -> str:
    """Return the lines that overwrite the sources for a sentence."""
    stacks = stacks_of(recording.tables, np.unique(calls))
    lines = [text_of(line_of(recording, stack, "")) for stack in np.unique(stacks).tolist()]
    named = list(dict.fromkeys(lines))
    return named[0] if len(named) == 1 else f"{named[0]} or another line"


def _end_of_sources(recording: RecordingData, found: ExchangeableCopies) -> str:
    """Return what happens to the sources of copies after these, as a sentence."""
    by = found.overwritten_by[found.overwritten_by >= 0].tolist()
    if not by:
        return "Nothing uses what was copied before it is freed."
    how = "overwrites it"
    is_freed = " or it is freed" if (found.end <= FREED).any() else ""
    return f"Nothing uses what was copied before {_overwriting(recording, by)} {how}{is_freed}."


def _change(recording: RecordingData, found: ExchangeableCopies) -> str:
    changes = [_exchange(found)]
    by = found.overwritten_by[found.end == PERHAPS].tolist()
    if by:
        changes.append(
            f"This is right if {_overwriting(recording, by)} writes each element, or the elements "
            "that it leaves out, such as a fixed border, are the same in these arrays."
        )
    if not found.is_new.all() or (found.end > FREED).any():
        changes.append(
            "Views of these arrays, and other names of them, have to be taken again afterwards."
        )
    return " ".join(changes)


def _exchange(found: ExchangeableCopies) -> str:
    """Return which names to exchange, as far as the text shows it."""
    chain = _chain(found.names)
    if found.is_renamed.all():
        renamed = "; ".join(f"{target} = {source}" for target, source in found.names if target)
        how = f": `{renamed}`" if renamed else ""
        return f"Use the array itself instead of a copy{how}. It needs no time."
    if chain and found.is_rotation:
        names, after = ", ".join(chain), ", ".join([*chain[1:], chain[0]])
        return f"Swap the names instead, which takes no time: `{names} = {after}`."
    return (
        "Swap the names instead, which takes no time: the new name refers to the array itself, "
        "and its old name to one that is not needed any more, as in `a, b = b, a`."
    )


def _chain(pairs: tuple[tuple[str, str], ...]) -> list[str]:
    """Return the names that pairs of a target and a source pass an array along; empty if none."""
    after = dict(pairs)
    firsts = [target for target in after if target not in after.values()]
    if len(firsts) != 1 or not firsts[0] or len(after) != len(set(pairs)):
        return []
    names = [firsts[0]]
    while names[-1] in after:
        names.append(after[names[-1]])
    return names if len(names) == len(after) + 1 else []


def _lifetimes(device: DeviceBlocks, found: ExchangeableCopies) -> Change | None:
    """Return the lifetimes without the new arrays whose sources are freed, and live on instead."""
    end, kept, gone = device.end.copy(), dict[int, int](), list[int]()
    of = dict[int, int]()
    is_gone = found.is_renamed & (found.end == FREED)
    for source, target in zip(
        found.source[is_gone].tolist(), found.target[is_gone].tolist(), strict=True
    ):
        root = of.get(source, source)
        of[target] = root
        gone.append(target)
        kept[root] = end[root] = max(int(end[root]), int(end[target]))
    if not gone:
        return None
    roots = np.array(list(kept))
    targets = np.array(gone)
    group = np.append(roots, [of[each] for each in gone])
    begin = device.begin
    return Change(
        np.append(roots, targets),
        np.append(begin[roots], begin[targets]),
        np.append(end[roots], begin[targets]),
        group=group,
    )
