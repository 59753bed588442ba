"""What gpuviz says about arrays in double precision that follow from lower precision (R33)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import line_of, text_of
from gpuviz.advice.kernel_times import with_fewer_bytes
from gpuviz.advice.peak_replay import Change
from gpuviz.advice.schedule import ScheduleChange
from gpuviz.data.columns import plain
from gpuviz.quantities import format_bytes, format_counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.advice.device_blocks import DeviceBlocks
    from gpuviz.advice.elementwise import Function
    from gpuviz.advice.promotions import Promotion

_NARROWER = {"float64": "float32", "complex128": "complex64"}
_NARROW = ("float16", "float32", "complex64")
_TWICE = 2


def narrower_schedule(device: "DeviceBlocks", change: Change) -> ScheduleChange:
    """Return the schedule if elementwise kernels and reductions move half of some blocks' bytes."""
    return ScheduleChange(duration=_durations(device, change))


def _durations(device: "DeviceBlocks", change: Change) -> "NDArray[Any]":
    """Return how long all work takes, in ns, without half of the bytes of some blocks."""
    left_out = np.zeros(len(device.used.blocks))
    left_out[device.number[change.blocks]] = 1 / _TWICE
    return with_fewer_bytes(device, left_out)


def promotion_finding(device: "DeviceBlocks", found: "Promotion") -> Finding:
    """Return the finding about arrays that are in double precision by a conversion or operand."""
    launches, blocks = device.elementwise, device.place[found.blocks]
    function = launches.functions[int(launches.function[found.launch])]
    change = Change(blocks, device.begin[blocks], device.end[blocks], device.size[blocks] // _TWICE)
    duration = _durations(device, change)
    duration[device.schedule.number[found.transforms]] //= _TWICE
    schedule = ScheduleChange(duration=duration)
    saved_ns = device.schedule.saved_alone(schedule)
    is_relevant = saved_ns >= device.schedule.relevant_ns
    at_peak = blocks[device.at_peak[blocks]]
    call = int(launches.call[found.launch])
    size = format_bytes(device.replay.most_at_once(blocks))
    line = line_of(device.recording, _stack_of(device, call), size)
    peak = f", of which {format_bytes(int(device.size[at_peak].sum()))} is allocated at the peak"
    computed = (
        f"{format_counted(len(blocks), 'array')} of at most {size} at a time follow from this in "
        f"double precision{peak if len(at_peak) else ''}; no other data is more precise."
    )
    origins = [each for each in (found.wide, found.narrow) if each >= 0 and device.place[each] >= 0]
    others = [device.lines.line_of(device.place[[each]]) for each in origins]
    return Finding(
        rule="R33",
        title=f"{text_of(line)} makes up to {size} of arrays {function.output}.",
        reason=f"{_entry(device, found)} {computed}",
        change=f"{_to_single(function, converts=found.wide < 0)}, if that is precise enough.",
        certainty="possible",
        device=device.device,
        lines=(line, *(each for each in others if each.site != line.site)),
        evidence=device.lines.evidence(at_peak if len(at_peak) else blocks),
        lifetimes=change,
        saved_ns=saved_ns if is_relevant else 0,
        schedule=schedule if is_relevant else None,
    )


def _stack_of(device: "DeviceBlocks", call: int) -> int:
    return int(plain(device.recording.tables["api_calls"]["stack"])[call])


def _entry(device: "DeviceBlocks", found: "Promotion") -> str:
    """Return how the first array in double precision is made of lower precision."""
    launches = device.elementwise
    function = launches.functions[int(launches.function[found.launch])]
    if found.wide < 0:
        return f"It converts {function.arrays[0]} to {function.output}, as `astype(float)` does."
    narrow = next(each for each in function.arrays if each in _NARROW)
    wide = next(each for each in function.arrays if each in _NARROWER)
    origin = device.lines.line_of(device.place[[found.wide]])
    return f"`{function.name}` combines {narrow} with the {wide} array from {text_of(origin)}."


def _to_single(function: "Function", *, converts: bool) -> str:
    """Return how to use single precision where a function makes double precision."""
    if converts:
        return f"Convert to single precision (`astype(cupy.{_NARROWER[function.output]})`)"
    wide = next(each for each in function.arrays if each in _NARROWER)
    return f"Convert this operand to {_NARROWER[wide]} where it is made (`astype`)"
