import gc
import os
import signal
import threading
import time

import pytest

import gpuviz
from gpuviz.errors import RecorderError
from tests.unit.simulation.tables_of import activities, calls, named


def test_calls_know_the_line_of_the_program_that_made_them(recorded):
    def program(gpu):
        gpu.launch("here", duration=1e-6)
        gpu.synchronize()

    recording = recorded(program)

    first = program.__code__.co_firstlineno
    sites = {
        row["name"]: recording.call_stacks.user_frame(row["stack"])
        for row in named(recording, "api_calls")
    }
    assert sites["cuLaunchKernel"].line == first + 1
    assert sites["cuCtxSynchronize"].line == first + 2
    assert sites["cuLaunchKernel"].filename == __file__


def test_without_stacks_calls_have_none(gpu):
    with gpuviz.record(device=gpu, stacks=False) as recorder:
        gpu.synchronize()

    assert {row["stack"] for row in named(recorder.recording, "api_calls")} == {0}


def test_what_is_recorded_of_streams_can_be_chosen(gpu):
    def recorded(**switches):
        with gpuviz.record(device=gpu, **switches) as recorder:
            x = gpu.empty(1000)
            stream = gpu.Stream()
            stream.begin_capture()
            with stream:
                gpu.launch("a", writes=[x], duration=1e-6)
                gpu.launch("b", writes=[x], duration=2e-6)
            stream.end_capture().launch(stream)
            stream.record()
            gpu.synchronize()
        tables = ("memory_events", "activities", "api_calls", "launch_blocks")
        counts = [recorder.recording.table(name).num_rows for name in tables]
        return recorder.status().streams, [count > 0 for count in counts], recorder.recording

    everything = recorded()
    assert everything[:2] == (True, [True, True, True, True])
    assert recorded(streams=False)[:2] == (False, [True, False, False, False])
    assert recorded(launch_sites=False)[:2] == (True, [True, True, False, True])
    assert recorded(launch_blocks=False)[:2] == (True, [True, True, True, False])
    assert calls(everything[2], "cuEventCreate") == []
    assert len(calls(recorded(api_calls=True)[2], "cuEventCreate")) == 1
    assert [row["name"] for row in activities(everything[2])] == ["a", "b"]
    [graph] = activities(recorded(graph_nodes=False)[2])
    assert (graph["kind"], graph["end"] - graph["time"]) == ("graph", 3000)


def test_every_recording_of_a_gpu_has_what_was_done_in_it_and_streams_from_before(gpu):
    stream = gpu.Stream(priority=-3)
    found = []

    for name in ("first", "second"):
        with stream:
            gpu.launch(f"before {name}", duration=1e-3)
        with gpuviz.record(device=gpu) as recorder, stream:
            gpu.launch(name, duration=1e-3)
        found.append(recorder.recording)

    for recording, name in zip(found, ("first", "second"), strict=True):
        [row] = activities(recording)
        assert row["name"] == name
        [known] = [r for r in recording.table("streams").to_pylist() if r["id"] == row["stream"]]
        assert (known["kind"], known["priority"], known["created"]) == ("blocking", -3, 0)


def test_stopping_waits_for_the_work_that_was_given():
    gpu = gpuviz.SimulatedGPU()

    with gpuviz.record(device=gpu) as recorder:
        gpu.launch("long", duration=0.1)

    [row] = activities(recorder.recording)
    assert row["end"] - row["time"] == 100_000_000
    assert row["end"] <= recorder.recording.duration_ns


def test_a_virtual_recording_is_as_long_as_its_clock_says(gpu):
    with gpuviz.record(device=gpu) as recorder:
        gpu.launch("long", duration=3600)
        gpu.synchronize()

    [row] = activities(recorder.recording)
    assert row["end"] <= recorder.recording.manifest.duration_ns < 3601 * 10**9


def test_work_is_recorded_while_the_host_does_something_else():
    gpu = gpuviz.SimulatedGPU()
    with gpuviz.record(device=gpu) as recorder:
        gpu.launch("k", duration=1e-3)

        time.sleep(0.05)

        assert len(activities(recorder.recording)) == 1


def test_a_gpu_may_be_used_without_being_recorded():
    gpu = gpuviz.SimulatedGPU()
    x = gpu.empty(1 << 20)
    began = time.monotonic()

    gpu.copy_to_device(x)
    gpu.launch("k", writes=[x], duration=0.02)
    gpu.synchronize()

    assert time.monotonic() - began >= 0.02


def test_a_gpu_that_nobody_uses_any_more_waits_for_no_work():
    gpu = gpuviz.SimulatedGPU()
    x = gpu.empty(1 << 20)
    gpu.launch("endless", writes=[x], duration=3600)

    del x, gpu
    gc.collect()


def test_threads_may_use_one_gpu_at_once():
    gpu = gpuviz.SimulatedGPU()
    count = 200

    def program(name):
        with gpu.Stream(non_blocking=True) as stream:
            for number in range(count):
                x = gpu.empty(1000 + number)
                gpu.launch(name, writes=[x], duration=2e-6, share=0.1)
                if number % 50 == 0:
                    stream.synchronize()
            stream.synchronize()

    with gpuviz.record(device=gpu) as recorder:
        threads = [threading.Thread(target=program, args=(f"k{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    rows = activities(recorder.recording, "kernel")
    by_stream = {row["name"]: row["stream"] for row in rows}
    assert len(rows) == 4 * count
    assert len(set(by_stream.values())) == 4
    assert {(row["name"], row["stream"]) for row in rows} == set(by_stream.items())
    assert recorder.recording.table("launch_blocks").num_rows == 4 * count
    correlations = [row["correlation"] for row in named(recorder.recording, "api_calls")]
    assert len(correlations) == len(set(correlations))


def test_an_interrupt_ends_a_wait_and_the_recording_ends_well():
    gpu = gpuviz.SimulatedGPU()
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    recorder = gpuviz.record(device=gpu)

    with recorder:
        gpu.launch("short", duration=1e-3)
        gpu.launch("endless", duration=3600)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            gpu.synchronize()
        again = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        again.start()
        with pytest.raises(KeyboardInterrupt):
            recorder.stop()

    assert [row["name"] for row in activities(recorder.recording)] == ["short"]
    assert len(calls(recorder.recording, "cuCtxSynchronize")) == 1
    with gpuviz.record(device=gpuviz.SimulatedGPU()):
        assert not recorder.is_recording


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_can_use_its_copy_of_the_gpu():
    gpu = gpuviz.SimulatedGPU()
    with gpuviz.record(device=gpu) as recorder:
        for _ in range(5):
            gpu.launch("parent", duration=1e-4)
            child = os.fork()
            if child == 0:
                gpu.launch("child", duration=1e-4)
                gpu.synchronize()
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

    assert [row["name"] for row in activities(recorder.recording)] == ["parent"] * 5


def test_only_the_caching_allocator_serves_a_simulated_gpu(gpu):
    with pytest.raises(ValueError, match="omit allocator='observe'"):
        gpuviz.record(device=gpu, allocator="observe")


def test_one_recorder_is_active_at_a_time(gpu):
    with gpuviz.record(device=gpu), pytest.raises(RecorderError, match="Another recorder"):
        gpuviz.record(device=gpuviz.SimulatedGPU()).start()
    with gpuviz.record(device=gpu) as recorder:
        gpu.launch("k", duration=1e-6)

    assert len(activities(recorder.recording)) == 1


def test_streams_are_named_as_those_of_cupy_are(gpu):
    with gpuviz.record(device=gpu) as recorder:
        stream = gpu.Stream()
        gpuviz.name_stream(stream, "filters")
        with stream:
            gpu.launch("k", duration=1e-6)

    rows = recorder.recording.table("streams").to_pylist()
    assert {row["handle"]: row["name"] for row in rows} == {
        0: "default stream",
        stream.ptr: "filters",
    }


@pytest.mark.parametrize("device", [0, "cuda:0"])
def test_a_device_that_is_no_simulated_gpu_is_refused(device):
    with pytest.raises(TypeError, match=f"must be a gpuviz.SimulatedGPU, got {device!r}; omit it"):
        gpuviz.record(device=device)
