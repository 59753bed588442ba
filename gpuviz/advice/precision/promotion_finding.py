"""What gpuviz says about arrays in double precision that follow from lower precision (R33)."""

from collections.abc import Sequence

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import Function
from gpuviz.advice.evidence import Line
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import line_of, text_of
from gpuviz.advice.kernels.kernel_times import highest_rate, with_fewer_bytes
from gpuviz.advice.precision.promotions import Promotion
from gpuviz.advice.precision.reduced_samples import ReducedSamples
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.data.columns import plain
from gpuviz.quantities import format_bytes, format_counted

_NARROWER = {"float64": "float32", "complex128": "complex64"}
_NARROW = ("float16", "float32", "complex64")
_TWICE = 2


def narrower_schedule(device: DeviceBlocks, change: Change) -> ScheduleChange:
    """Return the schedule if elementwise kernels and reductions move half of some blocks' bytes."""
    return ScheduleChange(duration=_durations(device, change))


def _durations(device: DeviceBlocks, change: Change) -> np.ndarray:
    """Return how long all work takes, in ns, without half of the bytes of some blocks."""
    left_out = np.zeros(len(device.used.blocks))
    left_out[device.number[change.blocks]] = 1 / _TWICE
    return with_fewer_bytes(device, left_out)


def _change(device: DeviceBlocks, found: Promotion) -> Change:
    """Return the sizes in single precision, of operands from where they are converted on."""
    blocks, operands = device.place[found.blocks], device.place[found.operands]
    conversion, is_needed = _conversions(device, found)
    begin, end, size = (each[operands] for each in (device.begin, device.end, device.size))
    conversion = np.clip(conversion, begin, end)
    return Change(
        np.concatenate([blocks, operands, operands]),
        np.concatenate([device.begin[blocks], begin, np.maximum(conversion - 1, begin)]),
        np.concatenate([device.end[blocks], np.where(is_needed, end, conversion), end]),
        np.concatenate([device.size[blocks] // _TWICE, size, size // _TWICE]),
    )


def _conversions(device: DeviceBlocks, found: Promotion) -> tuple[np.ndarray, np.ndarray]:
    """Return the place where each operand is converted, and whether double is needed after that."""
    used, operands = device.used, found.operands
    rows, is_use = _uses_of_operands(device, found)
    into = np.searchsorted(operands, used.block[rows])
    first, last = np.zeros((2, len(operands)), np.int64)
    first[into[is_use][::-1]] = np.flatnonzero(is_use)[::-1]
    last[into[~is_use]] = np.flatnonzero(~is_use)
    made = device.after_calls(used.first[operands])
    return np.maximum(device.before_lines(used.call[rows[first]]), made), last > first


def _uses_of_operands(device: DeviceBlocks, found: Promotion) -> tuple[np.ndarray, np.ndarray]:
    """Return the uses of operands, and which are together with what would be in single precision.

    Those of an operand are in the order of their calls.
    """
    used = device.used
    rows = np.flatnonzero(np.isin(used.block, found.operands))
    rows = rows[np.argsort(used.block[rows], kind="stable")]
    calls = used.call[np.isin(used.block, found.blocks)]
    return rows, np.isin(used.call[rows], calls)


def _promotion_durations(device: DeviceBlocks, found: Promotion) -> np.ndarray:
    """Return how long all work takes in single precision, in ns.

    What makes an operand takes as long as before, and the conversions after it take their time from
    all that is saved.
    """
    used, schedule = device.used, device.schedule
    left_out = np.zeros(len(used.blocks))
    left_out[found.blocks] = 1 / _TWICE
    duration = with_fewer_bytes(device, left_out)
    rows, is_use = _uses_of_operands(device, found)
    if len(rows):
        left_out[found.operands] = 1 / _TWICE
        using = schedule.number[used.activity[rows[is_use]]]
        duration[using] = with_fewer_bytes(device, left_out)[using]
    duration[schedule.number[found.transforms]] //= _TWICE
    saved = schedule.duration - duration
    share = 1 - _conversion_ns(device, rows, is_use) / max(int(saved.sum()), 1)
    less: np.ndarray = schedule.duration - (saved * max(share, 0)).astype(np.int64)
    return less


def _conversion_ns(device: DeviceBlocks, rows: np.ndarray, is_use: np.ndarray) -> float:
    """Return how long it takes to convert operands each time that they are made, in ns.

    A conversion reads the operand, and writes half as many bytes, at the highest rate of a kernel.
    """
    used = device.used
    is_converted = is_use & ~np.append(False, is_use[:-1])
    is_converted |= is_use & (np.diff(used.block[rows], prepend=-1) != 0)
    moved = used.blocks.requested[used.block[rows[is_converted]]] * (1 + 1 / _TWICE)
    return float(moved.sum()) / max(highest_rate(device), 1)


def promotion_finding(device: DeviceBlocks, found: Promotion) -> Finding:
    """Return the finding about arrays that are in double precision by a conversion or operand."""
    launches = device.elementwise
    blocks = device.place[np.union1d(found.blocks, found.operands)]
    function = launches.functions[int(launches.function[found.launch])]
    change = _change(device, found)
    duration = _promotion_durations(device, found)
    schedule = ScheduleChange(duration=duration)
    saved_ns = device.schedule.saved_alone(schedule)
    is_relevant = saved_ns >= device.schedule.relevant_ns
    at_peak = blocks[device.at_peak[blocks]]
    call = int(launches.call[found.launch])
    size = format_bytes(device.replay.most_at_once(blocks))
    line = line_of(device.recording, _stack_of(device, call), size)
    peak = f", of which {format_bytes(int(device.size[at_peak].sum()))} is allocated at the peak"
    alone = "; no other data is more precise" if found.is_alone else ""
    computed = (
        f"{format_counted(len(blocks), 'array')} of at most {size} at a time follow from this in "
        f"double precision{peak if len(at_peak) else ''}{alone}."
    )
    inputs = [each for each in (found.wide, found.narrow) if each >= 0 and device.place[each] >= 0]
    origins = device.lines.lines_of(device.place[found.origins]) if len(found.origins) else ()
    others = [*origins, *(device.lines.line_of(device.place[[each]]) for each in inputs)]
    return Finding(
        rule="R33",
        title=f"{text_of(line)} makes up to {size} of arrays {function.output}.",
        reason=f"{_entry(device, found)} {computed}",
        change=f"{_to_single(function, found, origins)}, if that is precise enough.",
        certainty="possible",
        device=device.device,
        lines=(line, *(each for each in others if each.site != line.site)),
        evidence=device.lines.evidence(at_peak if len(at_peak) else blocks),
        lifetimes=change,
        saved_ns=saved_ns if is_relevant else 0,
        schedule=schedule if is_relevant else None,
    )


def reduction_finding(device: DeviceBlocks, found: ReducedSamples) -> Finding:
    """Return the finding about arrays that are in double precision as means of integers are."""
    blocks = device.place[found.blocks]
    change = Change(blocks, device.begin[blocks], device.end[blocks], device.size[blocks] // _TWICE)
    schedule = narrower_schedule(device, change)
    saved_ns = device.schedule.saved_alone(schedule)
    is_relevant = saved_ns >= device.schedule.relevant_ns
    at_peak = blocks[device.at_peak[blocks]]
    size = format_bytes(device.replay.most_at_once(blocks))
    means = device.lines.lines_of(device.place[found.means])
    more = f" and {format_counted(len(means) - 1, 'more line')}" if means[1:] else ""
    peak = f", of which {format_bytes(int(device.size[at_peak].sum()))} is allocated at the peak"
    mixed = ""
    if found.mixed >= 0:
        use = line_of(device.recording, _stack_of(device, found.mixed), "")
        mixed = f" The other data is of such integers, as in {text_of(use)}."
    return Finding(
        rule="R33",
        title=f"{text_of(means[0])}{more} make{'' if means[1:] else 's'} up to {size} of arrays "
        "float64.",
        reason="Means, variances and standard deviations of integers are float64. "
        f"{format_counted(len(blocks), 'array')} of at most {size} at a time follow from this in "
        f"double precision{peak if len(at_peak) else ''}; no other data is more precise.{mixed}",
        change=f"Reduce to single precision (`dtype=cupy.float32`) in "
        f"{'these lines' if means[1:] else 'this line'}, if that is precise enough.",
        certainty="possible",
        device=device.device,
        lines=means,
        evidence=device.lines.evidence(at_peak if len(at_peak) else blocks),
        lifetimes=change,
        saved_ns=saved_ns if is_relevant else 0,
        schedule=schedule if is_relevant else None,
    )


def _stack_of(device: DeviceBlocks, call: int) -> int:
    return int(plain(device.recording.tables["api_calls"]["stack"])[call])


def _entry(device: DeviceBlocks, found: Promotion) -> str:
    """Return how the first array in double precision is made of lower precision."""
    launches = device.elementwise
    function = launches.functions[int(launches.function[found.launch])]
    if found.wide < 0:
        return f"It converts {function.arrays[0]} to {function.output}, as `astype(float)` does."
    narrow = next(each for each in function.arrays if each in _NARROW)
    wide = next(each for each in function.arrays if each in _NARROWER)
    origin = device.lines.line_of(device.place[[found.wide]])
    return f"`{function.name}` combines {narrow} with the {wide} array from {text_of(origin)}."


def _to_single(function: Function, found: Promotion, origins: Sequence[Line]) -> str:
    """Return how to use single precision where a function makes double precision."""
    if found.wide < 0:
        return f"Convert to single precision (`astype(cupy.{_NARROWER[function.output]})`)"
    if origins:
        more = f" and {format_counted(len(origins) - 1, 'line')} more" if origins[1:] else ""
        make = "make" if origins[1:] else "makes"
        return f"Convert what {text_of(origins[0])}{more} {make} to single precision (`astype`)"
    wide = next(each for each in function.arrays if each in _NARROWER)
    return f"Convert this operand to {_NARROWER[wide]} where it is made (`astype`)"
