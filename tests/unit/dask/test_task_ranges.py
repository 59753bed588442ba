"""The ranges of a worker's tasks, without a worker."""

from types import SimpleNamespace

from gpuviz.dask.task_ranges import TaskRanges
from gpuviz.recorder.recorder import Recorder
from tests.unit.recorder.simulated_source import SimulatedSource


def test_each_key_is_a_range_from_its_entry_to_its_removal():
    worker = SimpleNamespace(active_threads={})
    with Recorder(SimulatedSource(), None, stacks=False, max_events=1000) as recorder:
        tasks = TaskRanges.install(worker)
        worker.active_threads[7] = ("x", 0)
        during = worker.active_threads.copy()
        del worker.active_threads[7]
        tasks.uninstall(worker)
    texts = {row["id"]: row["text"] for row in recorder.recording.table("strings").to_pylist()}
    (row,) = recorder.recording.table("ranges").to_pylist()

    assert during == {7: ("x", 0)}
    assert texts[row["name"]] == "('x', 0)"
    assert row["end"] >= row["time"]
    assert worker.active_threads == {}
    assert type(worker.active_threads) is dict


def test_a_task_that_runs_when_the_table_is_exchanged_leaves_it_in_both():
    own = {1: "before"}
    worker = SimpleNamespace(active_threads=own)
    tasks = TaskRanges.install(worker)
    worker.active_threads[2] = "during"
    tasks.uninstall(worker)

    assert dict(worker.active_threads) == {1: "before", 2: "during"}
    del own[1], tasks[2]
    assert worker.active_threads == {}
    assert len(tasks) == 0


def test_a_table_that_someone_else_installed_later_stays():
    worker = SimpleNamespace(active_threads={})
    tasks = TaskRanges.install(worker)
    later = dict(worker.active_threads)
    worker.active_threads = later
    tasks.uninstall(worker)

    assert worker.active_threads is later


def test_without_a_recording_keys_are_only_passed_on():
    worker = SimpleNamespace(active_threads={})
    TaskRanges.install(worker)
    worker.active_threads[3] = "task"

    assert list(worker.active_threads.items()) == [(3, "task")]
    del worker.active_threads[3]
    assert not worker.active_threads
