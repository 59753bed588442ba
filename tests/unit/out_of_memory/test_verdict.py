"""The rules of verdicts: by hand, and against applying each remedy to a picture of memory."""

import re
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz.data.manifest import NOT_LIMITED, Manifest
from gpuviz.data.stream_handle import stream_row
from gpuviz.data.tables import schemas
from gpuviz.out_of_memory.request import RequestDetails
from gpuviz.out_of_memory.verdict import (
    CONTEXT_ALLOWANCE,
    FailedRequest,
    reclaimable_other_memory,
    verdict,
)
from gpuviz.recording import Recording
from tests.examples import examples
from tests.unit.recording.from_events import rows_table

GIB = 1 << 30
UNIT = GIB // 2
OWN = (1, 1)  # pool, stream

REQUEST = FailedRequest(size=10, segment_size=12, device_total=100)


@pytest.mark.parametrize(
    ("met", "expected"),
    [
        ({"size": 101, "room": 500}, "too_large"),
        ({"size": 101, "requested": 90, "room": 95, "segment_size": 101}, "rounded"),
        ({"size": 100}, "full"),
        ({"room": 12, "limit": 50, "reserved": 39}, "capped"),
        ({"room": 12, "limit": 50, "reserved": 38}, "refused"),
        ({"room": 12, "limits_are_known": False}, "capped"),
        ({"room": 11, "limit": 50, "reserved": 39}, "rounded"),
        ({"room": 10}, "rounded"),
        ({"room": 9, "requested": 9}, "rounded"),
        ({"room": 8, "requested": 9}, "full"),
        ({"own_block": 10, "splits_are_limited": True}, "capped"),
        ({"own_block": 10}, "refused"),
        ({"own_run": 10}, "pending_frees"),
        ({"own_run": 9}, "full"),
        ({"room": 5, "pending_segments": 7}, "pending_frees"),
        ({"room": 5, "pending_segments": 6}, "full"),
        ({"any_run": 10}, "cached_elsewhere"),
        ({"room": 5, "idle_segments": 7}, "cached_elsewhere"),
        ({"room": 5, "cached_beside": 7}, "cached_beside"),
        ({"room": 5, "idle_segments": 3, "cached_beside": 4}, "cached_beside"),
        ({"room": 5, "cached_beside": 6}, "fragmented"),
        ({"cached_beside": 9}, "full"),
        ({"room": 2, "cached": 5, "pending": 3}, "fragmented"),
        ({"room": 2, "cached": 4, "pending": 3}, "full"),
        ({"room": 2, "cached": 4, "pending": 3, "reclaimable_other_memory": 1}, "other_memory"),
        ({"device_total": 0, "reclaimable_other_memory": 10}, "other_memory"),
    ],
)
def test_the_first_remedy_that_helps_is_the_verdict(met, expected):
    assert verdict(replace(REQUEST, **met)) == expected


@pytest.mark.parametrize(
    ("other_memory", "others", "expected"),
    [
        (0, None, 0),
        (CONTEXT_ALLOWANCE, None, 0),
        (CONTEXT_ALLOWANCE + 1, None, 1),
        (CONTEXT_ALLOWANCE, 5, 5),
        (3 * GIB, 2 * GIB, 2 * GIB),
        (4 * GIB, 2 * GIB, 3 * GIB),
        (2 * GIB, 9 * GIB, 2 * GIB),
    ],
)
def test_a_context_of_this_process_is_not_reclaimable(other_memory, others, expected):
    assert reclaimable_other_memory(other_memory, others) == expected


def segment_rows(number, pool, stream, picture):
    """Yield the events that create a segment: ``a`` allocated, ``p`` pending free, ``f`` free."""
    place = {"pool": pool, "stream": stream}
    start = (number + 1) << 40
    yield {"action": "segment_alloc", "address": start, "size": len(picture) * UNIT, **place}
    for run in re.finditer("a+|p+", picture):
        block = {"address": start + run.start() * UNIT, "size": len(run[0]) * UNIT, **place}
        yield {"action": "alloc", "requested_size": block["size"], **block}
        if run[0][0] == "p":
            yield {"action": "free_requested", **block}


def recording_of(case):
    segments, wanted, segment_size, free, total, limit, others = case
    rows = [row for number, each in enumerate(segments) for row in segment_rows(number, *each)]
    pool, stream = OWN
    rows.append({"action": "oom", "size": wanted * UNIT, "requested_size": wanted * UNIT - 1})
    rows[-1] |= {"pool": pool, "stream": stream}
    told = {
        "segment_size": segment_size * UNIT,
        "limit": NOT_LIMITED if limit is None else limit * UNIT,
        "device_free": free * UNIT,
        "device_total": total * UNIT,
        "other_processes": others * UNIT,
    }
    streams = [stream_row(1, 0, 0), stream_row(2, 0, 0x70)]
    return Recording(
        {
            "memory_events": rows_table(rows),
            "streams": pa.Table.from_pylist(streams, schema=schemas()["streams"]),
        },
        Manifest(failures={"0:0": told}),
    )


def longest(pattern, pictures):
    return max((len(run) for each in pictures for run in re.findall(pattern, each)), default=0)


def verdict_by_trying(case):
    """Return the verdict by applying each remedy to the pictures, and trying again."""
    segments, wanted, segment_size, free, total, limit, others = case
    pictures = [picture for *_, picture in segments]
    own = [picture for *place, picture in segments if tuple(place) == OWN]
    held = sum(map(len, pictures))
    if wanted > total:
        return "too_large"
    if longest("f+", own) >= wanted or free >= segment_size:
        over = limit is not None and held + segment_size > limit
        return "capped" if over else "refused"
    waited = [each.replace("p", "f") for each in own]
    given_back = [
        picture
        for pool, _, picture in segments
        if pool in {0, 1} and "p" in picture and "a" not in picture
    ]
    if longest("f+", waited) >= wanted or free + sum(map(len, given_back)) >= segment_size:
        return "pending_frees"
    shared = [each.replace("p", "f") for each in pictures]
    idle = "".join(each for each in shared if "a" not in each)
    if longest("f+", shared) >= wanted or free + len(idle) >= segment_size:
        return "cached_elsewhere"
    moved = "".join(shared).count("f") + free
    if moved >= wanted:
        return "rounded" if free >= wanted else "fragmented"
    outside = max(0, total - free - held)
    others = min(others, outside)
    taken_back = others * UNIT + max(0, (outside - others) * UNIT - CONTEXT_ALLOWANCE)
    return "other_memory" if moved * UNIT + taken_back >= wanted * UNIT else "full"


SEGMENTS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(1, 2),
        st.text("afp", min_size=1, max_size=8),
    ),
    max_size=5,
)


def least_live_by_trying(case):
    """Return the fewest allocated units in any long enough run of the request's segments."""
    segments, wanted, *_ = case
    own = [picture for *place, picture in segments if tuple(place) == OWN]
    runs = [re.findall("a+|f+|p+", picture) for picture in own]
    stretches = [
        "".join(each[first:last])
        for each in runs
        for first in range(len(each))
        for last in range(first + 1, len(each) + 1)
    ]
    return min((s.count("a") for s in stretches if len(s) >= wanted), default=None)


@examples(80)
@given(
    segments=SEGMENTS,
    wanted=st.integers(1, 14),
    more=st.integers(0, 3),
    free=st.integers(0, 12),
    total=st.integers(0, 60),
    limit=st.none() | st.integers(0, 40),
    others=st.integers(0, 10),
)
def test_the_verdict_of_a_recording_is_that_of_trying(  # noqa: PLR0913
    *, segments, wanted, more, free, total, limit, others
):
    total = max(total, 1)
    case = (segments, wanted, wanted + more, free, total, limit, others)

    (failed,) = recording_of(case).out_of_memory()

    assert failed.verdict == verdict_by_trying(case)
    assert failed.allocated == sum(each[2].count("a") for each in segments) * UNIT
    assert failed.pending == sum(each[2].count("p") for each in segments) * UNIT
    assert sum(each.free for each in failed.free) == failed.request.cached
    assert len(failed.explanation) >= 3
    obstacle = failed.obstacle
    assert (obstacle and obstacle.bytes // UNIT) == least_live_by_trying(case)


@pytest.mark.parametrize(
    ("settings", "size", "segment_size", "splits_are_limited"),
    [
        ("", 3 << 20, 20 << 20, False),
        ("large_segment_size_mb:64", 3 << 20, 64 << 20, False),
        ("expandable_segments:True,max_split_size_mb:200", 31 << 20, 32 << 20, True),
        ("of_a_later_torch:1,max_split_size_mb:200", 3 << 20, 20 << 20, True),
        ("roundup_power2_divisions:[256:1,>:2],max_split_size_mb:200", 1, 2 << 20, True),
        ("max_split_size_mb", 1, 2 << 20, False),
        ("", -1, 2 << 20, False),
    ],
)
def test_the_settings_give_the_segment_and_the_limit_of_a_request_without_details(
    settings, size, segment_size, splits_are_limited
):
    recording = Recording({}, Manifest(settings=settings))
    event = {"device": 0, "time": 1, "size": size, "address": 0, "pool": 1}

    details = RequestDetails(recording, event)

    assert details.segment_size == segment_size
    assert details.splits_are_limited == splits_are_limited
