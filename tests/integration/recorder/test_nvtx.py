"""NVTX ranges of libraries that first call NVTX during a recording; in separate processes."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gpuviz import _core

ROOT = Path(__file__).parents[3]
PRELUDE = """\
import json, os, subprocess, sys, threading, time
import gpuviz
from gpuviz.recorder.injection import NVTX_TOOL
from gpuviz.recorder.recorder import Recorder
from tests.unit.recorder.simulated_source import SimulatedSource

source = SimulatedSource()

def new_recorder():
    return Recorder(source.again(), None, stacks=False, max_events=1000)

def ranges(recording):
    texts = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    rows = recording.table("ranges").to_pylist()
    names = {row["id"]: texts.get(row["name"], "") for row in rows} | {0: None}
    assert all(row["time"] <= row["end"] for row in rows)
    return [[names[row["id"]], row["kind"], names[row["parent"]]] for row in rows]

def tell(*values):
    print(json.dumps(values))

"""


def told(program, **environment):
    """Return the output lines of a program."""
    quiet = ["-W", "ignore:This process:DeprecationWarning"]
    ran = subprocess.run(
        [sys.executable, *quiet, "-c", PRELUDE + textwrap.dedent(program)],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_pushed_ranges_nest_with_ours_and_among_domains():
    program = """
    import nvtx
    with new_recorder() as recorder:
        with gpuviz.range("ours"), nvtx.annotate("load"):
            nvtx.push_range("first", domain="a")
            nvtx.push_range("second")
            nvtx.pop_range(domain="a")
            with nvtx.annotate("within second", domain="b"):
                pass
            nvtx.pop_range()
        nvtx.pop_range()
    tell(ranges(recorder.recording))
    """

    expected = [
        ["ours", "range", None],
        ["load", "nvtx", "ours"],
        ["first", "nvtx", "load"],
        ["second", "nvtx", "first"],
        ["within second", "nvtx", "second"],
    ]
    assert told(program) == [[expected]]


def test_started_ranges_end_on_any_thread_and_are_around_nothing():
    program = """
    import nvtx
    with new_recorder() as recorder:
        with nvtx.annotate("around"):
            plain, in_domain = nvtx.start_range("plain"), nvtx.start_range("d", domain="domain")
            with nvtx.annotate("pushed"):
                ends = threading.Thread(target=nvtx.end_range, args=(plain,))
                ends.start()
                ends.join()
        nvtx.end_range(in_domain)
        with nvtx.annotate("after"):
            pass
    tell(ranges(recorder.recording))
    [starts] = {row["thread"] for row in recorder.recording.table("ranges").to_pylist()}
    tell(starts == threading.get_native_id())
    """

    expected = [
        ["around", "nvtx", None],
        ["plain", "nvtx", None],
        ["d", "nvtx", None],
        ["pushed", "nvtx", "around"],
        ["after", "nvtx", None],
    ]
    assert told(program) == [[expected], [True]]


def test_cupys_ranges_are_heard():
    program = """
    import cupyx.profiler
    from cupy.cuda import nvtx
    with new_recorder() as recorder:
        with cupyx.profiler.time_range("step"):
            nvtx.RangePush("inner", 3)
            nvtx.RangePop()
    tell(ranges(recorder.recording))
    """

    assert told(program) == [[[["step", "nvtx", None], ["inner", "nvtx", "step"]]]]


def test_every_recording_has_the_ranges_that_began_in_it():
    program = """
    first = new_recorder()
    first.start()
    import nvtx
    nvtx.push_range("in the first")
    started = nvtx.start_range("started in the first")
    tell(ranges(first.stop()))
    nvtx.push_range("between")
    with new_recorder() as second:
        nvtx.push_range("in the second")
        nvtx.end_range(started)
        nvtx.pop_range()
        nvtx.pop_range()
        with nvtx.annotate("last"):
            pass
    tell(ranges(second.recording))
    """

    first = [["in the first", "nvtx", None], ["started in the first", "nvtx", None]]
    second = [["in the second", "nvtx", None], ["last", "nvtx", None]]
    assert told(program) == [[first], [second]]


def test_a_library_that_called_nvtx_before_is_not_heard_unless_we_were_its_tool_then():
    program = """
    import nvtx
    with nvtx.annotate("early"):
        pass
    with new_recorder() as recorder:
        with nvtx.annotate("late"):
            pass
    tell(ranges(recorder.recording))
    """

    assert told(program) == [[[]]]
    assert told(program, NVTX_INJECTION64_PATH=_core.__file__) == [[[["late", "nvtx", None]]]]


def test_threads_push_and_pop_while_recorders_come_and_go():
    program = """
    over = threading.Event()

    def annotate():
        while not over.is_set():
            with nvtx.annotate("outer"):
                time.sleep(0.0005)
                with nvtx.annotate("inner"):
                    time.sleep(0.0005)

    import nvtx
    with new_recorder():
        nvtx.mark("here")
    threads = [threading.Thread(target=annotate) for _ in range(3)]
    for thread in threads:
        thread.start()
    found = []
    while len(found) < 10:
        with new_recorder() as recorder:
            time.sleep(0.02)
        found.append(recorder.recording)
    over.set()
    for thread in threads:
        thread.join()
    tell(sorted({(name, parent or "") for one in found for name, _, parent in ranges(one)}))
    """

    assert told(program) == [[[["inner", ""], ["inner", "outer"], ["outer", ""]]]]


def test_the_variable_is_ours_while_recording_only():
    program = """
    before = NVTX_TOOL in os.environ
    with new_recorder():
        during = os.environ[NVTX_TOOL] == gpuviz._core.__file__
    tell(before, during, NVTX_TOOL in os.environ)
    """

    assert told(program) == [[False, True, False]]


def test_nothing_is_left_of_a_recorder_that_could_not_start():
    program = """
    import nvtx
    class Failing(SimulatedSource):
        def begin(self, session):
            with gpuviz.range("begins"), nvtx.annotate("begins"):
                raise RuntimeError("no luck")

    recorder = Recorder(Failing(), None, stacks=False, max_events=1000)
    for _ in range(2):
        try:
            recorder.start()
        except RuntimeError as error:
            tell(str(error), NVTX_TOOL in os.environ)
    with new_recorder() as recorder, gpuviz.range("later"), nvtx.annotate("later"):
        pass
    tell(ranges(recorder.recording))
    """

    later = [["later", "range", None], ["later", "nvtx", "later"]]
    assert told(program) == [["no luck", False], ["no luck", False], [later]]


def test_another_tool_stays_and_the_user_is_told():
    program = """
    with new_recorder() as recorder:
        notes = recorder.status().notes
    tell(notes, os.environ[NVTX_TOOL])
    """

    note = "NVTX ranges are not recorded: another tool gets them (NVTX_INJECTION64_PATH=/a/tool.so)"
    assert told(program, NVTX_INJECTION64_PATH="/a/tool.so") == [[[note], "/a/tool.so"]]


@pytest.mark.parametrize("child", ["subprocess", "fork"])
def test_a_child_of_a_recorded_process_may_use_nvtx(child):
    program = """
    code = "import nvtx; nvtx.push_range('child'); nvtx.pop_range(); print('done', flush=True)"
    import nvtx
    with new_recorder() as recorder:
        with nvtx.annotate("parent"):
            if CHILD == "subprocess":
                output = subprocess.check_output([sys.executable, "-c", code], text=True)
            else:
                reading, writing = os.pipe()
                number = os.fork()
                if number == 0:
                    nvtx.push_range("child")
                    nvtx.pop_range()
                    os.write(writing, b"done")
                    os._exit(0)
                os.waitpid(number, 0)
                output = os.read(reading, 100).decode()
    tell(output.strip(), ranges(recorder.recording))
    """

    found = told(f"CHILD = {child!r}\n{textwrap.dedent(program)}")
    assert found == [["done", [["parent", "nvtx", None]]]]
