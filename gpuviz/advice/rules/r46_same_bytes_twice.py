"""R46: parts and the array that they were joined to are allocated at the same time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.joins import Joins, joins
from gpuviz.advice.finding import Finding, as_subject, named
from gpuviz.advice.host_lines import line_numbers, line_of, text_of
from gpuviz.advice.needless.needless_copies import needless_copies
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.advice.rules.r49_grown_by_concatenation import grown
from gpuviz.analysis.launches import stacks_of
from gpuviz.quantities import format_bytes, format_counted, format_duration

RULES = (
    Rule(
        "R46",
        "parts and the array they were joined to, or an array and its needless copy",
        "`concatenate` or `stack` writes an array with exactly the bytes of the arrays that one "
        "line allocated, or that are copied there one by one, which nothing uses afterwards; or a "
        "line calls `cupy.array` at least four times with arrays of 1 MiB or more that have the "
        "type already, and nothing writes to any of its copies, or to the array while the copy is "
        "allocated",
        "allocate the whole array first, write the parts into slices; `cupy.asarray`",
    ),
)

# Fewer copies may be there to be changed in another run of the program.
_LEAST_COPIES = 4
# One part is a copy.
_LEAST_PARTS = 2


@dataclass(frozen=True, eq=False, slots=True)
class _Join:
    """An array and the parts that are joined to it, blocks of the device."""

    target: int
    parts: np.ndarray


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find the lines that join arrays, which are not used afterwards, to one of their size.

    Trigger: arrays are copied to block b, by one kernel or by a copy for each of them, and nothing
    uses them after that; see `gpuviz.advice.arrays.joins`. Those that one line allocated, or all of
    those that are copied one by one, have together exactly as many requested bytes as b. An array
    that is joined again and again is R49. The saving is the decrease of the peak if each b that the
    same line joins from parts of the same lines, as in each round of a loop, had been allocated
    with the first of its parts, and they had been parts of it.

    Copies that `cupy.array` makes without need are found too: see
    `gpuviz.advice.needless.needless_copies.needless_copies`. Their saving is without these arrays,
    while what they are made of lives as long, and without the time of the copies. Later rounds
    might write to one of them: ``possible``.
    """
    yield from _of_copies(device)
    joined = joins(device)
    joined = joined.of(np.flatnonzero(~np.isin(joined.target, grown(device, joined).target)))
    of_lines: dict[tuple[int, ...], list[_Join]] = {}
    for each in _complete(device, joined):
        of_lines.setdefault(_lines(device, each), []).append(each)
    for made in of_lines.values():
        shown = [each for each in made if device.at_peak[[each.target, *each.parts]].all()]
        if shown:
            yield _finding(device, shown, _change(device, made))


def _of_copies(device: DeviceBlocks) -> Iterator[Finding]:
    """Yield the findings about lines that copy arrays without need."""
    launch, target, source = needless_copies(device)
    copies, origins = device.place[target], device.place[source]
    stacks = stacks_of(device.recording.tables, device.elementwise.call[launch])
    lines = line_numbers(device.recording, stacks)
    for line in np.unique(lines).tolist():
        chosen = np.flatnonzero(lines == line)
        if len(chosen) >= _LEAST_COPIES:
            activities = device.elementwise.activity[launch[chosen]]
            yield _of_line(device, activities, copies[chosen], origins[chosen])


def _of_line(
    device: DeviceBlocks,
    activities: np.ndarray,
    copies: np.ndarray,
    origins: np.ndarray,
) -> Finding:
    """Return the finding about the copies of a line, and the arrays that they are made of."""
    schedule = device.schedule
    work = schedule.number[activities]
    faster = schedule.without_work(work)
    kept, place = np.unique(origins, return_inverse=True)
    end = device.end[kept].copy()
    np.maximum.at(end, place.ravel(), device.end[copies])
    spent = format_duration(int(schedule.duration[work].sum()))
    stack = int(stacks_of(device.recording.tables, schedule.call[work[:1]])[0])
    line = line_of(device.recording, stack, spent)
    return Finding(
        rule="R46",
        title=f"{as_subject(text_of(line))} copies {format_counted(len(copies), 'array')} "
        "that have the type already.",
        reason=f"The copies of {format_bytes(int(device.requested[copies].sum()))} in all take "
        f"{spent}. Nothing writes to them, or to the arrays that they are made of while they are "
        "allocated, so that these could be used instead.",
        change="Use `cupy.asarray`, which returns an array itself if it has the type, instead of "
        "`cupy.array`. Where a function writes to its argument in place, let it copy that.",
        certainty="possible",
        device=device.device,
        saved_ns=schedule.saved_alone(faster),
        lines=(line,),
        evidence=device.lines.evidence(copies),
        lifetimes=Change(
            np.append(copies, kept),
            np.append(device.begin[copies], device.begin[kept]),
            np.append(device.begin[copies], end),
        ),
        schedule=faster,
    )


def _lines(device: DeviceBlocks, join: _Join) -> tuple[int, ...]:
    """Return the numbers of the lines of an array and its parts; a negative one if unknown."""
    target = int(device.site[join.target]) if device.stack[join.target] else -1 - join.target
    return target, *np.unique(device.site[join.parts]).tolist()


def _complete(device: DeviceBlocks, rows: Joins) -> Iterator[_Join]:
    """Yield the arrays with sets of at least two parts that have exactly their bytes."""
    # What is written into slices of an array that is there already is not joined.
    rows = rows.of(np.flatnonzero(device.begin[rows.part] < device.begin[rows.target]))
    rows = rows.of(np.argsort(rows.target, kind="stable"))
    for each in np.split(np.arange(len(rows.target)), np.flatnonzero(np.diff(rows.target)) + 1):
        if len(each) < _LEAST_PARTS:
            continue
        target, part, is_shared = int(rows.target[each[0]]), rows.part[each], rows.is_shared[each]
        copied, of_kernel = np.unique(part[~is_shared]), part[is_shared]
        sites = device.site[of_kernel]
        for parts in (copied, *(of_kernel[sites == site] for site in np.unique(sites))):
            is_whole = device.requested[parts].sum() == device.requested[target]
            if is_whole and len(parts) >= _LEAST_PARTS:
                yield _Join(target, parts)


def _change(device: DeviceBlocks, made: list[_Join]) -> Change:
    """Return the lifetimes with the parts in the arrays that they are joined to."""
    targets, parts, join = _columns(made)
    begin = device.begin[targets].copy()
    np.minimum.at(begin, join, device.begin[parts])
    return Change(
        np.append(parts, targets),
        np.append(device.begin[parts], begin),
        np.append(device.begin[parts], device.end[targets]),
        group=np.append(join, np.arange(len(targets))),
    )


def _columns(made: list[_Join]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return joined arrays, their parts, and of each part the number of its array."""
    targets = np.array([each.target for each in made])
    counts = [len(each.parts) for each in made]
    parts = np.concatenate([each.parts for each in made])
    return targets, parts, np.repeat(np.arange(len(made)), counts)


def _finding(device: DeviceBlocks, made: list[_Join], change: Change) -> Finding:
    targets, parts, _ = _columns(made)
    to, of = device.lines.line_of(targets), device.lines.line_of(parts)
    return Finding(
        rule="R46",
        title=f"{named(to.site, to.source)} holds the same "
        f"{format_bytes(int(device.size[targets].sum()))} twice.",
        reason=f"It joins {format_counted(len(parts), 'array')} from "
        f"{named(of.site, of.source)}, which nothing uses afterwards.",
        change="Allocate the whole array first, and write each part into a slice of it.",
        certainty="likely",
        device=device.device,
        lines=(to, of),
        evidence=device.lines.evidence(np.append(parts, targets)),
        lifetimes=change,
    )
