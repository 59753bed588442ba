"""`Recording.what_if`: which settings it tries, and what it does not accept."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner

import gpuviz
from gpuviz.analysis.allocator_settings import line_to_use
from gpuviz.commands.cli import commands
from gpuviz.data.manifest import Manifest
from gpuviz.errors import RecordingError
from gpuviz.recording import Recording
from tests.torch_alone import of_torch
from tests.unit.advice.programs import recorded
from tests.unit.replay.recorded import record
from tests.unit.replay.segment_programs import EXPANDABLE, MIB, small_before_large, small_only

INSTALLED = "cupy.cuda.set_allocator(gpuviz.malloc)"


def test_without_arguments_the_settings_that_matter_are_tried():
    recording = recorded(small_only)
    names = recording.what_if()["settings"].to_pylist()

    assert names == [
        "recorded",
        "expandable_segments:True",
        "max_split_size_mb:32",
        "max_split_size_mb:128",
        "roundup_power2_divisions:8",
        "expandable_segments:True,roundup_power2_divisions:8",
        "cupy",
        "cudaMallocAsync",
    ]
    # On another GPU the program's own settings are one more question.
    assert recording.what_if(capacity=1 << 30)["settings"].to_pylist() == [
        "recorded",
        "",
        *names[1:],
    ]


def test_a_log_without_segments_has_no_reserved_bytes():
    original = recorded(small_only)
    events = original.tables["memory_events"]
    kept = pc.not_equal(pc.cast(events["action"], "string"), "segment_alloc")
    tables = {**original.tables, "memory_events": events.filter(kept)}
    recording, own = Recording(tables, Manifest(simulated=True)).what_if("").to_pylist()

    assert recording["peak_reserved"] is recording["driver_calls"] is None
    assert recording["peak_allocated"] == own["peak_reserved"] == 128 * MIB


def test_each_device_has_its_own_table():
    def program(source):
        source.allocate(30 * MIB, device=0)
        source.allocate(50 * MIB, device=1)

    recording = record(program, devices=2)
    peaks = [recording.what_if("", device=each)["peak_reserved"].to_pylist() for each in (0, 1)]

    assert peaks == [[30 * MIB] * 2, [50 * MIB] * 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"settings": "foo:1"}, "foo"),
        ({"settings": "cuppy"}, "'cuppy' is neither cupy, cudaMallocAsync nor a setting"),
        ({"settings": ["", "max_split_size_mb:1"]}, "max_split_size"),
        ({"capacity": 0}, "capacity must be at least 1 byte, got 0"),
        ({"device": 3}, "the recording has no device 3"),
    ],
)
def test_what_cannot_be_replayed_is_an_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        recorded(small_only).what_if(**arguments)


@pytest.mark.parametrize(
    ("allocator", "name", "settings", "line"),
    [
        ("caching", "", EXPANDABLE, f'gpuviz.set_allocator_settings("{EXPANDABLE}")'),
        ("caching", "", "cupy", "cupy.cuda.set_allocator(cupy.cuda.MemoryPool().malloc)"),
        (
            "observe",
            "cupy.cuda.memory.MemoryPool",
            EXPANDABLE,
            f'gpuviz.set_allocator_settings("{EXPANDABLE}"); {INSTALLED}',
        ),
        ("observe", "RMM", "", INSTALLED),
        (
            "observe",
            "RMM",
            "cudaMallocAsync",
            "cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)",
        ),
        (
            "observe",
            "PyTorch's caching allocator",
            EXPANDABLE,
            f"PYTORCH_CUDA_ALLOC_CONF={EXPANDABLE}",
        ),
        (
            "observe",
            "PyTorch's caching allocator",
            "cudaMallocAsync",
            "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync",
        ),
    ],
)
def test_a_setting_is_given_as_the_line_to_paste(allocator, name, settings, line):
    manifest = Manifest(allocator=allocator, allocator_name=name)

    assert line_to_use(manifest, settings) == line


@pytest.mark.parametrize(
    ("total", "options", "is_said"),
    [(0, [], True), (0, ["--capacity", "24GiB"], False), (16 << 30, [], False)],
)
def test_the_command_says_what_it_rests_on_without_the_memory_of_the_gpu(
    tmp_path, total, options, is_said
):
    made = recorded(lambda gpu: gpu.empty(64 * MIB))
    place = made.tables["devices"].schema.get_field_index("total_memory")
    field = made.tables["devices"].schema.field(place)
    known = pa.array([total], field.type)
    devices = made.tables["devices"].set_column(place, field, known)
    path = Recording({**made.tables, "devices": devices}, made.manifest).save(
        tmp_path / "run.gpuviz"
    )

    done = CliRunner().invoke(commands, ["what-if", str(path), *options])

    assert done.exit_code == 0
    assert ("does not contain the memory of the GPU" in done.stdout) == is_said


def test_what_torchs_allocator_would_reserve_is_predicted_where_it_serves_alone():
    recording = recorded(small_before_large)
    expected = recording.what_if().to_pylist()
    found = of_torch(recording).what_if().to_pylist()

    assert [row["settings"] for row in expected if row not in found] == ["cupy"]
    assert [row for row in found if row not in expected] == []


def test_the_settings_of_torchs_allocator_are_those_of_its_variable():
    recording = of_torch(recorded(small_before_large), settings=EXPANDABLE)

    replayed = gpuviz.replay(recording)
    (row,) = replayed.what_if(EXPANDABLE).to_pylist()[1:]

    assert replayed.manifest.settings == EXPANDABLE
    assert row["peak_reserved"] == replayed.memory_stats()["reserved_bytes.all.peak"]
    assert EXPANDABLE not in [row["settings"] for row in recording.what_if().to_pylist()]


def test_two_allocators_that_served_memory_are_not_repeated():
    one = recorded(small_before_large)
    of_one, of_other = one.tables, of_torch(one).tables
    both = {
        name: pa.concat_tables([of_one[name], of_other[name]])
        for name in ("memory_events", "pools")
    }
    recording = Recording({**of_one, **both}, one.manifest)

    with pytest.raises(RecordingError, match="PyTorch's allocator used the GPU too"):
        recording.what_if()
