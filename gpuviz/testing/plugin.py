"""The hooks, options and fixtures of the pytest plugin.

Nothing of gpuviz but its names is imported before a test needs it.
"""

from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from gpuviz.testing.marks import DESCRIPTIONS, Limits, MarkError, limits_of
from gpuviz.testing.run import RECORDING, SIMULATED_GPU, Case, Options, TestRecording, missing_gpu
from gpuviz.testing.session import Session, options_of

if TYPE_CHECKING:
    from gpuviz.simulation.gpu import SimulatedGPU

_ON_OPTIONS = {
    "gpuviz": "record the GPU memory of every test, and list the tests with the highest peaks",
    "gpuviz_fail_on_increase": (
        "fail if a test allocates more GPU memory at its peak than in its last successful run"
    ),
}
_VALUE_OPTIONS = {
    "gpuviz_dir": ("DIR", "keep the recording and the report of each failed test in this folder"),
    "gpuviz_compare_fail": (
        "FIELD:LIMIT,...",
        "fail if peak, reserved, allocs or syncs of a test grow by more, as in peak:5%%,allocs:10",
    ),
    "gpuviz_stacks": ("N", "how many calls of each call stack failures show (default: 1)"),
    "gpuviz_tests": ("N", "how many tests --gpuviz lists (default: 10; 0: all)"),
}

_case = pytest.StashKey[Case]()
_options = pytest.StashKey[Options]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, and the same names to the configuration file."""
    group = parser.getgroup("gpuviz", "GPU memory")
    for name, text in _ON_OPTIONS.items():
        group.addoption(_flag(name), action="store_true", default=None, help=text)
        parser.addini(name, text, type="bool", default=False)
    for name, (metavar, text) in _VALUE_OPTIONS.items():
        group.addoption(_flag(name), metavar=metavar, default=None, help=text)
        parser.addini(name, text.replace("%%", "%"), default="")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marks, and read the options."""
    for mark, text in DESCRIPTIONS.items():
        config.addinivalue_line("markers", f"{mark}: {text}")
    config.stash[_options] = options = options_of(config, partial(_given, config))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Session(config, options), "gpuviz-session")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _given(config: pytest.Config, name: str) -> Any:
    """Return the value of an option, else that of the configuration file."""
    found = config.getoption(_flag(name))
    return config.getini(name) if found is None else found


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Report marks with wrong arguments as errors of the collection."""
    report = yield
    problems = []
    for each in report.result or ():
        if isinstance(each, pytest.Item):
            try:
                limits_of(each)
            except MarkError as error:
                problems.append(str(error))
    if problems:
        report.outcome = "failed"
        report.longrepr = "\n".join(problems)
        report.result = []
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test with marks where it has no GPU."""
    if reason := _reason_to_skip(item, _limits_of(item)):
        # A mark, so that the summary names the place of the test.
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Record the test, and fail it if it exceeds a limit."""
    limits = _limits_of(item)  # with those that a fixture has added
    if reason := _reason_to_skip(item, limits):
        pytest.skip(reason)
    options = item.config.stash[_options]
    names = getattr(item, "fixturenames", ())
    if not limits.all and RECORDING not in names and not options.records(names):
        result = yield
    else:
        item.stash[_case] = case = Case(item, limits, options)
        result = yield from case.run()
    if late := [each.mark for each in _limits_of(item).all if each not in limits.all]:
        problem = "cannot be judged: it was added after the test had begun."
        pytest.fail("\n".join(f"{mark} {problem}" for mark in late), pytrace=False)
    return result


def _limits_of(item: pytest.Item) -> Limits:
    try:
        return limits_of(item)
    except MarkError as error:
        pytest.fail(str(error), pytrace=False)


def _reason_to_skip(item: pytest.Item, limits: Limits) -> str:
    names = getattr(item, "fixturenames", ())
    needs_gpu = bool(limits.all) or RECORDING in names
    if needs_gpu and SIMULATED_GPU not in names and (reason := missing_gpu()):
        return f"gpuviz cannot record this test: {reason}"
    return ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the properties of the test to its report; keep the recording of a failed one."""
    report = yield
    case = item.stash.get(_case, None)
    if case is None:
        return report
    if call.when == "call":
        case.add_to(report)
    else:
        del item.stash[_case]
    return report


@pytest.fixture
def gpuviz_simulated_gpu() -> "SimulatedGPU":
    """A `gpuviz.SimulatedGPU`, whose memory the marks of the test judge.

    Its clock is simulated too: tests finish without waiting. A fixture of the same name replaces
    it, to have more memory or other settings.
    """
    from gpuviz.simulation.gpu import SimulatedGPU

    return SimulatedGPU(real_time=False)


@pytest.fixture
def gpuviz_recording() -> TestRecording:
    """The recording of this test, with the methods of `gpuviz.Recording`.

    In the test, it contains everything up to now; in fixtures that end after it, all of it.
    """
    return TestRecording()
