"""R43: work of the host around uploads, and of threads without Python code."""

import itertools

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gpuviz.advice.findings import findings
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.unit.advice.host_work import (
    uploads,
    with_samples,
)
from tests.unit.advice.programs import within
from tests.unit.advice.timed_programs import saved_ns, timed

CUPY = "/env/lib/python3.12/site-packages/cupy/_creation/from_data.py"


def uploads_pinned(gpu):
    uploads(gpu, rate=1e15)


def in_cupy(program):
    return within(timed(program), CUPY, "asarray")


def idle_of(recording):
    return [each for each in findings(recording, small=True) if each.rule == "R43"]


@pytest.mark.parametrize("is_sampled", [False, True])
def test_a_library_s_copy_to_pinned_memory_is_called_so(is_sampled):
    recording = in_cupy(uploads)
    if is_sampled:
        calls = recording.tables["api_calls"].to_pylist()
        launches = {row["correlation"]: row["stack"] for row in calls}
        copies = recording.tables["activities"].filter(pc.field("kind") == "memcpy")
        upload = launches[copies["correlation"][0].as_py()]
        rows = with_samples(recording).tables["host_samples"].to_pylist()
        samples = [row | {"stack": upload} for row in rows]
        table = pa.Table.from_pylist(samples, schemas()["host_samples"])
        recording = Recording({**recording.tables, "host_samples": table}, recording.manifest)
    (finding,) = idle_of(recording)

    assert "while the host copies an array to pinned memory, to upload it, in `_ =" in finding.title
    assert "cupyx.empty_pinned" in finding.change
    assert finding.saved_ns == pytest.approx(saved_ns(uploads, uploads_pinned), rel=0.1)
    assert idle_of(in_cupy(uploads_pinned)) == []


@pytest.mark.parametrize(
    "recording",
    [
        pytest.param(lambda: timed(uploads), id="a loop of the program's own"),
        pytest.param(
            lambda: in_cupy(lambda gpu: uploads(gpu, rate=1e9)), id="conversion of a list"
        ),
    ],
)
def test_other_work_before_an_upload_is_not_a_copy_to_pinned_memory(recording):
    (finding,) = idle_of(recording())

    assert "pinned memory" not in finding.title + finding.change


def by_another_thread(recording, *, waiting=(1,)):
    """Let a thread without Python code upload arrays, as XLA's, for which others wait."""
    tables = recording.tables
    uploaded = tables["activities"].filter(pc.field("kind") == "memcpy")["correlation"].to_pylist()
    calls = tables["api_calls"].to_pylist()
    line = calls[-2]["stack"]
    samples = []
    for before, row in itertools.pairwise(calls):
        if row["correlation"] in uploaded:
            row |= {"thread": 9, "stack": 0}
            span = {"time": before["end"], "end": row["time"], "samples": 1, "holder": 0}
            samples.append(span | {"thread": 9, "stack": 0, "state": "working"})
            samples += (
                span | {"thread": thread, "stack": line, "state": "waiting"} for thread in waiting
            )
    changed = {"api_calls": calls, "host_samples": samples}
    changed = {name: pa.Table.from_pylist(rows, schemas()[name]) for name, rows in changed.items()}
    return Recording({**tables, **changed}, recording.manifest)


def test_the_line_that_waits_for_a_thread_without_python_code_is_named():
    recording = by_another_thread(timed(uploads))
    (finding,) = idle_of(recording)

    assert "copies an array to pinned memory, to upload it, in `gpu.launch(" in finding.title
    assert "jax.device_put" in finding.change
    assert finding.saved_ns == pytest.approx(saved_ns(uploads, uploads_pinned), rel=0.1)


def test_a_thread_without_python_code_works_for_no_line_if_several_threads_run_python():
    recording = by_another_thread(timed(uploads), waiting=(1, 2))

    assert {work["text"] for work in recording.host_work().to_pylist()} == {"unknown code"}
