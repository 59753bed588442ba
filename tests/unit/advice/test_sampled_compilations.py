"""R47: compilations of XLA that ran before the first recording, and marks none."""

import pyarrow as pa
import pytest

from gpuviz.advice.findings import findings
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.unit.recording.from_activities import Timeline

MS = 1_000_000
RUNS = 6


def recorded(*, compilations=RUNS, runs_of_each=1, marks=False):
    """Return the recording of a program whose line runs functions that XLA compiles before.

    Args:
        compilations: How many of the runs are of a new function.
        runs_of_each: How often the line runs each.
        marks: Whether XLA has ranges, as it does if it runs first while the program is recorded.
    """
    timeline, now, launches = Timeline(), MS, 0
    samples = {"thread": 1, "state": "working", "samples": 50}
    for number in range(RUNS):
        if number < compilations:
            end = now + 100 * MS
            stack = timeline.stack(7, "jax/_src/compiler")
            timeline.add("host_samples", samples | {"time": now, "end": end, "stack": stack})
            if marks:
                name = timeline.text("XlaCompile:#module=jit_update#")
                row = {"id": number + 1, "time": now, "end": end, "thread": 1, "kind": "nvtx"}
                timeline.add("ranges", row | {"name": name})
            now = end
        for _ in range(runs_of_each):
            launches += 1
            timeline.call(now, now + 10_000, line=7, correlation=launches)
            timeline.kernel(now + 20_000, now + MS, correlation=launches)
            now += 2 * MS
    timeline.add("devices", {"device": 0, "name": "GPU"})
    return timeline.recording(duration_ns=now + MS)


def through_operation(recording):
    """Return a recording as if an operation of JAX outside of `jax.jit` ran each function."""
    frames, stacks = recording.tables["frames"].to_pylist(), recording.tables["stacks"].to_pylist()
    file = "/x/site-packages/jax/_src/numpy/array_creation.py"
    operation = frames[0] | {"id": 1000, "name": "zeros", "filename": file}
    outer = [row | {"frames": [*row["frames"][:-1], 1000, row["frames"][-1]]} for row in stacks]
    changed = {"frames": [*frames, operation], "stacks": outer}
    tables = {name: pa.Table.from_pylist(rows, schemas()[name]) for name, rows in changed.items()}
    return Recording({**recording.tables, **tables}, recording.manifest)


def found(**options):
    return [each for each in findings(recorded(**options), small=True) if each.rule == "R47"]


def test_a_line_that_compiles_each_time_is_found_and_once_saves_what_was_predicted():
    (finding,) = found()

    measured = recorded().duration_ns - recorded(compilations=1).duration_ns
    assert finding.saved_ns == pytest.approx(measured, rel=0.02)
    assert finding.title == (
        "XLA compiled what `line 7` runs 6 times, in 600 ms: each time that it ran."
    )
    assert finding.certainty == "possible"
    assert [each.rule for each in findings(recorded())] == ["R47"]


@pytest.mark.parametrize("options", [{"compilations": 2}, {"runs_of_each": 2}])
def test_what_is_compiled_once_is_said_to_be_kept(options):
    (finding,) = found(**options)

    assert finding.title.startswith(f"XLA compiled {options.get('compilations', RUNS)} times, in ")
    assert "jax_compilation_cache_dir" in finding.change


def test_an_operation_of_jax_may_be_for_other_arrays_each_time():
    recording = through_operation(recorded())

    (finding,) = [each for each in findings(recording, small=True) if each.rule == "R47"]

    assert finding.title.startswith("XLA compiled 6 times, in ")


def test_compilations_that_xla_marks_are_counted_once():
    (finding,) = found(marks=True)

    assert finding.title == "XLA compiled 6 functions in 600 ms."
