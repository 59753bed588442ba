"""Pages written when a program fails: their number, their paths, and failures to write."""

import re
import sys
import threading
import weakref
from pathlib import Path

import pytest

import gpuviz
from gpuviz.allocator.failure_report import explaining
from gpuviz.recorder import post_mortem, pump
from tests.unit.recorder.simulated_source import CAPACITY, SimulatedSource

MIB = 1 << 20
PATH = re.compile(r"Details: (.*)$", re.MULTILINE)


@pytest.fixture
def gpu():
    return gpuviz.SimulatedGPU(memory=1000 * MIB, real_time=False)


def failing(gpu, size=1234 * MIB):
    """Return the text of the exception of a request that fails."""
    with pytest.raises(MemoryError) as caught:
        gpu.empty(size)
    return str(caught.value)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_first_failures_get_a_page_and_the_others_are_counted(gpu, tmp_path):
    with gpuviz.record(tmp_path / "run.gpuviz", device=gpu) as recorder:
        texts = [failing(gpu) for _ in range(5)]

    pages = [tmp_path / f"run.oom-{number}.html" for number in (1, 2, 3)]
    assert [PATH.findall(text) for text in texts] == [[str(page)] for page in pages] + [[], []]
    assert (
        "(This is failed request number 5 of the recording. Pages are written only for the first "
        f"3; the first page: {pages[0]})" in texts[4]
    )
    assert recorder.out_of_memory_pages == tuple(pages)
    assert recorder.status().notes == (f"5 requests for memory failed; the first page: {pages[0]}",)
    assert len(recorder.recording.out_of_memory()) == 5


def test_without_a_file_the_page_goes_into_a_temporary_folder(gpu, monkeypatch, tmp_path):
    monkeypatch.setattr(post_mortem.tempfile, "tempdir", str(tmp_path))

    with gpuviz.record(device=gpu):
        page = Path(PATH.search(failing(gpu))[1])

    assert (page.name, page.parent.parent) == ("oom-1.html", tmp_path)
    assert gpuviz.load(page).out_of_memory()[0].requested == 1234 * MIB


def test_nothing_that_is_there_is_overwritten(gpu, tmp_path):
    older = tmp_path / "run.oom-1.html"
    older.write_text("older")

    with gpuviz.record(tmp_path / "run.gpuviz", device=gpu) as recorder:
        failing(gpu)

    assert older.read_text() == "older"
    assert recorder.out_of_memory_pages == (tmp_path / "run.oom-2.html",)


def test_outside_a_recording_the_text_is_the_allocators_alone(gpu):
    before = failing(gpu)
    with gpuviz.record(device=gpu):
        within = failing(gpu)
    after = failing(gpu)

    assert before == after
    first, added, *_ = within.splitlines()
    assert first == before
    assert added.startswith("Larger than the device: ")


def test_a_disk_that_fails_is_told_in_the_text_and_the_verdict_stays(gpu, tmp_path, monkeypatch):
    def fail(_):
        raise OSError(28, "No space left on device")

    with gpuviz.record(tmp_path / "run.gpuviz", device=gpu) as recorder:
        monkeypatch.setattr(post_mortem.os, "fsync", fail)
        text = failing(gpu)

    assert "Larger than the device: the request for 1.21 GiB exceeds" in text
    assert "(No page could be written: OSError: [Errno 28] No space" in text
    assert recorder.out_of_memory_pages == ()
    assert names(tmp_path) == ["run.gpuviz"]


def test_a_folder_that_fails_is_replaced_by_a_temporary_one(gpu, tmp_path, monkeypatch):
    folder, temporary = tmp_path / "full", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    monkeypatch.setattr(post_mortem.tempfile, "tempdir", str(temporary))
    write_whole = post_mortem.write_whole

    def fail_there(path, write, *, overwrite):
        if path.parent == folder:
            raise OSError(28, "No space left on device")
        return write_whole(path, write, overwrite=overwrite)

    monkeypatch.setattr(post_mortem, "write_whole", fail_there)
    with gpuviz.record(folder / "run.gpuviz", device=gpu):
        page = Path(PATH.search(failing(gpu))[1])

    assert (page.name, page.parent.parent) == ("run.oom-1.html", temporary)
    assert gpuviz.load(page).out_of_memory()[0].requested == 1234 * MIB


def test_the_page_stays_beside_the_recording_when_the_program_changes_its_folder(
    gpu, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    recorder = gpuviz.record("run.gpuviz", device=gpu)
    recorder.start()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    failing(gpu)
    monkeypatch.chdir(tmp_path)
    recorder.stop()

    assert recorder.out_of_memory_pages == (tmp_path / "run.oom-1.html",)
    assert names(tmp_path) == ["elsewhere", "run.gpuviz", "run.oom-1.html"]


def test_another_allocators_failure_is_left_alone(gpu, tmp_path):
    other = gpuviz.SimulatedGPU(memory=MIB, real_time=False)

    with gpuviz.record(tmp_path / "run.gpuviz", device=gpu) as recorder:
        text = failing(other)
        explained = failing(gpu)

    assert (len(text.splitlines()), recorder._live.post_mortem.count) == (1, 1)
    assert PATH.search(explained)[1] == str(tmp_path / "run.oom-1.html")


def test_a_failure_at_the_end_of_the_stack_stays_what_it_is(gpu, tmp_path):
    def deeper():
        try:
            deeper()
        except RecursionError:
            gpu.empty(1234 * MIB)

    with gpuviz.record(tmp_path / "run.gpuviz", device=gpu):
        with pytest.raises((MemoryError, RecursionError)):
            deeper()
        later = failing(gpu)

    assert PATH.search(later) is not None


def test_a_program_goes_on_where_what_is_needed_is_held(gpu, monkeypatch):
    with gpuviz.record(device=gpu) as recorder:
        released = threading.Event()
        recorder._live.pump.submit(released.wait)
        with monkeypatch.context() as hurried:
            hurried.setattr(post_mortem, "PATIENCE_S", 1)
            text = failing(gpu)
        released.set()
        later = failing(gpu)

    assert "(No page was written within 1 s.)" in text
    assert PATH.search(later) is not None


def test_a_failure_while_a_page_is_written_makes_no_other_page(gpu, tmp_path, monkeypatch):
    for name in ("FIRST_INTERVAL_S", "WATCHED_INTERVAL_S", "INTERVAL_S"):
        monkeypatch.setattr(pump, name, 3600)  # only the page drains
    seen = []

    def allocate(_):
        if post_mortem._is_writing.get():
            seen.append(failing(gpu))

    with gpuviz.record(tmp_path / "run.gpuviz", device=gpu) as recorder:
        recorder.subscribe(allocate)
        failing(gpu)

    assert seen
    assert not any(PATH.search(text) for text in seen)
    assert len(recorder.out_of_memory_pages) == 1


def test_threads_that_fail_together_each_get_their_own_verdict(gpu, tmp_path):
    start = threading.Barrier(6)
    texts = {}

    def fail(size):
        start.wait()
        texts[size] = failing(gpu, size)

    with gpuviz.record(tmp_path / "run.gpuviz", device=gpu) as recorder:
        threads = [threading.Thread(target=fail, args=((2000 + n) * MIB,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    pages = {size: PATH.search(text) for size, text in texts.items()}
    written = {size: found[1] for size, found in pages.items() if found}
    assert len(written) == 3
    assert {Path(page) for page in written.values()} == set(recorder.out_of_memory_pages)
    assert [gpuviz.load(page).out_of_memory()[-1].requested for page in written.values()] == [
        *written,
    ]


def test_each_device_has_a_verdict_of_its_own(new_recorder, tmp_path):
    source = SimulatedSource(devices=2)
    recorder = new_recorder(source, tmp_path / "run.gpuviz")
    recorder.start()
    source.allocate(10 << 30, device=0)
    source.allocate(2 << 30, device=1)

    with pytest.raises(MemoryError) as caught, explaining:
        source.allocate(15 << 30, device=1)
    recorder.stop()

    (failed,) = gpuviz.load(PATH.search(str(caught.value))[1]).out_of_memory()
    assert (failed.device, failed.allocated, failed.allocated_blocks) == (1, 2 << 30, 1)
    assert (failed.device_total, failed.device_free) == (CAPACITY, 14 << 30)


def test_arrays_are_called_what_the_program_calls_them(gpu, tmp_path, monkeypatch):
    main = sys.modules["__main__"]

    with gpuviz.record(tmp_path / "run.gpuviz", device=gpu):
        monkeypatch.setattr(main, "params", {"w": gpu.empty(300 * MIB)}, raising=False)
        parts = [gpu.empty(200 * MIB), gpu.empty(100 * MIB)]
        monkeypatch.setattr(main, "parts", parts, raising=False)
        page = Path(PATH.search(failing(gpu, 600 * MIB))[1]).read_text()

    assert "held by params[&#39;w&#39;]" in page
    assert "held by parts[0], parts[1]" in page


def test_a_page_keeps_nothing_alive(gpu, tmp_path):
    with gpuviz.record(tmp_path / "run.gpuviz", device=gpu) as recorder:
        array = gpu.empty(600 * MIB)
        failing(gpu)
        held = weakref.ref(array)
        del array

        assert held() is None
        assert gpu.empty(600 * MIB).nbytes == 600 * MIB
    assert len(recorder.out_of_memory_pages) == 1


def test_long_tables_of_activities_are_left_out_and_that_is_said(gpu, tmp_path):
    with gpuviz.record(tmp_path / "run.gpuviz", device=gpu) as recorder:
        gpu.launch("kernel", duration=1e-6)
        gpu.synchronize()
        gpu.empty(MIB)
        recorder._live.pump.drain()
        cut = recorder._live.drained(1)
        whole = recorder._live.drained(1 << 20)

    assert (cut.table("api_calls").num_rows, whole.table("api_calls").num_rows > 0) == (0, True)
    assert cut.table("memory_events").equals(whole.table("memory_events"))
    assert "Too long to be read at this moment, and left out: " in cut.manifest.notes[-1]
    assert "api_calls" in cut.manifest.notes[-1]


def test_a_long_recording_is_cut_to_what_lives_and_the_last_events(gpu, tmp_path, monkeypatch):
    monkeypatch.setattr(post_mortem, "last_moments", shortened(post_mortem.last_moments, 100))

    with gpuviz.record(tmp_path / "run.gpuviz", device=gpu) as recorder:
        held = [gpu.empty(MIB) for _ in range(50)]
        for _ in range(200):
            gpu.empty(3 * MIB)
        text = failing(gpu, 980 * MIB)
        del held

    whole, page = recorder.recording, gpuviz.load(PATH.search(text)[1])
    (expected,), (found,) = whole.out_of_memory(), page.out_of_memory()
    kept = page.table("memory_events").num_rows - page.manifest.initial_events
    assert found == expected
    assert kept == 100
    assert "It contains the last 100 of " in page.notes[-1]
    assert page.sites(at="end")["live_bytes"].to_pylist()[0] == 50 * MIB


def shortened(function, most_rows):
    return lambda recording, row: function(recording, row, most_rows)
