"""Snapshots against the installed PyTorch: its tools on our files, our reader on its files."""

import importlib.util
import pickle

import pytest

from gpuviz.exports import torch_export
from gpuviz.recording import load
from tests.unit.formats.plain_snapshots import SNAPSHOTS, accounting, memory, read, snapshot
from tests.unit.recording.from_events import counted

MIB = 1 << 20
WITHOUT_TORCH = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed"
)
pytestmark = WITHOUT_TORCH


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_torchs_own_tools_open_what_is_written(name, tmp_path):
    from torch.cuda import _memory_viz

    path = torch_export.write(read(snapshot(name), tmp_path), tmp_path / "out.pickle")
    values = pickle.loads(path.read_bytes())  # noqa: S301 - just written

    summary = _memory_viz.segsum(values)
    assert f"segments: {len(values['segments'])}" in summary
    assert set(accounting(values)) == {0}
    entries = len(values["device_traces"][0])
    assert _memory_viz.trace(values).splitlines()[1] == f"{entries} entries"
    assert "MemoryViz.js" in _memory_viz.trace_plot(values)
    assert "MemoryViz.js" in _memory_viz.segment_plot(values)


@pytest.mark.parametrize("max_entries", [100_000, 40])
def test_a_snapshot_of_the_installed_torch_ends_as_torch_says(max_entries, tmp_path):
    import torch

    torch.cuda.memory.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.memory._record_memory_history(max_entries=max_entries, clear_history=True)
    kept = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in range(1, 99 * MIB, MIB)]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        kept.append(torch.empty(5 * MIB + 3, dtype=torch.uint8, device="cuda"))
    kept[3].record_stream(side)
    del kept[::2]
    kept.append(torch.empty(12345, dtype=torch.uint8, device="cuda"))
    path = tmp_path / "torch.pickle"
    statistics = torch.cuda.memory_stats()
    torch.cuda.memory._dump_snapshot(str(path))
    torch.cuda.memory._record_memory_history(enabled=None)

    recording = load(path)

    values = pickle.loads(path.read_bytes())  # noqa: S301 - torch wrote it
    before = recording.manifest.initial_events
    assert memory(recording.memory_snapshot()) == memory(values["segments"])
    assert recording.table("memory_events").num_rows - before == len(values["device_traces"][0])
    found, expected = counted(recording.memory_stats()), counted(statistics)
    current = [key for key in expected if key.endswith(".current")]
    assert {key: found[key] for key in current} == {key: expected[key] for key in current}
    if max_entries > 1000:
        peaks = ("allocated_bytes.all.peak", "reserved_bytes.all.peak", "active_bytes.all.peak")
        assert {key: found[key] for key in peaks} == {key: expected[key] for key in peaks}
