"""Events say which library owns a block, when several allocate from one pool."""

import pyarrow as pa
import pytest

import gpuviz
from gpuviz import _core
from gpuviz.data.tables import schemas
from gpuviz.data.validation import conform
from gpuviz.recorder.recorder import Recorder
from tests.unit.frameworks.simulated_cupy import ClientSource

SIZES = {"cupy": 1000, "torch": 2000, "numba": 3000, "cuda_core": 4000, "rmm": 5000}


class SharedSource(ClientSource):
    """A simulated device on which CuPy's own objects and other libraries allocate."""

    def __init__(self):
        super().__init__()
        self.pool = _core.SharedPool(lambda _: self.allocators[0], str)

    def begin(self, session):
        super().begin(session)
        self.pool.set_session(session)

    def end(self):
        self.pool.set_session(None)
        return super().end()

    def allocate_as(self, framework):
        """Allocate 1000 bytes times the framework's number."""
        owner = getattr(_core.Framework, framework)
        return self.pool.allocate(SIZES[framework], 0, 0, owner)


def recorder_of(source):
    return Recorder(source, None, stacks=True, max_events=1000)


def owners(recording, action):
    events = recording.table("memory_events").to_pylist()
    return [(row["framework"], row["requested_size"]) for row in events if row["action"] == action]


@pytest.fixture
def recording():
    """Of blocks of all libraries, of which torch's was there before."""
    source = SharedSource()
    addresses = {"torch": source.allocate_as("torch")}
    with recorder_of(source) as recorder:
        addresses |= {name: source.allocate_as(name) for name in ("numba", "cuda_core", "rmm")}
        array = source.malloc(SIZES["cupy"])
        for address in (addresses["torch"], addresses["rmm"]):
            source.pool.free(address, 0)
        del array
    return recorder.recording


def test_each_block_has_its_owner_also_those_of_before_the_recording(recording):
    expected = ["torch", "numba", "cuda_core", "rmm", "cupy"]

    assert owners(recording, "alloc") == [(name, SIZES[name]) for name in expected]


def test_a_free_has_the_owner_of_the_block(recording):
    expected = [(name, SIZES[name]) for name in ("torch", "rmm", "cupy")]

    assert owners(recording, "free_requested") == expected
    assert owners(recording, "free_completed") == expected


def test_sites_name_the_libraries_that_allocated_there(recording):
    frameworks = {row["frameworks"] for row in recording.sites("line").to_pylist()}

    # The recorder's own description has no line; the other three have one call in common.
    assert frameworks == {"torch", "cuda_core, numba, rmm", "cupy"}


def test_a_part_of_a_recording_keeps_the_owners_of_blocks(recording, tmp_path):
    end = recording.duration_ns
    part = gpuviz.load(recording.window(end - 1, end).save(tmp_path / "part.gpuviz"))

    assert owners(part, "alloc") == [(name, SIZES[name]) for name in ("numba", "cuda_core")]


def test_a_replay_keeps_the_owners_of_blocks(recording):
    replayed = gpuviz.replay(recording, settings="expandable_segments:True")

    assert sorted(owners(replayed, "alloc")) == sorted(owners(recording, "alloc"))


def test_blocks_of_an_older_file_belong_to_the_library_of_their_pool(recording):
    events = recording.table("memory_events").drop_columns(["framework"])
    pools = pa.Table.from_pylist(
        [
            {"id": 0, "owner": 0, "segment_type": "small", "framework": "rmm", "memory": ""},
            {"id": 6, "owner": 3, "segment_type": "small", "framework": "torch", "memory": ""},
        ],
        schema=schemas()["pools"],
    )

    known = conform({"memory_events": events, "pools": pools})
    unknown = conform({"memory_events": events})

    assert set(known["memory_events"]["framework"].to_pylist()) == {"rmm"}
    assert set(unknown["memory_events"]["framework"].to_pylist()) == {""}
    assert known["memory_events"].schema == schemas()["memory_events"]
