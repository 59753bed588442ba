"""Recordings of real Dask clusters whose workers have simulated GPUs."""

from pathlib import Path
from types import SimpleNamespace

import dask
import pytest
from distributed import Client, LocalCluster, Nanny, Scheduler, SpecCluster

import gpuviz
from gpuviz.dask import transfer, worker_files
from gpuviz.dask.cluster_recording import ClusterRecording, workers_of
from gpuviz.errors import RecorderError, RecordingExistsError
from gpuviz.notebook import live_output
from tests.integration.dask import gpu_tasks
from tests.patience import wait_until

SETTINGS = {
    "distributed.comm.timeouts.connect": "3s",
    "distributed.scheduler.locks.lease-timeout": "300ms",
    "distributed.scheduler.locks.lease-validation-interval": "50ms",
}


def new_cluster(folder: Path, workers: int = 2, **options: object) -> LocalCluster:
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        local_directory=str(folder),
        **options,
    )


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="module")
def cluster(scratch):
    with dask.config.set(SETTINGS), new_cluster(scratch) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        cluster.scale(2)
        client.wait_for_workers(2)
        # A test may have added one, which ends now.
        wait_until(lambda: len(workers_of(client)) == 2)
        yield client


def recordings_left(scratch: Path) -> list[Path]:
    return [path for path in scratch.rglob("*@*") if "gpuviz" in path.parts[-3:]]


def kernels_by_task(path: Path) -> dict[str, list[str]]:
    """Return the names of the kernels in each range of a recording."""
    recording = gpuviz.load(path)
    texts = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    tasks = {row["id"]: texts[row["name"]] for row in recording.table("ranges").to_pylist()}
    launches = {
        row["correlation"]: tasks.get(row["range"])
        for row in recording.table("api_calls").to_pylist()
    }
    found: dict[str, list[str]] = {task: [] for task in tasks.values()}
    for row in recording.table("activities").to_pylist():
        found[launches[row["correlation"]]].append(texts[row["name"]])
    return found


def all_kernels_by_task(paths: list[Path]) -> dict[str, list[str]]:
    return {task: names for path in paths for task, names in kernels_by_task(path).items()}


def test_each_worker_is_recorded_to_a_file_whose_ranges_are_its_tasks(client, tmp_path, scratch):
    with gpuviz.dask.record(tmp_path / "run", device=gpu_tasks.gpu) as recorded:
        futures = [
            client.submit(gpu_tasks.scale, number, key=("scale", number), workers=[worker])
            for number, worker in enumerate(workers_of(client))
        ]
        client.gather(futures)

    assert recorded.problems == {}
    assert [path.name for path in recorded.paths] == ["0.gpuviz", "1.gpuviz"]
    assert sorted((tmp_path / "run").iterdir()) == recorded.paths
    assert all_kernels_by_task(recorded.paths) == {
        "('scale', 0)": ["scale_0"],
        "('scale', 1)": ["scale_1"],
    }
    assert recordings_left(scratch) == []
    assert recorded.recording.table("processes").num_rows == 2


def test_a_task_that_fails_has_a_range_and_later_tasks_have_their_own(client, tmp_path):
    worker = next(iter(workers_of(client)))
    with gpuviz.dask.record(tmp_path, device=gpu_tasks.gpu) as recorded:
        failed = client.submit(gpu_tasks.fail, 1, key="bad", workers=[worker])
        assert isinstance(failed.exception(), ArithmeticError)
        client.submit(gpu_tasks.scale, 2, key="good", workers=[worker]).result()

    assert all_kernels_by_task(recorded.paths) == {"bad": ["scale_1"], "good": ["scale_2"]}


def test_workers_have_their_own_thread_table_again_after_a_recording(client, tmp_path):
    def table(dask_worker):
        return type(dask_worker.active_threads).__name__

    with gpuviz.dask.record(tmp_path, device=gpu_tasks.gpu):
        during = set(client.run(table).values())

    assert during == {"TaskRanges"}
    assert set(client.run(table).values()) == {"dict"}


def test_the_metrics_of_workers_have_the_memory_of_the_recorded_pool(client, tmp_path):
    def has_metric(dask_worker):
        return "rmm" in dask_worker.metrics

    address = next(iter(workers_of(client)))

    def reported():
        return workers_of(client)[address]["metrics"].get("rmm", {})

    with gpuviz.dask.record(tmp_path, device=gpu_tasks.gpu_in_real_time):
        client.run(gpu_tasks.keep, 1, workers=[address])
        wait_until(
            lambda: reported() == {"rmm-used": gpu_tasks.MIB, "rmm-total": 2 * gpu_tasks.MIB}
        )
        client.run(gpu_tasks.release, workers=[address])
        wait_until(lambda: reported() == {"rmm-used": 0, "rmm-total": 2 * gpu_tasks.MIB})

    assert set(client.run(has_metric).values()) == {False}


def test_the_displayed_recording_follows_the_memory_of_its_workers(client, tmp_path, shell):
    with gpuviz.dask.record(tmp_path, device=gpu_tasks.gpu_in_real_time) as recorded:
        recorded._ipython_display_()
        client.run(gpu_tasks.keep, 3)
        # Reported by the workers and shown at most once a second.
        wait_until(lambda: shell.text().count("recording 3.00 MiB 3.00 MiB") == 2)
        client.run(gpu_tasks.release)
        wait_until(lambda: "all workers 0 B" in shell.text())

    assert shell.text().count("recorded ") == 2
    assert shell.text().count("3.00 MiB") == 2
    assert len({output.id for output in shell.outputs}) == 1
    assert [output.is_update for output in shell.outputs[:2]] == [False, True]
    assert shell.text() == " ".join(repr(recorded).split())


class Shell:
    """What a notebook shows, of which the latest output is kept."""

    def __init__(self) -> None:
        self.outputs: list[SimpleNamespace] = []
        self.display_pub = self

    def display(self, data, *, raw, display_id, is_update=False) -> None:
        assert raw
        self.outputs.append(SimpleNamespace(data=data, id=display_id, is_update=is_update))

    def update_display(self, data, *, raw, display_id) -> None:
        self.display(data, raw=raw, display_id=display_id, is_update=True)

    def text(self) -> str:
        return " ".join(self.outputs[-1].data["text/plain"].split())


@pytest.fixture
def shell(monkeypatch):
    shell = Shell()
    monkeypatch.setattr(live_output, "get_ipython", lambda: shell)
    monkeypatch.setattr(live_output, "display", shell.display)
    monkeypatch.setattr(live_output, "update_display", shell.update_display)
    return shell


def test_only_chosen_workers_are_recorded(client, tmp_path):
    address = next(
        address for address, worker in workers_of(client).items() if str(worker["name"]) == "1"
    )
    for number, workers in enumerate(([1], [address], 1)):
        with gpuviz.dask.record(tmp_path / str(number), workers, device=gpu_tasks.gpu) as recorded:
            pass

        assert len(recorded.paths) == 1
        assert recorded.problems == {}
    with pytest.raises(ValueError, match="got nobody; there are 0, 1"):
        gpuviz.dask.record(tmp_path, ["nobody"])
    with pytest.raises(ValueError, match="1 to 2, got 3"):
        gpuviz.dask.record(tmp_path, 3)


def test_a_worker_that_joins_is_recorded(client, cluster, tmp_path):
    with gpuviz.dask.record(tmp_path, device=gpu_tasks.gpu) as recorded:
        cluster.scale(3)
        client.wait_for_workers(3)
        added = next(
            address for address, worker in workers_of(client).items() if str(worker["name"]) == "2"
        )
        client.submit(gpu_tasks.scale, 7, key="late", workers=[added]).result()

    assert recorded.problems == {}
    assert kernels_by_task(tmp_path / "2.gpuviz") == {"late": ["scale_7"]}


def test_a_worker_named_like_a_path_is_recorded_and_fetched(tmp_path, scratch):
    workers = {
        "../../evil": {"cls": Nanny, "options": {"nthreads": 1, "local_directory": str(scratch)}}
    }
    scheduler = {"cls": Scheduler, "options": {"dashboard_address": ":0"}}
    with SpecCluster(workers=workers, scheduler=scheduler) as cluster, Client(cluster) as client:
        client.wait_for_workers(1)
        with gpuviz.dask.record(tmp_path / "run", device=gpu_tasks.gpu) as recorded:
            client.submit(gpu_tasks.scale, 1, key="task").result()

    assert recorded.problems == {}
    assert [path.name for path in recorded.paths] == ["%2E.%2F..%2Fevil.gpuviz"]
    assert all_kernels_by_task(recorded.paths) == {"task": ["scale_1"]}


def test_a_killed_worker_leaves_what_it_recorded_and_its_successor_is_recorded(client, tmp_path):
    address, name = next(
        (address, str(worker["name"])) for address, worker in workers_of(client).items()
    )
    with gpuviz.dask.record(tmp_path, device=gpu_tasks.gpu) as recorded:
        client.submit(gpu_tasks.scale, 1, key="before", workers=[address]).result()
        wait_until(lambda: flushed_kernel(client, address))
        client.run(gpu_tasks.die, workers=[address], on_error="ignore")
        wait_until(lambda: address not in workers_of(client))
        client.wait_for_workers(2)

    assert recorded.problems == {}
    assert tmp_path / f"{name}.gpuviz.part" in recorded.paths
    assert kernels_by_task(tmp_path / f"{name}.gpuviz.part") == {"before": ["scale_1"]}
    assert kernels_by_task(tmp_path / f"{name}-2.gpuviz") == {}


def flushed_kernel(client, address) -> bool:
    """Whether a worker has written the kernel to its disk."""

    def written(dask_worker):
        files = Path(dask_worker.local_directory).parent.rglob("activities.arrow")
        return any(file.stat().st_size > 0 for file in files)

    return client.run(written, workers=[address])[address]


def test_a_worker_without_a_gpu_works_unrecorded_and_is_reported(client, tmp_path):
    addresses = list(workers_of(client))
    name = str(workers_of(client)[addresses[0]]["name"])
    client.run(gpu_tasks.take_gpu_away, workers=addresses[:1])
    try:
        with (
            pytest.warns(RuntimeWarning, match="1 worker .*No NVIDIA GPU detected"),
            gpuviz.dask.record(tmp_path, device=gpu_tasks.gpu) as recorded,
        ):
            assert client.submit(abs, -3, workers=addresses[:1]).result() == 3
        with pytest.raises(RecorderError, match=rf"No worker can be recorded: {name}: .*No NVIDIA"):
            record_nothing(tmp_path / "other", workers=addresses[:1])
    finally:
        client.run(gpu_tasks.bring_gpu_back)

    assert "No NVIDIA GPU detected" in recorded.problems[name]
    assert len(recorded.paths) == 1


def record_nothing(directory, workers=None) -> None:
    with gpuviz.dask.record(directory, workers, device=gpu_tasks.gpu):
        pass


def test_a_worker_that_records_itself_is_left_alone(client, tmp_path):
    address = next(iter(workers_of(client)))
    client.run(gpu_tasks.start_own_recorder, workers=[address])
    try:
        with (
            pytest.warns(RuntimeWarning, match="Another recorder is active"),
            gpuviz.dask.record(tmp_path, device=gpu_tasks.gpu) as recorded,
        ):
            pass
    finally:
        client.run(gpu_tasks.stop_own_recorder, workers=[address])

    assert len(recorded.paths) == 1


def test_an_interrupted_fetch_leaves_the_recordings_for_the_next_call(
    client, tmp_path, scratch, monkeypatch
):
    ask, asked = transfer.Transfer._ask, []

    async def fail_from_the_third_piece(self, worker, function, *arguments):
        asked.append(function)
        if function is worker_files.read_piece and asked.count(function) >= 3:
            raise ConnectionResetError("the network is gone")
        return await ask(self, worker, function, *arguments)

    monkeypatch.setattr(transfer, "PIECE_BYTES", 1234)
    monkeypatch.setattr(transfer.Transfer, "_ask", fail_from_the_third_piece)
    with (
        pytest.warns(RuntimeWarning, match="2 workers .*the network is gone"),
        gpuviz.dask.record(tmp_path, device=gpu_tasks.gpu) as recorded,
    ):
        client.submit(gpu_tasks.scale, 5, key="task").result()
    assert set(recorded.problems) == {"0", "1"}
    assert list(tmp_path.iterdir()) == []
    assert len(recordings_left(scratch)) == 2

    monkeypatch.setattr(transfer.Transfer, "_ask", ask)
    fetched = gpuviz.dask.fetch(tmp_path)

    assert all_kernels_by_task(fetched) == {"task": ["scale_5"]}
    assert recordings_left(scratch) == []


def test_an_interrupted_end_names_what_fetches_the_recordings(client, tmp_path, monkeypatch):
    stop = ClusterRecording._stop

    def interrupted(self):
        stop(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(ClusterRecording, "_stop", interrupted)
    with (
        pytest.raises(KeyboardInterrupt),
        pytest.warns(RuntimeWarning, match=r"not fetched \(KeyboardInterrupt\).*gpuviz.dask.fetch"),
        gpuviz.dask.record(tmp_path, device=gpu_tasks.gpu),
    ):
        client.submit(gpu_tasks.scale, 5, key="task").result()

    assert all_kernels_by_task(gpuviz.dask.fetch(tmp_path)) == {"task": ["scale_5"]}


def test_a_recording_is_fetched_from_another_worker_of_the_host_if_the_first_fails(
    client, tmp_path, monkeypatch
):
    ask, failing = transfer.Transfer._ask, next(iter(workers_of(client)))

    async def fail_for_one_worker(self, worker, function, *arguments):
        if worker == failing:
            raise ConnectionResetError("this worker is gone")
        return await ask(self, worker, function, *arguments)

    monkeypatch.setattr(transfer.Transfer, "_ask", fail_for_one_worker)
    with gpuviz.dask.record(tmp_path, device=gpu_tasks.gpu) as recorded:
        pass

    assert [path.name for path in recorded.paths] == ["0.gpuviz", "1.gpuviz"]
    assert recorded.problems == {}


@pytest.mark.usefixtures("client")
def test_a_piece_that_arrives_changed_is_no_recording(tmp_path, scratch, monkeypatch):
    ask = transfer.Transfer._ask

    async def flip_a_bit(self, worker, function, *arguments):
        answer = await ask(self, worker, function, *arguments)
        if function is worker_files.read_piece:
            return bytes([answer[0] ^ 1]) + answer[1:]
        return answer

    monkeypatch.setattr(transfer.Transfer, "_ask", flip_a_bit)
    with (
        pytest.warns(RuntimeWarning, match="arrived damaged"),
        gpuviz.dask.record(tmp_path, device=gpu_tasks.gpu) as recorded,
    ):
        pass

    assert recorded.paths == []
    assert list(tmp_path.iterdir()) == []
    assert len(recordings_left(scratch)) == 2

    monkeypatch.setattr(transfer.Transfer, "_ask", ask)
    assert [path.name for path in gpuviz.dask.fetch(tmp_path)] == ["0.gpuviz", "1.gpuviz"]


def test_a_second_recording_of_the_cluster_is_refused_until_the_first_ended(
    client, cluster, tmp_path
):
    with (
        Client(cluster, set_as_default=False) as other,
        gpuviz.dask.record(tmp_path / "first", device=gpu_tasks.gpu) as first,
    ):
        second = gpuviz.dask.record(tmp_path / "second", client=other, device=gpu_tasks.gpu)
        with pytest.raises(RecorderError, match="Another client is recording this cluster"):
            second.__enter__()
        client.submit(gpu_tasks.scale, 3, key="task").result()

    assert all_kernels_by_task(first.paths) == {"task": ["scale_3"]}
    with gpuviz.dask.record(tmp_path / "second", device=gpu_tasks.gpu) as third:
        pass
    assert len(third.paths) == 2


def test_the_next_call_takes_over_when_a_client_is_gone(client, cluster, tmp_path):
    with Client(cluster, set_as_default=False) as gone:
        lost = gpuviz.dask.record(tmp_path / "lost", client=gone, device=gpu_tasks.gpu)
        lost.__enter__()
        gone.submit(gpu_tasks.scale, 8, key="lost").result()
        lost._lock.refresh_callback.stop()
    wait_until(lambda: not lost_lock_is_held(client))

    with gpuviz.dask.record(tmp_path / "next", device=gpu_tasks.gpu) as following:
        client.submit(gpu_tasks.scale, 9, key="next").result()
    fetched = gpuviz.dask.fetch(tmp_path / "lost")

    assert all_kernels_by_task(following.paths) == {"next": ["scale_9"]}
    assert all_kernels_by_task(fetched) == {"lost": ["scale_8"]}


def lost_lock_is_held(client) -> bool:
    from distributed import Lock

    return Lock("gpuviz-recording", client.scheduler, client.loop).locked()


@pytest.mark.usefixtures("client")
def test_a_directory_with_recordings_is_refused(tmp_path):
    (tmp_path / "0.gpuviz").touch()

    with pytest.raises(RecordingExistsError, match=r"contains recordings \(0.gpuviz\)"):
        record_nothing(tmp_path)


@pytest.mark.usefixtures("client")
def test_an_unknown_option_is_refused_in_the_client(tmp_path):
    with pytest.raises(TypeError, match="no_such_option"):
        gpuviz.dask.record(tmp_path, no_such_option=True)


def test_recordings_outlive_their_cluster(tmp_path):
    scratch, directory = tmp_path / "scratch", tmp_path / "run"

    with dask.config.set(SETTINGS):
        with pytest.raises(RecorderError, match="remain on the workers' hosts"):
            record_until_the_cluster_ends(scratch, directory)
        with new_cluster(scratch, 1) as cluster, Client(cluster):
            fetched = gpuviz.dask.fetch(directory)

    assert all_kernels_by_task(fetched) == {"task": ["scale_4"]}


def record_until_the_cluster_ends(scratch, directory) -> None:
    with (
        new_cluster(scratch, 1) as cluster,
        Client(cluster) as client,
        gpuviz.dask.record(directory, device=gpu_tasks.gpu),
    ):
        client.submit(gpu_tasks.scale, 4, key="task").result()
        cluster.close()


def test_a_preloaded_worker_is_recorded_from_its_start_to_its_end(tmp_path):
    preload = "tests.integration.dask.simulated_preload"
    folder, argv = tmp_path / "run", ["--directory", str(tmp_path / "run")]

    with (
        new_cluster(tmp_path, 1, preload=preload, preload_argv=argv) as cluster,
        Client(cluster) as client,
    ):
        client.submit(gpu_tasks.scale, 6, key="task").result()

    (recording,) = folder.iterdir()
    assert recording.name.startswith("0@")
    assert recording.suffix == ".gpuviz"
    assert kernels_by_task(recording) == {"task": ["scale_6"]}


def test_a_preloaded_worker_without_a_gpu_works(tmp_path):
    argv = ["--directory", str(tmp_path / "run"), "--observe"]

    with (
        new_cluster(tmp_path, 1, preload="gpuviz.dask", preload_argv=argv) as cluster,
        Client(cluster) as client,
    ):
        assert client.submit(abs, -4).result() == 4
        logs = "".join(text for lines in client.get_worker_logs().values() for _, text in lines)

    assert "gpuviz: not recorded (" in logs
    assert list((tmp_path / "run").iterdir()) == []
