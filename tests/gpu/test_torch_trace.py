"""What a recording knows of torch's allocator, beside what torch itself says."""

import json
import os
import subprocess
import sys

import pytest

import gpuviz
from gpuviz.errors import RecordingError
from gpuviz.frameworks.torch_trace import _state

torch = pytest.importorskip("torch")
torch_program = pytest.importorskip("tests.gpu.torch_program")
pytestmark = pytest.mark.gpu
MIB = 1 << 20


def of_torch(recording):
    """Return the rows of torch's pools after the initial ones."""
    rows = recording.table("memory_events").to_pylist()[recording.manifest.initial_events :]
    pools = recording.table("pools").to_pylist()
    torchs = {pool["id"] for pool in pools if pool["framework"] == "torch"}
    return [row for row in rows if row["pool"] in torchs]


def of_cupy(recording):
    torchs = {id(row) for row in of_torch(recording)}
    rows = recording.table("memory_events").to_pylist()[recording.manifest.initial_events :]
    pools = {row["id"]: row["framework"] for row in recording.table("pools").to_pylist()}
    return [row for row in rows if pools[row["pool"]] == "cupy"] if torchs else rows


def essence(row):
    return row["action"], row["address"], row["size"], row["requested_size"], row["pool"] % 2


def ragged():
    """Use batches of varying lengths, a private pool, and two streams that share blocks."""
    torch.manual_seed(0)
    embedding = torch.nn.Embedding(1000, 64).cuda()
    side = torch.cuda.Stream()
    pool = torch.cuda.MemPool()
    for step in range(30):
        batch = torch.randint(1000, (8, 10 + step * 37 % 400), device="cuda")
        found = embedding(batch)
        with torch.cuda.stream(side):
            mean = found.mean()
            found.record_stream(side)
        del found
        with torch.cuda.use_mem_pool(pool):
            kept = torch.empty(3 * MIB + step, dtype=torch.uint8, device="cuda")
        mean.backward()
        if step % 10 == 9:
            torch.cuda.empty_cache()
    del kept


@pytest.mark.parametrize(
    "program",
    [torch_program.transformer, torch_program.convolutions, ragged],
    ids=lambda p: p.__name__,
)
def test_events_are_those_of_torchs_own_snapshot(program, tmp_path):
    torch.ones(1, device="cuda")
    path = tmp_path / "torch.pickle"
    with gpuviz.record() as recorder:
        torch.cuda.memory._record_memory_history(context=None, max_entries=10_000_000)
        program()
        torch.cuda.synchronize()
        torch.cuda.memory._dump_snapshot(str(path))
        torch.cuda.memory._record_memory_history(enabled=None)

    recording = recorder.recording
    assert recording.manifest.dropped == 0
    expected = gpuviz.load(path)
    rows = expected.table("memory_events").to_pylist()[expected.manifest.initial_events :]
    found = of_torch(recording)
    assert len(found) > 100
    assert [essence(row) for row in found] == [essence(row) for row in rows]
    owners = {}
    for row, known in zip(found, rows, strict=True):
        assert owners.setdefault(row["pool"] // 2, known["pool"] // 2) == known["pool"] // 2
    assert [row["time"] for row in found] == sorted(row["time"] for row in found)


def test_blocks_that_existed_before_are_known():
    kept = torch.empty(33 * MIB, dtype=torch.uint8, device="cuda")
    with gpuviz.record() as recorder:
        del kept

    recording = recorder.recording
    assert [row["action"] for row in of_torch(recording)] == ["free_requested", "free_completed"]
    initial = recording.table("memory_events").to_pylist()[: recording.manifest.initial_events]
    assert 33 * MIB in {row["requested_size"] for row in initial if row["action"] == "alloc"}


def test_lines_of_torch_and_cupy_are_in_one_recording():
    import cupy

    with gpuviz.record() as recorder:
        model = torch.nn.Linear(512, 512).cuda()
        batch = cupy.ones((64, 512), cupy.float32)
        result = model(torch.from_dlpack(batch))
        torch.cuda.synchronize()

    recording = recorder.recording
    assert result.shape == (64, 512)
    frames = {row["id"]: row for row in recording.table("frames").to_pylist()}
    stacks = {row["id"]: row["user_frame"] for row in recording.table("stacks").to_pylist()}

    def sources(rows):
        found = (stacks.get(row["stack"], 0) for row in rows if row["action"] == "alloc")
        return [frames[frame]["source"] if frame else "" for frame in found]

    assert sources(of_cupy(recording)) == ["batch = cupy.ones((64, 512), cupy.float32)"]
    lines = sources(of_torch(recording))
    assert lines[:2] == ["model = torch.nn.Linear(512, 512).cuda()"] * 2
    assert set(lines[2:]) == {"result = model(torch.from_dlpack(batch))"}
    with pytest.raises(RecordingError, match="PyTorch"):
        recording.what_if()


PROGRAM = """
import sys
import gpuviz
with gpuviz.record(sys.argv[1], streams=sys.argv[2] == "streams"):
    import torch
    layers = [torch.nn.Linear(64, 64).cuda() for _ in range(3)]
    data = torch.ones(8, 64, device="cuda")
    for layer in layers:
        data = layer(data).relu()
    data.sum().backward()
    del data
print(torch.cuda.memory_allocated())
"""


@pytest.mark.parametrize("streams", ["streams", "memory"])
def test_a_torch_imported_during_the_recording_is_recorded_from_its_first_allocation(
    streams, tmp_path
):
    program, path = tmp_path / "program.py", tmp_path / "run.gpuviz"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program), str(path), streams],
        check=True,
        capture_output=True,
        text=True,
    )

    recording = gpuviz.load(path)
    assert recording.manifest.notes == ()
    assert recording.memory_stats()["allocated_bytes.all.current"] == int(done.stdout)
    allocated = [row for row in of_torch(recording) if row["action"] == "alloc"]
    assert len(allocated) > 10
    known = {row["id"] for row in recording.table("stacks").to_pylist() if row["user_frame"]}
    forward = [row for row in allocated if row["thread"] == allocated[0]["thread"]]
    assert all(row["stack"] in known for row in forward)


def test_a_failed_request_of_torch_is_explained(caplog):
    most = torch.cuda.get_device_properties(0).total_memory - (1 << 29)
    with gpuviz.record() as recorder:
        kept = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(most, dtype=torch.uint8, device="cuda")
        del kept

    (failed,) = [row for row in of_torch(recorder.recording) if row["action"] == "oom"]
    assert failed["requested_size"] >= most
    printed = caplog.text
    assert "requested. Details: " in printed
    assert [path for path in recorder.out_of_memory_pages if str(path) in printed]


SAMPLED = """
import json
import sys
import time

import torch

import gpuviz
from gpuviz.frameworks.torch_trace import _state

layers = [torch.nn.Linear(64, 64 << i).cuda() for i in range(3)]
with gpuviz.record(sys.argv[1], streams=False) as recorder:
    kept = [torch.empty(i << 18, dtype=torch.uint8, device="cuda") for i in range(1, 60)]
    while recorder.status().events < len(kept):
        time.sleep(0.01)
    del kept[::2], layers
    torch.cuda.empty_cache()
    kept.append(torch.empty(33 << 20, dtype=torch.uint8, device="cuda"))
print(json.dumps(_state(torch.cuda.memory_snapshot())))
"""


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
def test_without_a_compiler_what_torch_holds_is_sampled(settings, tmp_path):
    program, path = tmp_path / "program.py", tmp_path / "sampled.gpuviz"
    program.write_text(SAMPLED)
    environment = {"CXX": "/bin/false", "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(program), str(path)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **environment, "PYTORCH_CUDA_ALLOC_CONF": settings},
    )

    recording = gpuviz.load(path)
    (note,) = [each for each in recording.manifest.notes if "PyTorch" in each]
    assert note.startswith("PyTorch's memory was sampled, because its tracker cannot be built")
    expected = json.loads(done.stdout)
    assert [list(block) for block in _state(recording.memory_snapshot())[1]] == expected[1]
    reserved = sum(size for _, _, size, *_ in expected[0])
    assert recording.memory_stats()["reserved_bytes.all.current"] == reserved
    peak = recording.memory_stats()["allocated_bytes.all.peak"]
    assert peak >= sum(i << 18 for i in range(1, 60))


def test_a_forked_child_records_nothing_and_continues():
    with gpuviz.record():
        torch.ones(10, device="cuda")
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        torch.ones(10, device="cuda")


def test_what_the_threads_of_a_backward_pass_do_has_the_line_that_waits_for_them():
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(4))).cuda()
    batch = torch.randn(256, 512, device="cuda")
    model(batch).sum().backward()
    torch.cuda.synchronize()
    with gpuviz.record() as recorder:
        loss = model(batch).square().mean()
        loss.backward()
        gradient = torch.autograd.grad(model(batch).sum(), model[0].weight)[0]
        torch.cuda.synchronize()
    recording = recorder.recording

    assert gradient.shape == (512, 512)
    rows = recording.lines().to_pylist()
    backward = {row["source"]: row for row in rows if row["site"].startswith("backward of ")}
    for line in (
        "loss = model(batch).square().mean()",
        "gradient = torch.autograd.grad(model(batch).sum(), model[0].weight)[0]",
    ):
        assert backward[line]["kernel_count"] >= 4
        assert backward[line]["kernel_ns"] > 0
    unknown = [row for row in of_torch(recording) if row["action"] == "alloc" and not row["stack"]]
    assert unknown == []
    calls = recording.table("api_calls").to_pylist()
    stacks = {row["correlation"]: row["stack"] for row in calls}
    kernels = [row for row in recording.table("activities").to_pylist() if row["kind"] == "kernel"]
    assert all(stacks[row["correlation"]] for row in kernels)
