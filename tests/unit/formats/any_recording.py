"""Random small recordings in which everything may overlap."""

from typing import Any

from hypothesis import strategies as st

from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import DICTIONARIES
from gpuviz.recording import Recording
from tests.unit.recording.from_activities import Timeline, rows_of
from tests.unit.recording.from_events import rows_table

HOSTILE = (
    "<script>alert(1)</script>",
    '"}],"quoted',
    "back\\slash\n\t\0\x1b[31m",
    "émoji 🧨 \u202e",
    "\ufeff\uffff",
    "void f<float>(float*)",
)
TIMES = st.integers(0, 30)
LENGTHS = st.integers(-2, 12)
CORRELATIONS = st.integers(0, 6)
CALLS = ("cuLaunchKernel", "cuStreamSynchronize", "cuEventQuery", "cuMemcpyHtoD_v2")


@st.composite
def any_recording(draw: Any) -> Recording:
    """Activities, calls, waits, ranges and memory events, consistent or not."""
    timeline = Timeline()
    names = st.sampled_from(HOSTILE)
    for _ in range(draw(st.integers(0, 8))):
        _add_activity(timeline, draw, draw(names))
    for _ in range(draw(st.integers(0, 6))):
        time = draw(TIMES)
        columns = {"correlation": draw(CORRELATIONS), "thread": draw(st.integers(0, 2))}
        line = draw(st.sampled_from([None, 3, 4]))
        name = draw(st.sampled_from(CALLS))
        timeline.call(time, time + draw(LENGTHS), name, line=line, **columns)
    for _ in range(draw(st.integers(0, 4))):
        time = draw(TIMES)
        kind = draw(st.sampled_from(DICTIONARIES["synchronizations", "kind"]))
        timeline.synchronization(
            kind, time, time + draw(LENGTHS), correlation=draw(CORRELATIONS), stream=1
        )
    for number in range(1, draw(st.integers(1, 5))):
        time = draw(TIMES)
        end = draw(st.sampled_from([-1, time, time + 4, time + 9]))
        row = {"id": number, "time": time, "end": end, "name": timeline.text(draw(names))}
        kind = draw(st.sampled_from(DICTIONARIES["ranges", "kind"]))
        timeline.add("ranges", row | {"kind": kind, "thread": draw(st.integers(0, 2))})
    timeline.add("threads", {"id": 1, "name": "MainThread"})
    timeline.add("streams", {"id": 1, "name": draw(names)})
    timeline.add("streams", {"id": 2, "name": draw(names)})
    timeline.add("devices", {"id": 0, "name": draw(names)})
    streams = timeline.recording(start_unix_ns=1234, label=draw(names), program=(draw(names),))
    return with_memory(streams, draw(st.lists(memory_event(), max_size=8)))


def _add_activity(timeline: Timeline, draw: Any, name: str) -> None:
    kind = draw(st.sampled_from(["kernel", "kernel", "memcpy", "memset", "graph", "range"]))
    time = draw(TIMES)
    end = time + draw(LENGTHS)
    columns = {
        "stream": draw(st.integers(0, 3)),
        "device": draw(st.sampled_from([0, 0, 3])),
        "correlation": draw(CORRELATIONS),
    }
    if kind == "kernel":
        launch = (draw(st.integers(1, 2)), draw(st.integers(1, 2)))
        timeline.kernel(time, end, name, launch=launch, **columns)
    elif kind == "memcpy":
        copy_kind = draw(st.sampled_from(DICTIONARIES["activities", "copy_kind"]))
        timeline.copy(time, end, bytes=draw(st.integers(0, 99)), copy_kind=copy_kind, **columns)
    else:
        timeline.activity(kind, time, end, name=timeline.text(name), **columns)


@st.composite
def memory_event(draw: Any) -> dict[str, Any]:
    """A random row of ``memory_events``."""
    actions = DICTIONARIES["memory_events", "action"]
    return {
        "action": draw(st.sampled_from(actions)),
        "address": 512 * draw(st.integers(1, 4)),
        "size": 512,
        "requested_size": draw(st.integers(0, 512)),
        "device": draw(st.integers(0, 1)),
        "pause": draw(st.integers(0, 3)),
    }


def with_memory(recording: Recording, events: list[dict[str, Any]]) -> Recording:
    """Return a recording with memory events, each some time after the previous one."""
    time = 0
    rows = []
    for event in events:
        time += event["pause"]
        rows.append(event | {"time": time})
    used = [{"time": n, "device": 1, "used": 7 * (n // 2)} for n in range(len(events))]
    tables = {"memory_events": rows_table(rows), "device_memory": rows_of("device_memory", used)}
    return Recording(dict(recording.tables) | tables, recording.manifest)


def empty() -> Recording:
    """Return an empty recording."""
    return Recording({}, Manifest())
