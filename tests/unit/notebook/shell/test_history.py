"""``%gpuviz history``: the runs of each cell, and when it got worse."""

import re

import pytest

import gpuviz
from gpuviz.analysis.cell_runs import CellRun, cell_runs
from gpuviz.notebook import history as module
from gpuviz.notebook.history import NOTHING_RECORDED, worse
from gpuviz.notebook.measurement import Measurement

MIB = 1 << 20
CELL = "x = gpu.empty({0} << 20)\ngpu.launch('work', duration=1e-2, writes=[x])\ngpu.synchronize()"
STEP = f"{CELL.format('n')}\ndel x"


def shown(shell):
    (bundle,) = shell.run("%gpuviz history").shown
    return bundle


def test_cells_of_a_recording_in_progress_and_what_got_worse(shell):
    shell.run("n = 8")
    shell.run("%gpuviz start --simulated gpu")
    shell.run(STEP)
    shell.run(STEP)
    shell.run("n = 12")
    shell.run(STEP)
    bundle = shown(shell)
    lines = bundle["text/plain"].splitlines()

    assert [line.split()[1] for line in lines] == ["[5]", "[6]", "[8]"]
    assert "8.00 MiB" in lines[0]
    assert not any("<-" in line for line in lines[:2])
    assert lines[2].endswith("<- since In [6]: peak +4.00 MiB")
    assert "x = gpu.empty(n &lt;&lt; 20)" in bundle["text/html"]
    assert bundle["text/html"].count("▲") == 1


def test_measured_cells_are_kept_after_their_recordings(shell):
    for size in (8, 8, 9):
        shell.run(f"n = {size}")
        shell.run(f"%%gpuviz --simulated gpu\n{STEP}")
    lines = shown(shell)["text/plain"].splitlines()

    assert len(lines) == 3
    assert lines[2].endswith("<- since In [6]: peak +1.00 MiB")
    # The simulated clock runs during the kernel, and hardly besides.
    assert all(re.search(r"\b(9\d|100)(\.\d)? %", line) for line in lines)


def test_a_cell_without_work_kept_the_gpu_idle(shell):
    shell.run("gpu = gpuviz.SimulatedGPU()")
    shell.run("%%gpuviz --simulated gpu\nx = gpu.empty(1 << 20)")
    shell.run("%gpuviz start --simulated gpu")
    shell.run("%%gpuviz --simulated gpu\nx = gpu.empty(1 << 20)")
    lines = shown(shell)["text/plain"].splitlines()

    assert [re.search(r"\S+ %", line)[0] for line in lines] == ["0 %", "0 %"]


def test_other_cells_are_not_compared(shell):
    shell.run("%gpuviz start --simulated gpu")
    for size in (1, 8, 32):
        shell.run(CELL.format(size))

    assert "<-" not in shown(shell)["text/plain"]


def test_a_stopped_or_cleared_recording_stays_in_the_history(shell):
    shell.run("n = 8")
    shell.run("%gpuviz start --simulated gpu")
    shell.run(STEP)
    shell.run("%gpuviz clear")
    shell.run(STEP)
    shell.run("%gpuviz stop")
    shell.run("%gpuviz start --simulated gpu")
    shell.run(STEP)

    assert len(shown(shell)["text/plain"].splitlines()) == 3


def test_without_streams_the_busy_share_is_unknown(shell):
    shell.run("n = 8")
    shell.run("%gpuviz start --simulated gpu --no-streams")
    shell.run(STEP)

    assert "unknown" in shown(shell)["text/plain"]
    assert "unknown" in shown(shell)["text/html"]


def test_nothing_recorded_is_said(shell):
    assert shown(shell)["text/plain"] == NOTHING_RECORDED


def test_a_long_session_keeps_the_latest_runs(shell, monkeypatch):
    monkeypatch.setattr(module, "MOST_RUNS", 2)
    shell.run("n = 8")
    shell.run("%gpuviz start --simulated gpu")
    for _ in range(4):
        shell.run(STEP)
    lines = shown(shell)["text/plain"].splitlines()

    assert [line.split()[1] for line in lines] == ["[7]", "[8]"]


def test_runs_have_the_peak_and_busy_time_of_the_cell(shell):
    shell.run("n = 8")
    shell.run("%gpuviz start --simulated gpu")
    shell.run(STEP)
    shell.run("1 + 1")
    recording = shell.run("%gpuviz stop").result.result
    (run,) = cell_runs(recording, streams=True)

    assert (run.number, run.peak_bytes) == (5, 8 * MIB)
    assert run.busy_ns == pytest.approx(10_000_000, rel=0.01)
    assert run.busy_ns <= run.duration_ns


def runs(*costs):
    """Return runs with these peaks in MiB and times in ms."""
    return [
        CellRun(number, int(time * 1e6), int(peak * MIB), None)
        for number, (peak, time) in enumerate(costs, 1)
    ]


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ([(8, 10)], ""),
        ([(8, 10), (8, 100)], ""),
        ([(100, 10), (104, 10)], ""),
        ([(10, 10), (10.9, 10)], ""),
        ([(100, 10), (105, 10)], "since In [1]: peak +5.00 MiB"),
        ([(100, 10), (200, 10), (150, 10)], ""),
        # The first run, which compiles, does not count; noise is not worse.
        ([(8, 900), (8, 10), (8, 10), (8, 13)], "since In [3]: time +3.00 ms"),
        ([(8, 900), (8, 10), (8, 10), (8, 11.9)], ""),
        ([(8, 900), (8, 10), (8, 14), (8, 13)], ""),
        ([(8, 1), (8, 1), (8, 1), (8, 1.9)], ""),
        (
            [(8, 10), (8, 10), (8, 10), (16, 20)],
            "since In [3]: peak +8.00 MiB, time +10.0 ms",
        ),
    ],
)
def test_worse_is_more_than_noise(costs, said):
    *earlier, run = runs(*costs)

    assert worse(run, earlier) == said


def test_the_time_of_a_measured_cell_ends_before_its_result_is_made(shell, monkeypatch):
    ends = []

    def end(measurement, end=Measurement.end):
        ends.extend(gpuviz.Recorder.active().recording.table("ranges")["end"].to_pylist())
        return end(measurement)

    monkeypatch.setattr(Measurement, "end", end)
    shell.run("%gpuviz start --simulated gpu")
    shell.run("%%gpuviz\nx = gpu.empty(1 << 20)")

    assert len(ends) == 2
    assert min(ends) >= 0
