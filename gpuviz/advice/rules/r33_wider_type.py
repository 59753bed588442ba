"""R33: an operand of a wider type doubles the size of a result."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import READ, TYPES, WRITES, Function
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.host_lines import line_of, text_of
from gpuviz.advice.precision.default_types import Doubles, doubles, names_double
from gpuviz.advice.precision.promotion_finding import (
    narrower_schedule,
    promotion_finding,
    reduction_finding,
)
from gpuviz.advice.precision.promotions import promotions
from gpuviz.advice.precision.reduced_samples import reduced_samples
from gpuviz.advice.precision.upload_finding import upload_finding
from gpuviz.advice.precision.uploads import uploaded_doubles
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.own_lines import is_own
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import plain
from gpuviz.quantities import format_bytes, format_counted

RULES = (
    Rule(
        "R33",
        "a result in a wider type",
        "an elementwise function combines an array of float16, float32 or complex64 with a small "
        "array of a wider type, or with an array that CuPy creates in float64 by default, as "
        "`linspace`, `ones` and `random` do on lines that do not name the type, and which is no "
        "running sum, or a table made so is looked up with integers of at most 16 bits, or such "
        "an array is only converted; or integers of at most 16 bits are converted or divided "
        "to double precision, or single precision meets it, and elementwise functions, "
        "reductions, FFTs and filters alone use what follows, up to where other data in double "
        "precision meets it, unless both come only from small arrays in it, as of `fftfreq`; "
        "or a line that does not name the type reduces integers of at most 16 bits to their mean "
        "or variance along an axis, and they alone use what follows, with nothing else in double "
        "precision; or a line that does not name the type uploads an array in double precision, "
        "as NumPy makes it, which meets as many elements that are computed in single precision, or "
        "several such arrays of one line, and nothing else is in double precision; "
        "the saving is half of the bytes of the array and of what is computed "
        "from it, the time in which elementwise kernels and reductions move that half, and half of "
        "the time of FFTs, without the time to convert an operand each time that it is made, "
        "or uploaded",
        "convert the operand, or what is uploaded, or create or reduce the array with "
        "`dtype=cupy.float32`, if that is precise enough",
    ),
)

# Types, and the types of their results with a wider operand.
_WIDER = {"float16": "float32", "float32": "float64", "complex64": "complex128"}
_TWICE = 2
_DOUBLE = TYPES.index("float64")
# An operand of at most this share of the result's bytes is cheap to convert.
_SMALL = 1 / 16
_COPIES = ("copy", "fill")
# Each line costs a replay of the schedule.
_MOST_LINES = 8
# Operations on the result, and on what they make of it, and so on.
_MOST_STEPS = 8


@dataclass(frozen=True, eq=False, slots=True)
class _Widened:
    """Results that would have half of their size.

    Attributes:
        launch: Indices of the device's elementwise launches.
        target: The block that each writes, an index of the device's blocks.
        source: A block that each reads, of as many elements and the narrower type.
    """

    launch: np.ndarray
    target: np.ndarray
    source: np.ndarray


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find the lines whose results are wider than their inputs because of an operand.

    The operand may be an array that CuPy creates in double precision by default: see
    `gpuviz.advice.precision.default_types.doubles`. Otherwise it is small.

    Trigger: the program itself calls an elementwise function of CuPy which writes a new block. An
    input has as many elements in a type of half the size (float16, float32 or complex64), and all
    inputs of another type are blocks of at most 1/16 of the result's bytes. Nothing else writes the
    result, except in place with smaller operands (``x += 1``), and the line does this each time.
    The saving is the decrease of the peak if these results had half of their size, and so had those
    of further elementwise functions that only lack the narrower type because of them; and the time
    in which elementwise kernels and reductions move the bytes that are no longer needed, at the
    highest rate of any, by the recording's `Schedule`. An elementwise kernel or a reduction takes
    no less than any other for each element.

    Arrays that follow in double precision from a conversion or an operand are found too: see
    `gpuviz.advice.precision.promotions.promotions`. An FFT takes half of its time then, as of
    complex64 on an H200, where it took a half to a third. A large operand is still computed in
    double precision: it has half of its size from where it is converted on, and each time that it
    is made, the saving is less by the time to read it and to write the result. Arrays that follow
    from means of small integers are found as well: see
    `gpuviz.advice.precision.reduced_samples.reduced_samples`. So are those that follow from arrays
    which the program uploads in double precision, NumPy's default: see
    `gpuviz.advice.precision.uploads.uploaded_doubles`. The time to convert these on the GPU is
    subtracted.

    Whether the narrower type is precise enough is the program's decision: ``possible``.
    """
    by_default = doubles(device)
    shown = np.zeros(len(device.used.blocks), bool)
    for rows in _by_line(device, by_default):
        shown[by_default.blocks[rows]] = True
        yield _of_default(device, by_default, rows)
    launches = device.elementwise
    meets, source = _meets(device)
    sites = device.site[device.place[launches.target]]
    key = sites.astype(np.int64) * len(launches.functions) + launches.function
    widened, line = np.unique(key[meets], return_inverse=True)
    made = np.bincount(line.ravel(), device.used.blocks.requested[launches.target[meets]])
    always = ~np.isin(widened, key[~meets])
    always &= ~np.isin(widened, key[shown[launches.target]])
    for each in widened[always][np.argsort(-made[always], kind="stable")[:_MOST_LINES]].tolist():
        chosen = np.flatnonzero(key == each)
        change = _change(device, chosen)
        schedule = narrower_schedule(device, change)
        saved_ns = device.schedule.saved_alone(schedule)
        at_peak = device.at_peak[device.place[launches.target[chosen]]]
        some, place = chosen[at_peak] if at_peak.any() else chosen[:1], device.place
        found = _Widened(some, place[launches.target[some]], place[source[some]])
        finding = _finding(device, found, change)
        if saved_ns >= device.schedule.relevant_ns:
            finding = replace(finding, saved_ns=saved_ns, schedule=schedule)
        yield finding
        shown[device.number[change.blocks]] = True
    for promotion in promotions(device, shown):
        yield promotion_finding(device, promotion)
        shown[promotion.blocks] = True
    for reduced in reduced_samples(device, shown):
        yield reduction_finding(device, reduced)
        shown[reduced.blocks] = True
    for uploaded in uploaded_doubles(device, shown):
        yield upload_finding(device, uploaded)


def _by_line(device: DeviceBlocks, found: Doubles) -> list[np.ndarray]:
    """Return the arrays that are float64 by default, together if the same lines create them."""
    created = np.flatnonzero(found.is_created)
    places = device.place[found.blocks[created]]
    group = np.unique(found.group, return_inverse=True)[1]
    _, at, which = np.unique(device.site[places], return_index=True, return_inverse=True)
    sources = [device.lines.line_of(places[each : each + 1]).source for each in at.tolist()]
    suits = ~np.array([*map(names_double, sources)], bool)[which.ravel()]
    suits &= is_own(device.recording, device.stack[places], random=True)
    is_foreign = np.bincount(group[created], ~suits, int(group.max(initial=-1)) + 1) > 0
    pairs = np.unique(np.stack([group[created], device.site[places]]), axis=1)
    lines: dict[tuple[int, ...], list[int]] = {}
    starts = np.flatnonzero(np.diff(pairs[0], prepend=-1))
    for number, sites in zip(pairs[0, starts], np.split(pairs[1], starts[1:]), strict=False):
        if not is_foreign[number]:
            lines.setdefault(tuple(sites.tolist()), []).append(number)
    made = [np.flatnonzero(np.isin(group, numbers)) for numbers in lines.values()]
    made.sort(key=lambda rows: -int(device.used.blocks.requested[found.blocks[rows]].sum()))
    return made[:_MOST_LINES]


def _of_default(device: DeviceBlocks, found: Doubles, rows: np.ndarray) -> Finding:
    """Return the finding about some arrays that are float64 by default."""
    blocks, mixed = device.place[found.blocks[rows]], int(found.mixed[rows[0]])
    origins, others = blocks[found.is_created[rows]], blocks[~found.is_created[rows]]
    change = Change(blocks, device.begin[blocks], device.end[blocks], device.size[blocks] // _TWICE)
    schedule = narrower_schedule(device, change)
    saved_ns = device.schedule.saved_alone(schedule)
    is_relevant = saved_ns >= device.schedule.relevant_ns
    created = device.lines.lines_of(origins)
    at_peak = blocks[device.at_peak[blocks]]
    call = plain(device.recording.tables["api_calls"]["stack"])[mixed]
    use = line_of(device.recording, int(call), "")
    size = format_bytes(device.replay.most_at_once(blocks))
    more = f" and {format_counted(len(created) - 1, 'line')} more" if created[1:] else ""
    s = "" if created[1:] else "s"
    are = "These arrays are" if created[1:] else "The array is"
    computed = ""
    if len(others):
        be = "is" if len(others) == 1 else "are"
        computed = f", and so {be} {format_counted(len(others), 'array')} computed from it"
    peak = f"; {format_bytes(int(device.size[at_peak].sum()))} of this is allocated at the peak"
    return Finding(
        rule="R33",
        title=f"{text_of(created[0])}{more} make{s} up to {size} of arrays float64.",
        reason=f"{are} float64 by default{computed}{peak if len(at_peak) else ''}. All other data "
        f"used with it is of smaller types, as in {text_of(use)}.",
        change=f"Create {'these arrays' if created[1:] else 'the array'} in single precision "
        "(`dtype=cupy.float32`), if that suffices.",
        certainty="possible",
        device=device.device,
        lines=(*created, *device.lines.lines_of(others)) if len(others) else created,
        evidence=device.lines.evidence(at_peak if len(at_peak) else blocks),
        lifetimes=change,
        saved_ns=saved_ns if is_relevant else 0,
        schedule=schedule if is_relevant else None,
    )


def _meets(device: DeviceBlocks) -> tuple[np.ndarray, np.ndarray]:
    """Return which elementwise launches meet the trigger, and a narrower input of each."""
    launches, blocks = device.elementwise, device.used.blocks
    stacks = stacks_of(device.recording.tables, launches.call)
    accepted = launches.where(lambda each: bool(_narrower(each))) & _writes_alone(device)
    accepted &= is_own(device.recording, stacks)
    launch, source = launches.launch, launches.source
    result = blocks.requested[launches.target[launch]]
    # As many elements of float64 have half of the bytes of complex128 too.
    is_half = (blocks.requested[source] * _TWICE == result) & (launches.kind != _DOUBLE)
    is_small = blocks.requested[source] <= _SMALL * result
    is_other = ~is_half & ~is_small
    count = len(launches)
    halves = np.bincount(launch[is_half], minlength=count)
    others = np.bincount(launch[is_other], minlength=count)
    narrow = np.full(count, -1)
    narrow[launch[is_half][::-1]] = source[is_half][::-1]
    return accepted & (halves > 0) & (others == 0) & (device.place[narrow] >= 0), narrow


def _narrower(function: Function) -> str:
    """Return the type that a function widens; empty if it does not widen any."""
    if function.name in _COPIES:
        return ""
    narrow = [each for each in function.arrays if _WIDER.get(each) == function.output]
    return narrow[0] if narrow and len(set(function.arrays)) > 1 else ""


def _writes_alone(device: DeviceBlocks) -> np.ndarray:
    """Return which elementwise launches write a block of the device first, and nothing does later.

    Kernels whose accesses are unknown are not counted as writes, and neither are elementwise
    functions that overwrite what they read with smaller operands.
    """
    used, launches = device.used, device.elementwise
    count, requested = len(used.blocks), used.blocks.requested
    writes = np.bincount(used.block[np.isin(used.mode, WRITES)], minlength=count)
    calls, at = np.unique(launches.call[launches.is_update], return_index=True)
    target = launches.target[launches.is_update][at]
    read = np.flatnonzero((used.mode == READ) & np.isin(used.call, calls))
    into = np.searchsorted(calls, used.call[read])
    is_large = requested[used.block[read]] * _TWICE > requested[target[into]]
    is_large &= used.block[read] != target[into]
    is_wide = np.bincount(into[is_large], minlength=len(calls)) > 0
    writes -= np.bincount(target[~is_wide], minlength=count)
    place = device.place[launches.target]
    alone: np.ndarray = (writes[launches.target] == 1) & (place >= 0)
    alone &= (used.first[launches.target] == launches.call) & ~device.is_initial[place]
    alone &= ~launches.is_update
    return alone


def _change(device: DeviceBlocks, chosen: np.ndarray) -> Change:
    """Return the sizes if the results of some launches had half of their size."""
    launches, requested = device.elementwise, device.used.blocks.requested
    narrow = np.zeros(len(requested), bool)
    narrow[launches.target[chosen]] = True
    wide = launches.functions[int(launches.function[chosen[0]])].output
    follows = launches.where(lambda each: each.output == wide and each.name not in _COPIES)
    follows &= _writes_alone(device)
    launch, source = launches.launch, launches.source
    result = requested[launches.target[launch]]
    needs = (requested[source] > _SMALL * result) & (requested[source] * _TWICE != result)
    for _ in range(_MOST_STEPS):
        reads = np.bincount(launch[narrow[source]], minlength=len(launches))
        others = np.bincount(launch[needs & ~narrow[source]], minlength=len(launches))
        found = launches.target[follows & (reads > 0) & (others == 0)]
        if narrow[found].all():
            break
        narrow[found] = True
    blocks = np.flatnonzero(narrow[device.number])
    return Change(blocks, device.begin[blocks], device.end[blocks], device.size[blocks] // _TWICE)


def _finding(device: DeviceBlocks, found: _Widened, change: Change) -> Finding:
    launches = device.elementwise
    function = launches.functions[int(launches.function[found.launch[0]])]
    narrow = _narrower(function)
    other = next(each for each in function.arrays if each != narrow)
    to, of = device.lines.line_of(found.target), device.lines.line_of(found.source)
    size = format_bytes(int(device.size[found.target].sum()))
    at_peak = bool(device.at_peak[found.target].all())
    return Finding(
        rule="R33",
        title=f"{named(to.site, to.source)} makes {size} of {function.output} from {narrow}.",
        reason=f"`{function.name}` combines the {narrow} array from "
        f"{named(of.site, of.source)} with a small operand of type {other}, which doubles the size "
        f"of the result{'; it is allocated at the peak' if at_peak else ''}.",
        change=f"Convert the {other} operand to {narrow} (`astype`), if that is precise enough.",
        certainty="possible",
        device=device.device,
        lines=(to, of),
        evidence=device.lines.evidence(found.target),
        lifetimes=change,
    )
