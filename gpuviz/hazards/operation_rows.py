"""Operations before they are ordered, and which accesses each has."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gpuviz.analysis.touches import Touches

Columns = dict[str, np.ndarray]


class OperationRows:
    """Operations in any order."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Any]] = []

    def add(self, time: np.ndarray, code: Any, **columns: Any) -> None:
        """Add operations; missing columns are 0, and missing rows -1."""
        part = {"time": time, "code": code, "device": 0, "stream": 0, "object": 0, "touches": 0}
        part |= {"first_touch": 0, "activity": -1, "event": -1, "call": -1}
        part |= {"graph_call": -1, "host_access": -1} | columns
        self.parts.append({name: np.broadcast_to(each, len(time)) for name, each in part.items()})

    def ordered(self) -> Columns:
        """Return the columns, ordered by time.

        At one time, queries and accesses of the host come first, then memory events in their
        order, then calls.
        """
        columns = {
            name: np.concatenate([np.asarray(part[name], np.int64) for part in self.parts])
            for name in self.parts[0]
        }
        rank = np.where(columns["call"] >= 0, np.iinfo(np.int64).max, columns["event"])
        order = np.lexsort((rank, columns["time"]))
        return {name: column[order] for name, column in columns.items()}


def touches_of(used: "Touches", call: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first touch of each call, in the order of calls, and how many it has."""
    order = np.argsort(used.call, kind="stable")
    known = used.call[order]
    first: np.ndarray = np.searchsorted(known, call)
    last: np.ndarray = np.searchsorted(known, call, side="right")
    return first, last - first
