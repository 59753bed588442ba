"""The kernels of NCCL that run the collectives of a recording.

NCCL reports what a kernel runs to its profiler plugin just after it launched it, in the same
thread. So the rows that a thread writes belong to the kernel that it launched last.
"""

import numpy as np

from gpuviz.analysis.launches import calls_of
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES, Tables

# What the names of its kernels begin with.
NCCL = "nccl"
_KINDS = DICTIONARIES["activities", "kind"]


def collective_kernels(tables: Tables) -> np.ndarray:
    """Return, for each row of ``collectives``, the row of its kernel in ``activities``.

    It is -1 if that is not certain: the thread launched something else in between, as NCCL's
    callbacks do that report the launches of graphs, or the record of the launch is missing.
    """
    rows, calls = tables["collectives"], tables["api_calls"]
    found = np.full(rows.num_rows, -1)
    if not rows.num_rows:
        return found
    launches = _launches(tables)
    if not len(launches):
        return found
    threads = np.concatenate([plain(calls["thread"])[launches], plain(rows["thread"])])
    times = np.concatenate([plain(calls["time"])[launches], plain(rows["time"])])
    is_row = np.arange(len(times)) >= len(launches)
    order = np.lexsort((is_row, times, threads))
    # The last launch before each, in the order of threads and times.
    last = np.maximum.accumulate(np.where(is_row[order], -1, np.arange(len(order))))
    launch = np.where(last >= 0, order[last], -1)
    is_known = is_row[order] & (last >= 0)
    is_known &= threads[launch] == threads[order]
    chosen = np.flatnonzero(is_known)
    call = launches[launch[chosen]]
    found[order[chosen] - len(launches)] = _kernels_of(tables, call)
    return found


def _launches(tables: Tables) -> np.ndarray:
    """Return the calls that launched something, by their name or what they launched."""
    calls = tables["api_calls"]
    names = plain(calls["name"])
    known = distinct(names)
    launching = known[["Launch" in text for text in texts(tables, known)]]
    is_launch = np.isin(names, launching)
    with_work = calls_of(tables, plain(tables["activities"]["correlation"]))
    is_launch[with_work[with_work >= 0]] = True
    found: np.ndarray = np.flatnonzero(is_launch)
    return found


def _kernels_of(tables: Tables, calls: np.ndarray) -> np.ndarray:
    """Return the kernel of NCCL that each call launched; -1 if it launched none."""
    activities = tables["activities"]
    correlation = plain(tables["api_calls"]["correlation"])[calls]
    activity = first_rows(plain(activities["correlation"]), correlation)
    names = plain(activities["name"])
    known = distinct(names)
    of_nccl = known[[text.startswith(NCCL) for text in texts(tables, known)]]
    is_kernel = codes(activities["kind"], _KINDS) == _KINDS.index("kernel")
    is_kernel &= np.isin(names, of_nccl)
    found: np.ndarray = np.where(
        (activity >= 0) & np.append(is_kernel, False)[activity], activity, -1
    )
    return found
