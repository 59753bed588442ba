"""R62: arrays that go to the host and straight back."""

import pyarrow as pa
import pytest

from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice.timed_programs import timed

STEPS, SIZE = 12, 16 << 20


def to_host(gpu, array, *, waits=False):
    _ = gpu.copy_to_host(array, blocking=not waits), waits and gpu.null_stream.synchronize()


def detours(  # noqa: PLR0913 - what the programs differ in
    gpu, *, shared=False, offloaded=False, reads=False, waits=False, kernel=1e-3
):
    """Hand an array to another library in each step: through the host, or as it is.

    Args:
        gpu: The GPU.
        shared: Whether the libraries share the array.
        offloaded: Whether the array leaves the GPU meanwhile, which does other work.
        reads: Whether the host then reads another array in the same function.
        waits: Whether this function synchronizes after its copy, as `torch.Tensor.cpu`.
        kernel: How long each kernel takes, in seconds.
    """
    for _ in range(STEPS):
        made = gpu.empty(SIZE)
        gpu.launch("simulate", duration=kernel, writes=[made])
        if shared:
            got = made
        else:
            to_host(gpu, made, waits=waits)
            if offloaded:
                del made
                gpu.work_on_host(1e-6)
                other = gpu.empty(SIZE)
                gpu.launch("other", duration=1e-3, writes=[other])
                del other
            got = gpu.empty(SIZE)
            gpu.copy_to_device(got, blocking=True)
        gpu.launch("train", duration=kernel, reads=[got])
        if reads:
            to_host(gpu, got)
        made = got = None
        gpu.work_on_host(1e-6)


def with_contents(recording, contents):
    """Return the recording as if its copies had these contents, in the order of time."""
    activities, touched = recording.tables["activities"], recording.tables["launch_blocks"]
    copies = sorted(
        (row["time"], row["correlation"])
        for row in activities.to_pylist()
        if row["copy_kind"] in {"host_to_device", "device_to_host"}
    )
    content = dict(zip((each for _, each in copies), contents, strict=True))
    values = [content.get(each, 0) for each in touched["correlation"].to_pylist()]
    place = touched.schema.get_field_index("content")
    changed = touched.set_column(place, touched.schema.field(place), pa.array(values, pa.uint64()))
    return Recording({**recording.tables, "launch_blocks": changed}, recording.manifest)


def trips(contents, program=detours):
    found = findings(with_contents(timed(program), contents), small=True)
    return [each for each in found if each.rule == "R62"]


SAME = [1 + copy // 2 for copy in range(2 * STEPS)]


def through_the_host():
    """Return the recording of a program whose arrays come back with the bytes that they had."""
    return with_contents(timed(detours), SAME)


def test_round_trips_are_found_and_sharing_the_array_saves_what_was_predicted():
    recording = through_the_host()
    shared = timed(lambda gpu: detours(gpu, shared=True))
    finding = findings(recording)[0]

    assert finding.rule == "R62"
    assert finding.saved_ns == pytest.approx(recording.duration_ns - shared.duration_ns, rel=0.05)
    assert finding.title == (
        "`gpu.copy_to_device(got, blocking=True)` copies 192 MiB to the GPU that came from it, in "
        "12 round trips through the host."
    )
    assert "from_dlpack" in finding.change


def in_the_function(rule, recording):
    """Return the findings of a rule about waits for copies to the host."""
    found = [each for each in findings(recording, small=True) if each.rule == rule]
    return [each for each in found if "copy_to_host" in each.lines[0].source]


def test_the_waits_of_round_trips_are_no_values_that_are_read_too_early():
    returns = with_contents(timed(lambda gpu: detours(gpu, kernel=5e-3)), SAME)
    is_read = with_contents(timed(lambda gpu: detours(gpu, kernel=5e-3)), range(1, 2 * STEPS + 1))

    assert in_the_function("R41", returns) == []
    assert len(in_the_function("R41", is_read)) == 1


def test_what_the_same_function_reads_beside_round_trips_is_read_too_early():
    recording = timed(lambda gpu: detours(gpu, kernel=5e-3, reads=True))
    contents = [each for step in range(1, STEPS + 1) for each in (step, step, 100 + step)]
    (finding,) = in_the_function("R41", with_contents(recording, contents))

    # All but the last step, after which the host launches nothing, and not those of the trips.
    assert f"in {STEPS - 1} calls" in finding.reason


def test_a_function_that_synchronizes_after_its_copy_does_not_without_it():
    recording = with_contents(timed(lambda gpu: detours(gpu, waits=True)), SAME)
    shared = timed(lambda gpu: detours(gpu, shared=True))
    finding = findings(recording)[0]

    assert finding.rule == "R62"
    assert finding.saved_ns == pytest.approx(recording.duration_ns - shared.duration_ns, rel=0.05)
    assert in_the_function("R41", recording) == []


def test_what_leaves_the_gpu_for_its_memory_is_no_round_trip():
    assert trips(SAME, lambda gpu: detours(gpu, offloaded=True)) == []


@pytest.mark.parametrize(
    "contents",
    [
        pytest.param(range(1, 2 * STEPS + 1), id="the host changes the bytes"),
        pytest.param([0] * 2 * STEPS, id="unknown bytes"),
        pytest.param([7] * 2 * STEPS, id="the same bytes each time, such as zeros"),
        pytest.param([*SAME[:6], *range(100, 100 + 2 * STEPS - 6)], id="a few times"),
    ],
)
def test_what_looks_alike_is_no_round_trip(contents):
    assert trips(contents) == []
