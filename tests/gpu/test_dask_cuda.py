"""A cluster of dask-cuda, with and without a pool of RMM, recorded from the client."""

import logging

import pytest

import gpuviz

dask_cuda = pytest.importorskip("dask_cuda")
distributed = pytest.importorskip("distributed")
pytest.importorskip("rmm")
pytestmark = pytest.mark.gpu

TASKS = 6
MIB = 1 << 20


def work(number):
    import cupy
    from rmm.allocators.cupy import rmm_cupy_allocator

    cupy.cuda.set_allocator(rmm_cupy_allocator)
    x = cupy.full((number + 1) * MIB, 1, cupy.uint8)
    x *= 2
    return int(x[0])


@pytest.mark.parametrize("pool", [None, "1GB"])
def test_a_worker_is_recorded_through_rmm(pool, tmp_path):
    with (
        dask_cuda.LocalCUDACluster(
            n_workers=1,
            rmm_pool_size=pool,
            dashboard_address=":0",
            local_directory=str(tmp_path / "scratch"),
            silence_logs=logging.ERROR,
        ) as cluster,
        distributed.Client(cluster) as client,
        gpuviz.dask.record(tmp_path / "run") as recorded,
    ):
        results = client.gather(
            [client.submit(work, number, key=f"work-{number}") for number in range(TASKS)]
        )

    assert recorded.problems == {}
    assert set(results) == {2}
    recording = recorded.recording
    rows = recording.table("memory_events").to_pylist()
    large = [row for row in rows if row["action"] == "alloc" and row["requested_size"] >= MIB]
    assert sorted(row["requested_size"] // MIB for row in large) == list(range(1, TASKS + 1))
    assert {row["framework"] for row in large} == {"rmm"}
    texts = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    names = {texts[row["name"]] for row in recording.table("ranges").to_pylist()}
    assert {f"work-{number}" for number in range(TASKS)} <= names
