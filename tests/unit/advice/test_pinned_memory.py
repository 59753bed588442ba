"""The pinned memory of the host that copies use."""

import numpy as np
import pyarrow as pa
import pytest

from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.replay.trace import COPY
from gpuviz.advice.waits.pinned_memory import UNKNOWN, pinned_places
from gpuviz.recording import Recording
from tests.unit.advice.timed_programs import timed, with_pinned_memory

SIZE = 1 << 20


def copies(gpu, *, count):
    x = gpu.empty(SIZE)
    for _ in range(count):
        gpu.copy_to_device(x, pinned=True)


def without_sizes(recording):
    table = recording.tables["launch_blocks"]
    place = table.schema.get_field_index("bytes")
    unknown = pa.array(np.zeros(table.num_rows, np.uint64))
    changed = table.set_column(place, table.schema.field(place), unknown)
    return Recording({**recording.tables, "launch_blocks": changed}, recording.manifest)


def numbers(recording):
    schedule = Schedule(recording)
    work = np.flatnonzero(schedule.kind == COPY)
    return pinned_places(schedule, work[np.argsort(schedule.launch[work])]).tolist()


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        pytest.param([], [], id="no copies"),
        pytest.param([None, None], [UNKNOWN, UNKNOWN], id="unknown memory"),
        pytest.param([(0, 0), None, (0, 0)], [0, UNKNOWN, 0], id="the same memory"),
        pytest.param([(0, SIZE), (0, 0), (0, 2 * SIZE)], [1, 0, 2], id="slots of a block"),
        pytest.param([(0, 0), (0, SIZE - 1), (0, SIZE)], [0, 0, 0], id="overlaps in a chain"),
        pytest.param([(1, 0), (0, 0)], [1, 0], id="two blocks"),
    ],
)
def test_copies_have_the_same_place_if_their_memory_overlaps(places, expected):
    recording = timed(lambda gpu: copies(gpu, count=len(places)))

    assert numbers(with_pinned_memory(recording, places)) == expected


def test_a_copy_of_unknown_size_may_use_the_rest_of_its_block():
    recording = timed(lambda gpu: copies(gpu, count=3))
    places = with_pinned_memory(recording, [(0, 0), (0, 2 * SIZE), (1, 0)])

    assert numbers(places) == [0, 1, 2]
    assert numbers(without_sizes(places)) == [0, 0, 1]
