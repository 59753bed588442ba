"""The pytest plugin, in runs of pytest on programs of a simulated GPU."""

import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gpuviz
import gpuviz.testing.judge
import gpuviz.testing.plugin

pytest_plugins = ["pytester"]

MIB = 1 << 20


class Run:
    """One run of pytest, with the reports and the output."""

    def __init__(self, pytester: pytest.Pytester, capsys: Any, *options: str) -> None:
        self.recorded = pytester.inline_run("-p", "gpuviz.testing.plugin", *options)
        self.code = self.recorded.ret
        captured = capsys.readouterr()
        self.output = captured.out + captured.err
        self.reports = {
            report.nodeid.rpartition("::")[2]: report
            for report in self.recorded.getreports("pytest_runtest_logreport")
            if report.when == "call" or report.outcome != "passed"
        }

    @property
    def outcomes(self) -> dict[str, str]:
        return {name: report.outcome for name, report in self.reports.items()}

    def text(self, name: str) -> str:
        return self.reports[name].longreprtext

    def properties(self, name: str) -> dict[str, Any]:
        return dict(self.reports[name].user_properties)


@pytest.fixture(scope="module", autouse=True)
def _imported(tmp_path_factory):
    """Import everything: what a run imports first would be imported again by the next.

    Leaks are judged after garbage collections, which need not look at what other tests have left.
    """
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu, hazards=True) as recorder:
        gpu.launch("kernel", writes=[gpu.empty(1)], duration=1e-6)
        gpu.synchronize()
    folder = tmp_path_factory.mktemp("kept")
    recorder.recording.save(folder / "run.gpuviz")
    recorder.recording.report(folder / "run.html")
    gpuviz.testing.judge.own_peak(recorder.recording)
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def run(pytester, capsys, monkeypatch):
    """Run pytest on the source of a module, without the installed plugins."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"):
        monkeypatch.delenv(name, raising=False)

    def call(source: str, *options: str, **modules: str) -> Run:
        given = "import pytest\n\n@pytest.fixture\ndef gpu(gpuviz_simulated_gpu):\n"
        given += "    return gpuviz_simulated_gpu\n\n"
        pytester.makepyfile(test_program=given + source, **modules)
        return Run(pytester, capsys, *options)

    return call


def test_a_limit_of_memory_judges_the_peak_of_what_the_test_allocates(run):
    done = run(
        """
import threading

@pytest.fixture
def data(gpu):
    return gpu.empty(64 << 20)

@pytest.mark.gpu_limit_memory("4 MiB")
def test_within(gpu, data):
    for _ in range(10):
        gpu.empty(4 << 20)

@pytest.mark.gpu_limit_memory("4 MiB")
def test_over(gpu):
    small = gpu.empty(1 << 20)
    large = gpu.empty(4 << 20)
    del small, large
    gpu.empty(512)

@pytest.mark.gpu_limit_memory(4 << 20)
def test_over_in_a_thread(gpu):
    thread = threading.Thread(target=lambda: gpu.empty(5 << 20))
    thread.start()
    thread.join()

@pytest.mark.gpu_limit_memory("4 MiB", reserved=True)
def test_reserved(gpu):
    gpu.empty(4 << 20)

@pytest.mark.gpu_limit_memory("4 MiB")
@pytest.mark.gpu_limit_memory("32 MiB", reserved=True)
@pytest.mark.gpu_limit_memory("1 MiB", device=1)
@pytest.mark.gpu_limit_leaks("1 MiB")
def test_several(gpu):
    gpu.empty(4 << 20)

@pytest.mark.gpu_limit_memory("0 B")
def test_nothing(gpu):
    pass

@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.gpu_limit_memory("2 MiB")
def test_each(gpu, size):
    gpu.empty(size << 20)

@pytest.mark.gpu_limit_memory("2 MiB")
class TestAll:
    def test_of_class(self, gpu):
        gpu.empty(3 << 20)

    @pytest.mark.gpu_limit_memory("4 MiB")
    def test_with_its_own(self, gpu):
        gpu.empty(3 << 20)
""",
        "-Werror",
        "-Wignore:Module already imported",  # by this process
        "--junitxml=results.xml",
    )

    assert done.outcomes == {
        "test_within": "passed",
        "test_over": "failed",
        "test_over_in_a_thread": "failed",
        "test_reserved": "failed",
        "test_several": "passed",
        "test_nothing": "passed",
        "test_each[1]": "passed",
        "test_each[3]": "failed",
        "test_of_class": "failed",
        "test_with_its_own": "passed",
    }
    text = done.text("test_over")
    assert "gpu_limit_memory('4 MiB'): GPU memory of the test was 5.00 MiB at its peak, " in text
    assert "1.00 MiB more than allowed" in text
    lines = [line.split("  ")[-1] for line in text.splitlines() if "test_over (" in line]
    assert lines == ["large = gpu.empty(4 << 20)", "small = gpu.empty(1 << 20)"]
    assert "Reserved GPU memory was 20.0 MiB at its peak" in done.text("test_reserved")
    assert done.properties("test_within")["gpu_peak_bytes"] == 4 * MIB
    assert done.properties("test_within")["gpu_allocations"] == 10
    assert '<property name="gpu_peak_bytes" value="4194304"' in Path("results.xml").read_text()


def test_leaks_are_judged_by_call_stack_after_a_warm_up(run):
    done = run(
        """
import threading

kept, cache, workspaces = [], {}, []

def lost(gpu):
    kept.append(gpu.empty(1 << 20))

class Cycle:
    def __init__(self, memory):
        self.memory, self.itself = memory, self

@pytest.mark.gpu_limit_leaks("0 B")
def test_leak(gpu):
    lost(gpu)

@pytest.mark.gpu_limit_leaks("2 MiB")
def test_two_leaks_below_the_limit(gpu):
    lost(gpu)
    lost(gpu)

@pytest.mark.gpu_limit_leaks("2 MiB")
def test_one_stack_above_the_limit(gpu):
    for _ in range(3):
        lost(gpu)

@pytest.mark.gpu_limit_leaks("0 B")
def test_leak_of_a_thread(gpu):
    thread = threading.Thread(target=lost, args=(gpu,))
    thread.start()
    thread.join()

@pytest.mark.gpu_limit_leaks("0 B", filter_fn=lambda stack: stack.frames[0].function != "lost")
def test_filtered(gpu):
    lost(gpu)

@pytest.mark.gpu_limit_leaks("0 B", filter_fn=lambda stack: stack.frames[0].function == "lost")
def test_filtered_too_little(gpu):
    lost(gpu)

@pytest.mark.gpu_limit_leaks("0 B")
def test_cycle(gpu):
    Cycle(gpu.empty(1 << 20))

@pytest.mark.gpu_limit_leaks("0 B")
def test_workspace(gpu):
    if not workspaces:
        workspaces.append(gpu.empty(1 << 20))

@pytest.mark.gpu_limit_leaks("0 B", warmups=0)
def test_without_warm_up(gpu):
    workspaces.clear()
    test_workspace(gpu)

@pytest.mark.gpu_limit_leaks("0 B", warmups=2)
def test_replaced(gpu):
    cache["memory"] = gpu.empty(1 << 20)

@pytest.mark.gpu_limit_leaks("0 B")
def test_replaced_by_more(gpu):
    cache["more"] = gpu.empty((1 << 20) * (1 + len(cache.get("log", ()))))
    cache.setdefault("log", []).append(1)

@pytest.mark.gpu_limit_leaks("0 B")
def test_exception(gpu):
    memory = gpu.empty(1 << 20)
    with pytest.raises(ZeroDivisionError):
        1 / 0
""",
    )

    assert done.outcomes == {
        "test_leak": "failed",
        "test_two_leaks_below_the_limit": "passed",
        "test_one_stack_above_the_limit": "failed",
        "test_leak_of_a_thread": "failed",
        "test_filtered": "passed",
        "test_filtered_too_little": "failed",
        "test_cycle": "passed",
        "test_workspace": "passed",
        "test_without_warm_up": "failed",
        "test_replaced": "passed",
        "test_replaced_by_more": "failed",
        "test_exception": "passed",
    }
    assert "1 call stack of the test left more GPU memory" in done.text("test_leak")
    assert "kept.append(gpu.empty(1 << 20))" in done.text("test_leak")
    assert "3.00 MiB  lost (" in done.text("test_one_stack_above_the_limit")


def test_waits_and_hazards_are_limited(run):
    done = run(
        """
def read_on_another_stream(gpu, waits):
    x = gpu.empty(1 << 20)
    gpu.launch("write", writes=[x], duration=1e-3)
    stream = gpu.Stream(non_blocking=True)
    if waits:
        gpu.synchronize()
    with stream:
        gpu.launch("read", reads=[x], duration=1e-3)
    stream.synchronize()

@pytest.mark.gpu_limit_synchronizations(1)
def test_one_wait(gpu):
    read_on_another_stream(gpu, waits=False)

@pytest.mark.gpu_limit_synchronizations(1)
@pytest.mark.gpu_limit_leaks("0 B")
def test_two_waits(gpu):
    read_on_another_stream(gpu, waits=True)

@pytest.mark.gpu_no_hazards
def test_hazard(gpu):
    read_on_another_stream(gpu, waits=False)

@pytest.mark.gpu_no_hazards("certain")
def test_no_certain_hazard(gpu):
    read_on_another_stream(gpu, waits=False)

@pytest.mark.gpu_no_hazards(tier="latent")
def test_no_hazard(gpu):
    read_on_another_stream(gpu, waits=True)

@pytest.mark.gpu_no_hazards
def test_no_launch(gpu):
    gpu.empty(1 << 20)
""",
    )

    assert done.outcomes == {
        "test_one_wait": "passed",
        "test_two_waits": "failed",
        "test_hazard": "failed",
        "test_no_certain_hazard": "passed",
        "test_no_hazard": "passed",
        "test_no_launch": "passed",
    }
    assert "the host waited for the GPU 2 times" in done.text("test_two_waits")
    assert "stream.synchronize()" in done.text("test_two_waits")
    assert "1 hazard between streams" in done.text("test_hazard")
    assert "RAW, probable" in done.text("test_hazard")


@pytest.mark.parametrize(
    ("mark", "problem"),
    [
        ("gpu_limit_memory('many')", "'many' is not a size, as in '512 MiB' or '1.5 GB'"),
        ("gpu_limit_memory()", "missing 1 required positional argument: 'limit'"),
        ("gpu_limit_memory(-1)", "-1 is not a size"),
        ("gpu_limit_memory('1 MiB', True)", "takes 1 positional argument but 2 were given"),
        ("gpu_limit_memory('1 MiB', device='all')", "device must be an integer"),
        ("gpu_limit_memory('1 MiB', reserved=1)", "reserved must be True or False"),
        ("gpu_limit_leaks('1 MiB', filter_fn=3)", "filter_fn must be a function"),
        ("gpu_limit_leaks('1 MiB', warmups=-1)", "warmups must be an integer of at least 0"),
        ("gpu_limit_synchronizations('1 MiB')", "limit must be an integer of at least 0"),
        ("gpu_no_hazards('any')", "tier must be 'certain', 'probable' or 'latent', got 'any'"),
        ("gpu_no_hazards(3)", "tier must be"),
    ],
)
def test_a_wrong_argument_is_an_error_of_the_collection(run, mark, problem):
    done = run(f"@pytest.mark.{mark}\ndef test_it(gpu):\n    pass\n")

    assert done.code == pytest.ExitCode.INTERRUPTED
    name = mark.partition("(")[0]
    assert f"test_program.py::test_it: {name}: " in done.output
    assert problem in done.output


def test_a_mark_given_twice_is_an_error_of_the_collection(run):
    mark = "@pytest.mark.gpu_limit_leaks('1 MiB')\n"
    done = run(f"class TestIt:\n    {mark}    {mark}    def test_it(self):\n        pass\n")

    assert done.code == pytest.ExitCode.INTERRUPTED
    assert "test_program.py::TestIt::test_it: gpu_limit_leaks is given twice" in done.output


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("--gpuviz-compare-fail=speed:5%", "'speed:5%' is not FIELD:PERCENT% or FIELD:NUMBER"),
        ("--gpuviz-compare-fail=peak:few", "'few' is neither a size, as in 10MiB, nor a perc"),
        ("--gpuviz-compare-fail=allocs:1MiB", "'1MiB' is neither a number nor a percentage"),
        ("--gpuviz-stacks=0", "--gpuviz-stacks must be an integer of at least 1, got '0'"),
        ("--gpuviz-tests=x", "--gpuviz-tests must be an integer of at least 0, got 'x'"),
    ],
)
def test_a_wrong_option_is_an_error_of_usage(pytester, monkeypatch, option, problem):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    result = pytester.runpytest_inprocess("-p", "gpuviz.testing.plugin", option)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: *{problem.replace('[', '[[]')}*"])


def test_marks_that_a_fixture_adds_are_judged(run):
    done = run(
        """
@pytest.fixture
def limited(request):
    request.node.add_marker(pytest.mark.gpu_limit_memory("1 MiB"))

@pytest.fixture
def applied(request):
    request.applymarker(pytest.mark.gpu_limit_leaks("1 MiB"))

@pytest.fixture
def wrong(request):
    request.applymarker(pytest.mark.gpu_limit_leaks("much"))

kept = []

def test_memory(gpu, limited):
    gpu.empty(2 << 20)

def test_leaks(gpu, applied):
    kept.append(gpu.empty(2 << 20))

def test_within(gpu, limited, applied):
    gpu.empty(1 << 20)

def test_wrong(gpu, wrong):
    pass

@pytest.mark.gpu_limit_memory("8 MiB")
def test_replacing(gpu, limited):
    gpu.empty(2 << 20)

@pytest.mark.gpu_limit_memory("1 MiB", reserved=True)
def test_late(gpu, request):
    request.applymarker(pytest.mark.gpu_limit_memory("64 MiB"))

def test_late_only(gpu, request):
    request.applymarker(pytest.mark.gpu_limit_memory("64 MiB"))
"""
    )

    assert done.outcomes == {
        "test_memory": "failed",
        "test_leaks": "failed",
        "test_within": "passed",
        "test_wrong": "failed",
        "test_replacing": "failed",
        "test_late": "failed",
        "test_late_only": "failed",
    }
    assert "gpu_limit_memory('1 MiB'): GPU memory of the test was 2.00 MiB" in done.text(
        "test_memory"
    )
    assert "left more GPU memory allocated" in done.text("test_leaks")
    assert "gpu_limit_leaks: 'much' is not a size" in done.text("test_wrong")
    assert "was 2.00 MiB at its peak" in done.text("test_replacing")
    for name in ("test_late", "test_late_only"):
        assert "cannot be judged: it was added after the test had begun" in done.text(name)


def test_a_mark_of_a_parameter_replaces_that_of_the_function(run):
    done = run(
        """
@pytest.mark.parametrize("size", [
    1,
    2,
    pytest.param(3, marks=pytest.mark.gpu_limit_memory("4 MiB")),
    pytest.param(5, marks=pytest.mark.gpu_limit_memory("4 MiB")),
    pytest.param(6, marks=[
        pytest.mark.gpu_limit_memory("8 MiB"), pytest.mark.gpu_limit_leaks("1 MiB"),
    ]),
])
@pytest.mark.gpu_limit_memory("1 MiB")
def test_sizes(gpu, size):
    gpu.empty(size << 20)
"""
    )

    assert done.outcomes == {
        "test_sizes[1]": "passed",
        "test_sizes[2]": "failed",
        "test_sizes[3]": "passed",
        "test_sizes[5]": "failed",
        "test_sizes[6]": "passed",
    }
    assert "gpu_limit_memory('4 MiB')" in done.text("test_sizes[5]")


def test_a_fork_is_said_not_to_be_counted(run):
    done = run(
        """
import os

@pytest.mark.gpu_limit_memory("1 MiB")
def test_forking(gpu):
    child = os.fork()
    if not child:
        gpu.empty(64 << 20)
        os._exit(0)
    os.waitpid(child, 0)

@pytest.mark.gpu_limit_memory("1 MiB")
def test_not_forking(gpu):
    pass

def test_forking_without_marks():
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
""",
        "-W",
        "default",
    )

    assert set(done.outcomes.values()) == {"passed"}
    said = "gpu_limit_memory('1 MiB'): The test forked this process; what the forked process does"
    assert done.output.count(said) == 1


def test_names_in_failures_cannot_control_the_terminal(run):
    done = run(
        r"""
@pytest.mark.gpu_limit_memory("1 MiB")
def test_hostile(gpu):
    code = "kept = gpu.empty(4 << 20)"
    exec(compile(code, "\x1b]0;owned\x07\x9b31m.py", "exec"), {"gpu": gpu})
""",
        "-p",
        "no:cacheprovider",
    )

    assert r"\x1b]0;owned\x07\x9b31m.py" in done.text("test_hostile")
    assert "\x1b]" not in done.output
    assert "\x9b" not in done.output


def test_failures_skips_and_interrupts_are_as_without_the_plugin(run):
    source = """
import unittest

pytestmark = [pytest.mark.gpu_limit_memory("1 MiB"), pytest.mark.gpu_limit_leaks("0 B")]

def test_failure(gpu):
    memory = gpu.empty(2 << 20)
    assert memory is None

def test_skip(gpu):
    pytest.skip("not today")

@pytest.mark.xfail
def test_expected_failure(gpu):
    assert False

@pytest.mark.xfail(strict=True)
def test_expected_excess(gpu):
    gpu.empty(2 << 20)

def test_expected_at_run_time(gpu):
    pytest.xfail("known")

@pytest.mark.usefixtures("gpuviz_simulated_gpu")
class TestCase(unittest.TestCase):
    def test_unittest_failure(self):
        self.assertEqual(1, 2)

    def test_unittest_skip(self):
        self.skipTest("not today")

@pytest.mark.gpu_limit_memory("1 MiB")
def test_out_of_memory(gpu):
    gpu.empty(1 << 40)
"""
    done = run(source)

    assert done.outcomes == {
        "test_failure": "failed",
        "test_skip": "skipped",
        "test_expected_failure": "skipped",
        "test_expected_excess": "skipped",
        "test_expected_at_run_time": "skipped",
        "test_unittest_failure": "failed",
        "test_unittest_skip": "skipped",
        "test_out_of_memory": "failed",
    }
    assert "assert memory is None" in done.text("test_failure")
    assert "gpu_limit" not in done.text("test_failure")
    assert "AssertionError: 1 != 2" in done.text("test_unittest_failure")
    assert "OutOfMemoryError" in done.text("test_out_of_memory")
    assert gpuviz.Recorder.active() is None


def test_an_interrupt_ends_the_recording_and_the_run(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import gpuviz
        import pytest

        @pytest.fixture(autouse=True)
        def _after():
            yield
            print("active:", gpuviz.Recorder.active())

        @pytest.mark.gpu_limit_memory("1 MiB")
        def test_it(gpuviz_simulated_gpu):
            assert gpuviz.Recorder.active() is not None
            raise KeyboardInterrupt
        """
    )
    result = pytester.runpytest_subprocess("-s", "-p", "gpuviz.testing.plugin")

    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*active: None", "*KeyboardInterrupt*"])


def test_other_ways_to_write_tests(run):
    done = run(
        """
import asyncio
import unittest

@pytest.mark.asyncio
@pytest.mark.gpu_limit_memory("1 MiB")
async def test_asyncio(gpu):
    await asyncio.sleep(0)
    gpu.empty(2 << 20)

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
@pytest.mark.gpu_limit_leaks("0 B")
async def test_anyio(gpu, anyio_backend):
    test_anyio.kept = [*getattr(test_anyio, "kept", []), gpu.empty(2 << 20)]

class TestCase(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def _gpu(self, gpuviz_simulated_gpu):
        self.gpu = gpuviz_simulated_gpu

    def setUp(self):
        self.memory = self.gpu.empty(1 << 20)

    def tearDown(self):
        del self.memory

    @pytest.mark.gpu_limit_memory("2 MiB")
    @pytest.mark.gpu_limit_leaks("0 B")
    def test_unittest(self):
        self.gpu.empty(1 << 20)

    @pytest.mark.gpu_limit_memory("2 MiB")
    def test_unittest_over(self):
        self.gpu.empty(2 << 20)
""",
        "-p",
        "pytest_asyncio.plugin",
        "-p",
        "anyio.pytest_plugin",
        "-oasyncio_default_fixture_loop_scope=function",
    )

    assert done.outcomes == {
        "test_asyncio": "failed",
        "test_anyio": "failed",
        "test_unittest": "passed",
        "test_unittest_over": "failed",
    }
    assert "GPU memory of the test was 2.00 MiB" in done.text("test_asyncio")
    assert "left more GPU memory" in done.text("test_anyio")


@pytest.mark.parametrize(
    ("plugin", "import_it", "mark"),
    [
        ("flaky.flaky_pytest_plugin", "from flaky import flaky", "@flaky(max_runs=3)"),
        ("pytest_rerunfailures", "", "@pytest.mark.flaky(reruns=2)"),
    ],
)
def test_a_test_that_runs_again_is_recorded_again(run, plugin, import_it, mark):
    done = run(
        f"""
{import_it}
runs = []

{mark}
@pytest.mark.gpu_limit_memory("1 MiB")
def test_it(gpu):
    runs.append(1)
    gpu.empty((3 - len(runs)) << 20)
""",
        "-p",
        plugin,
    )

    assert done.outcomes["test_it"] == "passed"
    names = [name for name, _ in done.reports["test_it"].user_properties]
    assert names.count("gpu_peak_bytes") == 1
    assert done.properties("test_it")["gpu_peak_bytes"] == MIB


def test_the_recording_of_a_test_is_usable_in_it_and_after_it(run):
    done = run(
        """
import gpuviz

@pytest.fixture
def judged(gpuviz_recording):
    with pytest.raises(RuntimeError, match="begins with the test"):
        gpuviz_recording.recording
    yield
    assert gpuviz_recording.is_complete
    assert gpuviz_recording.peak().bytes == 3 << 20
    assert isinstance(gpuviz_recording.recording, gpuviz.Recording)

@pytest.mark.gpu_limit_leaks("0 B")
def test_it(gpu, judged, gpuviz_recording):
    x = gpu.empty(1 << 20)
    assert gpuviz_recording.peak().bytes == 1 << 20
    gpu.launch("kernel", writes=[x], duration=1e-6)
    gpu.synchronize()
    assert gpuviz_recording.synchronizations()["count"].to_pylist() == [1]
    y = gpu.empty(2 << 20)

def test_wrong_name(gpu, gpuviz_recording):
    gpuviz_recording.nothing
""",
    )

    assert done.outcomes == {"test_it": "passed", "test_wrong_name": "failed"}
    assert "'Recording' object has no attribute 'nothing'" in done.text("test_wrong_name")


def test_without_a_gpu_tests_are_skipped_with_a_reason(run, monkeypatch):
    monkeypatch.setattr("gpuviz.testing.plugin.missing_gpu", lambda: "No NVIDIA GPU detected")
    monkeypatch.setattr("gpuviz.testing.run.missing_gpu", lambda: "No NVIDIA GPU detected")
    monkeypatch.setattr("gpuviz.testing.session.missing_gpu", lambda: "No NVIDIA GPU detected")
    done = run(
        """
@pytest.mark.gpu_limit_memory("1 MiB")
def test_marked():
    assert False

def test_with_the_fixture(gpuviz_recording):
    assert False

def test_neither():
    pass

def test_simulated(gpu):
    gpu.empty(1 << 20)
""",
        "--gpuviz",
        "-rs",
    )

    assert done.outcomes == {
        "test_marked": "skipped",
        "test_with_the_fixture": "skipped",
        "test_neither": "passed",
        "test_simulated": "passed",
    }
    assert "gpuviz cannot record this test: No NVIDIA GPU detected" in done.output
    assert "Only tests with gpuviz_simulated_gpu were recorded" in done.output


def test_a_recorder_that_fails_does_not_hide_what_the_test_does(run):
    done = run(
        """
import gpuviz

@pytest.fixture(autouse=True)
def _broken(monkeypatch):
    def fail(*_):
        raise OSError("no space left")
    monkeypatch.setattr(gpuviz.Recorder, "start", fail)

@pytest.mark.gpu_limit_memory("1 MiB")
def test_marked(gpu):
    pass

@pytest.mark.gpu_limit_memory("1 MiB")
def test_failing(gpu):
    assert 1 == 2

def test_unmarked(gpu):
    pass
""",
        "--gpuviz",
    )

    assert done.outcomes == {
        "test_marked": "failed",
        "test_failing": "failed",
        "test_unmarked": "passed",
    }
    assert "cannot be judged: OSError: no space left" in done.text("test_marked")
    assert "assert 1 == 2" in done.text("test_failing")
    unmeasured = "test_program.py::test_marked and 2 other tests: OSError: no space left"
    assert f"Not measured: {unmeasured}" in done.output


def test_a_test_may_record_itself(run):
    done = run(
        """
import gpuviz

def record(gpu):
    with gpuviz.record(device=gpu) as recorder:
        memory = gpu.empty(1 << 20)
    assert recorder.recording.peak().bytes == 1 << 20

@pytest.mark.parametrize("name", "ab")
def test_unmarked(gpu, name):
    record(gpu)

@pytest.mark.gpu_limit_memory("1 MiB")
def test_marked(gpu):
    record(gpu)

@pytest.mark.gpu_limit_memory("1 MiB")
def test_stopped(gpu):
    gpuviz.Recorder.active().stop()
""",
        "--gpuviz",
    )

    assert done.outcomes == {
        "test_unmarked[a]": "passed",
        "test_unmarked[b]": "passed",
        "test_marked": "failed",
        "test_stopped": "failed",
    }
    unmeasured = "test_program.py::test_unmarked[a] and 1 other test: The test records itself."
    assert f"Not measured: {unmeasured}" in done.output
    assert "Another recorder is active" in done.text("test_marked")
    assert "cannot be judged: The recording ended before the test" in done.text("test_stopped")
    assert gpuviz.Recorder.before_start is None


GROWING = """
import os
SIZE = int(os.environ["SIZE_OF_TEST"]) << 20

@pytest.mark.parametrize("name", ["short", "x" * 300])
def test_growing(gpu, name):
    first = gpu.empty(SIZE)
    second = gpu.empty(SIZE)

def test_constant(gpu):
    gpu.empty(1 << 20)
"""


def test_a_run_is_compared_with_the_last_successful_one(run, monkeypatch):
    def at(size: int, *options: str) -> Run:
        monkeypatch.setenv("SIZE_OF_TEST", str(size))
        return run(GROWING, *options)

    first = at(10, "--gpuviz-fail-on-increase")
    assert set(first.outcomes.values()) == {"passed"}
    assert "3 tests had no successful run to compare with" in first.output

    grown = at(20, "--gpuviz-fail-on-increase")
    assert grown.outcomes["test_growing[short]"] == "failed"
    assert grown.outcomes["test_constant"] == "passed"
    text = grown.text("test_growing[short]")
    assert "peak of allocated GPU memory grew from 20.0 MiB to 40.0 MiB" in text
    assert "20.0 MiB more, 100.0 %; allowed: 0 %." in text
    assert "second = gpu.empty(SIZE)" in text

    assert at(20, "--gpuviz-compare-fail=peak:100%,allocs:0").code == 0
    assert at(30, "--gpuviz-compare-fail=allocs:0, peak:1MiB").code == 1
    assert at(30).code == 0  # records nothing, and compares nothing
    assert at(20, "-ogpuviz_compare_fail=peak:0%").code == 0
    assert at(30, "-ogpuviz_fail_on_increase=true").code == 1
    assert at(30, "--gpuviz-fail-on-increase", "-p", "no:cacheprovider").code == 0


def test_results_of_xdist_workers_are_listed_compared_and_kept(run, monkeypatch, pytester):
    options = ("-p", "xdist", "-n2", "--gpuviz", "--gpuviz-fail-on-increase")
    monkeypatch.setenv("SIZE_OF_TEST", "10")
    first = run(GROWING, *options)

    assert first.code == 0
    rows = [line.split() for line in first.output.splitlines() if "MiB" in line]
    assert rows[0][:5] == ["20.0", "MiB", "20.0", "MiB", "2"]
    assert len(rows) == 3

    monkeypatch.setenv("SIZE_OF_TEST", "20")
    second = run(GROWING, *options, "--gpuviz-dir=kept", "--gpuviz-tests=1")

    assert second.code == 1
    assert "grew from 20.0 MiB to 40.0 MiB" in second.output
    assert "2 more tests; --gpuviz-tests 0 lists all" in second.output
    names = sorted(path.name for path in (pytester.path / "kept").iterdir())
    short = "test_program.py-test_growing[short]"
    assert {f"{short}.gpuviz", f"{short}.html"} < set(names)
    assert len(names) == 4
    assert max(map(len, names)) <= 255
    recording = gpuviz.load(pytester.path / "kept" / f"{short}.html")
    assert recording.peak().bytes == 40 * MIB


def test_failures_show_as_many_calls_as_asked_for(run):
    source = """
def allocate(gpu):
    return gpu.empty(2 << 20)

def calls(gpu):
    return allocate(gpu)

@pytest.mark.gpu_limit_memory("1 MiB")
def test_it(gpu):
    calls(gpu)
    calls(gpu)
    first, second = calls(gpu), calls(gpu)
"""
    one = run(source).text("test_it")
    three = run(source, "--gpuviz-stacks=3").text("test_it")

    assert "4.00 MiB  allocate (" in one
    assert "called by" not in one
    assert three.count("called by calls (") == three.count("called by test_it (") == 1


def test_a_benchmark_stores_the_peak(run, pytester):
    done = run(
        """
@pytest.mark.gpu_limit_memory("4 MiB")
def test_it(gpu, benchmark):
    def allocate():
        gpu.empty(3 << 20)

    benchmark.pedantic(allocate, rounds=3)
""",
        "-p",
        "pytest_benchmark.plugin",
        "--benchmark-json=benchmark.json",
    )

    assert done.outcomes == {"test_it": "passed"}, done.output
    stored = json.loads((pytester.path / "benchmark.json").read_text())
    assert stored["benchmarks"][0]["extra_info"]["gpu_peak_bytes"] == 3 * MIB


def test_the_example_in_the_documentation_passes_without_a_gpu(run):
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "testing.md").read_text()
    example = next(
        part.split("```")[0] for part in page.split("```python") if "def test_pipeline" in part
    )

    assert run(example).outcomes == {"test_pipeline": "passed"}


def test_the_plugin_loads_nothing_heavy(pytester):
    pytester.makepyfile("def test_it():\n    pass\n")
    code = """
import sys, pytest
assert pytest.main(["-q", "-p", "gpuviz.testing.plugin"]) == 0
print(sorted({"pyarrow", "numpy", "gpuviz._core", "cupy", "ctypes"} & sys.modules.keys()))
"""
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=pytester.path,
        env=environment,
    )

    assert done.stdout.splitlines()[-1] == "[]"
