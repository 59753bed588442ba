"""Python's own `max` and `min` of an array, which compare its elements one by one."""

import re
from dataclasses import replace

import numpy as np

from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.replay.trace import KERNEL
from gpuviz.advice.source.conditions import statement_text
from gpuviz.advice.waits.fetches import Fetches
from gpuviz.data.columns import plain

# Of one argument: of several, they compare these.
_CALL = re.compile(r"(?<![.\w])(?P<function>max|min)\(\s*(?P<array>[A-Za-z_][\w.]*)\s*\)")
# Of a few elements, such as losses, it may be meant.
_LEAST_ELEMENTS = 8
# Of the comparisons, each has one kernel and one read, but for what else the line does.
_LEAST_SHARE = 0.5


def compared_one_by_one(schedule: Schedule, found: Fetches) -> Fetches | None:
    """Return reads with the comparisons that Python makes of an array's elements; None if none.

    The text of the line has `max` or `min` of one name, and each time that the line runs, a kernel
    and a read follow each other at least eight times.
    """
    call = _CALL.search(statement_text(schedule.recording, found.stack))
    if call is None:
        return None
    launched = schedule.launch_begin()
    work = np.flatnonzero(schedule.call >= 0)
    work = work[np.argsort(launched[work], kind="stable")]
    is_own = schedule.lines[work] == schedule.lines[found.copies[0]]
    runs = int(np.count_nonzero(np.diff(is_own.astype(np.int8), prepend=0) > 0))
    kernels = work[is_own & (schedule.kind[work] == KERNEL)]
    names = plain(schedule.recording.tables["activities"]["name"])[schedule.rows[kernels]]
    known, name, counts = np.unique(names, return_inverse=True, return_counts=True)
    compared = int(counts.max(initial=0))
    reads = len(found.copies)
    if compared < _LEAST_SHARE * reads or compared < _LEAST_ELEMENTS * runs or not len(known):
        return None
    comparing = kernels[name.ravel() == int(counts.argmax())]
    return replace(found, counting=comparing, comparing=(call["function"], call["array"]))
