"""Table of host waits: counts, times and call sites."""

from typing import TYPE_CHECKING, Any, Literal

from gpuviz.analysis.calls import CallKind, call_kinds
from gpuviz.analysis.columns import codes, plain
from gpuviz.analysis.grouping import Groups
from gpuviz.analysis.launches import (
    Places,
    calls_of,
    check_by,
    durations,
    text_numbers,
    texts,
)
from gpuviz.recording.tables import DICTIONARIES

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from gpuviz.recording.recording import Recording

_HOST_WAITS = ("event_synchronize", "stream_synchronize", "context_synchronize")
_KINDS = (*_HOST_WAITS, "memcpy", "pageable_memcpy")


def synchronizations(
    recording: "Recording",
    by: Literal["kind", "line", "stack"] = "kind",
) -> "pa.Table":
    """Return how often and how long the host was blocked, most time first.

    Each row is of one ``kind`` and one ``name``, the CUDA call's (empty if it is not known). Kinds:
    ``event_synchronize``, ``stream_synchronize``, ``context_synchronize``; ``memcpy``, a call that
    copies from or to the host and returns when that is done; ``pageable_memcpy``, an asynchronous
    copy that stages pageable memory in the call. Queries do not block; where calls are recorded, a
    wait without one was a query. Columns beside these:
    ``site``, ``source`` and ``stack`` of the most frequent call (as in `Recording.kernels`),
    ``count``, and ``total_ns``, ``median_ns`` and ``max_ns`` of the time the host was blocked.

    Raises:
        ValueError: ``by`` is something else.
    """
    import pyarrow as pa

    check_by(by, ("kind", "line", "stack"))
    kinds, calls, lengths = _blocked(recording)
    places = Places(recording, calls)
    names = _names_of(recording, calls)
    keys = [] if by == "kind" else [places.numbers(by)]
    groups = Groups([*keys, kinds, text_numbers(recording, names)])
    typical = groups.typical_rows([places.stacks])
    table = pa.table(
        {
            "kind": pa.array([_KINDS[kind] for kind in kinds[typical].tolist()], pa.utf8()),
            "name": pa.array(texts(recording, names[typical]), pa.utf8()),
            **places.columns(typical),
            "count": groups.counts,
            "total_ns": groups.sums(lengths),
            "median_ns": groups.medians(lengths),
            "max_ns": groups.maxima(lengths),
        },
    )
    order = [("total_ns", "descending"), ("count", "descending"), ("kind", "ascending")]
    return table.sort_by([*order, ("name", "ascending"), ("stack", "ascending")])


def _blocked(recording: "Recording") -> "tuple[NDArray[Any], NDArray[Any], NDArray[Any]]":
    """Return the kind, the row of ``api_calls`` (-1 if none) and the ns of each time of waiting."""
    import numpy as np

    table = recording.tables["synchronizations"]
    known = DICTIONARIES["synchronizations", "kind"]
    first = known.index(_HOST_WAITS[0])
    waits = codes(table["kind"], known) - first
    calls = calls_of(recording, plain(table["correlation"]))
    kinds_of_calls = call_kinds(recording)
    queries = np.isin(calls, np.flatnonzero(kinds_of_calls == CallKind.QUERY))
    if len(kinds_of_calls):
        # Calls that wait are always recorded, queries only when all calls are.
        queries |= calls < 0
    rows = np.flatnonzero((waits >= 0) & ~queries)
    alone = np.setdiff1d(_blocking_calls(recording, kinds_of_calls), calls[rows])
    kinds_alone = _kinds_of_calls(recording, alone, kinds_of_calls[alone])
    return (
        np.concatenate([waits[rows], kinds_alone]).astype(np.int64),
        np.concatenate([calls[rows], alone]),
        np.concatenate([durations(table)[rows], durations(recording.tables["api_calls"])[alone]]),
    )


def _blocking_calls(recording: "Recording", kinds: "NDArray[Any]") -> "NDArray[Any]":
    """Return the rows of calls that block; of several with one correlation id, the first."""
    import numpy as np

    blocking = (CallKind.SYNCHRONIZE, CallKind.MEMCPY, CallKind.PAGEABLE_MEMCPY)
    rows = np.flatnonzero(np.isin(kinds, blocking))
    correlations = plain(recording.tables["api_calls"]["correlation"])[rows]
    alone: NDArray[Any] = rows[(calls_of(recording, correlations) == rows) | (correlations == 0)]
    return alone


def _kinds_of_calls(
    recording: "Recording",
    calls: "NDArray[Any]",
    kinds: "NDArray[Any]",
) -> "NDArray[Any]":
    """Return positions in ``_KINDS``; those of synchronizing calls tell by their names."""
    import numpy as np

    found = np.full(len(calls), _KINDS.index("context_synchronize"))
    names = texts(recording, _names_of(recording, calls))
    for word, kind in (("Event", "event_synchronize"), ("Stream", "stream_synchronize")):
        found[[word in name for name in names]] = _KINDS.index(kind)
    found[kinds == CallKind.MEMCPY] = _KINDS.index("memcpy")
    found[kinds == CallKind.PAGEABLE_MEMCPY] = _KINDS.index("pageable_memcpy")
    return found


def _names_of(recording: "Recording", calls: "NDArray[Any]") -> "NDArray[Any]":
    import numpy as np

    names = plain(recording.tables["api_calls"]["name"])
    found = np.zeros(len(calls), np.uint32)
    found[calls >= 0] = names[calls[calls >= 0]]
    return found
