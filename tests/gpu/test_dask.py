"""A Dask cluster whose four workers share one GPU, recorded from the client."""

import logging
import os

import pytest

import gpuviz

distributed = pytest.importorskip("distributed")

WORKERS = 4
TASKS = 16
MIB = 1 << 20


def scale(number):
    import cupy

    x = cupy.full((number + 1) * MIB, 1, cupy.uint8)
    x *= 2
    total = int(x[0])
    return total, os.getpid()


@pytest.fixture
def client(tmp_path):
    with (
        distributed.LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            dashboard_address=":0",
            local_directory=str(tmp_path / "scratch"),
            silence_logs=logging.ERROR,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_workers_on_one_gpu_are_one_recording_with_their_tasks(client, tmp_path):
    from gpuviz.dask.cluster_recording import workers_of

    workers = list(workers_of(client))
    with gpuviz.dask.record(tmp_path / "run") as recorded:
        results = client.gather(
            [
                client.submit(
                    scale, number, key=f"scale-{number}", workers=[workers[number % WORKERS]]
                )
                for number in range(TASKS)
            ]
        )

    assert recorded.problems == {}
    assert len(recorded.paths) == WORKERS
    assert {total for total, _ in results} == {2}
    merged = recorded.recording
    assert {each.recording.manifest.process_id for each in merged.processes} == {
        process for _, process in results
    }
    largest = sorted(
        max(each.recording.table("memory_events")["requested_size"].to_pylist()) // MIB
        for each in merged.processes
    )
    assert largest == [TASKS - WORKERS + number + 1 for number in range(WORKERS)]
    assert len(set(merged.table("devices")["uuid"].to_pylist())) == 1
    assert kernels_by_task(merged).keys() == {f"scale-{number}" for number in range(TASKS)}


def kernels_by_task(recording):
    """Return the number of kernels by the key of the task that launched them."""
    texts = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    tasks = {row["id"]: texts[row["name"]] for row in recording.table("ranges").to_pylist()}
    launches = {
        row["correlation"]: row["range"] for row in recording.table("api_calls").to_pylist()
    }
    found = {}
    for row in recording.table("activities").to_pylist():
        task = tasks.get(launches.get(row["correlation"], 0), "")
        if row["kind"] == "kernel" and task.startswith("scale-"):
            found[task] = found.get(task, 0) + 1
    return found
