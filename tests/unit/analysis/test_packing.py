"""Packings of a recording's blocks, against plain Python."""

import itertools
import signal
import threading
import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz.data.manifest import Manifest
from gpuviz.recording import Recording
from tests.examples import examples
from tests.unit.analysis.test_memory_state import any_events
from tests.unit.recording.from_events import one_line_stacks, rows_table
from tests.unit.recording.plain_memory import PlainMemory

SHIPPED = sorted((Path(gpuviz.__file__).parent / "commands" / "recordings").glob("*.gpuviz"))
KIB = 1024


def of_rows(rows, **manifest):
    rows = list(rows)
    stacks = one_line_stacks([row["stack"] for row in rows if row.get("stack")])
    return Recording({"memory_events": rows_table(rows), **stacks}, Manifest(**manifest))


def of_blocks(blocks):
    """A recording of blocks, given as begin, end and size; each has its own address."""
    events = [
        (moment, action == "alloc", action, index)
        for index, (begin, end, _) in enumerate(blocks)
        for moment, action in ((begin, "alloc"), (end, "free_requested"), (end, "free_completed"))
    ]
    return of_rows(
        {"time": moment, "action": action, "address": index << 40, "size": blocks[index][2]}
        | {"requested_size": blocks[index][2] if action == "alloc" else 0, "pool": 1}
        for moment, _, action, index in sorted(events, key=lambda event: event[:2])
    )


def check_consistent(found):
    """Assert what holds for every packing; events of one time are one after the other."""
    blocks = found.blocks.to_pylist()
    assert found.lower_bound <= found.upper_bound
    assert found.upper_bound == max((b["offset"] + b["size"] for b in blocks), default=0)
    assert sum(b["size"] for b in blocks if b["in_load"]) == found.lower_bound
    assert found.is_optimal == (found.lower_bound == found.upper_bound)
    sizes = [block["size"] for block in blocks if block["in_load"]]
    assert found.load_blocks["size"].to_pylist() == sorted(sizes, reverse=True)


def plain_lifetimes(rows, device):
    """By the stack of each block: the first and the last row after which it is active, its size."""
    memory, spans = PlainMemory(), {}
    for number, row in enumerate(rows):
        if row["device"] == device:
            memory.apply(row)
        for block in memory.live:
            first = spans.get(block.stack, (number,))[0]
            spans[block.stack] = first, number, block.end - block.start
    return spans


@examples(200)
@given(rows=any_events(), device=st.sampled_from([0, 2]))
def test_any_events_have_the_lifetimes_of_plain_ones_and_a_packing_without_overlaps(rows, device):
    recording = of_rows(rows)
    if device not in recording.devices:
        return

    found = recording.packing(device)

    check_consistent(found)
    assert found.lower_bound == recording.memory_stats(device)["active_bytes.all.peak"]
    # Each row's stack is its number, counted from 1.
    spans = plain_lifetimes(rows, device)
    blocks = found.blocks.to_pylist()
    assert {b["event"] + 1: b["size"] for b in blocks} == {s: span[2] for s, span in spans.items()}
    placed = [(*spans[b["event"] + 1][:2], b["offset"], b["offset"] + b["size"]) for b in blocks]
    for a, b in itertools.combinations(placed, 2):
        are_together = a[0] <= b[1] and b[0] <= a[1]
        assert not are_together or a[3] <= b[2] or b[3] <= a[2]


def lowest_height(blocks):
    """The least bytes that blocks need: of all ways to put one on top of others, lowest first."""
    best = sum(size for _, _, size in blocks)

    def put_next(placed, rest, lowest):
        nonlocal best
        height = max((top for top, _ in placed), default=0)
        if height >= best:
            return
        if not rest:
            best = height
        for block in rest:
            begin, end, size = block
            tops = [top for top, (b, e, _) in placed if b < end and begin < e]
            offset = max(tops, default=0)
            if offset >= lowest:
                others = list(rest)
                others.remove(block)
                put_next([*placed, (offset + size, block)], others, offset)

    put_next([], blocks, 0)
    return best


# Four bytes are used at any time, but the two free at the end are not next to each other.
CROSSED = ((0, 2, 2), (0, 4, 2), (2, 6, 1), (2, 8, 1), (4, 6, 1), (4, 8, 1), (6, 10, 2), (8, 10, 2))


@st.composite
def few_blocks(draw, most=6):
    begins = draw(st.lists(st.integers(0, 6), min_size=1, max_size=most))
    return [(b, b + draw(st.integers(1, 5)), draw(st.integers(1, 5))) for b in begins]


@examples(100)
@given(blocks=few_blocks())
def test_the_lowest_packing_of_a_few_blocks_is_between_the_bounds(blocks):
    found = of_blocks(blocks).packing()

    check_consistent(found)
    assert found.lower_bound <= lowest_height(blocks) <= found.upper_bound


def test_blocks_that_do_not_fit_into_the_load_are_packed_above_it():
    found = of_blocks(CROSSED).packing()

    check_consistent(found)
    assert (found.lower_bound, found.upper_bound, found.is_optimal) == (4, 5, False)
    assert lowest_height(CROSSED) == 5


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_workloads_recordings_have_a_packing_near_the_lower_bound(path):
    recording = gpuviz.load(path)

    found = recording.packing()

    check_consistent(found)
    assert found.gap < 0.005
    assert found.lower_bound == recording.memory_stats()["active_bytes.all.peak"]
    assert found.upper_bound < recording.memory_stats()["reserved_bytes.all.peak"]


def test_blocks_exist_from_before_the_recording_until_their_free_is_completed():
    def row(time, action, address, size, **others):
        return {"time": time, "action": action, "address": address, "size": size, **others}

    recording = of_rows(
        [
            row(-9, "alloc", 1 << 30, 3 * KIB, stream=1, stack=7),
            row(-5, "alloc", 2 << 30, 5 * KIB, stream=1),
            row(10, "free_requested", 1 << 30, 3 * KIB),
            row(20, "alloc", 3 << 30, 4 * KIB, stream=2),
            row(30, "free_completed", 1 << 30, 3 * KIB),
            row(40, "alloc", 4 << 30, 2 * KIB, stream=2),
        ],
        initial_events=2,
    )

    found = recording.packing()

    assert (found.lower_bound, found.upper_bound) == (12 * KIB,) * 2
    assert found.load_time_ns == 20
    columns = found.blocks.drop_columns(["offset", "pool", "stack"]).to_pydict()
    assert columns == {
        "event": [0, 1, 3, 5],
        "time": [-9, -5, 20, 40],
        "end": [30, -1, -1, -1],
        "size": [3 * KIB, 5 * KIB, 4 * KIB, 2 * KIB],
        "stream": [1, 1, 2, 2],
        "in_load": [True, True, True, False],
    }
    assert found.blocks["stack"].to_pylist() == [7, 0, 0, 0]
    assert found.load_blocks["event"].to_pylist() == [1, 3, 0]


def test_a_block_of_the_initial_events_counts_even_if_the_first_event_frees_it():
    freed = [
        {"time": 0, "action": "alloc", "address": 4096, "size": 1234, "requested_size": 1234},
        {"time": 5, "action": "free_requested", "address": 4096, "size": 1234},
        {"time": 5, "action": "free_completed", "address": 4096, "size": 1234},
    ]

    during = of_rows(freed, initial_events=1).packing()
    before = of_rows(freed, initial_events=3).packing()

    assert (during.lower_bound, during.load_time_ns) == (1234, 0)
    assert (before.lower_bound, before.upper_bound, before.blocks.num_rows) == (0, 0, 0)
    assert (before.is_optimal, before.gap) == (True, 0)


def area(piece):
    begin, end, low, high = piece
    return (end - begin) * (high - low)


def sliced(count, seed):
    """Blocks that fill 4000 bytes for 4000 ns: a rectangle, cut into this number of pieces."""
    random = Random(seed)
    pieces = [(0, 4000, 0, 4000)]
    while len(pieces) < count:
        piece = max(random.sample(pieces, min(3, len(pieces))), key=area)
        pieces.remove(piece)
        begin, end, low, high = piece
        if end - begin > 1 and (random.random() < 0.5 or high - low == 1):
            cut = random.randrange(begin + 1, end)
            pieces += [(begin, cut, low, high), (cut, end, low, high)]
        else:
            cut = random.randrange(low + 1, high)
            pieces += [(begin, end, low, cut), (begin, end, cut, high)]
    return [(begin, end, high - low) for begin, end, low, high in pieces]


def test_without_time_the_packing_is_that_of_best_fit():
    blocks = [(0, 2, 4), (1, 9, 1), (3, 9, 5)]

    found = of_blocks(blocks).packing(seconds=0)

    check_consistent(found)
    assert found.blocks["offset"].to_pylist() == [0, 4, 5]
    assert (found.lower_bound, found.upper_bound, found.is_optimal) == (6, 10, False)
    assert found.gap == pytest.approx(2 / 3)
    assert of_blocks(blocks).packing().upper_bound == 6


def test_equal_blocks_have_equal_packings():
    blocks = sliced(60, 2)

    first, second = (of_blocks(blocks).packing() for _ in range(2))

    check_consistent(first)
    assert first.lower_bound == 4000
    assert first.blocks == second.blocks


class InterruptError(Exception):
    """Raised by a signal."""


def test_the_search_can_be_interrupted():
    recording = of_blocks(sliced(3000, 1))

    def interrupt(_signal, _frame):
        raise InterruptError

    begin = time.monotonic()
    timer = threading.Timer(0.3, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1))
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        timer.start()
        with pytest.raises(InterruptError):
            recording.packing(seconds=100)
    finally:
        timer.cancel()
        signal.signal(signal.SIGUSR1, before)

    assert time.monotonic() - begin < 30


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"device": 3}, "no device 3"),
        ({"seconds": -1}, "seconds must be 0 or more, got -1"),
        ({"seconds": float("nan")}, "seconds must be 0 or more, got nan"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, message):
    recording = of_blocks([(0, 1, 512)])

    with pytest.raises(ValueError, match=message):
        recording.packing(**arguments)


@pytest.mark.parametrize("sizes", [[(1 << 56) + 1], [1 << 55, 1 << 55, 1]])
def test_more_bytes_than_any_device_has_are_refused(sizes):
    rows = [{"action": "alloc", "address": n << 58, "size": size} for n, size in enumerate(sizes)]

    with pytest.raises(ValueError, match="exceed"):
        of_rows(rows).packing()


def test_a_recording_without_blocks_needs_no_memory():
    found = Recording({}, Manifest()).packing()

    assert (found.device, found.lower_bound, found.upper_bound) == (0, 0, 0)
    assert (found.blocks.num_rows, found.load_blocks.num_rows) == (0, 0)
