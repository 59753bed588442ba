"""Transfers and collectives of a real NCCL."""

import threading

import pytest

import gpuviz
from gpuviz.analysis.collective_kernels import collective_kernels
from tests.gpu.device_programs import device_count

pytestmark = pytest.mark.gpu

COUNT = 1234


@pytest.fixture
def nccl():
    from cupy.cuda import nccl

    if not nccl.available:
        pytest.skip("CuPy finds no NCCL")
    return nccl


def test_a_transfer_of_a_rank_to_itself_has_its_buffers_and_stream(nccl):
    import cupy

    with gpuviz.record() as recorder:
        communicator = nccl.NcclCommunicator(1, nccl.get_unique_id(), 0)
        stream = cupy.cuda.Stream(non_blocking=True)
        source, destination = cupy.ones(COUNT, "f"), cupy.empty(COUNT, "f")
        nccl.groupStart()
        communicator.send(source.data.ptr, COUNT, nccl.NCCL_FLOAT32, 0, stream.ptr)
        communicator.recv(destination.data.ptr, COUNT, nccl.NCCL_FLOAT32, 0, stream.ptr)
        nccl.groupEnd()
        stream.synchronize()
        communicator.destroy()
    rows = {row["function"]: row for row in recorder.recording.table("collectives").to_pylist()}

    assert rows["send"]["source"] == source.data.ptr
    assert rows["receive"]["destination"] == destination.data.ptr
    for row in rows.values():
        assert (row["rank"], row["ranks"], row["peer"], row["bytes"]) == (0, 1, 0, 4 * COUNT)
    assert all("SendRecv" in name for name in names_of_kernels(recorder.recording))
    if nccl.get_version() >= 22800:
        assert {handle_of(recorder.recording, row["stream"]) for row in rows.values()} == {
            stream.ptr
        }


@pytest.mark.skipif(device_count() < 2, reason="fewer than two GPUs")
def test_the_rows_of_a_collective_on_two_gpus_have_one_sequence(nccl):
    import cupy

    identity, buffers = nccl.get_unique_id(), {}

    def reduce_twice(rank):
        with cupy.cuda.Device(rank):
            communicator = nccl.NcclCommunicator(2, identity, rank)
            buffers[rank] = cupy.ones(COUNT, "f")
            stream = cupy.cuda.Stream(non_blocking=True)
            for _ in range(2):
                communicator.allReduce(
                    *(buffers[rank].data.ptr,) * 2, COUNT, nccl.NCCL_FLOAT32, 0, stream.ptr
                )
            stream.synchronize()
            communicator.destroy()

    with gpuviz.record() as recorder:
        ranks = [threading.Thread(target=reduce_twice, args=(rank,)) for rank in range(2)]
        for thread in ranks:
            thread.start()
        for thread in ranks:
            thread.join()
    rows = recorder.recording.table("collectives").to_pylist()

    assert len({row["communicator"] for row in rows}) == 1
    assert {(row["function"], row["bytes"]) for row in rows} == {("all_reduce", 4 * COUNT)}
    for rank in range(2):
        own = [row for row in rows if row["rank"] == rank]
        assert [row["sequence"] for row in own] == [own[0]["sequence"], own[0]["sequence"] + 1]
        assert {row["source"] for row in own} == {buffers[rank].data.ptr}
    assert all("AllReduce" in name for name in names_of_kernels(recorder.recording))
    met = recorder.recording.collectives().to_pylist()
    assert [(row["clock"], row["missing"]) for row in met] == [("gpu", 0)] * 2
    assert all(row["waited_ns"] >= row["late_ns"] > 0 for row in met)


def handle_of(recording, stream):
    handles = {row["id"]: row["handle"] for row in recording.table("streams").to_pylist()}
    return handles[stream]


def names_of_kernels(recording):
    """Return the name of the kernel of each collective; empty if it is not known."""
    names = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    activities = recording.table("activities")["name"].to_pylist()
    kernels = collective_kernels(recording.tables).tolist()
    return [names[activities[row]] if row >= 0 else "" for row in kernels]
