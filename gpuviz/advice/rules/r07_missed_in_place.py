"""R07: an operation writes a new array where it could overwrite its input."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.own_lines import is_own
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.implied_columns import assigned_names
from gpuviz.quantities import format_bytes

RULES = (
    Rule(
        "R07",
        "an operation writes a new array instead of its input",
        "an elementwise function of CuPy reads an array of the same size and type for the last "
        "time, and both are allocated at the peak; `x = x + y` in a loop if all rounds read their "
        "`x` for the last time, also the first",
        "`out=`, `+=`, if the shapes are the same; of several inputs, one could be transposed, so "
        "that it is only possible",
    ),
)

_COPIES = ("copy", "fill")


@dataclass(frozen=True, eq=False, slots=True)
class _Pairs:
    """Inputs that could have been overwritten, and the outputs that were allocated instead.

    ``source`` and ``target`` are blocks of the device, ``launch`` are launches of its elementwise
    functions. ``is_always`` is whether that input of the function on that line is never needed.
    """

    source: np.ndarray
    target: np.ndarray
    launch: np.ndarray
    is_always: np.ndarray


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find the lines that could write into an array which they read last.

    Trigger: an elementwise function of CuPy reads block a once, from its beginning, writes block b
    first, has an input of the type of its output, both blocks have the same number of requested
    bytes, nothing uses a afterwards, no list keeps a, and a is freed in the recording. The program
    itself calls the function, and the line never reads an array from a's line that is used later,
    or not as this input: the last round of a loop could overwrite its input, but not the rounds
    before. If b is in the peak, the saving is the decrease of the peak if a held the result of this
    function on this line, wherever it occurs; in each round of a loop such as ``x = x * y``, the
    array that is read first.

    CuPy gives the result of a single array the layout of that array. Of several arrays, one could
    be transposed, which the recording does not tell: then this is only ``possible``.
    """
    pairs = _pairs(device)
    functions = device.elementwise.function[pairs.launch]
    lines = device.site[pairs.target].astype(np.int64) << 32 | functions
    first = _firsts(pairs, lines)
    at_peak = device.at_peak[pairs.source] & device.at_peak[pairs.target]
    for line in np.unique(lines[at_peak]).tolist():
        rows = np.flatnonzero(lines == line)
        # A loop whose first round reads what is used later cannot overwrite that.
        is_loop = np.bincount(first[rows], minlength=len(first))[first[rows]] > 1
        is_own = device.site[pairs.source[first[rows]]] == device.site[pairs.target[rows]]
        if not (is_loop & (is_own | ~pairs.is_always[rows])).any():
            change = _change(device, pairs, rows, first[rows])
            yield _finding(device, pairs, rows[at_peak[rows]], change)


def _firsts(pairs: _Pairs, lines: np.ndarray) -> np.ndarray:
    """Return the first of the pairs of a line of which each has the source of the next as target.

    For each pair, its own if it is alone.
    """
    order = np.argsort(pairs.target, kind="stable")
    place = np.searchsorted(pairs.target[order], pairs.source)
    before = np.append(order, -1)[place]
    follows = pairs.target[before] == pairs.source
    follows &= lines[before] == lines
    first = np.where(follows, before, np.arange(len(lines)))
    for _ in range(len(lines).bit_length()):
        first = first[first]
    return first


def _change(device: DeviceBlocks, pairs: _Pairs, rows: np.ndarray, first: np.ndarray) -> Change:
    """Return the lifetimes with the results of some pairs in the source of the first of each."""
    source, target = pairs.source[rows], pairs.target[rows]
    end = np.zeros(len(pairs.source), np.int64)
    np.maximum.at(end, first, np.maximum(device.end[source], device.end[target]))
    firsts = np.unique(first)
    return Change(
        np.append(pairs.source[firsts], target),
        device.begin[np.append(pairs.source[firsts], target)],
        np.append(end[firsts], device.begin[target]),
        group=np.append(firsts, first),
    )


def _pairs(device: DeviceBlocks) -> _Pairs:
    """Return the pairs of blocks of a device that meet the trigger."""
    used, launches = device.used, device.elementwise
    blocks = used.blocks
    accepted = launches.where(lambda each: each.name not in _COPIES and each.output in each.arrays)
    accepted &= (used.first[launches.target] == launches.call) & ~launches.is_update
    launch, source = launches.launch, launches.source
    target, call = launches.target[launch], launches.call[launch]
    # An array that is two inputs may be read in two orders.
    group, _ = numbered(launch, source)
    fits = accepted[launch] & (np.bincount(group)[group] == 1) & (source != target)
    fits &= launches.at_begin & (launches.kind == launches.output[launch])
    place = device.place
    known = (place[source] >= 0) & (place[target] >= 0)
    is_last = used.last[source] == call
    sites = device.site[place[target]], device.site[place[source]]
    inputs, _ = numbered(launch, *sites)
    is_needed = known & (np.bincount(inputs, is_last, len(inputs))[inputs] == 0)
    by_line = _of_needed(is_needed, *sites)
    is_same_size = blocks.requested[source] == blocks.requested[target]
    is_kept = is_same_size & device.is_kept[place[source]]
    number = np.arange(len(launch)) - np.searchsorted(launch, launch)
    of_input = (*sites, launches.function[launch], number)
    by_input = _of_needed(known & (~is_last | is_kept), *of_input)
    fits &= known & is_last & ~(by_line & by_input)
    fits &= blocks.end[source] >= 0
    fits &= is_same_size
    fits &= blocks.stream[source] == blocks.stream[target]
    stacks = stacks_of(device.recording.tables, launches.call)
    fits &= is_own(device.recording, stacks)[launch]
    fits &= ~device.is_shared[place[source]] & ~device.is_initial[place[target]]
    fits &= ~device.is_kept[place[source]]
    # Of several inputs, one can be overwritten: the same in all rounds of a loop, if it can be.
    of_function, _ = numbered(sites[0], launches.function[launch], number)
    often = np.bincount(of_function, fits, len(fits))[of_function]
    rows = np.flatnonzero(fits)
    rows = rows[np.lexsort((number[rows], -often[rows], launch[rows]))]
    _, first = np.unique(launch[rows], return_index=True)
    chosen = rows[first]
    return _Pairs(place[source[chosen]], place[target[chosen]], launch[chosen], ~by_input[chosen])


def _of_needed(is_needed: np.ndarray, *keys: np.ndarray) -> np.ndarray:
    """Return which rows have the keys of one that is needed."""
    numbers, _ = numbered(*keys)
    needed = np.zeros(len(numbers), bool)
    needed[numbers[is_needed]] = True
    of_rows: np.ndarray = needed[numbers]
    return of_rows


def _reads_its_result(source: str) -> bool:
    """Return whether a line computes a variable from its old value, as ``x = x + y`` does."""
    value = source.partition("=")[2].partition(";")[0]
    names = filter(None, assigned_names(source).split(", "))
    return any(re.search(rf"\b{re.escape(each)}\b", value) for each in names)


def _finding(device: DeviceBlocks, pairs: _Pairs, rows: np.ndarray, change: Change) -> Finding:
    source, target = pairs.source[rows], pairs.target[rows]
    to, of = device.lines.line_of(target), device.lines.line_of(source)
    launches = pairs.launch[rows]
    function = device.elementwise.name(int(launches[0]))
    is_one_array = bool((device.elementwise.reads[launches] == 1).all())
    size = format_bytes(int(device.size[target].sum()))
    read, it = f"the array from {named(of.site, of.source)}", "its input"
    if of.site == to.site and not _reads_its_result(to.source):
        read, it = "a temporary array of that line", "that array, which needs a name for it"
    return Finding(
        rule="R07",
        title=f"{named(to.site, to.source)} writes {size} to a new array instead of its input.",
        reason=f"`{function}` reads {read}, of the same size and type, for the last time; both are "
        "allocated at the peak.",
        change=f"Let `{function}` overwrite {it}, with `out=` or an operator such as `+=`, if "
        f"both have the same shape{'' if is_one_array else ' and none of its inputs is transposed'}"
        ".",
        certainty="likely" if is_one_array else "possible",
        device=device.device,
        lines=(to, of),
        evidence=device.lines.evidence(np.concatenate([source, target])),
        lifetimes=change,
    )
