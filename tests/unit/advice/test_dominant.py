"""R55: what dominates, whether or not a rule applies."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

import gpuviz
from gpuviz.advice.host.dominant import dominant
from gpuviz.conclusions.ranking import conclusions
from gpuviz.recording import Recording
from tests.unit.advice.programs import MIB, recorded
from tests.unit.formats.plain_snapshots import DATA, SNAPSHOTS

TRAINING = Path(gpuviz.__file__).parent / "commands" / "training" / "layers.gpuviz"
KINDS = ("hazard", "failure", "finding", "fact")


def works(gpu):
    weights = gpu.empty(96 * MIB)
    state = gpu.empty(32 * MIB)
    for _ in range(20):
        gpu.launch("long", duration=3e-3, reads=[weights], writes=[state])
        gpu.launch("brief", duration=1e-3, reads=[state])


def launches(gpu):
    for _ in range(200):
        gpu.work_on_host(40e-6)
        gpu.launch("tiny", duration=2e-6)


def computes_on_the_host(gpu):
    for _ in range(20):
        gpu.work_on_host(4e-3)
        gpu.launch("step", duration=1e-3)


def copies(gpu):
    x = gpu.empty(64 * MIB)
    for _ in range(20):
        gpu.copy_to_device(x, pinned=True)


def test_the_lines_with_most_time_and_memory_come_last_with_their_shares():
    recording = recorded(works)
    shown = [each.title for each in conclusions(recording)]

    expected = [
        (
            '`gpu.launch("long", duration=3e-3, reads=[weights], writes=[state])` takes 60.0 ms of '
            "the GPU's work, 75 %. The GPU is busy for 100 % of the time: its kernels limit the "
            "program. If `long` uses each of its arrays once, it needs 1.3 % of the memory's "
            "bandwidth: it mostly computes, uses them again and again, or accesses memory "
            "inefficiently (uncoalesced, or by atomics on few addresses). Nsight Compute tells "
            "which."
        ),
        "`weights = gpu.empty(96 * MIB)` holds 96.0 MiB of the peak of 128 MiB, 75 %.",
    ]
    assert [each.text for each in dominant(recording)] == shown[-2:] == expected


def test_of_memory_that_one_line_allocates_again_and_again_the_arrays_are_counted():
    def keeps(gpu):
        kept = []
        for _ in range(6):
            kept.append(gpu.empty(8 * MIB))
            gpu.launch("fill", duration=1e-3, writes=kept[-1:])

    assert dominant(recorded(keeps))[-1].text == (
        "`kept.append(gpu.empty(8 * MIB))` holds 48.0 MiB of the peak of 48.0 MiB, 100 %, in 6 "
        "arrays."
    )


def allocates_first(gpu):
    x = gpu.empty(1 << 20)
    gpu.launch("first", duration=1e-6, writes=[x])
    kept = [gpu.empty(64 << 20) for _ in range(200)]
    for _ in range(20):
        gpu.work_on_host(400e-6)
        gpu.launch("forward", duration=20e-6, reads=[x], writes=[x])
        gpu.launch("backward", duration=10e-6, reads=[x])
    del kept


@pytest.mark.parametrize(
    ("program", "limit"),
    [
        (launches, "launches limit the program, with "),
        (computes_on_the_host, "the host limits the program, with "),
        (allocates_first, "the host limits the program, with "),
        (copies, "copies limit the program."),
    ],
)
def test_the_first_fact_says_what_limits_the_program(program, limit):
    assert limit in dominant(recorded(program))[0].text


def prepares(gpu):
    state = gpu.empty(32 * MIB)
    gpu.launch("initialize", duration=90e-3, writes=[state])
    for _ in range(20):
        gpu.launch("forward", duration=3e-3, reads=[state], writes=[state])
        gpu.launch("backward", duration=1e-3, reads=[state])
        gpu.work_on_host(1e-3)


def test_work_before_the_iterations_dominates_nothing():
    fact = dominant(recorded(prepares))[0]

    assert fact.text.startswith('`gpu.launch("forward", duration=3e-3, reads=[state]')
    assert "takes 60.0 ms of the GPU's work, 75 %" in fact.text


def with_bytes(recording, *, known=True):
    """Return the recording as if each kernel was known to access all bytes of its arrays."""
    touched, events = recording.tables["launch_blocks"], recording.tables["memory_events"]
    sizes = dict(zip(events["address"].to_pylist(), events["size"].to_pylist(), strict=True))
    found = [sizes[block] if known else 0 for block in touched["block"].to_pylist()]
    place = touched.schema.get_field_index("bytes")
    field = touched.schema.field(place)
    changed = touched.set_column(place, field, pa.array(found, field.type))
    return Recording({**recording.tables, "launch_blocks": changed}, recording.manifest)


def with_zero_bandwidth(recording):
    """Return the recording as if the bandwidth of its devices was unknown."""
    devices = recording.tables["devices"]
    place = devices.schema.get_field_index("memory_bandwidth")
    field = devices.schema.field(place)
    changed = devices.set_column(place, field, pa.array([0] * len(devices), field.type))
    return Recording({**recording.tables, "devices": changed}, recording.manifest)


def scales(duration, name="scale", size=1 << 30):
    def program(gpu):
        x, y = gpu.empty(size), gpu.empty(size)
        for _ in range(20):
            gpu.launch(name, duration=duration, reads=[x], writes=[y])

    return program


def test_the_first_fact_compares_what_kernels_move_with_what_the_memory_can():
    bound, slow = (with_bytes(recorded(scales(each))) for each in (800e-6, 5e-3))

    assert dominant(bound)[0].text.endswith(
        "its memory limits the program, with 2.68 of 3.35 TB/s read and written by kernels."
    )
    assert dominant(slow)[0].text.endswith(
        "its kernels limit the program, with 0.43 of 3.35 TB/s read and written by kernels."
    )


@pytest.mark.parametrize(
    "recording",
    [
        pytest.param(with_bytes(recorded(scales(100e-6))), id="from caches"),
        pytest.param(recorded(scales(100e-6)), id="more than memory can"),
        pytest.param(recorded(scales(5e-3, "sm80_gemm")), id="of a library"),
        pytest.param(recorded(scales(15e-6, size=1 << 20)), id="short"),
        pytest.param(with_zero_bandwidth(recorded(scales(5e-3))), id="unknown bandwidth"),
    ],
)
def test_no_rate_is_named_that_is_not_known(recording):
    assert dominant(recording)[0].text.endswith("its kernels limit the program.")


@pytest.mark.parametrize(("duration", "share"), [(800e-6, "80 %"), (1.5e-3, "43 %")])
def test_what_a_kernel_needs_at_least_is_said_where_its_arrays_are_known(duration, share):
    assert dominant(recorded(scales(duration)))[0].text.endswith(
        f"If `scale` uses each of its arrays once, it needs {share} of the memory's bandwidth."
    )


def idles(busy):
    def program(gpu):
        for _ in range(20):
            gpu.work_on_host((1 - busy) * 1e-3)
            gpu.launch("step", duration=busy * 1e-3)
            gpu.synchronize()

    return program


@pytest.mark.parametrize(("busy", "is_said"), [(0.65, True), (0.9, False)])
def test_what_limits_a_gpu_that_is_busy_half_of_the_time_is_named_too(busy, is_said):
    text = dominant(recorded(idles(busy)))[0].text

    assert "its kernels limit the program" in text
    assert text.endswith("of idle time, the host limits it.") == is_said


def test_of_a_kernel_on_few_multiprocessors_nothing_is_said_about_its_accesses():
    def program(gpu):
        x = gpu.empty(32 * MIB)
        for _ in range(20):
            gpu.launch("narrow", duration=3e-3, reads=[x], grid=(16,))

    assert dominant(recorded(program))[0].text.endswith("its kernels limit the program.")


def test_workspaces_that_a_library_allocates_within_the_line_are_named():
    recording = gpuviz.load(TRAINING)
    assert dominant(recording)[1].text == (
        "`h = self.up(self.norm(x)).relu()` holds 40.5 MiB of the peak of 97.6 MiB, 41 %, "
        "33.0 MiB of it workspaces of libraries."
    )


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_first_fact_about_a_snapshot_is_the_line_with_most_memory(name):
    found = conclusions(gpuviz.load(DATA / f"{name}.pickle"))
    facts = [each.title for each in found if each.kind == "fact"]

    assert re.search(r" holds .* of the peak of .*, \d+ %(, in \d+ arrays)?\.$", facts[0])
    assert [each.kind for each in found] == sorted((each.kind for each in found), key=KINDS.index)


def test_nothing_dominates_a_recording_without_work_and_memory():
    assert dominant(recorded(lambda _: None)) == ()
