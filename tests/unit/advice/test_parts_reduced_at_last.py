"""R63: arrays that a loop fills part by part, only to reduce them."""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from gpuviz.advice.findings import findings
from gpuviz.data.columns import plain
from gpuviz.recording import Recording
from tests.unit.advice.arrays import MI, of_arrays

PARTS, SIZE = 10, 2 * MI
_COPY = "cupy_copy__float32_float32"


def averages(  # noqa: PLR0913 - the program's variants
    cp, *, name="cupy_mean", result=SIZE, fills=False, times=1, parts=PARTS, then=None
):
    """Simulate paths, of which the mean over all steps is needed."""
    for _ in range(times):
        paths = cp.empty(parts * SIZE)
        if fills:
            cp.kernel("cupy_fill", [], [paths])
        for _ in range(parts):
            state = cp.random(SIZE)
            cp.kernel(_COPY, [state], [paths])
            del state
        mean = cp.empty(result)
        cp.kernel(name, [paths], [mean])
        if then is not None:
            then(paths)
        del paths
        float(mean)


def sums(cp, *, times=1):
    """Add each step to the sum."""
    for _ in range(times):
        total = cp.empty(SIZE)
        for _ in range(PARTS):
            state = cp.random(SIZE)
            total += state
            del state
        mean = cp.empty(SIZE)
        cp.kernel("cupy_true_divide__float32_float_float32", [total], [mean])
        del total
        float(mean)


def reads_the_last(cp, *, name=_COPY):
    """Each step reads the array with those before."""
    paths = cp.empty(PARTS * SIZE)
    for _ in range(PARTS):
        state = cp.random(SIZE)
        cp.kernel(name, [state], [paths])
        cp.kernel("cupy_add__float32_float32", [paths], [state])
        del state
    float(paths.sum())
    del paths


def uses_all_again(cp):
    paths = cp.empty(PARTS * SIZE)
    for _ in range(PARTS):
        cp.kernel(_COPY, [cp.random(SIZE)], [paths])
    mean = cp.empty(SIZE)
    cp.kernel("cupy_mean", [paths], [mean])
    cp.kernel("cupy_subtract__float32_float32_float32", [paths, mean], [cp.empty(PARTS * SIZE)])
    del paths
    float(mean)


def stacks(cp):
    """Write all parts by one line, as `stack` does."""
    states = [cp.random(SIZE) for _ in range(PARTS)]
    paths = cp.joined(states)
    del states
    float(paths.sum())
    del paths


def keeps(cp):
    paths = cp.empty(PARTS * SIZE)
    for _ in range(PARTS):
        cp.kernel(_COPY, [cp.random(SIZE)], [paths])
    cp.paths = paths
    float(paths.sum())


def in_parts(program, *, order=range(PARTS), parts=PARTS):
    """Return the recording of a program whose copies write one part of an array after the other."""
    recording = of_arrays(program)
    table, nbytes = recording.tables["launch_blocks"], 4 * SIZE
    events = recording.tables["memory_events"]
    is_large = plain(events["requested_size"]) == parts * nbytes
    large = np.isin(plain(table["block"]), plain(events["address"])[is_large])
    names = {each["id"]: each["text"] for each in recording.tables["strings"].to_pylist()}
    activities = recording.tables["activities"].to_pylist()
    name = {each["correlation"]: names.get(each["name"], "") for each in activities}
    address, size = plain(table["address"]).copy(), plain(table["bytes"]).copy()
    written = 0
    for row, each in enumerate(table.to_pylist()):
        if not large[row]:
            continue
        size[row] = parts * nbytes
        if each["mode"] == "write" and name[each["correlation"]] == _COPY:
            address[row] += order[written % parts] * nbytes
            size[row] = nbytes
            written += 1
    for column, values in (("address", address), ("bytes", size)):
        place = table.column_names.index(column)
        table = table.set_column(place, table.schema.field(place), pa.array(values, pa.uint64()))
    return Recording({**recording.tables, "launch_blocks": table}, recording.manifest)


def of(recording):
    return [each for each in findings(recording, small=True) if each.rule == "R63"]


@pytest.mark.parametrize("fills", [False, True])
@pytest.mark.parametrize("times", [1, 3])
def test_parts_of_an_array_could_be_added_where_they_are_made(fills, times):
    program = partial(averages, fills=fills, times=times)
    (finding,) = of(in_parts(program))

    assert finding.title == (
        "80.0 MiB of the peak is kept until `cp.kernel(name, [paths], [mean])` reduces what "
        "`cp.kernel(_COPY, [state], [paths])` writes."
    )
    assert finding.reason.startswith("`cp.kernel(_COPY, [state], [paths])` writes 10 parts of one")
    after = of_arrays(partial(sums, times=times))
    assert finding.saved_bytes == of_arrays(program).peak().bytes - after.peak().bytes
    assert of(after) == []


@pytest.mark.parametrize("name", ["cupy_sum", "cupy_amax", "cupy_min", "cupy_nansum"])
def test_other_reductions_can_be_updated(name):
    assert len(of(in_parts(partial(averages, name=name, result=1)))) == 1


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(partial(averages, name="cupy_var_core_float32"), id="a variance"),
        pytest.param(partial(averages, name="cupy_argmax"), id="a place"),
        pytest.param(partial(averages, name="cupy_nanmean"), id="a mean without NaN"),
        pytest.param(partial(averages, then=float), id="copied to the host after that"),
        pytest.param(partial(averages, name="sort"), id="a median"),
        pytest.param(partial(averages, result=2 * SIZE), id="a large result"),
        pytest.param(reads_the_last, id="read in the loop"),
        pytest.param(uses_all_again, id="read after that"),
        pytest.param(stacks, id="written by one line"),
        pytest.param(keeps, id="still there at the end"),
    ],
)
def test_parts_that_are_needed_are_no_finding(program):
    assert not any("reduces what" in each.title for each in of(in_parts(program)))


@pytest.mark.parametrize(("parts", "found"), [(3, 0), (4, 1)])
def test_few_parts_are_no_finding(parts, found):
    assert len(of(in_parts(partial(averages, parts=parts, result=1), parts=parts))) == found


@pytest.mark.parametrize("order", [[0] * PARTS, [*range(1, PARTS), 0], [0, 0, *range(2, PARTS)]])
def test_parts_that_are_not_written_one_after_the_other_are_no_finding(order):
    assert of(in_parts(averages, order=order)) == []
