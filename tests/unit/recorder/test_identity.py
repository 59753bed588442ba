"""Clocks, host and process in a recording."""

import os
import sys
import time
from pathlib import Path
from types import ModuleType

import pyarrow.compute as pc
import pytest

from gpuviz.ownership import held_at_end
from gpuviz.recorder import transfer
from gpuviz.recording import load
from gpuviz.report.facts import environment, facts
from gpuviz.report.redaction import redact
from tests.unit.recorder.simulated_source import SimulatedSource

STARTING_S = 0.05


@pytest.fixture
def recording(source, new_recorder, tmp_path):
    path = tmp_path / "run.gpuviz"
    with new_recorder(source, path):
        source.free(source.allocate(1234))
    return load(path)


def test_the_clocks_are_read_at_the_start_and_at_the_end(source, new_recorder, monkeypatch):
    monkeypatch.setattr(transfer, "CLOCKS_INTERVAL_NS", 10**15)
    with new_recorder(source) as recorder:
        before = recorder.elapsed_ns
        source.free(source.allocate(1234))
        after = recorder.elapsed_ns

    first, last = recorder.recording.table("clock_snapshots")["time"].to_pylist()

    assert 0 <= first <= before
    assert after <= last


def test_the_clocks_are_read_again_when_it_is_time(source, new_recorder, monkeypatch):
    monkeypatch.setattr(transfer, "CLOCKS_INTERVAL_NS", 0)
    with new_recorder(source) as recorder:
        counts = [recorder.recording.table("clock_snapshots").num_rows for _ in range(4)]

    assert counts == sorted(set(counts))


def test_readings_of_the_clocks_agree_within_what_they_claim(recording):
    now = {"wall": time.time_ns(), "boot": time.clock_gettime_ns(time.CLOCK_BOOTTIME)}
    elapsed = time.monotonic_ns() - recording.manifest.start_monotonic_ns

    rows = recording.table("clock_snapshots").to_pylist()

    # Wall clocks are adjusted by at most 500 parts per million.
    for row in rows:
        assert 0 < row["uncertainty"] < 1_000_000
        for clock, reading in now.items():
            apart = (reading - row[clock]) - (elapsed - row["time"])
            assert abs(apart) < row["uncertainty"] + 1_000_000


def test_versions_of_imported_libraries_are_kept(source, new_recorder, monkeypatch):
    class TorchVersion(str):
        __slots__ = ()

    torch, jax = ModuleType("torch"), ModuleType("jax")
    torch.__version__ = TorchVersion("2.11.0+cu130")
    with new_recorder(source) as recorder:
        # Most programs import what they use after gpuviz.
        monkeypatch.setitem(sys.modules, "torch", torch)
        monkeypatch.setitem(sys.modules, "jax", jax)
        source.free(source.allocate(1234))
    recording = recorder.recording

    assert recording.manifest.library_versions["PyTorch"] == "2.11.0+cu130"
    assert "JAX" not in recording.manifest.library_versions
    assert "PyTorch 2.11.0+cu130" in facts(recording, [])["Versions"]
    assert environment(recording)["PyTorch"] == "2.11.0+cu130"
    assert redact(recording).manifest.libraries["torch"] == "2.11.0+cu130"


def test_the_recorded_process_and_its_host_are_named(recording):
    manifest = recording.manifest

    assert manifest.process_id == os.getpid()
    since_boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    assert 0 < manifest.process_start_ns < since_boot_ns
    assert manifest.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert len(manifest.host_hash) == 16
    assert manifest.host == os.uname().nodename


def test_pools_say_whose_memory_of_what_kind_they_are(recording):
    rows = recording.table("pools").to_pylist()

    assert [(row["framework"], row["memory"]) for row in rows] == [("cupy", "device")]


def test_what_ending_takes_is_no_time_of_the_recording(source, new_recorder, monkeypatch):
    def search():
        time.sleep(0.3)
        return []

    monkeypatch.setattr(held_at_end, "held_at_end", search)
    with new_recorder(source) as recorder:
        source.free(source.allocate(1234))
        worked = recorder.elapsed_ns

    ended = time.monotonic_ns() - recorder.recording.manifest.start_monotonic_ns
    assert worked <= recorder.recording.duration_ns < ended - 300_000_000


def test_what_starting_takes_is_no_time_of_the_recording(source, new_recorder, monkeypatch):
    began = SimulatedSource.begin

    def begin_slowly(self, session):
        began(self, session)
        self.allocate(1234)  # as another thread may
        time.sleep(STARTING_S)

    monkeypatch.setattr(SimulatedSource, "begin", begin_slowly)
    source.allocate(1234)
    called = time.monotonic_ns()
    with new_recorder(source) as recorder:
        began_at = time.monotonic_ns()
        source.allocate(1234)

    recording = recorder.recording
    initial, meanwhile, later = (
        recording.table("memory_events").filter(pc.field("action") == "alloc")["time"].to_pylist()
    )
    zero = recording.manifest.start_monotonic_ns
    assert initial == meanwhile == 0
    assert called + STARTING_S * 1e9 <= zero <= began_at <= zero + later
    assert recording.duration_ns < time.monotonic_ns() - zero
