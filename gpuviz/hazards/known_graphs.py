"""The graphs of a recording whose nodes are all known, and their launches."""

import re

import numpy as np

from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES, Tables

GRAPH_CALLS = DICTIONARIES["graph_calls", "kind"]
_LAUNCH = GRAPH_CALLS.index("launch")
_SIGNALS = re.compile(r"nccl|nvshmem|barrier_all|multimem", re.IGNORECASE)


def are_signalling(tables: Tables, names: np.ndarray) -> np.ndarray:
    """Return whether each kernel waits for other kernels by signals of its own, by its name."""
    return are_named(tables, names, _SIGNALS.search)


class KnownGraphs:
    """The captured calls and the launches of the graphs of a process.

    A graph counts if each of its nodes was captured into streams that are known, and none waits for
    other kernels in a way of its own.

    Attributes:
        row: Rows of ``graph_calls``, in the order of the calls.
        columns: Their columns.
        launched: Correlations of the launches.
        captured: Correlations of all captured calls, also of graphs that do not count.
        first_of_captures: For each capture, the place of its first call in ``row``.
        last_of_captures: For each capture, that of its last call.
        first_graphs: For each capture, the number of its first executable graph.
        first_graph: For each call, that of its capture.
        other_graphs: Pairs of the place of the last call of a capture and the number of another
            executable graph of it.
        event: For each call, a number of the event that it names.
    """

    node_kinds = tuple(GRAPH_CALLS.index(name) for name in ("kernel", "memcpy", "memset"))

    def __init__(self, tables: Tables) -> None:
        table, calls, streams = tables["graph_calls"], tables["api_calls"], tables["streams"]
        columns = {
            name: plain(table[name]).astype(np.int64)
            for name in ("correlation", "stream", "capture", "graph")
        }
        columns["kind"] = codes(table["kind"], GRAPH_CALLS)
        is_launch = columns["kind"] == _LAUNCH
        self.captured = columns["correlation"][~is_launch]
        self._launches = {name: columns[name][is_launch] for name in ("correlation", "stream")}
        call = first_rows(plain(calls["correlation"]), columns["correlation"])
        capture = columns["capture"]
        is_strange = (call < 0) | ~np.isin(columns["stream"], plain(streams["id"]))
        is_strange |= are_signalling(tables, plain(table["name"]))
        is_judged = ~np.isin(capture, capture[is_strange]) & np.isin(capture, capture[is_launch])
        is_judged &= np.isin(capture, capture[~is_launch])
        row = np.flatnonzero(is_judged)
        row = row[np.argsort(plain(calls["time"])[call[row]], kind="stable")]
        row = row[_are_apart(capture[row], is_launch[row])]
        self.row, self.columns = row, {name: column[row] for name, column in columns.items()}
        self.launched = columns["correlation"][row[is_launch[row]]]
        events: tuple[np.ndarray, np.ndarray] = np.unique(
            plain(table["event"])[row], return_inverse=True
        )
        self.event = events[1]
        self._number_captures(is_launch[row])

    def stream_of_launch(self, correlation: np.ndarray) -> np.ndarray:
        """Return the stream on which each graph was launched; -1 if it is not known.

        Its nodes may run on other streams.
        """
        launch = first_rows(self._launches["correlation"], correlation)
        found: np.ndarray = np.append(self._launches["stream"], -1)[launch]
        return found

    def _number_captures(self, is_launch: np.ndarray) -> None:
        captures, self.first_of_captures, self.last_of_captures = _ends(
            self.columns["capture"], ~is_launch
        )
        graphs, launch, _ = _ends(self.columns["graph"], is_launch)
        of = np.searchsorted(captures, self.columns["capture"][launch])
        first_graph = first_rows(of, np.arange(len(captures)))
        self.first_graphs = graphs[first_graph]
        self.first_graph = self.first_graphs[np.searchsorted(captures, self.columns["capture"])]
        others = np.delete(np.arange(len(graphs)), first_graph)
        self.other_graphs = list(
            zip(self.last_of_captures[of[others]].tolist(), graphs[others].tolist(), strict=True)
        )


def _ends(numbers: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each number of chosen rows, its first and its last row."""
    rows = np.flatnonzero(chosen)
    distinct, first = np.unique(numbers[rows], return_index=True)
    _, behind = np.unique(numbers[rows[::-1]], return_index=True)
    return distinct, rows[first], rows[::-1][behind]


def _are_apart(capture: np.ndarray, is_launch: np.ndarray) -> np.ndarray:
    """Return a mask of the calls of captures during which there was no other capture or launch."""
    captures, first, last = _ends(capture, ~is_launch)
    launched, launch, _ = _ends(capture, is_launch)
    is_apart = launch[np.searchsorted(launched, captures)] > last
    order = np.argsort(first)
    before = np.maximum.accumulate(last[order])[:-1]
    for place in (1 + np.flatnonzero(first[order][1:] < before)).tolist():
        begin = first[order[place]]
        is_apart &= (first > begin) | (last < begin)
    found: np.ndarray = np.isin(capture, captures[is_apart])
    return found
