"""R27: programs that wait for launches."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.timed_programs import found, saved_ns, small, timed

STEPS, KERNELS = 20, 20


def launch_all(gpu, *, host):
    for number in range(KERNELS):
        gpu.launch(f"kernel {number}", duration=2e-6)
        gpu.work_on_host(host)


def one_by_one(gpu):
    for _ in range(STEPS):
        launch_all(gpu, host=10e-6)


def as_graphs(gpu):
    stream = gpu.Stream()
    with stream:
        launch_all(gpu, host=10e-6)  # once, as a program does before it captures
        stream.begin_capture()
        launch_all(gpu, host=1e-9)
        graph = stream.end_capture()
        for _ in range(STEPS - 1):
            graph.launch()


def behind_a_long_kernel(gpu):
    gpu.launch("long", duration=20e-3)
    one_by_one(gpu)


def few(gpu):
    launch_all(gpu, host=10e-6)


def with_other_work(gpu):
    for _ in range(STEPS):
        launch_all(gpu, host=300e-6)


def reads_many_results(gpu):
    """The GPU waits for the reads at the end, more than for the launches."""
    results = [gpu.empty(512) for _ in range(100)]
    for each in results:
        gpu.launch("reduce", duration=9e-6, writes=[each])
        gpu.work_on_host(9e-6)
    for each in results:
        gpu.work_on_host(30e-6)
        gpu.copy_to_host(each)


def test_short_kernels_are_found_and_a_graph_saves_what_was_predicted():
    (finding,) = found(one_by_one, "R27")

    assert finding.saved_ns == pytest.approx(saved_ns(one_by_one, as_graphs), rel=0.2)
    assert finding.title == (
        'The GPU is busy for 18 % of the time and waits for launches: `gpu.launch(f"kernel '
        '{number}", duration=2e-6)` makes 400 of 400.'
    )
    assert finding.reason == (
        "The kernels have a median of 2.00 µs on the GPU. The host needs 10.0 µs (median) between "
        "two launches; the GPU is idle for 2.68 ms during launches and such short gaps, and for "
        "3.57 ms in all."
    )
    assert finding.change == (
        "Launch less often: one call for whole arrays instead of a loop over their parts, fused "
        "elementwise operations (cupy.fuse, ElementwiseKernel), or a CUDA graph of repeated "
        "launches. The saving is that of launches that take no time on the host."
    )
    assert finding.certainty == "possible"
    assert finding.evidence.table == "idle_gaps"
    assert len(finding.evidence.rows) == STEPS * KERNELS - 1


def prepares_first(gpu):
    """Launch as often before the iterations, which take longer."""
    one_by_one(gpu)
    for _ in range(STEPS):
        gpu.work_on_host(300e-6)
        launch_all(gpu, host=10e-6)


def test_no_more_than_the_idle_time_of_the_steady_state_is_saved():
    recording = timed(prepares_first)
    (finding,) = [each for each in findings(recording, small=True) if each.rule == "R27"]

    assert 0 < finding.saved_ns <= recording.steady_state().idle_ns


def mostly_works_on_the_host(gpu):
    for _ in range(STEPS):
        gpu.work_on_host(2e-3)
        launch_all(gpu, host=10e-6)


@pytest.mark.parametrize(
    "program",
    [
        as_graphs,
        behind_a_long_kernel,
        few,
        with_other_work,
        reads_many_results,
        mostly_works_on_the_host,
    ],
)
def test_graphs_busy_gpus_few_launches_and_other_work_are_no_finding(program):
    assert small(program, "R27") == []
