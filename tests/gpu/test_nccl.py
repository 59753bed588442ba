"""Collectives of a real NCCL, with one rank."""

import pytest

import gpuviz

pytestmark = pytest.mark.gpu

COUNT = 1234


def test_collectives_of_cupy_have_their_buffers_and_stream():
    import cupy
    from cupy.cuda import nccl

    if not nccl.available:
        pytest.skip("CuPy finds no NCCL")
    with gpuviz.record() as recorder:
        communicator = nccl.NcclCommunicator(1, nccl.get_unique_id(), 0)
        stream = cupy.cuda.Stream(non_blocking=True)
        source, destination = cupy.ones(COUNT, "f"), cupy.empty(COUNT, "f")
        for _ in range(2):
            communicator.allReduce(
                source.data.ptr, destination.data.ptr, COUNT, nccl.NCCL_FLOAT32, 0, stream.ptr
            )
        stream.synchronize()
        communicator.destroy()
    recording = recorder.recording
    first, second = recording.table("collectives").to_pylist()
    streams = {row["id"]: row["handle"] for row in recording.table("streams").to_pylist()}

    for row in (first, second):
        assert (row["function"], row["rank"], row["ranks"]) == ("all_reduce", 0, 1)
        assert (row["source"], row["destination"]) == (source.data.ptr, destination.data.ptr)
        assert (row["bytes"], streams[row["stream"]]) == (4 * COUNT, stream.ptr)
    assert first["communicator"] == second["communicator"]
    assert first["time"] < second["time"]
