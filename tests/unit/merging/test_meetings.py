"""What collectives say about two clocks, against all pairs of calls."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpuviz.data.manifest import Manifest
from gpuviz.merging.meetings import collectives, meetings
from gpuviz.recording import Recording
from tests.unit.recording.from_activities import rows_of

TO_ALL = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
FROM_ROOT = ("broadcast", "scatter")
FUNCTIONS = (*TO_ALL, *FROM_ROOT, "reduce", "gather", "send")
UNCERTAINTY_NS = 10_000

calls = st.fixed_dictionaries(
    {
        "function": st.sampled_from(FUNCTIONS),
        "communicator": st.sampled_from([7, 2**63 + 5]),
        "sequence": st.integers(0, 1),
        "rank": st.integers(0, 3),
        "peer": st.integers(-1, 3),
        "begin": st.integers(0, 50),
        "lasting": st.integers(1, 50),
    }
)


def recording(rows):
    """Return the recording of a process that launches a kernel for each collective."""
    tables = {"api_calls": [], "activities": [], "collectives": []}
    for number, row in enumerate(rows, 1):
        own = {name: row[name] for name in row if name not in ("begin", "lasting")}
        tables["api_calls"].append({"time": number * 10, "thread": 1, "correlation": number})
        kernel = {"kind": "kernel", "name": 1, "correlation": number, "time": row["begin"]}
        tables["activities"].append(kernel | {"end": row["begin"] + row["lasting"]})
        tables["collectives"].append(own | {"time": number * 10 + 1, "thread": 1})
    tables["strings"] = [{"id": 1, "text": "ncclKernel"}]
    made = {name: rows_of(name, each) for name, each in tables.items()}
    return Recording(made, Manifest(start_monotonic_ns=1000))


def by_collective(processes):
    found = {}
    for row in (row for each in processes for row in each if row["function"] != "send"):
        key = tuple(row[name] for name in ("communicator", "function", "sequence"))
        found.setdefault(key, []).append(
            (row["rank"], row["peer"], 1000 + row["begin"], 1000 + row["begin"] + row["lasting"])
        )
    return {
        key: each for key, each in found.items() if len({call[0] for call in each}) == len(each)
    }


def needs(function, one, other):
    """Return whether a call can end only after another has begun."""
    if function in FROM_ROOT:
        return other[0] == other[1]
    return function in TO_ALL or one[0] == one[1]


def bounds(function, own, others):
    pairs = [(one, other) for one in own for other in others]
    ends = [(one[3], other[2]) for one, other in pairs if needs(function, one, other)]
    begins = [(one[2], other[3]) for one, other in pairs if needs(function, other, one)]
    end, least = max(ends, key=lambda pair: pair[1] - pair[0], default=(None, None))
    begin, most = min(begins, key=lambda pair: pair[1] - pair[0], default=(None, None))
    if end is None and begin is None:
        return None
    return (
        end if begin is None else begin,
        begin if end is None else end,
        -np.inf if end is None else least - end - UNCERTAINTY_NS,
        np.inf if begin is None else most - begin + UNCERTAINTY_NS,
    )


hosts = st.lists(st.lists(calls, max_size=5), min_size=1, max_size=3)


@given(hosts, hosts)
def test_the_bounds_are_the_tightest_of_all_pairs_of_calls(own, others):
    met = meetings(*(collectives(map(recording, each)) for each in (own, others)))

    theirs = by_collective(others)
    expected = [
        bounds(key[1], each, theirs.get(key, [])) for key, each in by_collective(own).items()
    ]
    found = [column.tolist() for column in (met.begin, met.end, met.least, met.most)]
    assert sorted(zip(*found, strict=True)) == sorted(filter(None, expected))
