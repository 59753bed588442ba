"""R65: a program of Numba that passes arrays of the host, recorded on a GPU; see data/heat.py."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import gpuviz
from gpuviz.recording import Recording

RECORDED = Path(__file__).parent / "data" / "heat.gpuviz"


@pytest.fixture(scope="module")
def recording():
    return gpuviz.load(RECORDED)


def with_column(recording, table, column, values):
    before = recording.tables[table]
    place = before.schema.get_field_index(column)
    field = before.schema.field(place)
    after = before.set_column(place, field, values.cast(field.type))
    return Recording({**recording.tables, table: after}, recording.manifest)


def with_contents(recording, of_copy):
    """Return the recording as if each copy had the content that a function makes of its number.

    Args:
        recording: The recording.
        of_copy: Gets the launch, whether the copy is to the host, and the argument's number.
    """
    copies = [row for row in recording.tables["activities"].to_pylist() if row["copy_kind"]]
    copies.sort(key=lambda row: row["time"])
    contents = {
        row["correlation"]: of_copy(number // 4, row["copy_kind"] == "device_to_host", number % 2)
        for number, row in enumerate(copies)
    }
    correlations = recording.tables["launch_blocks"]["correlation"].to_pylist()
    values = pa.array([contents.get(each, 0) for each in correlations], pa.uint64())
    return with_column(recording, "launch_blocks", "content", values)


def rules(recording):
    return [each.rule for each in recording.findings()]


def test_arrays_of_the_host_are_to_stay_on_the_gpu(recording):
    finding = recording.findings()[0]

    assert finding.rule == "R65"
    assert finding.title == (
        "`heat[(128, 128), (16, 16)](u, v, 0.2)` gets arrays of the host: 798 copies to the GPU "
        "and back, 12.5 GiB in all, may be needless."
    )
    work = recording.tables["activities"].to_pylist()
    copied_ns = sum(row["end"] - row["time"] for row in work if row["copy_kind"])
    # The host waits for each copy, and does little else.
    assert 0.99 * copied_ns < finding.saved_ns < recording.duration_ns


def test_pinned_arrays_are_those_of_numba(recording):
    (found,) = [each for each in recording.findings() if each.rule == "R17"]

    assert "`cuda.pinned_array`" in found.change


def test_one_array_is_new_in_each_launch(recording):
    # The first argument comes back as it was, and the second is what the kernel computes.
    def content(launch, is_to_host, argument):
        return 1 + launch if argument == 0 else 10_000 + 2 * launch + is_to_host

    found = [each for each in with_contents(recording, content).findings() if each.rule == "R65"]

    assert len(found) == 1
    assert "200 copies to the GPU and back, 3.13 GiB in all" in found[0].title


def test_data_that_is_always_new_has_to_be_copied(recording):
    numbers = iter(range(1, 10_000))
    found = rules(with_contents(recording, lambda *_: next(numbers)))

    assert "R65" not in found
    assert "R17" in found


def test_copies_that_the_program_makes_itself_are_no_arguments(recording):
    frames = recording.tables["frames"]
    names = pa.array([each.replace("args.py", "own.py") for each in frames["filename"].to_pylist()])
    found = rules(with_column(recording, "frames", "filename", names))

    assert "R65" not in found
    # What comes back from the GPU is not known to be the same, with zeros at 64 places.
    assert "R29" not in found


def test_few_copies_are_no_loop(recording):
    rows = recording.tables["launch_blocks"]
    copies = np.flatnonzero(rows["content"].to_numpy())
    contents = np.zeros(rows.num_rows, np.uint64)
    contents[copies[:4]] = 1
    found = rules(with_column(recording, "launch_blocks", "content", pa.array(contents)))

    assert "R65" not in found
