"""R29: many small kernels of one kind in a row, which one kernel could replace."""

from typing import TYPE_CHECKING, Any

from gpuviz.advice.finding import Evidence, Finding
from gpuviz.advice.host_lines import line_of, text_of
from gpuviz.advice.own_lines import is_own
from gpuviz.advice.runs import Runs, merged, runs_of
from gpuviz.advice.trace import KERNEL
from gpuviz.analysis.columns import plain
from gpuviz.analysis.kernels import short_name
from gpuviz.analysis.launches import stacks_of, text_numbers, texts
from gpuviz.quantities import format_count, format_duration
from gpuviz.recording.tables import DICTIONARIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuviz.advice.schedule import Schedule
    from gpuviz.analysis.touches import Touches

_READ = DICTIONARIES["launch_blocks", "mode"].index("read")
# A longer kernel is worth its launch.
_LONGEST_NS = 10_000
# What an empty kernel takes on an H100.
_EMPTY_NS = 2_000
_MOST_ROWS = 1000


def find(schedule: "Schedule") -> "Iterator[Finding]":
    """Find small kernels that follow each other and do not depend on each other.

    Trigger: at least eight kernels of one name, below 10 µs each, by one line and thread, less than
    100 µs apart on the host, without other work of the GPU between them. The line launches them
    itself, not a function of a library, which may do so many times in one call. None receives an
    address that another one in the row writes to, so that all could run at once; at least 1 % of
    the recording is saved.

    Saving: the recording's `Schedule`, replayed with one kernel for each row: of the others only
    what exceeds 2 µs remains, and their calls and those between them take no time. The program may
    get the data one after the other: ``possible``.
    """
    recording = schedule.recording
    used = schedule.touches
    if used is None:
        return
    is_small = (schedule.kind == KERNEL) & (schedule.duration < _LONGEST_NS)
    names = plain(recording.tables["activities"]["name"])[schedule.rows]
    kinds = text_numbers(recording.tables, names)
    for device in recording.devices:
        for runs in runs_of(schedule, device, is_small, kinds):
            stacks = stacks_of(recording.tables, schedule.call[runs.first])
            chosen = is_own(recording, stacks) & _are_independent(schedule, used, runs)
            independent = runs.chosen(chosen)
            if len(independent.first):
                yield from _finding(schedule, independent)


def _are_independent(schedule: "Schedule", used: "Touches", runs: Runs) -> "NDArray[Any]":
    """Return for each run whether no kernel uses what another one of the run writes."""
    import numpy as np

    count = len(runs.first)
    run_of_call = np.full(schedule.recording.tables["api_calls"].num_rows, -1)
    run_of_call[schedule.call[runs.first]] = np.arange(count)
    run_of_call[schedule.call[runs.followers]] = runs.run
    chosen = np.flatnonzero(run_of_call[used.call] >= 0)
    call, run = used.call[chosen], run_of_call[used.call[chosen]]
    keys = np.stack([run, used.block[chosen], used.address[chosen].astype(np.int64)])
    _, place = np.unique(keys, axis=1, return_inverse=True)
    place = place.ravel()
    pairs = np.unique(np.stack([place, call]), axis=1)
    is_common = np.bincount(pairs[0], minlength=len(place) + 1) > 1
    dependent = is_common[place] & np.isin(place, place[used.mode[chosen] != _READ])
    seen = np.isin(schedule.call[np.append(runs.first, runs.followers)], call)
    found = np.ones(count, bool)
    found[run[dependent]] = False
    found[np.append(np.arange(count), runs.run)[~seen]] = False
    return found


def _finding(schedule: "Schedule", runs: Runs) -> "Iterator[Finding]":
    import numpy as np

    recording = schedule.recording
    change = merged(schedule, runs, _EMPTY_NS)
    saved_ns = schedule.saved_alone(change)
    if saved_ns < schedule.relevant_ns:
        return
    work = np.append(runs.first, runs.followers)
    names = plain(recording.tables["activities"]["name"])[schedule.rows[work[:1]]]
    name = short_name(texts(recording.tables, names)[0]) or "the same kernel"
    stack = int(stacks_of(recording.tables, schedule.call[runs.first[:1]])[0])
    line = line_of(recording, stack, format_duration(runs.spent_ns(schedule)))
    yield Finding(
        rule="R29",
        title=f"{text_of(line)} launches {name} {format_count(len(work))} times in a row.",
        reason=(
            f"Each takes {format_duration(int(np.median(schedule.duration[work])))} (median) on "
            f"the GPU, and none uses what another one writes. The launches take {line.amount} of "
            "the host."
        ),
        change=(
            "Do it in one operation: keep the parts in one array with another axis, and apply the "
            "function to all of it."
        ),
        certainty="possible",
        device=runs.device,
        saved_ns=saved_ns,
        schedule=change,
        lines=(line,),
        evidence=Evidence(
            "activities",
            tuple(np.sort(schedule.rows[runs.followers[:_MOST_ROWS]]).tolist()),
            (int(schedule.begin[runs.first].min()), int(schedule.end[runs.last].max())),
        ),
    )
