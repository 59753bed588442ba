"""R41: a copy or synchronization in which the host waits for earlier work of the GPU."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.finding import Finding, as_subject
from gpuviz.advice.host_lines import text_of
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.replay.trace import COPY
from gpuviz.advice.rule import Rule
from gpuviz.advice.rules.r22_needless_synchronization import is_needless
from gpuviz.advice.rules.r62_round_trips import calls_of_trips, round_trips
from gpuviz.advice.rules.r65_host_arrays_of_kernels import needless_copies
from gpuviz.advice.source.conditions import decides, feeds, indexes
from gpuviz.advice.source.own_lines import is_own
from gpuviz.advice.training.anomaly_tests import anomaly_tests
from gpuviz.advice.waits.chosen_places import chooses_places
from gpuviz.advice.waits.fetches import fetch_of
from gpuviz.advice.waits.needed_results import is_needed_by_all
from gpuviz.advice.waits.reused_buffers import waits_for_results, waits_to_reuse
from gpuviz.advice.waits.waits import Waits, longest_waits, longest_without, without_waits
from gpuviz.analysis.launches import stacks_of
from gpuviz.analysis.main_loop import host_spans, regular_from
from gpuviz.data.call_stacks import NO_STACK
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_duration

RULES = (
    Rule(
        "R41",
        "a wait for earlier work",
        "a copy, `float(x)` or synchronization in which the host waits for other kernels longer "
        "than it copies, on a known line, at least three times if it copies, and the program does "
        "not branch on the value, as in R18, nor copy it back, as in R62 and R65; a wait for a "
        "copy of pinned memory that a later copy uses again, or may, is needed if other work was "
        "launched since, and so is one in at most one of ten iterations, or in a function of a "
        "library whose result most other work needs; the saving is what the "
        "GPU idles afterwards, so a busy GPU saves nothing, nor one that idles while kernels are "
        "compiled",
        "read the value later; copy to the GPU without waiting; call a library's function later",
    ),
)

# A program that reads fewer results needs them there, as between two phases.
_LEAST_COPIES = 3
# Of the iterations; the waits of fewer are those of a program that reports its progress.
_MOST_RARE = 0.1
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_TO_DEVICE, _TO_HOST = map(_COPY_KINDS.index, ("host_to_device", "device_to_host"))


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find lines whose calls wait for work that was launched before.

    Trigger: see `gpuviz.advice.waits.waits.longest_waits`; synchronizations that nothing needs are
    R22, scalars R18, sizes R54, tests of autograd R70, and copies of arrays that come back to the
    GPU R62 and R65. A copy is no fault if the program branches on its value, as in the condition of
    a loop, since the next step needs it; see `gpuviz.advice.source.conditions.decides`, or if the
    program reads it itself and chooses a part of an array by it; see
    `gpuviz.advice.waits.chosen_places.chooses_places`, or copies what it computes from it to the
    GPU in the same loop. Nor are waits before the first regular iteration or in at most one of ten,
    as of a program that prints its progress, one or two copies, as between the phases of a program,
    nor a wait that comes as late as a buffer in pinned memory allows, see
    `gpuviz.advice.waits.reused_buffers.waits_to_reuse`. The program cannot remove a wait inside a
    function of a library, but can call it later, unless most other work needs its result; see
    `gpuviz.advice.waits.needed_results`. Waits without a call stack say nothing that could be
    changed.

    Saving: the recording's `Schedule`, replayed without any wait of the line. It is the time for
    which the GPU idles after the waits because the host launches the next work too late. A GPU that
    is always busy saves nothing, nor does one that idles because the host compiles or loads code,
    which a warm run does not; see `gpuviz.advice.replay.warm_runs`. Whether the program needs the
    value at once is not recorded: ``possible``.
    """
    of_tests = [np.flatnonzero(tests.calls) for tests in anomaly_tests(schedule)]
    early = np.concatenate([_of_warm_up(schedule), *of_tests])
    rarely = _MOST_RARE * len(host_spans(schedule.recording)[0])
    uploading = _uploading_lines(schedule)
    for line in longest_waits(schedule):
        others = np.append(early, _come_back(schedule)) if line.is_copy else early
        waits = longest_without(schedule, line, others)
        if waits is None or len(distinct(waits.calls)) <= rarely:
            continue
        fetch = fetch_of(schedule, waits.all_calls)
        if fetch is not None and (fetch.is_scalar or fetch.is_size):
            continue
        is_condition = waits.is_copy and (
            decides(schedule.recording, waits.stack)
            or feeds(schedule.recording, waits.stack, uploading)
            or (indexes(schedule.recording, waits.stack) and chooses_places(schedule, waits.calls))
        )
        is_unknown = schedule.recording.call_stacks.call_site(waits.stack)[0] == NO_STACK
        if is_unknown or is_condition or is_needless(schedule, waits):
            continue
        if waits.is_copy and len(distinct(waits.calls)) < _LEAST_COPIES:
            continue
        if waits_to_reuse(schedule, waits):
            continue
        if not _is_own(schedule, waits) and is_needed_by_all(schedule, waits):
            continue
        removed = without_waits(schedule, waits)
        waited = format_duration(removed.waited_ns)
        name = as_subject(text_of(removed.lines[0]))
        yield removed.finding(
            "R41",
            title=f"{name} waits {waited} for earlier work of the GPU.",
            reason=removed.reason,
            change=_change(schedule, waits),
        )


def _of_warm_up(schedule: Schedule) -> np.ndarray:
    """Return the calls before the first regular iteration."""
    called = plain(schedule.recording.tables["api_calls"]["time"])
    return np.flatnonzero(called < (regular_from(schedule.recording) or 0))


def _uploading_lines(schedule: Schedule) -> set[str]:
    """Return the texts of the program's lines that copy to the GPU, or call what does."""
    kinds = codes(schedule.recording.tables["activities"]["copy_kind"], _COPY_KINDS)
    work = np.flatnonzero((schedule.kind == COPY) & (kinds[schedule.rows] == _TO_DEVICE))
    calls = schedule.call[work[schedule.call[work] >= 0]]
    stacks = distinct(stacks_of(schedule.recording.tables, calls)).tolist()
    user_frames = schedule.recording.call_stacks.user_frames
    return {frame.source.strip() for stack in stacks for frame in user_frames(stack)}


def _come_back(schedule: Schedule) -> np.ndarray:
    """Return the calls that vanish if arrays need not come back to the GPU, as R62 and R65 say."""
    trips = [each for pair in round_trips(schedule) for each in pair]
    copies = np.concatenate([np.zeros(0, np.int64), *trips, *needless_copies(schedule)])
    return calls_of_trips(schedule, copies)


def _is_own(schedule: Schedule, waits: Waits) -> bool:
    """Return whether the program itself makes some of the calls."""
    recording = schedule.recording
    return bool(is_own(recording, stacks_of(recording.tables, waits.all_calls)).any())


def _only_uploads(schedule: Schedule, waits: Waits) -> bool:
    """Return whether the line copies from the host and not to it."""
    is_own = schedule.kind == COPY
    is_own[waits.work] = False
    kinds = codes(schedule.recording.tables["activities"]["copy_kind"], _COPY_KINDS)
    kinds = kinds[schedule.rows[is_own]]
    return bool((kinds == _TO_DEVICE).any() and not (kinds == _TO_HOST).any())


def _change(schedule: Schedule, waits: Waits) -> str:
    if not _is_own(schedule, waits):
        return (
            "A function of a library waits there. Call it after the launch of other work that does "
            "not need its result, or shorten the work that it waits for."
        )
    if waits.is_copy and _only_uploads(schedule, waits):
        return (
            "Copy what never changes once, before the loop, and the rest without waiting: from "
            "pinned memory, asynchronously. Pass a number to the operation itself instead of an "
            "array of one element, or make the array on the GPU."
        )
    if waits.is_copy:
        return (
            "Keep the value on the GPU and read it when the program needs it: after the loop, or "
            "every few iterations. Until then the host can launch the next work."
        )
    if waits_for_results(schedule, waits):
        return (
            "The host waits there for a copy from the GPU. Launch the next work before the wait, "
            "so that the GPU works while the host reads the result. The next copy then needs "
            "another buffer."
        )
    change = (
        "Wait only where the host needs the result, so that it can launch the next work "
        "meanwhile. Work on one stream runs in order without synchronization."
    )
    if len(np.unique(schedule.stream)) > 1:
        change += (
            " If another stream uses the result, let that stream wait for an event instead: "
            "`other.wait_event(stream.record())`."
        )
    return change
