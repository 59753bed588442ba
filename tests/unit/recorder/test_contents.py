"""The content of a recording: all events in order, and the initial state."""

import _thread
import ctypes
import threading
import time
from functools import partial

import pytest

import gpuviz
from gpuviz.recorder import pump
from gpuviz.simulation.source import SimulatedSource as Simulated
from tests.unit.recorder.simulated_source import SimulatedSource


def rows(recording, *columns):
    return [tuple(row.values()) for row in event_rows(recording, columns)]


def event_rows(recording, columns):
    return recording.table("memory_events").select(list(columns)).to_pylist()


def blocks(snapshot):
    """Return the segments and blocks of a snapshot, without stacks."""
    return [
        (segment["address"], segment["total_size"], block["address"], block["size"], block["state"])
        for segment in snapshot
        for block in segment["blocks"]
    ]


def current(stats):
    return {key: value for key, value in stats.items() if key.endswith(".current")}


@pytest.mark.parametrize("to_disk", [False, True])
def test_memory_from_before_is_described_by_initial_events(
    source,
    new_recorder,
    tmp_path,
    to_disk,
):
    before = source.allocate(1000)
    recorder = new_recorder(source, tmp_path / "run.gpuviz" if to_disk else None)

    with recorder:
        source.allocate(5000)
        source.free(before)

    recording = recorder.recording
    assert recording.manifest.initial_events == 2
    assert rows(recording, "action", "requested_size") == [
        ("segment_alloc", 0),
        ("alloc", 1000),
        ("alloc", 5000),
        ("free_requested", 1000),
        ("free_completed", 1000),
    ]
    assert current(recording.memory_stats()).items() <= source.allocators[0].memory_stats().items()
    assert blocks(recording.memory_snapshot()) == blocks(source.allocators[0].memory_snapshot())


@pytest.mark.parametrize("to_disk", [False, True])
def test_the_recording_so_far_is_right_at_any_moment(source, new_recorder, tmp_path, to_disk):
    recorder = new_recorder(source, tmp_path / "run.gpuviz" if to_disk else None)
    live = []

    with recorder:
        for count in (1, 10, 0, 100):
            live += [source.allocate(1234) for _ in range(count)]
            so_far = recorder.recording
            assert so_far.memory_stats()["allocation.all.current"] == len(live)
            assert not so_far.is_complete

    assert recorder.recording.memory_stats()["allocation.all.current"] == 111
    assert recorder.recording.is_complete


def test_a_recording_at_a_path_is_the_file(source, new_recorder, tmp_path):
    path = tmp_path / "run.gpuviz"

    with new_recorder(source, path) as recorder:
        source.allocate(1234)

    assert [file.name for file in tmp_path.iterdir()] == ["run.gpuviz"]
    assert gpuviz.load(path).tables == recorder.recording.tables
    assert recorder.status().bytes_on_disk == path.stat().st_size


def test_two_recordings_of_one_allocator_follow_each_other(source, new_recorder):
    with new_recorder(source) as first:
        kept = source.allocate(1000)
    source.allocate(2000)
    with new_recorder(source.again()) as second:
        source.free(kept)

    assert rows(first.recording, "action", "requested_size") == [
        ("segment_alloc", 0),
        ("alloc", 1000),
    ]
    assert rows(second.recording, "action", "requested_size") == [
        ("segment_alloc", 0),
        ("alloc", 1000),
        ("alloc", 2000),
        ("free_requested", 1000),
        ("free_completed", 1000),
    ]
    assert second.recording.manifest.initial_events == 3


def test_every_device_has_its_own_events_and_state(new_recorder):
    source = SimulatedSource(devices=3)

    with new_recorder(source) as recorder:
        for device, count in enumerate((1, 2, 3)):
            for _ in range(count):
                source.allocate(1000 * (device + 1), device)

    recording = recorder.recording
    assert recording.devices == (0, 1, 2)
    assert recording.table("devices")["id"].to_pylist() == [0, 1, 2]
    for device, allocator in enumerate(source.allocators):
        stats = allocator.memory_stats()
        assert current(recording.memory_stats(device)).items() <= stats.items()
        assert recording.memory_stats(device)["allocation.all.current"] == device + 1
    assert {row["device"] for row in recording.table("device_memory").to_pylist()} == {0, 1, 2}


def test_events_of_several_threads_are_all_there_under_their_names(new_recorder):
    source = SimulatedSource(devices=2)
    count = 2000

    def program(device):
        for _ in range(count):
            source.free(source.allocate(1234, device), device)
        recorded.wait()

    with new_recorder(source) as recorder:
        recorded = threading.Barrier(5)
        threads = [
            threading.Thread(target=program, args=(number % 2,), name=f"worker {number}")
            for number in range(4)
        ]
        for thread in threads:
            thread.start()
        while recorded.n_waiting < 4:
            time.sleep(0.001)
        assert recorder.recording.memory_stats(0)["allocation.all.allocated"] == 2 * count
        recorded.wait()
        for thread in threads:
            thread.join()

    recording = recorder.recording
    names = {row["id"]: row["name"] for row in recording.table("threads").to_pylist()}
    assert sorted(names.values()) == [f"worker {number}" for number in range(4)]
    allocations = [
        thread for action, thread in rows(recording, "action", "thread") if action == "alloc"
    ]
    assert {names[thread]: allocations.count(thread) for thread in names} == {
        f"worker {number}": count for number in range(4)
    }
    assert (recorder.status().dropped, recording.is_complete) == (0, True)


def test_status_counts_events_bytes_and_cost(source, new_recorder, tmp_path):
    recorder = new_recorder(source, tmp_path / "run.gpuviz")
    idle = recorder.status()

    with recorder:
        for _ in range(1000):
            source.free(source.allocate(1234))
        _ = recorder.recording
        during = recorder.status()
    after = recorder.status()

    assert (idle.recording, idle.events, idle.bytes_on_disk, idle.own_cost_ns) == (False, 0, 0, 0)
    assert (during.recording, during.events, during.dropped) == (True, 3001, 0)
    assert during.bytes_in_memory >= 65536 * 64
    assert during.bytes_on_disk >= 3001 * 4
    assert (after.recording, after.events, after.dropped_oldest) == (False, 3001, 0)
    assert after.own_cost_ns >= during.own_cost_ns
    assert after.notes == ()
    assert recorder.recording.manifest.own_cost_ns <= after.own_cost_ns
    assert recorder.status().notes == ()


def test_the_cost_within_the_program_grows_with_its_events(source, new_recorder):
    recorder = new_recorder(source)

    with recorder:
        _ = recorder.recording
        before = recorder.status().own_cost_ns
        for _ in range(10_000):
            source.free(source.allocate(1234))
        _ = recorder.recording
        cost = recorder.status().own_cost_ns - before

    assert 10 * 30_000 < cost < 10_000 * 30_000


def test_status_and_recording_may_be_asked_by_any_thread_while_it_stops(
    source,
    new_recorder,
    tmp_path,
    monkeypatch,
):
    monkeypatch.setattr(pump, "INTERVAL_S", 0.001)
    recorder = new_recorder(source, tmp_path / "run.gpuviz")
    recorder.start()
    stopped = threading.Event()
    counts, errors = [], []

    def ask():
        try:
            while not stopped.is_set():
                recorder.status()
                counts.append(recorder.recording.table("memory_events").num_rows)
        except BaseException as error:
            errors.append(error)
            raise

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    for _ in range(300):
        source.free(source.allocate(1234))
        time.sleep(0.0001)
    recorder.stop()
    stopped.set()
    for asker in askers:
        asker.join()

    assert errors == []
    assert max(counts) <= 901
    assert recorder.recording.table("memory_events").num_rows == 901


def test_notes_of_the_source_are_in_status_and_recording(new_recorder):
    class Noting(SimulatedSource):
        def end(self):
            super().end()
            return ("The moon was full.",)

    with new_recorder(Noting()) as recorder:
        pass

    assert recorder.status().notes == ("The moon was full.",)
    assert "The moon was full." in recorder.recording.notes


def test_devices_that_only_work_are_described(monkeypatch):
    known = Simulated.devices

    def those_at_work(self, active):
        return [row for row in known(self, active) if row["id"] in active]

    monkeypatch.setattr(Simulated, "devices", those_at_work)
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as idle:
        pass
    with gpuviz.record(device=gpu) as working:
        gpu.launch("work", duration=1e-6)
        gpu.synchronize()

    assert idle.recording.table("devices").num_rows == 0
    assert working.recording.table("devices")["name"].to_pylist() == ["simulated GPU"]


def test_threads_of_libraries_have_the_names_that_the_system_has(new_recorder):
    source = SimulatedSource()
    set_name = partial(ctypes.CDLL(None).prctl, 15)

    def program(name):
        ids[name] = threading.get_native_id()
        if name:
            set_name(name.encode())
        source.free(source.allocate(1234))
        recorded.wait()

    with new_recorder(source) as recorder:
        ids, recorded = {}, threading.Barrier(3)
        for name in ("pt_autograd_0", ""):
            _thread.start_new_thread(program, (name,))
        while recorded.n_waiting < 2:
            time.sleep(0.001)
        assert recorder.recording.table("threads").num_rows == 2
        recorded.wait()

    rows = recorder.recording.table("threads").to_pylist()
    assert {row["name"]: row["id"] for row in rows} == ids


def test_names_that_are_no_unicode_are_escaped(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["run.py", "\udcff"])
    monkeypatch.setattr(threading.current_thread(), "name", "w\udc80")
    gpu = gpuviz.SimulatedGPU()
    allocate = compile("gpu.empty(1234)", "caf\udce9.py", "exec")

    with gpuviz.record(tmp_path / "run.gpuviz", device=gpu) as recorder:
        exec(allocate, {"gpu": gpu})  # noqa: S102 - our own

    recording = gpuviz.load(recorder.recording.report(tmp_path / "run.html"))
    assert recording.manifest.program == ("run.py", "\\udcff")
    assert "w\\udc80" in recording.table("threads")["name"].to_pylist()
    assert recording.sites()["site"].to_pylist() == ["<module> (caf\\udce9.py:1)"]


def test_samples_of_device_memory_are_on_the_simulated_clock():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        kept = gpu.empty(20 << 20)
        gpu.work_on_host(3.0)
    recording = recorder.recording
    last = recording.table("device_memory").to_pylist()[-1]

    assert last == {"time": recording.duration_ns, "device": 0, "used": kept.nbytes}
