"""R18: the host reads a scalar in each round of a loop and waits for the GPU there."""

from typing import TYPE_CHECKING

import numpy as np

from gpuviz.advice.conditions import decides
from gpuviz.advice.host_lines import text_of
from gpuviz.advice.own_lines import is_own
from gpuviz.advice.rules.r54_hidden_synchronization import fetches_a_size
from gpuviz.advice.trace import COPY
from gpuviz.advice.waits import Waits, longest_waits, without_waits
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import plain
from gpuviz.quantities import format_count, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuviz.advice.finding import Finding
    from gpuviz.advice.schedule import Schedule

# A complex number in double precision.
_MOST_BYTES = 16
_LEAST_READS = 3


def find(schedule: "Schedule") -> "Iterator[Finding]":
    """Find lines such as ``float(x)`` and ``x.item()`` that wait again and again.

    Trigger: see `gpuviz.advice.waits.longest_waits`; the line itself copies at most 16 bytes to the
    host, at least three times, and the program does not branch on the value, as far as the text
    around the line shows. A value that decides about the next step is needed at once.

    Saving: the recording's `Schedule`, replayed without any wait of the line. The program may need
    the value for something else: ``possible``.
    """
    for waits in longest_waits(schedule):
        if fetches_a_size(schedule, waits) or decides(schedule.recording, waits.stack):
            continue
        if not reads_scalars(schedule, waits):
            continue
        removed = without_waits(schedule, waits)
        yield removed.finding(
            "R18",
            title=(
                f"{text_of(removed.lines[0])} reads a scalar {format_count(len(waits.rows))} times "
                f"and waits {format_duration(removed.waited_ns)} for the GPU."
            ),
            reason=removed.reason,
            change=(
                "Keep the values on the GPU, in an array or a list, and read them after the loop, "
                "or every few iterations. Until then the host can launch the next work."
            ),
        )


def reads_scalars(schedule: "Schedule", waits: Waits) -> bool:
    """Return whether a line of the program itself reads scalars, in several rounds."""
    recording = schedule.recording
    if not waits.is_copy or len(waits.rows) < _LEAST_READS:
        return False
    if not is_own(recording, stacks_of(recording.tables, waits.all_calls)).all():
        return False
    sizes = plain(recording.tables["activities"]["bytes"])[schedule.rows]
    copies = np.isin(schedule.call, waits.all_calls) & (schedule.kind == COPY)
    return bool(copies.any()) and int(sizes[copies].max()) <= _MOST_BYTES
