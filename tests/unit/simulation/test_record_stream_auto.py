"""Memory that other streams use is not reused before they are done."""

import json

import pytest

import gpuviz
from gpuviz.analysis.delayed_frees import delayed_frees_text
from gpuviz.analysis.writes_after_free import writes_after_free_text
from gpuviz.data.manifest import FORMAT, VERSION, Manifest
from gpuviz.errors import RecorderError
from gpuviz.recorder.tracer import NoTracer

SIZE = 4 << 20
MS = 1e-3


@pytest.fixture
def gpu():
    return gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)


def cross_stream_free(gpu, between=None):
    """Free an array that another stream still uses; return the addresses before and after."""
    own, other = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    with own:
        array = gpu.empty(SIZE)
    first = array.ptr
    with other:
        gpu.launch("read", reads=[array], duration=1 * MS)
    if between is not None:
        between(own, other)
    del array
    with own:
        again = gpu.empty(SIZE)
    return first, again.ptr


def test_memory_is_not_reused_while_another_stream_uses_it(gpu):
    with gpuviz.record(device=gpu, record_stream="auto"):
        first, again = cross_stream_free(gpu)

    assert again != first


def test_memory_is_reused_at_once_by_default(gpu):
    with gpuviz.record(device=gpu):
        first, again = cross_stream_free(gpu)

    assert again == first


def test_a_wait_of_the_host_makes_memory_reusable(gpu):
    with gpuviz.record(device=gpu, record_stream="auto") as recorder:
        first, again = cross_stream_free(gpu, lambda _, other: other.synchronize())

    assert again == first
    assert recorder.recording.delayed_frees().num_rows == 0


def test_memory_waits_for_nothing_once_its_stream_has_waited(gpu):
    def wait(own, other):
        own.wait_event(other.record())

    with gpuviz.record(device=gpu, record_stream="auto") as recorder:
        first, again = cross_stream_free(gpu, wait)

    assert again == first
    assert recorder.recording.delayed_frees().num_rows == 0


def test_later_work_does_not_delay_the_reuse(gpu):
    own, other = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    with gpuviz.record(device=gpu, record_stream="auto"):
        with own:
            array = gpu.empty(SIZE)
        first = array.ptr
        with other:
            gpu.launch("read", reads=[array], duration=1 * MS)
            gpu.launch("unrelated", duration=1)
        del array
        gpu.work_on_host(2 * MS)
        with own:
            again = gpu.empty(SIZE)

        assert not other.done
    assert again.ptr == first


def test_a_report_counts_what_would_have_been_delayed(gpu):
    with gpuviz.record(device=gpu, record_stream="report") as recorder:
        first, again = cross_stream_free(gpu)
        gpu.work_on_host(2 * MS)
        gpu.empty(SIZE)

    (row,) = recorder.recording.delayed_frees().to_pylist()
    assert again == first
    assert (row["frees"], row["bytes"]) == (1, SIZE)
    assert row["byte_seconds"] >= SIZE * MS
    assert all("cross_stream_free" in row[key] for key in ("allocated_at", "used_at", "freed_at"))


def test_the_lines_are_printed(gpu):
    with gpuviz.record(device=gpu, record_stream="auto") as recorder:
        cross_stream_free(gpu)
        gpu.work_on_host(2 * MS)
        _ = gpu.empty(SIZE)

    text = delayed_frees_text(recorder.recording)

    first, second = text.splitlines()
    assert first.startswith('record_stream="auto" delayed 1 free, and held 0.0')
    assert second.startswith("  1 free of 4.00 MiB in all")
    assert second.count("cross_stream_free") == 3


def test_nothing_is_printed_by_default(gpu):
    with gpuviz.record(device=gpu) as recorder:
        cross_stream_free(gpu)

    assert delayed_frees_text(recorder.recording) == ""


def test_a_saved_recording_has_the_counts(gpu, tmp_path):
    path = tmp_path / "run.gpuviz"
    with gpuviz.record(path, device=gpu, record_stream="auto") as recorder:
        cross_stream_free(gpu)

    loaded = gpuviz.load(path)

    assert loaded.delayed_frees().equals(recorder.recording.delayed_frees())
    assert loaded.delayed_frees().num_rows == 1


@pytest.mark.parametrize("rows", [{"x": []}, {"0": {}}, {"0": [{"frees": 1}]}, {"0": [3]}])
def test_a_manifest_with_other_counts_is_rejected(rows):
    text = json.dumps({"format": FORMAT, "version": VERSION, "delayed_frees": rows})

    with pytest.raises(ValueError, match="delayed_frees"):
        Manifest.from_json(text)


def test_implicit_order_with_the_default_stream_delays_nothing(gpu):
    blocking = gpu.Stream()
    with gpuviz.record(device=gpu, record_stream="auto") as recorder:
        array = gpu.empty(SIZE)
        first = array.ptr
        with blocking:
            gpu.launch("read", reads=[array], duration=1 * MS)
        del array
        again = gpu.empty(SIZE)

    assert again.ptr == first
    assert recorder.recording.delayed_frees().num_rows == 0


def test_without_visible_launches_it_does_not_start(gpu):
    gpu.tracer = lambda _: NoTracer()
    recorder = gpuviz.record(device=gpu, record_stream="auto")

    with pytest.raises(RecorderError, match="'auto' cannot work, because launches are not visible"):
        recorder.start()


@pytest.mark.parametrize("missing", ["streams", "launch_sites", "launch_blocks"])
def test_options_that_it_needs_cannot_be_off(gpu, missing):
    with pytest.raises(ValueError, match=f"needs {missing}=True"):
        gpuviz.record(device=gpu, record_stream="auto", **{missing: False})


def test_an_unknown_value_is_rejected(gpu):
    with pytest.raises(ValueError, match="record_stream must be"):
        gpuviz.record(device=gpu, record_stream="always")


def test_the_recording_has_the_calls_that_the_program_lacked(gpu):
    with gpuviz.record(device=gpu, record_stream="auto") as recorder:
        cross_stream_free(gpu)
        gpu.synchronize()
        _ = gpu.empty(512)

    events = recorder.recording.tables["memory_events"].to_pylist()
    actions = [event["action"] for event in events]
    assert actions[:5] == [
        "segment_alloc",
        "alloc",
        "record_stream",
        "free_requested",
        "alloc",
    ]
    completed = actions.index("free_completed")
    assert [event["address"] for event in events[2:4]] == [events[1]["address"]] * 2
    assert completed > 4


def test_memory_used_before_the_end_of_the_recording_stays_protected(gpu):
    own, other = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    recorder = gpuviz.record(device=gpu, record_stream="auto")
    recorder.start()
    with own:
        array = gpu.empty(SIZE)
    first = array.ptr
    with other:
        gpu.launch("read", reads=[array], duration=1 * MS)
    recorder.stop()
    del array

    with own:
        again = gpu.empty(SIZE)

    assert again.ptr == first  # the recording waited for the work
    assert gpu.memory_stats()["active.all.current"] == 1


@pytest.mark.parametrize("option", [{"poison": True}, {"quarantine": 1 << 30}])
def test_debugging_options_end_with_the_recording(gpu, option):
    with gpuviz.record(device=gpu, **option) as recorder:
        stream = gpu.Stream(non_blocking=True)
        with stream:
            array = gpu.empty(SIZE)
            gpu.launch("use", writes=[array], duration=1 * MS)
        first = array.ptr
        del array
        with stream:
            second = gpu.empty(SIZE)

    kinds = recorder.recording.tables["activities"]["kind"].to_pylist()
    assert (second.ptr == first) == ("poison" in option)
    assert kinds.count("memset") == ("poison" in option)
    assert recorder.recording.writes_after_free().num_rows == 0
    assert recorder.recording.manifest.notes == ()
    del second
    with stream:
        again = gpu.empty(SIZE)
    assert again.ptr == first


def test_a_write_after_the_free_is_in_the_recording(gpu):
    with gpuviz.record(device=gpu, poison=True) as recorder:
        array = gpu.empty(SIZE)
        first = array.ptr
        del array
        gpu._allocator.device.write(first + 4096, SIZE // 2, 3)
        array = gpu.empty(SIZE)

    (row,) = recorder.recording.writes_after_free().to_pylist()
    assert row["address"] == array.ptr
    assert row["bytes"] == SIZE
    assert row["stream"] == "default stream"
    assert 4096 <= row["offset"] < 3 * 4096
    assert "test_a_write_after_the_free" in row["freed_at"]
    (note,) = recorder.recording.manifest.notes
    assert note == "1 freed block was written to; see recording.writes_after_free()."
    assert "1 freed block was written to" in writes_after_free_text(recorder.recording)


def test_a_destroyed_stream_still_protects(gpu):
    own, other = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    with gpuviz.record(device=gpu, record_stream="auto"):
        with own:
            array = gpu.empty(SIZE)
        first = array.ptr
        with other:
            gpu.launch("read", reads=[array], duration=1 * MS)
        del other
        del array
        with own:
            again = gpu.empty(SIZE)

    assert again.ptr != first
