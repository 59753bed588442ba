"""Copies whose bytes the recording knows at some places, and a schedule without copies."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.schedule import Schedule, ScheduleChange
from gpuviz.data.columns import plain
from gpuviz.data.first_rows import first_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray


def with_known_content(
    schedule: Schedule, work: "NDArray[Any]"
) -> "tuple[NDArray[Any], NDArray[Any]]":
    """Return those of some copies whose content is known, in the order of time, and the content.

    Equal numbers mean equal bytes at 64 places of the host's memory; see ``content`` of
    ``launch_blocks``, which only copies of at least 1 MiB have.
    """
    work = work[np.argsort(schedule.begin[work], kind="stable")]
    touched = schedule.recording.tables["launch_blocks"]
    content = plain(touched["content"])
    known = np.flatnonzero(content)
    rows = first_rows(plain(touched["correlation"])[known], schedule.launch[work])
    return work[rows >= 0], content[known][rows[rows >= 0]]


def without_copies(
    schedule: Schedule, copies: "NDArray[Any]", gap: "NDArray[Any] | None" = None
) -> ScheduleChange:
    """Return the change that removes copies, with their calls and the waits in these.

    Args:
        schedule: The schedule.
        copies: Its work.
        gap: For each call, whether the host's time before it vanishes, too.
    """
    calls = np.zeros(len(schedule.called), bool)
    calls[schedule.call[copies]] = True
    duration = schedule.duration.copy()
    duration[copies] = 0
    return ScheduleChange(duration=duration, without_wait=calls, without_gap=gap, instant=calls)
