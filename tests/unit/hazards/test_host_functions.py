"""Functions that streams call on the host, which may tell the program what is done."""

import pyarrow as pa
import pytest

from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.unit.hazards.two_streams import LONG_S, Program


def with_function(recording, *, after, stream, later_ns=0):
    """Return the recording with a function that a stream calls on the host after a kernel."""
    tables = dict(recording.tables)
    kernels = {
        recording.table("strings")["text"][row["name"] - 1].as_py(): row
        for row in recording.table("activities").to_pylist()
        if row["kind"] == "kernel"
    }
    calls, strings = tables["api_calls"].to_pylist(), tables["strings"].to_pylist()
    name = max(row["id"] for row in strings) + 1
    (place,) = (
        number
        for number, row in enumerate(calls)
        if row["correlation"] == kernels[after]["correlation"]
    )
    before = calls[place]
    correlation = max(row["correlation"] for row in calls) + 1
    begin = before["end"] + later_ns
    own = {"time": begin, "end": begin, "name": name, "correlation": correlation}
    number = kernels[stream]["stream"] if stream else 0
    calls.insert(place + 1, before | own | {"stream": number})
    strings.append({"id": name, "text": "cuLaunchHostFunc"})
    tables["api_calls"] = pa.Table.from_pylist(calls, schema=schemas()["api_calls"])
    tables["strings"] = pa.Table.from_pylist(strings, schema=schemas()["strings"])
    return Recording(tables, recording.manifest)


@pytest.mark.parametrize(
    ("stream", "later_ns", "pause_s", "kinds"),
    [
        ("write", 0, 2 * LONG_S, []),
        ("write", 1_500_000, 2 * LONG_S, []),  # it runs at once
        ("write", 0, LONG_S / 2, ["RAW"]),  # it has not run yet
        ("other", 0, 2 * LONG_S, ["RAW"]),
        ("", 0, 2 * LONG_S, ["RAW"]),  # unknown, as in older recordings
    ],
)
def test_what_a_function_can_have_told_the_host_comes_before_later_work(
    stream, later_ns, pause_s, kinds
):
    program = Program()
    a, b = program.empty(program.s), program.empty(program.t)
    program.launch(program.t, "other", writes=[b])
    program.launch(program.s, "write", writes=[a])
    program.gpu.work_on_host(pause_s)
    program.launch(program.t, "read", reads=[a])

    recording = with_function(program.recording(), after="write", stream=stream, later_ns=later_ns)

    assert [each.kind for each in recording.hazards()] == kinds
