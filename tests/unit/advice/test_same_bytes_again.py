"""R29: uploads of bytes that the GPU has already."""

import numpy as np
import pyarrow as pa
import pytest

from gpuviz.advice.findings import findings
from gpuviz.advice.replay.copied_contents import are_filled
from gpuviz.recording import Recording
from tests.unit.advice.timed_programs import timed

STEPS, SIZE = 20, 16 << 20
# As `sampled_content` of the recorder computes them.
ZEROS, TRUE, ONES_IN_FLOAT32 = 1351841695191177550, 14455087747794222854, 18160580798751622682


def uploads(gpu, *, each=True):
    """Add the same constants to an array in each step, from the host or from the GPU."""
    total = gpu.empty(SIZE)
    constants = None
    for _ in range(STEPS):
        if each or constants is None:
            constants = gpu.empty(SIZE)
            gpu.copy_to_device(constants)
        gpu.launch("add", duration=20e-6, reads=[constants, total], writes=[total])


def with_contents(recording, contents):
    """Return the recording as if the sources of its copies from the host had these contents."""
    activities, touched = recording.tables["activities"], recording.tables["launch_blocks"]
    copies = [
        row["correlation"] for row in activities.to_pylist() if row["copy_kind"] == "host_to_device"
    ]
    content = dict(zip(copies, contents, strict=False))
    values = [content.get(each, 0) for each in touched["correlation"].to_pylist()]
    place = touched.schema.get_field_index("content")
    changed = touched.set_column(place, touched.schema.field(place), pa.array(values, pa.uint64()))
    return Recording({**recording.tables, "launch_blocks": changed}, recording.manifest)


def again(contents, program=uploads):
    found = findings(with_contents(timed(program), contents), small=True)
    return [each for each in found if each.rule == "R29"]


def test_equal_uploads_are_found_and_one_saves_what_was_predicted():
    recording = with_contents(timed(uploads), [7] * STEPS)
    kept = timed(lambda gpu: uploads(gpu, each=False))
    finding = findings(recording)[0]

    assert finding.rule == "R29"
    assert finding.saved_ns == pytest.approx(recording.duration_ns - kept.duration_ns, rel=0.05)
    assert finding.title == (
        "`gpu.copy_to_device(constants)` copies the same bytes to the GPU 19 more times than "
        "needed, 304 MiB in all."
    )
    assert again([7] * STEPS, lambda gpu: uploads(gpu, each=False)) == []


def uploads_of_two_arrays(gpu):
    """Upload one array while the one of the step before is still allocated, then use both."""
    total = gpu.empty(SIZE)
    for _ in range(STEPS):
        constants = gpu.empty(SIZE)
        gpu.copy_to_device(constants)
        mask = gpu.empty(SIZE)
        gpu.copy_to_device(mask)
        gpu.launch("add", duration=20e-6, reads=[constants, mask, total], writes=[total])


def test_what_is_to_be_kept_is_not_to_be_deleted():
    recording = timed(uploads_of_two_arrays)

    (freed,) = [each for each in findings(recording) if each.rule == "R45"]
    rules = [each.rule for each in findings(with_contents(recording, [7, 8] * STEPS))]

    assert "mask" in freed.lines[0].source
    assert "R29" in rules
    assert "R45" not in rules


def staged(gpu, *, each=True, other_ns=0):
    """The same as CuPy does it: the host copies to pinned memory first."""
    total = gpu.empty(SIZE)
    constants = None
    for _ in range(STEPS):
        gpu.work_on_host(10e-6)
        if each or constants is None:
            constants = gpu.empty(SIZE)
            gpu.work_on_host(SIZE / 11e9 + other_ns * 1e-9)
            gpu.copy_to_device(constants, pinned=True)
        gpu.launch("add", duration=20e-6, reads=[constants, total], writes=[total])


def test_the_copy_to_pinned_memory_vanishes_too():
    (finding,) = again([7] * STEPS, staged)
    kept = timed(lambda gpu: staged(gpu, each=False))

    saved = timed(staged).duration_ns - kept.duration_ns
    assert finding.saved_ns == pytest.approx(saved, rel=0.05)


def test_other_work_of_the_host_before_a_copy_stays():
    (finding,) = again([7] * STEPS, lambda gpu: staged(gpu, other_ns=20_000_000))

    assert finding.saved_ns < 20_000_000


def test_a_few_sets_of_bytes_in_turn_are_found_too():
    (finding,) = again([1 + step % 4 for step in range(STEPS)])

    assert "copies one of 4 sets of bytes to the GPU 16 more times than needed" in finding.title
    assert "keep the 64.0 MiB on the GPU" in finding.change


def test_what_the_gpu_has_no_room_for_is_copied_again():
    recording = with_contents(timed(uploads), [1 + step % 4 for step in range(STEPS)])
    devices = recording.tables["devices"]
    place = devices.schema.get_field_index("total_memory")
    small = devices.set_column(place, devices.schema.field(place), pa.array([96 << 20], pa.int64()))
    full = Recording({**recording.tables, "devices": small}, recording.manifest)

    assert recording.peak().bytes == 48 << 20
    assert [each for each in findings(full, small=True) if each.rule == "R29"] == []


def inlined(gpu, *, each=True, changing=False):
    """Upload the same array of the host on four lines, or once."""
    total = gpu.empty(SIZE)
    mean = gpu.empty(SIZE)
    gpu.copy_to_device(mean)
    gpu.launch("add", duration=20e-6, reads=[mean, total], writes=[total])
    top = gpu.empty(SIZE) if each else mean
    if each:
        gpu.copy_to_device(top)
    if changing:
        gpu.launch("scale", duration=20e-6, reads=[top], writes=[top])
    gpu.launch("add", duration=20e-6, reads=[top, total], writes=[total])
    rough = gpu.empty(SIZE) if each else mean
    if each:
        gpu.copy_to_device(rough)
    gpu.launch("add", duration=20e-6, reads=[rough, total], writes=[total])
    edges = gpu.empty(SIZE) if each else mean
    if each:
        gpu.copy_to_device(edges)
    gpu.launch("add", duration=20e-6, reads=[edges, total], writes=[total])


def test_lines_that_upload_the_same_array_are_one_finding():
    (finding,) = again([7] * 4, inlined)
    kept = timed(lambda gpu: inlined(gpu, each=False))

    assert finding.saved_ns == pytest.approx(
        timed(inlined).duration_ns - kept.duration_ns, rel=0.05
    )
    assert finding.title == (
        "`gpu.copy_to_device(mean)` and 3 more lines copy the same bytes to the GPU 3 more times "
        "than needed, 48.0 MiB in all."
    )
    assert [line.source.strip() for line in finding.lines[1:]] == [
        "gpu.copy_to_device(top)",
        "gpu.copy_to_device(rough)",
        "gpu.copy_to_device(edges)",
    ]


def test_arrays_of_several_lines_that_one_changes_may_have_to_differ():
    assert again([7] * 4, lambda gpu: inlined(gpu, changing=True)) == []


def test_ones_are_known_wherever_their_bytes_are_compared():
    size = np.array([12345678, SIZE])

    content = np.array([18195548467950377254, ONES_IN_FLOAT32], np.uint64)
    assert are_filled(content, size).tolist() == [True, True]
    assert are_filled(content[::-1], size).tolist() == [False, False]


@pytest.mark.parametrize(
    "contents",
    [
        pytest.param(range(1, STEPS + 1), id="other bytes each time"),
        pytest.param([0] * STEPS, id="unknown bytes"),
        pytest.param([7, 7, 7, *range(8, 8 + STEPS)], id="a few times"),
        pytest.param([ZEROS] * STEPS, id="sparse arrays"),
        pytest.param([TRUE] * STEPS, id="masks"),
        pytest.param([ONES_IN_FLOAT32] * STEPS, id="ones"),
    ],
)
def test_what_looks_alike_is_no_finding(contents):
    assert again(contents) == []
