"""Columns that follow from others."""

import pyarrow as pa
import pytest

from gpuviz.data.implied_columns import assigned_names, with_assigned
from gpuviz.recording import load
from tests.unit.report.recordings import make_recording


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("background = ndimage.gaussian_filter(", "background"),
        ("labels, found = ndimage.label(smooth > THRESHOLD)", "labels, found"),
        ("(a, b) = f()", "a, b"),
        ("first, = f()", "first"),
        ("*rest, last = f()", "rest, last"),
        ("self.spectrum = fft.rfft(signal)", "spectrum"),
        ("total: cp.ndarray = cp.zeros(3)", "total"),
        ("x=cp.zeros(3)", "x"),
        ("größe = a == b", "größe"),
        ("a = b = f()", "a"),
    ],
)
def test_a_line_is_known_by_what_it_assigns_to(source, names):
    assert assigned_names(source) == names


@pytest.mark.parametrize(
    "source",
    [
        "",
        "f(x=3)",
        "x[0] = f()",
        "x += f()",
        "x == f()",
        "else: x = f()",
        "dtype=cp.float32,",
        "out=x)",
        "dtype = float)",
        "return cp.zeros(3)",
        "with stream as s:",
        "lambda x: y",
    ],
)
def test_a_line_without_a_named_target_has_no_name(source):
    assert assigned_names(source) == ""


def test_a_file_without_the_column_gets_it(tmp_path):
    recording = make_recording(text="f()")
    frames = recording.tables["frames"]
    older = frames.drop_columns("assigned")

    assert frames["assigned"].to_pylist() == ["x", ""]
    assert with_assigned(older).equals(frames)
    assert with_assigned(older.slice(0, 0)).schema.equals(frames.schema)
    path = recording.save(tmp_path / "run.gpuviz")
    assert load(path).tables["frames"]["assigned"].type == pa.dictionary(pa.int32(), pa.utf8())
