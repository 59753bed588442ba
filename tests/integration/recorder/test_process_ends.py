"""Recordings of processes that end in various ways, or whose disk fails; needs no GPU."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import gpuviz
from gpuviz.recorder.pump import FIRST_INTERVAL_S, INTERVAL_S, pause_s

ROOT = Path(__file__).parents[3]
PRELUDE = """\
import os, sys, time
from pathlib import Path
import gpuviz
from gpuviz.recorder.recorder import Recorder
from tests.unit.recorder.simulated_source import SimulatedSource

path = Path(sys.argv[1])
source = SimulatedSource()

def new_recorder(max_events=1_000_000):
    return Recorder(source, path, stacks=False, max_events=max_events)
"""


def arguments(program, path):
    # Python 3.12 and later warn of any fork of a process with threads.
    quiet = ["-W", "ignore:This process:DeprecationWarning"]
    return [sys.executable, *quiet, "-c", PRELUDE + textwrap.dedent(program), str(path)]


def run(program, path):
    return subprocess.run(
        arguments(program, path),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def requested(recording):
    return recording.table("memory_events")["requested_size"].to_pylist()


def actions(recording):
    return recording.table("memory_events")["action"].to_pylist()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.gpuviz"


def test_a_process_killed_early_loses_at_most_its_last_moments(path):
    # Without the usual interval, only the early drains write anything.
    program = """
    import signal
    from gpuviz.recorder import pump

    signal.alarm(60)
    pump.INTERVAL_S = 3600
    new_recorder().start()
    part = path.with_name("run.gpuviz.part")
    for rows, size in ((2, 1000), (3, 2000), (4, 3000)):
        source.allocate(size)
        while gpuviz.load(part).table("memory_events").num_rows < rows:
            time.sleep(0.01)
    print("written", flush=True)
    time.sleep(60)
    """
    with subprocess.Popen(arguments(program, path), cwd=ROOT, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        process.kill()

    recording = gpuviz.load(path.with_name("run.gpuviz.part"))
    assert requested(recording) == [0, 1000, 2000, 3000]


def test_each_pause_is_at_most_the_time_before_and_at_most_the_usual_one():
    elapsed_s, pauses_s = 0.0, []
    while elapsed_s < 3:
        pauses_s.append(pause_s(elapsed_s, INTERVAL_S))
        assert pauses_s[-1] <= max(elapsed_s, FIRST_INTERVAL_S)
        elapsed_s += pauses_s[-1]

    assert pauses_s == sorted(pauses_s)
    assert (pauses_s[0], pauses_s[-1]) == (FIRST_INTERVAL_S, INTERVAL_S)
    assert len(pauses_s) < 12


def test_a_killed_process_keeps_what_was_written_while_it_ran_and_the_part_says_so(path):
    program = """
    new_recorder().start()
    part = path.with_name("run.gpuviz.part")
    for size in (1000, 2000, 3000):
        for _ in range(50):
            source.free(source.allocate(size))
        while size not in gpuviz.load(part).table("memory_events")["requested_size"].to_pylist():
            time.sleep(0.01)
    print("written", flush=True)
    time.sleep(60)
    """
    with subprocess.Popen(arguments(program, path), cwd=ROOT, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        process.kill()
    recording = gpuviz.load(path.with_name("run.gpuviz.part"))

    assert not recording.is_complete
    assert "unfinished: its program was killed" in " ".join(recording.notes)
    assert "s after the start, is missing" in " ".join(recording.notes)
    assert recording.memory_stats()["allocation.all.allocated"] >= 100
    assert not path.exists()


def test_a_recording_never_stopped_is_whole_when_the_interpreter_exits(path):
    result = run("new_recorder().start(); source.allocate(1234)", path)

    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert requested(gpuviz.load(path)) == [0, 1234]
    assert gpuviz.load(path).is_complete
    assert [file.name for file in path.parent.iterdir()] == ["run.gpuviz"]


def test_threads_that_use_the_gpu_until_the_end_let_the_interpreter_exit_in_order(path):
    program = """
    import threading
    import gpuviz
    gpu = gpuviz.SimulatedGPU()
    def use():
        stream = gpu.Stream()
        while True:
            with stream:
                gpu.launch("k", writes=[gpu.empty(1234)], duration=1e-5)
                stream.synchronize()
    gpuviz.record(path, device=gpu).start()
    for _ in range(4):
        threading.Thread(target=use, daemon=True).start()
    time.sleep(0.2)
    """
    result = run(program, path)

    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert gpuviz.load(path).manifest.complete


@pytest.mark.parametrize("way", ["new_recorder().start()", "with new_recorder():"])
def test_a_recording_is_whole_after_an_exception_that_nobody_catches(path, way):
    within = "with" in way
    body = f"{'    ' * within}source.allocate(1234)\n{'    ' * within}raise ValueError('no luck')"
    result = run(f"{way}\n{body}", path)

    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "ValueError: no luck"
    assert result.stderr.count("Traceback") == 1
    assert requested(gpuviz.load(path)) == [0, 1234]
    assert gpuviz.load(path).is_complete


def test_a_recording_is_whole_after_an_interrupt_within_its_block(path):
    program = """
    with new_recorder():
        source.allocate(1234)
        print("ready", flush=True)
        while True:
            time.sleep(0.01)
    """
    with subprocess.Popen(
        arguments(program, path),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)

    assert process.returncode == -signal.SIGINT
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
    assert errors.count("Traceback") == 1
    assert requested(gpuviz.load(path)) == [0, 1234]
    assert gpuviz.load(path).is_complete


@pytest.mark.parametrize("leave", ["sys.exit(7)", "os._exit(7)"])
def test_a_forked_child_records_nothing_and_harms_nothing(path, leave):
    program = f"""
    from gpuviz.errors import RecorderError

    def refused(ask):
        try:
            ask()
        except RecorderError as error:
            return str(error)

    with new_recorder() as recorder:
        source.allocate(1234)
        time.sleep(0.7)
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            source.free(source.allocate(5678))
            print(recorder.is_recording, recorder.status().recording)
            print(refused(recorder.stop), refused(lambda: recorder.recording), sep="\\n")
            sys.stdout.flush()
            {leave}
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), path.with_name("run.gpuviz.part").is_dir())
        source.allocate(4321)
    """
    result = run(program, path)

    refusal = "This process is a fork of the recording one; use the recorder there"
    assert result.stdout.splitlines() == ["False False", refusal, refusal, "7 True"]
    assert (result.returncode, result.stderr) == (0, "")
    assert requested(gpuviz.load(path)) == [0, 1234, 4321]
    assert gpuviz.load(path).is_complete
    assert [file.name for file in path.parent.iterdir()] == ["run.gpuviz"]


def test_a_forked_child_may_record_to_a_path_of_its_own(path):
    program = """
    with new_recorder():
        source.allocate(1234)
        child = os.fork()
        if child == 0:
            source, path = SimulatedSource(), path.with_name("child.gpuviz")
            with new_recorder():
                source.allocate(5678)
            sys.exit(0)
        os.waitpid(child, 0)
    """
    result = run(program, path)

    assert (result.returncode, result.stderr) == (0, "")
    assert requested(gpuviz.load(path)) == [0, 1234]
    assert requested(gpuviz.load(path.with_name("child.gpuviz"))) == [0, 5678]


def test_a_second_process_does_not_record_to_the_same_path(path):
    first = """
    with new_recorder():
        source.allocate(1234)
        print("ready", flush=True)
        sys.stdin.read()
    """
    with subprocess.Popen(
        arguments(first, path),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        process.stdout.readline()
        second = run("new_recorder().start()", path)
        process.stdin.close()

    assert second.returncode == 1
    assert second.stderr.splitlines()[-1].startswith("gpuviz.errors.RecordingExistsError: ")
    assert "run.gpuviz.part exists: a recording to run.gpuviz is in progress" in second.stderr
    assert process.returncode == 0
    assert requested(gpuviz.load(path)) == [0, 1234]


@pytest.mark.parametrize("largest_file", [100, 20_000])
def test_a_recording_goes_on_in_memory_when_its_files_cannot_grow(path, largest_file):
    program = f"""
    import resource, signal, warnings
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    recorder = new_recorder()
    recorder.start()
    source.allocate(1234)
    resource.setrlimit(resource.RLIMIT_FSIZE, ({largest_file}, resource.RLIM_INFINITY))
    for number in range(3000):
        source.free(source.allocate(number + 1))
        if number % 1000 == 500:
            time.sleep(0.7)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        recording = recorder.stop()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(*(warning.category.__name__ for warning in caught))
    [note] = recorder.status().notes
    print(str(caught[0].message).removeprefix(note))
    recording.save(path)
    """
    result = run(program, path)

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "RuntimeWarning",
        "; the recording is in memory only, save() it to another path",
    ]
    recording = gpuviz.load(path)
    sizes = [
        size
        for size, action in zip(requested(recording), actions(recording), strict=True)
        if action == "alloc"
    ]
    assert sizes == [1234, *range(1, 3001)]
    assert recording.is_complete
    [note] = recording.manifest.notes
    assert note.endswith("run.gpuviz: cannot be written (File too large)")


def test_a_recording_that_nobody_can_use_any_more_is_not_read(path):
    program = """
        import gpuviz.formats.gpuviz
        gpuviz.formats.gpuviz.read = lambda *_, **__: os._exit(9)
        new_recorder().start()
        source.allocate(1000)
    """
    done = run(program, path)

    assert (done.returncode, done.stderr) == (0, "")
    recording = gpuviz.load(path)
    assert requested(recording) == [0, 1000]
    assert recording.is_complete
