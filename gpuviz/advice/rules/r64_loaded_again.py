"""R64: a line loads code again and again, as for an FFT plan that is made in each round."""

import re
from collections.abc import Iterator

import numpy as np

from gpuviz.advice.evidence import Evidence
from gpuviz.advice.finding import Finding, as_subject
from gpuviz.advice.host_lines import line_numbers, line_of, text_of
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.libraries import is_of
from gpuviz.analysis.launches import calls_of, have_frame, stacks_of
from gpuviz.analysis.repeated_loads import RepeatedLoads, repeated_loads
from gpuviz.analysis.touches import TRANSFORM
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import are_named
from gpuviz.quantities import format_count, format_counted, format_duration

RULES = (
    Rule(
        "R64",
        "code that is loaded again and again",
        "before at least eight launches of a line the driver loads code, and before at least twice "
        "as many as the line launches different kernels, after the warm-up; kernels of one name "
        "with other blocks, registers or shared memory are different; the saving leaves out "
        "what the line does before these launches, but before the first of each kernel",
        "make FFT plans, modules and kernels once, before the loop; keep more plans than CuPy's 16;"
        " no `cudnn.benchmark` for shapes that do not repeat",
    ),
)

_LOAD = re.compile(r"cu(Module|Library)Load")
_FFT_OF_CUPY = re.compile(r"[/\\](cupy|cupyx[/\\]scipy)[/\\]fft[/\\]")
_OF_TORCH = re.compile(r"[/\\]torch[/\\]")
_CUDNN = re.compile(r"cudnn", re.IGNORECASE)
_CONVOLUTION = re.compile(r"conv|[fd]prop|[dw]grad|nchw|nhwc", re.IGNORECASE)
_ATTENTION = re.compile(r"attention|flash|fmha|sdpa", re.IGNORECASE)
# How cuDNN measures the kernels that it tries.
_MEASURING = re.compile(r"cu(?:da)?EventSynchronize")
_MOST_ROWS = 1000
_PLANS = (
    "cuFFT loads code for each plan, and removes it with the plan. {cache} If the sizes repeat, "
    "keep all of their plans ({resize}), or let transforms of one size follow each other; "
    "otherwise pad the arrays to a few sizes (`scipy.fft.next_fast_len`)."
)
_PLANS_OF_CUPY = _PLANS.format(
    cache="CuPy keeps the last 16 plans of a thread, one for each size, type and number of "
    "transforms.",
    resize="`cupy.fft.config.get_plan_cache().set_size(n)` with n at least their number; a "
    "transform and its inverse are two",
)
_PLANS_OF_TORCH = _PLANS.format(
    cache="PyTorch keeps a number of plans, one for each size and type.",
    resize="`torch.backends.cuda.cufft_plan_cache.max_size`",
)
_OF_CUDNN = (
    "cuDNN makes code for each new shape of its arguments. If they grow with each round, as with a "
    "cache of keys and values, allocate the whole cache at once and mask what is not filled yet; "
    "or let PyTorch choose other kernels: `torch.backends.cuda.enable_cudnn_sdp(False)` for "
    "attention, `torch.backends.cudnn.enabled = False` for all."
)
_OF_SHAPES = (
    "pad the inputs to a few sizes, or sort them by size, so that shapes repeat. "
    "`torch.backends.cudnn.enabled = False` makes PyTorch use its own, slower kernels."
)
_OF_CONVOLUTIONS = f"cuDNN loads code for each new shape of a convolution: {_OF_SHAPES}"
_OF_TRIALS = (
    "cuDNN tries and measures several kernels for each new shape of a convolution, as with "
    "`torch.backends.cudnn.benchmark = True`. That pays where shapes repeat. Set it to False, or "
    "pad the inputs to a few sizes."
)
_OTHERS = (
    "Create the module, the kernel or the object of the library that needs it once, before the "
    "loop, and keep it."
)


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find lines for which the driver loads code in round after round.

    Trigger: those of `gpuviz.analysis.repeated_loads.repeated_loads`.

    Saving: the recording's `Schedule`, replayed without the line's calls before these launches and
    the time between them, but before the first launch of each kernel. Part of that time may be
    needed for other things: ``likely``.
    """
    if schedule.recording.devices:
        for each in repeated_loads(schedule.recording):
            yield from _finding(schedule, each)


def _finding(schedule: Schedule, again: RepeatedLoads) -> Iterator[Finding]:
    """Yield a finding about the calls of a line that load code, if it saves enough."""
    launches, work, before = again
    recording = schedule.recording
    activities, calls = recording.tables["activities"], recording.tables["api_calls"]
    is_between = np.zeros(calls.num_rows, bool)
    is_between[before] = True
    is_gone = is_between.copy()
    is_gone[launches] = False
    duration = schedule.duration.copy()
    duration[(schedule.call >= 0) & is_gone[schedule.call]] = 0
    change = ScheduleChange(
        duration=duration, without_wait=is_gone, without_gap=is_between, instant=is_gone
    )
    saved_ns = schedule.saved_alone(change)
    if saved_ns < schedule.relevant_ns:
        return
    device = int(plain(activities["device"])[work[0]])
    names = plain(activities["name"])[work]
    what, advice = _what(recording, again)
    stack = int(stacks_of(recording.tables, launches[:1])[0])
    line = line_of(recording, stack, format_duration(saved_ns))
    times = format_count(len(launches))
    loads = int(are_named(recording.tables, plain(calls["name"])[before], _LOAD.match).sum())
    begin, end = plain(activities["time"])[work], plain(activities["end"])[work]
    yield Finding(
        rule="R64",
        title=f"{as_subject(text_of(line))} {what} {times} times.",
        reason=(
            f"The line makes {format_counted(loads, 'driver call')} that load code, before "
            f"launches of {format_counted(len(np.unique(names)), 'kernel')}. These launches would "
            f"come {format_duration(saved_ns // len(launches))} sooner each without them."
        ),
        change=advice,
        certainty="likely",
        device=device,
        saved_ns=saved_ns,
        schedule=change,
        lines=(line,),
        evidence=Evidence(
            "activities",
            tuple(np.sort(work[:_MOST_ROWS]).tolist()),
            (int(begin.min()), int(end.max())),
        ),
    )


def _what(recording: RecordingData, again: RepeatedLoads) -> tuple[str, str]:
    """Return what a line does before it launches kernels, and what to change.

    The first of them may be a copy of the argument.
    """
    tables = recording.tables
    activities = tables["activities"]
    calls = np.append(again.launches[:1], calls_of(tables, plain(activities["correlation"])))
    lines = line_numbers(recording, stacks_of(tables, calls))
    of_line = lines[1:] == lines[0]
    names = np.unique(plain(activities["name"])[of_line])
    if are_named(tables, names, TRANSFORM.search).any():
        return "makes an FFT plan", _advice_for_plans(recording, again)
    if not are_named(tables, names, _CUDNN.search).any():
        return "loads code", _OTHERS
    return "loads code", _advice_for_cudnn(recording, again)


def _advice_for_plans(recording: RecordingData, again: RepeatedLoads) -> str:
    """Return what to change about a line that makes FFT plans, by the library that makes them.

    Functions of PyTorch that are not written in Python have no frames.
    """
    stacks = stacks_of(recording.tables, again.launches)

    def are_of(files: re.Pattern[str]) -> bool:
        return bool(
            have_frame(recording, stacks, lambda frame: bool(files.search(frame.filename))).any()
        )

    if are_of(_FFT_OF_CUPY):
        return _PLANS_OF_CUPY
    is_torch = are_of(_OF_TORCH) or is_of(recording, "torch")
    return _PLANS_OF_TORCH if is_torch else _PLANS_OF_CUPY


def _advice_for_cudnn(recording: RecordingData, again: RepeatedLoads) -> str:
    """Return what to change about a line for which cuDNN loads code."""
    tables = recording.tables
    loaded = np.unique(plain(tables["activities"]["name"])[again.work])
    of_convolution = are_named(tables, loaded, _CONVOLUTION.search)
    if not of_convolution.any() or are_named(tables, loaded, _ATTENTION.search).any():
        return _OF_CUDNN
    calls, own = tables["api_calls"], stacks_of(tables, again.launches[:1])
    lines = line_numbers(recording, np.append(own, plain(calls["stack"])))
    of_line = plain(calls["name"])[lines[1:] == lines[0]]
    waits = are_named(tables, of_line, _MEASURING.match)
    return _OF_TRIALS if np.count_nonzero(waits) >= len(again.launches) else _OF_CONVOLUTIONS
