"""What gpuviz says about arrays in double precision that follow from uploaded ones (R33)."""

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import TYPES, Function
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import line_of, text_of
from gpuviz.advice.kernels.kernel_times import highest_rate, with_fewer_bytes
from gpuviz.advice.precision.double_blocks import WIDE
from gpuviz.advice.precision.uploads import UploadedDoubles
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.data.columns import plain
from gpuviz.quantities import format_bytes, format_counted

_NARROWER = {"float64": "float32", "complex128": "complex64"}
_NARROW = ("float16", "float32", "complex64")
_TWICE = 2


def upload_finding(device: DeviceBlocks, found: UploadedDoubles) -> Finding:
    """Return the finding about arrays that are in double precision as uploaded ones are."""
    launches = device.elementwise
    function = launches.functions[int(launches.function[found.launch])]
    narrow, wide = _types(function)
    blocks, uploads = device.place[found.blocks], device.place[found.uploads]
    change = _change(device, found)
    schedule = ScheduleChange(duration=_durations(device, found))
    saved_ns = device.schedule.saved_alone(schedule)
    is_relevant = saved_ns >= device.schedule.relevant_ns
    at_peak = blocks[device.at_peak[blocks]]
    size = format_bytes(device.replay.most_at_once(blocks))
    upload = device.lines.line_of(uploads)
    call = int(launches.call[found.launch])
    stack = int(plain(device.recording.tables["api_calls"]["stack"])[call])
    meeting = line_of(device.recording, stack, size)
    peak = f", of which {format_bytes(int(device.size[at_peak].sum()))} is allocated at the peak"
    alone = "; no other data is more precise" if found.is_alone else ""
    to = _NARROWER[_type_of(device, found)]
    return Finding(
        rule="R33",
        title=f"{text_of(upload)} uploads double precision, and so up to {size} of arrays have it.",
        reason=f"In {text_of(meeting)}, `{function.name}` combines {narrow} with {wide}, which is "
        f"uploaded or follows from it: it is NumPy's default. "
        f"{format_counted(len(blocks), 'array')} of at most {size} at a time are in double "
        f"precision because of this{peak if len(at_peak) else ''}{alone}.",
        change=f"Convert to {to} on the GPU where it is uploaded "
        f"(`cupy.asarray(...).astype(cupy.{to})`), if that is precise enough.",
        certainty="possible",
        device=device.device,
        lines=(upload,) if meeting.site == upload.site else (upload, meeting),
        evidence=device.lines.evidence(at_peak if len(at_peak) else blocks),
        lifetimes=change,
        saved_ns=saved_ns if is_relevant else 0,
        schedule=schedule if is_relevant else None,
    )


def _types(function: Function) -> tuple[str, str]:
    """Return the types in single and in double precision that a function combines."""
    narrow = next(each for each in function.arrays if each in _NARROW)
    wide = next((each for each in function.arrays if each in _NARROWER), function.output)
    return narrow, wide


def _type_of(device: DeviceBlocks, found: UploadedDoubles) -> str:
    """Return the type of what is uploaded."""
    launches = device.elementwise
    kinds = launches.kind[np.isin(launches.source, found.uploads) & np.isin(launches.kind, WIDE)]
    return TYPES[int(kinds[0])] if len(kinds) else TYPES[WIDE[0]]


def _change(device: DeviceBlocks, found: UploadedDoubles) -> Change:
    """Return the sizes in single precision, of what is uploaded from the conversion on."""
    others = device.place[np.setdiff1d(found.blocks, found.uploads)]
    uploads = device.place[found.uploads]
    begin, end, size = (each[uploads] for each in (device.begin, device.end, device.size))
    conversion = np.clip(device.after_calls(device.used.first[found.uploads]), begin, end)
    return Change(
        np.concatenate([others, uploads, uploads]),
        np.concatenate([device.begin[others], begin, np.maximum(conversion - 1, begin)]),
        np.concatenate([device.end[others], conversion, end]),
        np.concatenate([device.size[others] // _TWICE, size, size // _TWICE]),
    )


def _durations(device: DeviceBlocks, found: UploadedDoubles) -> np.ndarray:
    """Return how long all work takes in single precision, in ns.

    The conversion of what is uploaded takes its time from all that is saved: it reads an array and
    writes half as many bytes, at the highest rate of a kernel. NumPy's takes several times as long
    as the copy.
    """
    schedule, requested = device.schedule, device.used.blocks.requested
    left_out = np.zeros(len(requested))
    left_out[found.blocks] = 1 / _TWICE
    duration = with_fewer_bytes(device, left_out)
    duration[schedule.number[found.transforms]] //= _TWICE
    saved = schedule.duration - duration
    moved = float(requested[found.uploads].sum()) * (1 + 1 / _TWICE)
    share = 1 - moved / max(highest_rate(device), 1) / max(int(saved.sum()), 1)
    less: np.ndarray = schedule.duration - (saved * max(share, 0)).astype(np.int64)
    return less
