"""R64: a line loads code again and again, as for an FFT plan that is made in each round."""

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.finding import Evidence, Finding
from gpuviz.advice.host_lines import line_numbers, line_of, text_of
from gpuviz.advice.libraries import is_of
from gpuviz.advice.rule import Rule
from gpuviz.advice.schedule import Schedule, ScheduleChange
from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.launches import stacks_of
from gpuviz.analysis.preparation import (
    follows_compilation,
    is_of_loads,
    launch_runs,
)
from gpuviz.data.columns import plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.strings import are_named
from gpuviz.quantities import format_count, format_counted, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuviz.data.recording_data import RecordingData

RULES = (
    Rule(
        "R64",
        "code that is loaded again and again",
        "before at least eight launches of a line the driver loads code, and before at least twice "
        "as many as the line launches different kernels; the saving leaves out what the line does "
        "before these launches, but before the first of each kernel",
        "make FFT plans, modules and kernels once, before the loop; keep more plans than CuPy's 16",
    ),
)

_FEWEST = 8
# As many first launches are what loading each kernel once takes.
_LEAST_FACTOR = 2
_LOAD = re.compile(r"cu(Module|Library)Load")
_FFT = re.compile(r"fft", re.IGNORECASE)
_CUDNN = re.compile(r"cudnn", re.IGNORECASE)
_MOST_ROWS = 1000
_PLANS = (
    "cuFFT loads code for each plan, and removes it with the plan. {cache} If the sizes repeat, "
    "keep all of their plans ({resize}), or let transforms of one size follow each other; "
    "otherwise pad the arrays to a few sizes (`scipy.fft.next_fast_len`)."
)
_PLANS_OF_CUPY = _PLANS.format(
    cache="CuPy keeps the last 16 plans of a thread, one for each size, type and number of "
    "transforms.",
    resize="`cupy.fft.config.get_plan_cache().set_size(64)`",
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
_OTHERS = (
    "Create the module, the kernel or the object of the library that needs it once, before the "
    "loop, and keep it."
)


def find(schedule: Schedule) -> "Iterator[Finding]":
    """Find lines for which the driver loads code in round after round.

    Trigger: at least eight times a call that loads code (``cuModuleLoad``, ``cuLibraryLoad``)
    precedes a launch of the same line, with no other launch of a kernel in between, and at least
    twice as often as there are different kernels among these launches: CUDA and its libraries load
    each kernel once for each device, when it is first launched.

    Saving: the recording's `Schedule`, replayed without the line's calls before these launches and
    the time between them, but before the first launch of each kernel. Part of that time may be
    needed for other things: ``likely``.
    """
    recording = schedule.recording
    calls, activities = recording.tables["api_calls"], recording.tables["activities"]
    loads = are_named(recording.tables, plain(calls["name"]), _LOAD.match)
    if not loads.any() or not recording.devices:
        return
    order, run = launch_runs(recording)
    # R47 says what is compiled.
    compiled = np.unique(run[follows_compilation(recording)[order]])
    loaded = np.setdiff1d(run[loads[order]], compiled)
    line = line_numbers(recording, plain(calls["stack"]))
    launches = order[np.searchsorted(run, loaded, side="right") - 1]
    work = first_rows(plain(activities["correlation"]), plain(calls["correlation"])[launches])
    is_known = (work >= 0) & is_of_loads(recording)[launches]
    for number in np.unique(line[launches[is_known]]).tolist():
        rows = np.flatnonzero(is_known & (line[launches] == number))
        kernels, devices = (plain(activities[each])[work[rows]] for each in ("name", "device"))
        new = numbered(kernels, devices)[1]
        if len(rows) >= max(_FEWEST, _LEAST_FACTOR * len(new)):
            again = np.delete(rows, new)
            before = order[np.isin(run, loaded[again]) & (line[order] == number)]
            yield from _finding(schedule, before, launches[again], work[again])


def _finding(
    schedule: Schedule,
    before: "NDArray[Any]",
    launches: "NDArray[Any]",
    work: "NDArray[Any]",
) -> "Iterator[Finding]":
    """Yield a finding about a line's calls up to some of its launches, and the work of these."""
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
    what, advice = _what(recording, names)
    stack = int(stacks_of(recording.tables, launches[:1])[0])
    line = line_of(recording, stack, format_duration(saved_ns))
    times = format_count(len(launches))
    loads = int(are_named(recording.tables, plain(calls["name"])[before], _LOAD.match).sum())
    begin, end = plain(activities["time"])[work], plain(activities["end"])[work]
    yield Finding(
        rule="R64",
        title=f"{text_of(line)} {what} {times} times.",
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


def _what(recording: "RecordingData", names: "NDArray[Any]") -> tuple[str, str]:
    """Return what a line does before it launches kernels of some names, and what to change."""
    if are_named(recording.tables, names, _FFT.search).any():
        plans = _PLANS_OF_TORCH if is_of(recording, "torch") else _PLANS_OF_CUPY
        return "makes an FFT plan", plans
    of_cudnn = are_named(recording.tables, names, _CUDNN.search).any()
    return "loads code", _OF_CUDNN if of_cudnn else _OTHERS
