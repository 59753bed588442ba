"""R70: autograd's anomaly detection waits for the GPU after each function of a backward pass."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.evidence import Evidence
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import longest_lines
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.replay.trace import MOST_SHOWN
from gpuviz.advice.rule import Rule
from gpuviz.advice.training.anomaly_tests import AnomalyTests, anomaly_tests
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import distinct
from gpuviz.quantities import format_counted, format_duration

RULES = (
    Rule(
        "R70",
        "autograd's anomaly detection",
        "at least 20 times, PyTorch itself compares an array with itself within a backward pass, "
        "reduces the comparison to one value, and copies that to the host, which waits for it; the "
        "saving is without these calls, kernels and copies, and so the least: with anomaly "
        "detection, each operation of the forward pass records a call stack, too",
        "remove `torch.autograd.set_detect_anomaly(True)`",
    ),
)


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find backward passes whose results are all tested for NaN.

    Trigger: see `gpuviz.advice.training.anomaly_tests.anomaly_tests`; at least 20 tests on a
    device.

    Saving: the recording's `Schedule`, replayed without the calls, kernels and copies of these
    tests. Call stacks that the forward pass records meanwhile cost more, which is not known.
    """
    for tests in anomaly_tests(schedule):
        yield _finding(schedule, tests)


def _finding(schedule: Schedule, tests: AnomalyTests) -> Finding:
    recording, change = schedule.recording, tests.without(schedule)
    calls = np.flatnonzero(tests.calls)
    spent = schedule.returned[calls] - schedule.called[calls]
    stacks = stacks_of(recording.tables, calls)
    count = format_counted(len(distinct(schedule.call[tests.copies])), "time")
    return Finding(
        rule="R70",
        title=(
            f"Autograd's anomaly detection is enabled: the host waits {count} in backward passes "
            "to test results for NaN."
        ),
        reason=(
            "After each function of a backward pass, PyTorch compares its results with themselves, "
            "and the host waits for the outcome before it launches the next function. These calls "
            f"take {format_duration(int(spent.sum()))}. In the forward pass, each operation "
            "records a call stack, which is not in the saving."
        ),
        change=(
            "Remove `torch.autograd.set_detect_anomaly(True)` or `detect_anomaly()`: they are for "
            "the search for a NaN. To notice one in training, test the loss now and then."
        ),
        certainty="likely",
        device=tests.device,
        saved_ns=schedule.saved_alone(change),
        schedule=change,
        lines=longest_lines(recording, stacks, spent),
        evidence=Evidence(
            "activities",
            tuple(np.sort(schedule.rows[tests.copies[:MOST_SHOWN]]).tolist()),
            (int(schedule.begin[tests.work].min()), int(schedule.end[tests.work].max())),
        ),
    )
