"""Recording of one test, and its verdict."""

import gc
import hashlib
import re
import warnings
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpuviz.quantities import format_counted
from gpuviz.terminal import printable
from gpuviz.testing.comparison import FIELDS, AllowedIncrease, grown
from gpuviz.testing.forks import forks
from gpuviz.testing.marks import HazardLimit, LeakLimit, Limits, SynchronizationLimit

if TYPE_CHECKING:
    from gpuviz.recorder.recorder import Recorder
    from gpuviz.recording import Recording
    from gpuviz.simulation.gpu import SimulatedGPU
    from gpuviz.testing.leaks import Owners

# A property of a test in its report: why its memory is not known.
NOTE = "gpuviz_note"
SIMULATED_GPU = "gpuviz_simulated_gpu"
RECORDING = "gpuviz_recording"
_LONGEST_NAME = 200
# Two of them never become the same file name.
_PLAIN_ID = re.compile(r"[\w./]+(?:::\w+)+(?:\[[\w.=,+]*\])?", re.ASCII)
_ENDED_EARLY = "The recording ended before the test."
_NOT_COUNTED = (
    "The test forked this process; what the forked process does with the GPU was not counted."
)
_RECORDS_ITSELF = "The test records itself."


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line and the configuration file ask for.

    Attributes:
        records_all: Whether tests without marks are recorded too.
        lists_tests: Whether the tests with the highest peaks are listed.
        tests: How many of them; 0 for all.
        folder: Where recordings and reports of failed tests are kept, or None.
        depth: How many calls of each call stack a message shows.
        comparisons: How much each property may grow since the last successful run.
        previous: The properties of each test in its last successful run.
    """

    records_all: bool = False
    lists_tests: bool = False
    tests: int = 0
    folder: Path | None = None
    depth: int = 1
    comparisons: tuple[AllowedIncrease, ...] = ()
    previous: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def records(self, fixtures: Collection[str]) -> bool:
        """Return whether a test without marks that has these fixtures is recorded."""
        return self.records_all and (SIMULATED_GPU in fixtures or not missing_gpu())


class TestRecording:
    """The recording of a test: its attributes are those of `gpuviz.Recording`.

    While the test runs it contains everything up to now; afterwards, for fixtures that end later,
    it is complete.

    Attributes:
        recorder: The recorder; None before the test begins.
    """

    __test__ = False

    def __init__(self) -> None:
        self.recorder: Recorder | None = None

    @property
    def recording(self) -> "Recording":
        """The recording itself.

        Raises:
            RuntimeError: The test has not begun, or its recording could not start.
        """
        if self.recorder is None:
            raise RuntimeError("Nothing is recorded yet: the recording begins with the test")
        return self.recorder.recording

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.recording, name)


@cache
def missing_gpu() -> str:
    """Return why this process cannot record CuPy, or an empty text."""
    from importlib.util import find_spec

    from gpuviz.allocator.driver import cuda_driver
    from gpuviz.errors import DeviceUnavailableError

    try:
        cuda_driver()
    except DeviceUnavailableError as error:
        return str(error).partition(". ")[0]
    return "" if find_spec("cupy") else "CuPy is not installed"


class Case:
    """One test that is recorded.

    Attributes:
        values: The properties of the test that are known, by name.
        note: Why nothing is known; empty otherwise.
        recording: The recording of the last run, once it has ended.
    """

    def __init__(self, item: pytest.Item, limits: Limits, options: Options) -> None:
        self._item = item
        self._limits = limits
        self._options = options
        self._known: Owners = {}
        self._recorder: Recorder | None = None
        self._end_ns = 0
        self._has_streams = False
        self._restore: Callable[[], None] = _nothing
        self._fixture = self._funcargs.get(RECORDING)
        self.values: dict[str, int] = {}
        self.note = ""
        self.recording: Recording | None = None

    def run(self) -> Generator[None, Any, Any]:
        """Record a call of the test, which the caller makes at the ``yield``; judge the last one.

        Raises:
            pytest.fail.Exception: The test exceeds a limit, or one cannot be judged.
        """
        for limit in self._limits.of(LeakLimit):
            for _ in range(limit.warmups):
                self._warm_up()
        self._begin()
        forks_before = forks()
        try:
            result = yield
        except BaseException:
            self._end()
            raise
        has_failed = bool(getattr(self._item, "_excinfo", None))  # of a unittest.TestCase
        if not has_failed and self._limits.of(LeakLimit):
            self._settle()
        self._end()
        if not has_failed:
            self._judge()
        if self._limits.all and forks() > forks_before:
            marks = " and ".join(each.mark for each in self._limits.all)
            self._item.warn(pytest.PytestWarning(f"{marks}: {_NOT_COUNTED}"))
        return result

    def add_to(self, report: pytest.TestReport) -> None:
        """Add what is known to the report of the call; keep the recording if it failed."""
        names = {*FIELDS.values(), NOTE}
        values = dict[str, object](self.values) | ({NOTE: self.note} if self.note else {})
        for properties in (self._item.user_properties, report.user_properties):
            properties[:] = [each for each in properties if each[0] not in names]
            properties.extend(values.items())
        if report.failed and self.recording is not None and self._options.folder is not None:
            try:
                paths = keep(self.recording, self._options.folder, self._item.nodeid)
            except Exception as error:  # noqa: BLE001 - the test has its own result
                kept = f"The recording could not be kept: {error}"
            else:
                kept = "\n".join(map(str, paths))
            report.sections.append(("gpuviz", printable(kept)))

    @property
    def _funcargs(self) -> dict[str, Any]:
        found: dict[str, Any] = getattr(self._item, "funcargs", None) or {}
        return found

    @property
    def _gpu(self) -> "SimulatedGPU | None":
        found: SimulatedGPU | None = self._funcargs.get(SIMULATED_GPU)
        return found

    def _warm_up(self) -> None:
        """Run the test once, which may fail as itself."""
        self._begin()
        try:
            self._item.runtest()
            if getattr(self._item, "_excinfo", None):
                raise pytest.fail.Exception("the test failed", pytrace=False)
            self._settle()
        finally:
            self._end()
        if self.recording is not None:
            from gpuviz.testing.leaks import owners

            self._known = owners(self.recording, self._known)

    def _begin(self) -> None:
        self.recording, self.note, self._end_ns = None, "", 0
        try:
            self._recorder = self._started()
        except Exception as error:  # noqa: BLE001 - the test runs without a recording
            self._recorder, self.note = None, f"{type(error).__name__}: {error}"
        if self._fixture is not None:
            self._fixture.recorder = self._recorder

    def _started(self) -> "Recorder":
        from gpuviz.recorder.record import record

        hazards = bool(self._limits.of(HazardLimit))
        # A simulated GPU's calls have no stacks otherwise; CUPTI would take longer than the test.
        streams = (
            hazards
            or self._gpu is not None
            or self._fixture is not None
            or self._options.folder is not None
            or bool(self._limits.of(SynchronizationLimit))
            or any(rule.name == "gpu_synchronizations" for rule in self._options.comparisons)
        )
        with warnings.catch_warnings():
            # That CUPTI is missing matters only to the limits that need it.
            warnings.simplefilter("ignore")
            recorder = record(device=self._gpu, streams=streams, hazards=hazards)
            recorder.announces = False
            recorder.start()
        if not self._limits.all and self._fixture is None:
            self._give_way()
        return recorder

    def _give_way(self) -> None:
        """Stop recording when a test without marks starts a recorder of its own."""
        from gpuviz.recorder.recorder import Recorder

        former = Recorder.before_start

        def stop(other: Recorder) -> None:
            self._end()
            self.note = _RECORDS_ITSELF
            if former is not None:
                former(other)

        self._restore = partial(setattr, Recorder, "before_start", former)
        Recorder.before_start = stop

    def _end(self) -> None:
        """Stop the recorder; what goes wrong is noted, because the test has its own result."""
        recorder, self._recorder = self._recorder, None
        self._restore()
        self._restore = _nothing
        if recorder is None:
            return
        try:
            if not self._end_ns:
                self._end_ns = recorder.elapsed_ns
            if recorder.is_recording:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    recorder.stop()
            else:
                self.note = _ENDED_EARLY
            self.recording = recorder.recording
            self._has_streams = recorder.status().streams
            if self.recording.dropped:
                count = format_counted(self.recording.dropped, "event")
                self.note = f"The recording lacks {count}."
        except Exception as error:  # noqa: BLE001 - as above
            self.note = f"{type(error).__name__}: {error}"

    def _settle(self) -> None:
        """Let go of memory that only garbage and caches hold."""
        if self._recorder is not None:
            self._end_ns = self._recorder.elapsed_ns
        gc.collect()
        if self._gpu is None and self._recorder is not None:
            from gpuviz.frameworks.cupy import clear_caches

            try:
                clear_caches()
            except Exception as error:  # noqa: BLE001 - such as an earlier error of the GPU
                self.note = f"{type(error).__name__}: {error}"

    def _judge(self) -> None:
        try:
            problems = self._problems()
        except Exception as error:  # noqa: BLE001 - a test without marks must pass as without gpuviz
            self.note = f"{type(error).__name__}: {error}"
            problems = self._unjudged(self.note)
        if problems:
            pytest.fail(printable("\n\n".join(problems)), pytrace=False)

    def _problems(self) -> list[str]:
        from gpuviz.testing.judge import Judge
        from gpuviz.testing.measures import measured

        if self.recording is None or self.note:
            return self._unjudged(self.note)
        self.values = measured(self.recording, self._end_ns, has_streams=self._has_streams)
        if (benchmark := self._funcargs.get("benchmark")) and hasattr(benchmark, "extra_info"):
            benchmark.extra_info.update(self.values)
        judge = Judge(
            self.recording,
            self._end_ns,
            self._known,
            depth=self._options.depth,
            has_streams=self._has_streams,
        )
        problems = judge.problems(self._limits)
        previous = self._options.previous.get(self._item.nodeid, {})
        more = grown(self._options.comparisons, self.values, previous)
        return [*problems, *more, judge.peak_lines()] if more else problems

    def _unjudged(self, reason: str) -> list[str]:
        return [f"{each.mark} cannot be judged: {reason}" for each in self._limits.all]


def _nothing() -> None:
    """Do nothing."""


def keep(recording: "Recording", folder: Path, name: str) -> tuple[Path, Path]:
    """Write a recording and its report; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    base = folder / file_name(name)
    saved = recording.save(base.with_name(f"{base.name}.gpuviz"), overwrite=True)
    return saved, recording.report(base.with_name(f"{base.name}.html"), overwrite=True)


def file_name(nodeid: str) -> str:
    """Return a file name without a suffix for a test, unique and of at most 200 bytes."""
    name = re.sub(r"[^A-Za-z0-9_.=,+\[\]-]+", "-", nodeid)
    if _PLAIN_ID.fullmatch(nodeid) and len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(nodeid.encode()).hexdigest()[:16]
    return f"{name[: _LONGEST_NAME - len(digest) - 1]}-{digest}"
