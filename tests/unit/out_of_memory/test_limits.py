"""Failures because of limits set by gpuviz's functions, or known only to the device."""

import pytest

import gpuviz
from gpuviz import _core
from gpuviz.allocator import memory as allocator
from gpuviz.allocator import raw_memory
from gpuviz.recorder.recorder import Recorder
from tests.unit.recorder.simulated_source import SimulatedSource

MIB = 1 << 20


@pytest.fixture
def device(monkeypatch):
    """The only device of a process without allocations, with 200 MiB."""
    simulated = _core.SimulatedDevice(200 * MIB)
    monkeypatch.delenv(allocator.SETTINGS_VARIABLE, raising=False)
    monkeypatch.setattr(allocator, "_process", allocator._Process())
    monkeypatch.setattr(allocator, "_open_device", lambda _: simulated)
    monkeypatch.setattr(allocator, "current_device", lambda: 0)
    monkeypatch.setattr(raw_memory, "current_stream", lambda _: 0x70)
    return simulated


class ProcessSource(SimulatedSource):
    """The allocator of the process, with its settings, as `CachingSource` records it."""

    def __init__(self):
        super().__init__(0)
        self.allocators = [allocator.caching_allocator(0)]

    def manifest_fields(self):
        return {"simulated": True, "settings": gpuviz.get_allocator_settings()}


def failing(program, folder):
    """Return the exception's message of a recorded program, and the failure in its recording."""
    recorder = Recorder(ProcessSource(), folder / "run.gpuviz", stacks=False, max_events=100)
    with recorder, pytest.raises(MemoryError) as caught:
        program()
    (failed,) = gpuviz.load(folder / "run.gpuviz").out_of_memory()
    return str(caught.value), failed


@pytest.mark.usefixtures("device")
def test_a_fraction_of_the_process_is_named_by_a_failure_while_recording(tmp_path):
    def program():
        gpuviz.caching_allocator_alloc(60 * MIB)
        gpuviz.caching_allocator_alloc(50 * MIB)

    gpuviz.set_per_process_memory_fraction(0.5)
    said, failed = failing(program, tmp_path)
    gpuviz.set_per_process_memory_fraction(1.0)

    assert (failed.verdict, failed.limit, failed.reserved) == ("capped", 100 * MIB, 60 * MIB)
    assert "limited to 100 MiB, had reserved 60.0 MiB and needed 50.0 MiB more" in said
    assert gpuviz.caching_allocator_alloc(50 * MIB) > 0


@pytest.mark.usefixtures("device")
def test_a_block_that_may_not_be_split_is_named_by_a_failure_while_recording(tmp_path):
    def program():
        gpuviz.caching_allocator_delete(gpuviz.caching_allocator_alloc(180 * MIB))
        gpuviz.caching_allocator_alloc(20 * MIB)
        gpuviz.set_allocator_settings("max_split_size_mb:30")
        gpuviz.caching_allocator_alloc(60 * MIB)

    said, failed = failing(program, tmp_path)
    gpuviz.set_allocator_settings("")

    assert (failed.verdict, failed.limit, failed.request.own_block) == ("capped", None, 160 * MIB)
    assert "a cached block of 160 MiB was large enough, but the setting max_split_size_mb" in said
    assert gpuviz.caching_allocator_alloc(60 * MIB) > 0


def test_a_device_that_refuses_is_named_by_a_failure_while_recording(device, tmp_path):
    def program():
        gpuviz.caching_allocator_alloc(60 * MIB)
        device.refuse_beyond(100 * MIB)
        gpuviz.caching_allocator_alloc(50 * MIB)

    said, failed = failing(program, tmp_path)

    assert (failed.verdict, failed.limit, failed.device_free) == ("refused", None, 140 * MIB)
    assert (
        "Refused by the device: it had 140 MiB free just after the failure, enough for the 50.0 MiB"
        in said
    )


def test_a_block_that_was_free_too_late_is_not_blamed_on_a_setting():
    gpu = gpuviz.SimulatedGPU(memory=400 * MIB, real_time=False)
    gpu._allocator.set_memory_fraction(0.5)
    # Else a collection of garbage that happens to be there is a second try.
    gpu._allocator.set_last_resort(lambda: False)
    with gpuviz.record(device=gpu) as recorder:
        whole = gpu.empty(150 * MIB)
        del whole
        shared, live = gpu.empty(100 * MIB), gpu.empty(40 * MIB)
        stream = gpu.Stream(non_blocking=True)
        with stream:
            gpu.launch("long", duration=1, reads=[shared])
        gpu.record_stream(shared, stream)
        del shared
        with pytest.raises(MemoryError):
            gpu.empty(60 * MIB)
    (failed,) = recorder.recording.out_of_memory()

    assert live.nbytes == 40 * MIB
    assert (failed.verdict, failed.request.own_block) == ("capped", 100 * MIB)
    assert failed.summary.endswith("had reserved 150 MiB and needed 60.0 MiB more.")


def test_a_snapshot_of_a_limit_that_nothing_tells_has_one_answer(tmp_path):
    gpu = gpuviz.SimulatedGPU(memory=16_000 * MIB, real_time=False)
    gpu._allocator.set_memory_fraction(1 / 16)
    with gpuviz.record(device=gpu) as recorder, pytest.raises(MemoryError):
        fragments(gpu)
    recorder.recording.export(tmp_path / "limited.pickle")
    snapshot = gpuviz.load(tmp_path / "limited.pickle")
    (failed,) = snapshot.out_of_memory()
    replayed = {row["settings"]: row["num_ooms"] for row in snapshot.what_if().to_pylist()}
    (finding,) = (each for each in snapshot.findings(small=True) if each.rule == "R11")

    assert failed.verdict == "capped"
    assert any(f'"{EXPANDABLE}") at the start' in text for text in failed.explanation)
    assert (replayed["recorded"], replayed[EXPANDABLE]) == (1, 0)
    assert finding.title.startswith(f"With `{EXPANDABLE}` the request that failed would have")


EXPANDABLE = "expandable_segments:True"


def fragments(gpu):
    whole = gpu.empty(900 * MIB)
    del whole
    live = [gpu.empty(size * MIB) for size in (400, 20, 400, 20)]
    del live[2], live[0]
    gpu.empty(500 * MIB)
