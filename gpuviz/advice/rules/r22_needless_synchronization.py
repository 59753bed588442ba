"""R22: the host waits for the GPU although nothing that was recorded needs it."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import text_of
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.advice.waits.sharing import sharing
from gpuviz.advice.waits.waits import Waits, longest_waits, without_waits
from gpuviz.quantities import format_duration

RULES = (
    Rule(
        "R22",
        "synchronizations that nothing needs",
        "a line of the program itself waits as in R41 by synchronizing streams or the device, "
        "although all copies from and to the host wait themselves, no memory is managed, and no "
        "two streams share memory",
        "remove it, unless the host measures time there",
    ),
)


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find synchronizations of streams or devices that can be deleted.

    Trigger: a line waits as `gpuviz.advice.waits.waits.longest_waits` says, only because it
    synchronizes streams or the device itself, and deleting it creates no conflict: the recording
    has no copy from or to the host that does not wait itself, no managed memory, and no two streams
    that share memory; see `gpuviz.advice.waits.sharing.Sharing`.

    Saving: the recording's `Schedule`, replayed without any wait of the line. The host may also
    wait in order to measure time: ``possible``.
    """
    for waits in longest_waits(schedule):
        if not is_needless(schedule, waits):
            continue
        removed = without_waits(schedule, waits)
        waited = format_duration(removed.waited_ns)
        yield removed.finding(
            "R22",
            title=f"{text_of(removed.lines[0])} waits {waited} for the GPU, and nothing needs it.",
            reason=(
                f"{removed.reason} All copies from and to the host wait for their work themselves, "
                "and no stream uses an array that another one writes."
            ),
            change=(
                "Remove it, unless the host measures time there. Work on one stream runs in order "
                "without synchronization, and a copy to the host waits for its result."
            ),
        )


def is_needless(schedule: Schedule, waits: Waits) -> bool:
    """Return whether the waits of a line can be deleted without a conflict."""
    if not waits.only_synchronizes or schedule.shares_with_host:
        return False
    shared = sharing(schedule, is_epochal=False)
    return shared is not None and not shared.is_any


def begins_without_waits(schedule: Schedule) -> list[np.ndarray]:
    """Return when activities would begin without all needless synchronizations.

    Empty if there are none, or if all work is on one stream.
    """
    if len(np.unique(schedule.stream)) == 1:
        return []
    needless = [each for each in longest_waits(schedule) if is_needless(schedule, each)]
    if not needless:
        return []
    removed = np.zeros(len(schedule.called), bool)
    removed[np.concatenate([each.all_calls for each in needless])] = True
    change = ScheduleChange(without_wait=removed)
    return [schedule.times_after(change)[schedule.moments.begun]]
