"""R85: complex FFTs of real arrays, of which a line takes the half that is independent."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import line_of, text_of
from gpuviz.advice.needless.real_transforms import RealTransforms, real_transforms
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.quantities import format_counted, format_duration

RULES = (
    Rule(
        "R85",
        "a complex FFT of a real array",
        "a line calls CuPy's `fft`, `fft2` or `fftn` with an array of float32 or float64, which a "
        "kernel converts first, and takes at most `n // 2 + 1` elements of the result along the "
        "last axis of the FFT; `n` is the length of that axis in the text, or all that reads the "
        "result are kernels that read at most 9/16 of it; the saving is half of the FFT and of its "
        "result, without the conversion",
        "`cupy.fft.rfft`, `rfft2` or `rfftn`",
    ),
)

_TWICE = 2


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find the lines that take half of a complex FFT of real arrays.

    Trigger: see `gpuviz.advice.needless.real_transforms.real_transforms`. The other half of the
    result has the complex conjugates of the first. PyTorch's functions compute only half of an FFT
    of a real array themselves.

    Saving: the decrease of the peak without the converted arrays and with half of the results, and
    the recording's `Schedule` without the conversions and with half of the time of the kernels of
    the FFTs, as was measured on an H200 for rows of 16,384 elements.
    """
    for found in real_transforms(device):
        yield _finding(device, found)


def _finding(device: DeviceBlocks, found: RealTransforms) -> Finding:
    schedule = device.schedule
    converted, results = found.converted, found.results
    without = schedule.without_work(found.conversions)
    duration = schedule.duration.copy()
    duration[found.transforms] //= _TWICE
    duration[found.conversions] = 0
    change = ScheduleChange(duration=duration, instant=without.instant)
    blocks = np.concatenate([converted, results])
    work = np.concatenate([found.conversions, found.transforms])
    of_conversions, of_transforms = (
        format_duration(int(schedule.duration[each].sum()))
        for each in (found.conversions, found.transforms)
    )
    line = line_of(
        device.recording, found.stack, format_duration(int(schedule.duration[work].sum()))
    )
    return Finding(
        rule="R85",
        title=f"{text_of(line)} converts real arrays for complex FFTs, and takes half of the "
        "result.",
        reason=f"It takes {of_conversions} to convert {format_counted(len(converted), 'array')} "
        f"to complex numbers, and {of_transforms} for the FFTs. The half that `{found.taken}` "
        "leaves out has the complex conjugates of the other, as of each FFT of a real array.",
        change=f"Compute only this half, from the real array itself: `{found.instead}`.",
        certainty="likely",
        device=device.device,
        lines=(line,),
        evidence=schedule.evidence(work),
        lifetimes=Change(
            blocks,
            device.begin[blocks],
            device.end[blocks],
            np.concatenate([np.zeros(len(converted), np.int64), device.size[results] // _TWICE]),
        ),
        saved_ns=schedule.saved_alone(change),
        schedule=change,
    )
