"""Launches of a kernel that could run at the same time, by the arrays that they use."""

import numpy as np

from gpuviz.advice.replay.schedule import Schedule
from gpuviz.data.tables import DICTIONARIES

_READ = DICTIONARIES["launch_blocks", "mode"].index("read")
# Of the launches, those that have nothing to wait for in the one before.
_LEAST_APART = 0.5


def are_independent(schedule: Schedule, work: np.ndarray) -> bool:
    """Return whether at least half of the launches have nothing to wait for in the one before.

    They directly follow it on the stream, and share no array with it that one of the two writes.
    False if they are on several streams already, or if it is unknown what they use.

    Args:
        schedule: The recording's schedule.
        work: The launches, as activities.
    """
    used = schedule.touches
    if used is None or len(work) <= 1 or len(np.unique(schedule.stream[work])) > 1:
        return False
    order = work[np.argsort(schedule.begin[work], kind="stable")]
    place = np.full(len(schedule.rows) + 1, -1)
    place[order] = np.arange(len(order))
    rows = np.flatnonzero(used.activity >= 0)
    launch = place[schedule.number[used.activity[rows]]]
    rows, launch = rows[launch >= 0], launch[launch >= 0]
    if len(np.unique(launch)) < len(order):
        return False
    of_stream = np.flatnonzero(schedule.stream == schedule.stream[order[0]])
    of_stream = of_stream[np.argsort(schedule.begin[of_stream], kind="stable")]
    position = np.zeros(len(schedule.rows), np.int64)
    position[of_stream] = np.arange(len(of_stream))
    depends = np.append(True, np.diff(position[order]) > 1)
    writes = used.mode[rows] != _READ
    by_block = np.lexsort((launch, used.block[rows]))
    block, launch, writes = used.block[rows][by_block], launch[by_block], writes[by_block]
    follows = (block[1:] == block[:-1]) & (launch[1:] == launch[:-1] + 1)
    depends[launch[1:][follows & (writes[1:] | writes[:-1])]] = True
    return bool(np.count_nonzero(~depends) >= _LEAST_APART * (len(order) - 1))
