"""Lines whose memory grows: leaking programs and honest ones, cells that run again, statistics."""

import itertools
import random

import numpy as np
import pyarrow as pa
import pytest

import gpuviz
from gpuviz.advice.findings import findings
from gpuviz.analysis.growth import growth, theil_sen
from gpuviz.conclusions.growth import growth_of
from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import schemas
from gpuviz.errors import RecorderError
from gpuviz.present.text import findings_text
from gpuviz.recorder.recorder import Recorder
from gpuviz.recording import Recording
from tests.unit.advice.programs import recorded
from tests.unit.analysis.growing_programs import of
from tests.unit.recording.leaking_programs import HONEST, KIB, LEAKING, MIB, STEPS, a_list, work


def of_memory(program):
    """Return the recording of the same without streams, as ``streams=False`` makes with CuPy."""
    recording = of(program)
    names = ("memory_events", "devices", "streams", "pools", "stacks", "frames", "threads")
    return Recording({name: recording.tables[name] for name in names}, recording.manifest)


def growing(recording):
    """Return the finding about growing memory, if there is one."""
    return [each for each in findings(recording, small=True) if each.rule == "R09"]


@pytest.mark.parametrize("program", LEAKING, ids=lambda program: program.__name__)
def test_a_leak_is_found_and_nothing_else(program):
    recording = of(program)
    (row,) = recording.leaks().to_pylist()
    (finding,) = growing(recording)

    assert (row["source"], row["by"], row["use"]) == ("y = gpu.empty(size)", "iteration", "unused")
    assert row["certainty"] in ("certain", "likely")
    assert 0 < row["growth_low_bytes"] <= row["growth_bytes"] <= row["growth_high_bytes"]
    assert 0 < row["unused_bytes"] <= row["live_bytes"]
    assert finding.saved_bytes > row["live_bytes"] / 2


@pytest.mark.parametrize("program", HONEST, ids=lambda program: program.__name__)
def test_an_honest_program_has_no_leak(program):
    recording = of(program)

    assert [row for row in recording.leaks().to_pylist() if row["use"] != "used"] == []
    assert growing(recording) == []


def test_without_streams_growth_is_known_and_use_is_not():
    (row,) = of_memory(a_list).leaks().to_pylist()

    assert (row["by"], row["growth_bytes"], row["certainty"]) == ("iteration", MIB, "certain")
    assert (row["use"], row["unused_bytes"]) == ("unknown", None)


def test_without_streams_honest_programs_grow_only_by_design():
    sure = {
        program.__name__
        for program in HONEST
        for row in of_memory(program).leaks().to_pylist()
        if row["by"] == "iteration"
    }

    assert sure == {"a_history_that_is_read", "results_that_are_joined"}


def test_work_with_unknown_arrays_may_use_what_is_kept():
    def program(gpu, kept):
        for _ in range(STEPS):
            kept.append(work(gpu))
            gpu.launch("by_pointers", duration=1e-5)

    recording = of(program)

    assert [row["use"] for row in recording.leaks().to_pylist()] == ["unknown"]
    assert growing(recording) == []


def test_of_many_iterations_some_are_compared_and_all_are_counted():
    def program(gpu, kept):
        for step in range(300):
            y = work(gpu)
            if step % 2:
                kept.append(y)

    def every(gpu, kept):
        for _ in range(300):
            kept.append(work(gpu))

    (second,) = of(program).leaks().to_pylist()
    (each,) = of(every).leaks().to_pylist()

    assert (second["periods"], second["live_count"]) == (300, 150)
    assert second["growth_low_bytes"] <= MIB / 2 <= second["growth_high_bytes"]
    assert second["growth_bytes"] == pytest.approx(MIB / 2, rel=0.02)
    assert (each["growth_bytes"], each["certainty"]) == (MIB, "certain")


def test_a_list_that_a_failed_request_ends_before_its_use_is_no_finding():
    gpu = gpuviz.SimulatedGPU(60 * MIB, real_time=False)
    layers = []

    def make_layers():
        while True:
            layers.append(gpu.empty(2 * MIB))
            gpu.launch("initialize", duration=1e-5, writes=layers[-1:])

    with gpuviz.record(device=gpu) as recorder, pytest.raises(MemoryError):
        make_layers()

    assert len(layers) > 10
    assert growing(recorder.recording) == []


def test_growth_that_rounding_hides_is_found():
    def program(gpu, kept):
        for step in range(2 * STEPS):
            kept[:] = [work(gpu, 24 * MIB + 100 * step)]

    rows = of(program).leaks().to_pylist()

    assert {row["growth_bytes"] for row in rows} == {100}


def test_a_named_range_gives_the_iterations():
    def program(gpu, kept):
        for _ in range(STEPS):
            with gpuviz.range("step"):
                kept.append(gpu.empty(MIB))
                gpu.launch("step", duration=1e-5, writes=[kept[-1]])

    (row,) = of(program).leaks().to_pylist()

    assert (row["by"], row["periods"], row["growth_bytes"]) == ("iteration", STEPS, MIB)


def test_a_line_without_iterations_has_the_score_of_the_rule_of_succession():
    def program(gpu, kept):
        for step in range(40):
            array = gpu.empty(MIB)
            if step:
                kept.append(array)

    (row,) = of_memory(program).leaks().to_pylist()

    assert (row["by"], row["live_count"], row["certainty"]) == ("recording", 39, "possible")
    assert row["score"] == pytest.approx(1 - (1 + 1) / (40 + 2))
    assert row["growth_bytes"] is None


def test_what_is_allocated_at_the_start_and_kept_is_no_leak():
    def program(gpu, kept):
        kept.extend(gpu.empty(MIB) for _ in range(40))
        for _ in range(60):
            gpu.empty(MIB)

    assert of_memory(program).leaks().num_rows == 0


def test_following_the_advice_saves_what_was_predicted():
    def follows(gpu):
        for _ in range(STEPS):
            work(gpu)

    kept = []
    leaking = recorded(lambda gpu: a_list(gpu, kept))
    (finding,) = growing(leaking)

    assert finding.saved_bytes == leaking.peak().bytes - recorded(follows).peak().bytes
    assert finding.further_bytes == finding.saved_bytes == (STEPS - 1) * MIB
    assert finding.title == (
        "`y = gpu.empty(size)` keeps 1.00 MiB more with each iteration, and nothing uses it again."
    )
    assert finding.reason.startswith("After 24 iterations, it keeps 24.0 MiB in 24 arrays.")


def in_cells(cells):
    """Return a recording of cells: what each allocates and frees, as pairs of source and size.

    A free is a pair of None and the number of the allocation, from 0.
    """
    time, rows, ranges, frames, addresses = itertools.count(1), [], [], [], []
    for number, cell in enumerate(cells, 1):
        begin = next(time)
        for source, size in cell:
            if source is None:
                row = dict(zip(("address", "size"), addresses[size], strict=True))
                rows.append(row | {"action": "free_completed", "time": next(time)})
                continue
            addresses.append((4096 + 64 * MIB * len(addresses), size))
            frames.append({"id": len(frames) + 1, "name": "<module>", "line": len(frames) % 3 + 1})
            frames[-1] |= {"filename": f"In [{number}]", "cell": number, "source": source}
            row = {"action": "alloc", "address": addresses[-1][0], "size": size}
            rows.append(row | {"stack": len(frames), "time": next(time)})
        ranges.append({"id": number, "time": begin, "end": next(time), "kind": "cell"})
    stacks = [
        {"id": each["id"], "frames": [each["id"]], "user_frame": each["id"]} for each in frames
    ]
    found = {"memory_events": rows, "ranges": ranges, "frames": frames, "stacks": stacks}
    tables = {}
    for name, each in found.items():
        missing = {
            field.name: 0 if pa.types.is_integer(field.type) else "" for field in schemas()[name]
        }
        whole = [missing | row for row in each]
        tables[name] = pa.Table.from_pylist(whole, schemas()[name])
    return Recording(tables, Manifest())


def test_a_cell_that_keeps_more_with_each_run_is_found_although_its_number_changes():
    cells = [[("x = load()", 8 * MIB)]] + [[("results.append(step())", MIB)] for _ in range(6)]
    (row,) = in_cells(cells).leaks().to_pylist()

    assert (row["by"], row["source"]) == ("cell", "results.append(step())")
    assert (row["growth_bytes"], row["periods"], row["certainty"]) == (MIB, 6, "certain")
    assert row["site"] == "<module> (In [7]:1)"


def test_a_cell_that_replaces_its_array_keeps_nothing_more():
    cells = [
        [("x = step()", MIB), *([(None, number - 1)] if number else [])] for number in range(9)
    ]

    assert in_cells(cells).leaks().num_rows == 0


def test_three_runs_of_a_cell_are_too_few():
    assert in_cells([[("results.append(step())", MIB)] for _ in range(3)]).leaks().num_rows == 0


def test_cells_with_different_lines_are_no_runs_of_one():
    assert in_cells([[(f"x{number} = step()", MIB)] for number in range(9)]).leaks().num_rows == 0


def test_the_slope_and_its_interval_are_those_of_all_pairs():
    noise = random.Random(3)
    levels = np.array([noise.randrange(10**9) + 10**7 * place for place in range(30)])
    slopes = sorted(
        (levels[after] - levels[before]) / (after - before)
        for before in range(30)
        for after in range(before + 1, 30)
    )
    slope, low, high = theil_sen(levels, np.arange(30))

    assert slope == pytest.approx(np.median(slopes))
    assert low in slopes
    assert high in slopes
    # Kendall's S has a deviation of 56.0 for 30 levels: 435 pairs less and more 109.8, halved.
    assert (slopes.index(low), slopes.index(high)) == (162, 273)


def test_noise_hardly_ever_grows():
    random_sizes = random.Random(1)
    found = 0
    for _ in range(500):
        counts = np.array([random_sizes.randrange(1, 6) for _ in range(24)])
        found += growth(counts * MIB, counts, np.arange(24)) is not None

    assert found <= 2


def test_the_text_says_what_grows_and_what_is_known():
    text = findings_text(growth_of(of(a_list).leaks()))

    assert "keeps 1.00 MiB more with each iteration." in text
    assert "24.0 MiB in 24 arrays after 24 iterations; nothing used these arrays again." in text
    assert "24.0 MiB: work (" in text


def test_a_notebook_shows_what_grows_as_it_shows_findings():
    html = growth_of(in_cells([[("a < b", MIB)]] * 6).leaks())._repr_html_()

    assert "a &lt; b" in html
    assert "6.00 MiB in 6 arrays after 6 runs of its cell" in html


def test_the_latest_recording_is_meant():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    kept = []
    with gpuviz.record(device=gpu) as recorder:
        a_list(gpu, kept)
        assert gpuviz.leaks().num_rows == 1

    assert gpuviz.leaks().equals(recorder.recording.leaks())
    with pytest.raises(ValueError, match="no device 3"):
        gpuviz.leaks(device=3)


def test_what_keeps_the_memory_of_a_line_is_named_while_it_is_recorded():
    gpu = gpuviz.SimulatedGPU(memory=1 << 40, real_time=False)
    kept = [gpu.empty(300 << 30)]  # so that no array of another test has the same address
    with gpuviz.record(device=gpu) as recorder:
        a_list(gpu, kept)
        (row,) = gpuviz.leaks().to_pylist()

    assert row["kept_by"].startswith("local `kept` of the running test_what_keeps_")
    assert f"Kept alive by {row['kept_by']}." in findings_text(
        growth_of(pa.Table.from_pylist([row]))
    )
    assert recorder.recording.leaks()["kept_by"].to_pylist() == [""]


def test_without_a_recording_there_are_no_leaks_to_list(monkeypatch):
    monkeypatch.setattr(Recorder, "_latest", None)

    with pytest.raises(RecorderError, match="There is no recording in this process"):
        gpuviz.leaks()


def test_an_empty_recording_has_no_leaks():
    assert Recording({}, Manifest()).leaks().num_rows == 0


def test_tiny_growth_is_listed_and_no_finding_worth_showing():
    def program(gpu, kept):
        for _ in range(STEPS):
            work(gpu)
            kept.append(work(gpu, KIB))

    recording = of(program)

    assert recording.leaks().num_rows == 1
    assert [each for each in recording.findings() if each.rule == "R09"] == []
