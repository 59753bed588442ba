"""Torch snapshots in the browser have the tables that Python's importer gives."""

import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz.errors import FormatError
from gpuviz.formats import torch_snapshot
from tests.examples import examples
from tests.integration.formats.browser_reader import BrowserReader, browser_reader
from tests.unit.formats.plain_snapshots import (
    FIRST_US,
    GOLDENS,
    MIB,
    SNAPSHOTS,
    golden_snapshot,
    snapshot_bytes,
)

BASE = 0x7F00_0000_0000
STEP = MIB // 2
FIRST_NS = 1000 * FIRST_US
ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "snapshot",
    "user_defined",
    "record_stream",
    "empty_cache",
    "free",
    "of a newer version",
)
TOGGLES = sorted(path.stem.removesuffix(".json") for path in GOLDENS.glob("*.json.xz"))

sizes = st.sampled_from([1, 512, 700, STEP, MIB, MIB + 1, 3 * STEP, 2 * MIB, 5 * MIB, 20 * MIB])
addresses = st.integers(0, 60).map(lambda steps: BASE + steps * STEP)
streams = st.sampled_from([0, 1, 0x5A0, 0x1234502, 0x7F00_0000_0010])
pools = st.sampled_from([(0, 0), (0, 3), (1, 0), [5, 2], None])
frames = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["run", None, "löp"]),
            "filename": st.sampled_from(["a.py", "b.py", "In [3]"]),
            "line": st.sampled_from([0, 7, -1, 2**64 - 1, 2**31]),
        },
    )
    | st.just("a frame of C++"),
    max_size=3,
)


def optional(**strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=strategies)


events = st.builds(
    lambda fixed, more: fixed | more,
    st.fixed_dictionaries(
        {"action": st.sampled_from(ACTIONS), "addr": addresses, "size": sizes, "stream": streams},
    ),
    optional(
        time_us=st.integers(FIRST_US, FIRST_US + 10_000)
        | st.sampled_from([0, None, FIRST_US + 0.5]),
        frames=frames,
        pool_id=pools,
        user_metadata=st.sampled_from(["", "step", "forward", None, 5]),
        block_size=sizes,
        requested_size=sizes,
        pool_is_large=st.booleans(),
        synthetic=st.just(value=True),
        extra=st.none(),
    ),
)
blocks = st.builds(
    lambda fixed, more: fixed | more,
    st.fixed_dictionaries(
        {
            "size": sizes,
            "state": st.sampled_from(
                ["inactive", "active_allocated", "active_pending_free", "active_awaiting_free"],
            ),
        },
    ),
    optional(
        requested_size=sizes,
        frames=frames,
        history=st.lists(st.fixed_dictionaries({"real_size": sizes, "frames": frames}), max_size=2),
    ),
)
annotations = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["step", "forward"]),
        "stage": st.sampled_from(["START", "END"]),
        "device": st.integers(-1, 1),
        "time_us": st.integers(FIRST_US - 500, FIRST_US + 20_000) | st.just(0),
    },
)


@st.composite
def segments(draw: st.DrawFn) -> dict[str, Any]:
    own = draw(st.lists(blocks, min_size=1, max_size=4))
    fixed = {
        "address": draw(addresses),
        "total_size": sum(each["size"] for each in own),
        "blocks": own,
        "device": draw(st.sampled_from([0, 0, 0, 1, -1])),
        "stream": draw(streams),
        "segment_type": draw(st.sampled_from(["small", "large", "unknown"])),
    }
    more = optional(is_expandable=st.booleans(), frames=frames, segment_pool_id=pools)
    return fixed | draw(more)


@st.composite
def snapshots(draw: st.DrawFn) -> dict[str, Any]:
    traces = draw(st.lists(st.lists(events, max_size=30), max_size=2))
    more = optional(
        allocator_settings=optional(
            max_split_size=st.sampled_from([-1, 2 * MIB, 2**63, None]),
            roundup_power2_divisions=st.dictionaries(
                st.sampled_from(["1", "2", "4", "16"]), st.sampled_from([0, 1, 4, 64, True])
            ),
        ),
        # Times of many years would have more digits than a double.
        gpuviz=optional(start_unix_ns=st.integers(FIRST_NS - 10**12, FIRST_NS) | st.none()),
        external_annotations=st.lists(annotations, max_size=6),
    )
    return {"segments": draw(st.lists(segments(), max_size=5)), "device_traces": traces} | draw(
        more
    )


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserReader]:
    with browser_reader(tmp_path_factory.mktemp("snapshots")) as reader:
        yield reader


def imported(browser: BrowserReader) -> dict[str, Any]:
    """Return what Python's importer gives of the pickle that the browser was asked for last."""
    try:
        recording = torch_snapshot.read(browser.path)
    except FormatError:
        return {"error": True}
    names = ("memory_events", "streams", "pools", "frames", "stacks", "ranges", "strings")
    return {
        "initialEvents": recording.manifest.initial_events,
        "durationNs": recording.manifest.duration_ns,
        "created": recording.manifest.start_unix_ns // 10**9,
        "notes": list(recording.manifest.notes),
        "tables": {name: recording.table(name).to_pydict() for name in names},
    }


def compared(answer: dict[str, Any], expected: dict[str, Any]) -> tuple[Any, Any]:
    """Return both as far as the browser has columns, with the names of ranges spelled out."""
    if "error" in answer or "error" in expected:
        return "error" in answer, "error" in expected
    kept = {
        name: {column: expected["tables"][name][column] for column in columns}
        for name, columns in answer["tables"].items()
    }
    for tables in (answer["tables"], kept):
        texts = dict(zip(*tables.pop("strings").values(), strict=True))
        tables["ranges"]["name"] = [texts[name] for name in tables["ranges"]["name"]]
    return answer, expected | {"tables": kept}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_real_snapshot_has_the_tables_of_pythons_importer(browser, name):
    answer = browser.tables(snapshot_bytes(name))

    found, expected = compared(answer, imported(browser))
    assert found == expected
    assert len(found["tables"]["memory_events"]["time"]) > 100


@pytest.mark.parametrize("share", [0, 0.5])
@pytest.mark.parametrize("name", TOGGLES)
def test_a_real_allocators_trace_has_the_tables_of_pythons_importer(browser, name, share):
    values, _ = golden_snapshot(name)
    first = int(share * len(values["device_traces"][0]))
    cut, _ = golden_snapshot(name, first)

    answer = browser.tables(pickle.dumps(cut, 4))

    found, expected = compared(answer, imported(browser))
    assert found == expected


@examples(60)
@given(values=snapshots(), protocol=st.sampled_from([2, 3, 4, 5]))
def test_any_snapshot_has_the_tables_of_pythons_importer(browser, values, protocol):
    answer = browser.tables(pickle.dumps(values, protocol))

    found, expected = compared(answer, imported(browser))
    assert found == expected


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ([], ""),
        ({}, 'a dict with "segments"'),
        ((), 'a dict with "segments"'),
        ({"segments": 5}, "segments: expected a list"),
        ({"segments": [7]}, "segments[0]: expected a dict"),
        ({"segments": [], "device_traces": [[{}]]}, 'device_traces[0][0]: expected "action"'),
        (
            {"segments": [], "device_traces": [[], [{"action": "alloc", "size": -4}]]},
            'device_traces[1][0]: expected "size"',
        ),
        (
            {"segments": [{"total_size": 512, "blocks": [{"size": 513}]}]},
            "segments[0].blocks[0]: expected the block to lie inside",
        ),
    ],
)
def test_what_is_no_snapshot_is_refused_with_the_place(browser, values, place):
    answer = browser.tables(pickle.dumps(values, 4))

    assert place in answer.get("error", "")
    assert ("error" in answer) == ("error" in imported(browser))
