"""R84: arrays are copied to the host as a whole, where a line takes a part of each."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import line_of, text_of
from gpuviz.advice.needless.partly_used_copies import PartlyUsed, partly_used_copies
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.data.columns import plain
from gpuviz.quantities import format_bytes, format_counted, format_duration, format_share

RULES = (
    Rule(
        "R84",
        "a copy to the host of which a part is used",
        "a line copies arrays of 64 KiB or more to the host, by `get`, `asnumpy` or `cpu`, and "
        "takes at most half of each there by a subscript of constants, such as `[::32]` or `[1]`, "
        "as far as these show it; the saving is without the rest of the copies, "
        "and the host's own time in them",
        "the part taken on the GPU, before the copy: `x[::32].get()` instead of `x.get()[::32]`",
    ),
)


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find the lines that copy arrays to the host, and use at most half of each there.

    Trigger: see `gpuviz.advice.needless.partly_used_copies.partly_used_copies`. Constants alone
    show how much a line takes: ``[0]`` may be all of an axis, and so may ``[:10]``.

    Saving: the recording's `Schedule`, replayed with copies that take as long as their part, in
    calls that take no time of the host's own beside it. The host still waits for the work before
    them.
    """
    for found in partly_used_copies(schedule):
        yield _finding(schedule, found)


def _finding(schedule: Schedule, found: PartlyUsed) -> Finding:
    recording, work = schedule.recording, found.work
    duration, calls = schedule.duration.copy(), np.zeros(len(schedule.called), bool)
    duration[work] = (duration[work] * found.share).astype(np.int64)
    calls[schedule.call[work]] = True
    change = ScheduleChange(duration=duration, instant=calls)
    spent = format_duration(int(schedule.duration[work].sum()))
    sizes = plain(recording.tables["activities"]["bytes"])[schedule.rows[work]]
    line = line_of(recording, found.stack, spent)
    return Finding(
        rule="R84",
        title=f"{text_of(line)} copies {format_bytes(int(sizes.sum()))} to the host, and takes at "
        f"most {format_share(found.share)} of it there.",
        reason=(
            f"{format_counted(len(work), 'copy', 'copies')} of whole arrays take {spent} on the "
            f"GPU. What `{found.taken}` takes a part of has no name, so that nothing else uses it."
        ),
        change=(
            f"Take the part on the GPU, so that only it is copied: `{found.instead}`. What is kept "
            "of a copy then does not keep all of it in the host's memory either."
        ),
        certainty="likely",
        device=int(schedule.device[work[0]]),
        saved_ns=schedule.saved_alone(change),
        lines=(line,),
        evidence=schedule.evidence(work),
        schedule=change,
    )
