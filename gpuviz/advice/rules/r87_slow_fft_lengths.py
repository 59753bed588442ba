"""R87: FFTs of a length with a large prime factor."""

from collections.abc import Iterator

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import longest_lines, text_of
from gpuviz.advice.kernels.bluestein import BluesteinTransforms, bluestein_transforms
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.libraries import by_library
from gpuviz.analysis.launches import stacks_of
from gpuviz.quantities import format_counted, format_duration

RULES = (
    Rule(
        "R87",
        "FFTs of a length with a large prime factor",
        "by the names of its kernels, cuFFT computes FFTs by Bluestein's algorithm, which it uses "
        "for lengths with a prime factor above 127, and which moves at least 14 times the bytes of "
        "the array, in several kernels; the saving assumes an FFT in one kernel if the length fits "
        "into shared memory, else in as many as each of the two FFTs of the algorithm, which move "
        "the array as fast; lines with the same lengths are one finding",
        "a length whose prime factors are 2, 3, 5 and 7, such as "
        "`n=cupyx.scipy.fft.next_fast_len(n)`, for convolutions and correlations of which the "
        "result is cut afterwards",
    ),
)

_IN_SCIPY = "scipy.fft.next_fast_len"


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find the FFTs of lengths with a large prime factor.

    Trigger and durations: see `gpuviz.advice.kernels.bluestein.bluestein_transforms`.

    Saving: the recording's `Schedule`, replayed with the durations of FFTs of fast lengths. If a
    line pads what it transforms with zeros, and a line with the same lengths transforms back, more
    zeros do not matter: ``likely``. Otherwise the length may be that of a signal or of a periodic
    grid: ``possible``. Nothing is saved where the host plans each FFT for longer than it takes.
    """
    for found in bluestein_transforms(device):
        finding = _finding(device, found)
        if finding.saved_ns:
            yield finding


def _finding(device: DeviceBlocks, found: BluesteinTransforms) -> Finding:
    schedule, work = device.schedule, found.work
    spent, duration = schedule.duration[work], schedule.duration.copy()
    duration[work] = found.duration
    change = ScheduleChange(duration=duration)
    stacks = stacks_of(device.recording.tables, schedule.call[work])
    lines = longest_lines(device.recording, stacks, spent)
    more = len(lines) - 1
    what = text_of(lines[0]) + (f" and {format_counted(more, 'more line')}" if more else "")
    return Finding(
        rule="R87",
        title=f"{what} {'compute' if more else 'computes'} FFTs of a length with a large prime "
        "factor.",
        reason=f"{format_counted(found.count, 'FFT')} in {format_counted(len(work), 'kernel')} of "
        f"Bluestein's algorithm take {format_duration(int(spent.sum()))}. It pads each array to "
        "more than twice its length, and transforms it forward and back. An FFT of about the same "
        "length, whose prime factors are 2, 3, 5 and 7, moves the array itself, once or a few "
        "times.",
        change=_change(device, found),
        certainty="likely" if found.is_padded else "possible",
        device=device.device,
        lines=lines,
        evidence=schedule.evidence(work),
        saved_ns=schedule.saved_alone(change),
        schedule=change,
    )


def _change(device: DeviceBlocks, found: BluesteinTransforms) -> str:
    outside = {"torch": _IN_SCIPY, "jax": _IN_SCIPY}
    function = by_library(device.recording, outside, f"cupyx.{_IN_SCIPY}")
    if found.is_padded:
        return (
            f"Pad to `{function}(n)` instead of `n` in all of these FFTs. The line already pads "
            "with zeros. More of them leave a convolution or correlation as it is, if its result "
            "is cut to the same part as before; negative lags are at the end of the longer result."
        )
    return (
        f"Use a length of `{function}(n)`, if the length may change: as the `n` of FFTs of a "
        "convolution or correlation that is cut afterwards, or by taking more or fewer samples or "
        "grid points. Zeros at the end of a signal move the bins of its spectrum, and break the "
        "periods of a periodic one."
    )
