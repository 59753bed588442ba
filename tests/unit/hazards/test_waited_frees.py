"""Frees of PyTorch's allocator that waited for other streams, of which its trace has no entry."""

import pyarrow as pa
import pytest

from gpuviz.data.tables import FRAMEWORKS
from gpuviz.recording import Recording
from tests.unit.hazards.two_streams import Program


def of_torch(recording, *, later_ns, in_the_next_allocation):
    """Return the recording as if PyTorch had allocated, and completed frees later."""
    events = recording.tables["memory_events"]
    rows = events.to_pylist()
    for row in rows:
        if row["action"] == "free_completed":
            row["time"] += later_ns
            if in_the_next_allocation:
                row["stack"] = max(each["stack"] for each in rows)
    columns = {name: [row[name] for row in rows] for name in ("time", "stack")}
    for name, values in columns.items():
        place = events.schema.get_field_index(name)
        column = pa.array(values, events.schema.field(name).type)
        events = events.set_column(place, name, column)
    owners = pa.array([FRAMEWORKS.index("torch")] * len(rows), pa.int8())
    torch = pa.DictionaryArray.from_arrays(owners, pa.array(FRAMEWORKS))
    events = events.set_column(events.schema.get_field_index("framework"), "framework", torch)
    return Recording({**recording.tables, "memory_events": events}, recording.manifest)


@pytest.mark.parametrize(
    ("later_ns", "in_the_next_allocation", "kinds"),
    [
        (0, False, ["reuse", "use_after_free"]),
        (5_000, False, ["reuse", "use_after_free"]),
        (5_000, True, []),
        (100_000, False, []),
    ],
)
def test_a_free_that_waited_is_ordered_after_the_streams_that_used_the_memory(
    later_ns, in_the_next_allocation, kinds
):
    program = Program()
    a = program.empty(program.s)
    program.launch(program.t, "read", reads=[a])
    del a
    program.gpu.work_on_host(200e-6)
    b = program.empty(program.s)
    program.launch(program.s, "write", writes=[b])

    recording = of_torch(
        program.recording(), later_ns=later_ns, in_the_next_allocation=in_the_next_allocation
    )

    assert [each.kind for each in recording.hazards()] == kinds
