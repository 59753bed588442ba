"""What the plugin does for a run of pytest: its options, the cache, the table of peaks."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from gpuviz.quantities import format_bytes, format_count, format_counted
from gpuviz.terminal import printable
from gpuviz.testing.comparison import FIELDS, AllowedIncrease, parse_comparisons
from gpuviz.testing.run import NOTE, Options, missing_gpu

_CACHE = "gpuviz/last_successful_runs"
_INPUT = "gpuviz_previous"
_MOST_TESTS = 10


def options_of(config: pytest.Config, given: Callable[[str], Any]) -> Options:
    """Return the options of a run.

    Raises:
        pytest.UsageError: An option has a wrong value.
    """
    rules = _rules(given("gpuviz_compare_fail"))
    if given("gpuviz_fail_on_increase"):
        rules = (AllowedIncrease(FIELDS["peak"], 0.0, 0), *rules)
    folder = given("gpuviz_dir")
    worker: Mapping[str, Any] | None = getattr(config, "workerinput", None)
    return Options(
        records_all=bool(rules or given("gpuviz")),
        lists_tests=bool(given("gpuviz")),
        folder=config.invocation_params.dir / folder if folder else None,
        depth=_count(given("gpuviz_stacks"), "--gpuviz-stacks", 1, 1),
        tests=_count(given("gpuviz_tests"), "--gpuviz-tests", _MOST_TESTS, 0),
        comparisons=rules,
        previous=_stored(config) if worker is None else worker.get(_INPUT, {}),
    )


def _rules(text: str) -> tuple[AllowedIncrease, ...]:
    try:
        return parse_comparisons(text)
    except ValueError as error:
        raise pytest.UsageError(f"--gpuviz-compare-fail: {error}") from None


def _count(text: str, option: str, default: int, least: int) -> int:
    if not text:
        return default
    if not text.isdecimal() or int(text) < least:
        raise pytest.UsageError(f"{option} must be an integer of at least {least}, got {text!r}")
    return int(text)


def _stored(config: pytest.Config) -> Mapping[str, Mapping[str, int]]:
    """Return the properties of the last successful runs; nothing without pytest's cache."""
    cache = config.cache if config.pluginmanager.has_plugin("cacheprovider") else None
    found = cache.get(_CACHE, {}) if cache else {}
    return found if isinstance(found, dict) else {}


class Session:
    """Collects the results of all tests, those of pytest-xdist's workers too.

    Args:
        config: pytest's configuration.
        options: The options of the run.
    """

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self._config = config
        self._options = options
        self._results: dict[str, tuple[str, dict[str, int]]] = {}
        self._notes: dict[str, str] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send the last successful runs to a worker of pytest-xdist."""
        node.workerinput[_INPUT] = self._options.previous

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the properties of a test."""
        if report.when != "call":
            return
        values: dict[str, Any] = dict(report.user_properties)
        if NOTE in values:
            self._notes[report.nodeid] = str(values[NOTE])
        known = {name: values[name] for name in FIELDS.values() if name in values}
        if known:
            self._results[report.nodeid] = report.outcome, known

    def pytest_sessionfinish(self) -> None:
        """Store the properties of the tests that passed."""
        passed = {
            name: values for name, (outcome, values) in self._results.items() if outcome == "passed"
        }
        if passed and self._config.pluginmanager.has_plugin("cacheprovider"):
            cache = self._config.cache
            if cache is not None:
                cache.set(_CACHE, {**_stored(self._config), **passed})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the tests with the highest peaks."""
        lines = self._lines() if self._options.lists_tests else []
        if self._options.comparisons and self._results:
            new = len(self._results.keys() - self._options.previous.keys())
            if new:
                lines.append(f"{format_counted(new, 'test')} had no successful run to compare with")
        if not lines:
            return
        terminalreporter.section("GPU memory")
        for line in lines:
            terminalreporter.write_line(printable(line))

    def _lines(self) -> list[str]:
        used = sorted(
            (
                (values, outcome, name)
                for name, (outcome, values) in self._results.items()
                if values[FIELDS["allocs"]]
            ),
            key=lambda each: -each[0][FIELDS["peak"]],
        )
        shown = used[: self._options.tests or None]
        lines = [f"{'Peak':>10} {'Reserved':>10} {'Allocations':>12}  Test"] if shown else []
        for values, outcome, name in shown:
            peak, reserved = (format_bytes(values[FIELDS[each]]) for each in ("peak", "reserved"))
            count = format_count(values[FIELDS["allocs"]])
            failed = " (failed)" if outcome == "failed" else ""
            lines.append(f"{peak:>10} {reserved:>10} {count:>12}  {name}{failed}")
        if len(used) > len(shown):
            more = format_counted(len(used) - len(shown), "more test")
            lines.append(f"{more}; --gpuviz-tests 0 lists all")
        if not used:
            lines.append("No test allocated GPU memory while it was recorded")
        if reason := missing_gpu():
            lines.append(f"Only tests with gpuviz_simulated_gpu were recorded: {reason}")
        return [*lines, *self._unmeasured()]

    def _unmeasured(self) -> Iterator[str]:
        """Yield a line for each reason why tests could not be measured."""
        names = defaultdict[str, list[str]](list)
        for name, note in self._notes.items():
            names[note].append(name)
        for note, (first, *others) in names.items():
            more = f" and {format_counted(len(others), 'other test')}" if others else ""
            yield f"Not measured: {first}{more}: {note}"
