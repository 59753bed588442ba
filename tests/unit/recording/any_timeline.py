"""Random small recordings of GPUs and hosts, in which everything may overlap."""

from hypothesis import strategies as st

from tests.unit.recording.from_activities import Timeline
from tests.unit.recording.plain_overlap import ALLOCATING, BLOCKING, HOST_WAITS

TIMES = st.integers(0, 40)
STREAMS = st.integers(1, 3)
CORRELATIONS = st.integers(0, 12)
SYNC_IDS = st.integers(0, 3)


@st.composite
def any_timeline(draw):
    """A few activities, calls and synchronizations in 50 ns, consistent or not."""
    timeline = Timeline()
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(["kernel", "kernel", "memcpy", "memset", "graph", "range"]))
        time = draw(TIMES)
        columns = {
            "stream": draw(STREAMS),
            "device": draw(st.sampled_from([0, 0, 0, 1])),
            "correlation": draw(CORRELATIONS),
            "copy_kind": draw(st.sampled_from(["", "device_to_device", "peer_to_peer"])),
        }
        timeline.activity(kind, time, time + draw(st.integers(-2, 10)), **columns)
    names = ["cuLaunchKernel", *ALLOCATING, *BLOCKING, "cuEventQuery", "cuMemAllocAsync"]
    for _ in range(draw(st.integers(0, 10))):
        time = draw(TIMES)
        name = draw(st.sampled_from(names))
        columns = {"correlation": draw(CORRELATIONS), "thread": draw(st.integers(1, 2))}
        timeline.call(time, time + draw(st.integers(0, 10)), name, **columns)
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(["event_record", "stream_wait_event", *HOST_WAITS]))
        time = draw(TIMES)
        columns = {
            "stream": draw(STREAMS),
            "correlation": draw(CORRELATIONS),
            "event_sync_id": draw(SYNC_IDS),
        }
        timeline.synchronization(kind, time, time + draw(st.integers(0, 10)), **columns)
    return timeline.recording()


@st.composite
def any_program(draw):
    """A program's calls, consecutive on each of two threads, and their activities."""
    timeline = Timeline()
    now = {1: 0, 2: 0}
    kinds = st.sampled_from(["kernel", "memcpy", "record", "wait", *ALLOCATING, *BLOCKING])
    for correlation, kind in enumerate(draw(st.lists(kinds, min_size=6, max_size=16)), 1):
        thread = draw(st.integers(1, 2))
        begin = now[thread] + draw(st.integers(0, 4))
        now[thread] = begin + draw(st.integers(0, 6))
        stream = {"stream": draw(st.integers(1, 2)), "correlation": correlation}
        name = kind if kind in ALLOCATING | BLOCKING else "cuLaunchKernel"
        timeline.call(begin, now[thread], name, thread=thread, correlation=correlation)
        start = begin + draw(st.integers(0, 20))
        if kind in {"kernel", "memcpy"}:
            timeline.activity(kind, start, start + draw(st.integers(0, 6)), **stream)
        elif kind == "wait":
            stream["event_sync_id"] = draw(st.integers(1, 2))
            timeline.synchronization("stream_wait_event", begin, begin, **stream)
        elif kind == "record":
            moment = draw(st.sampled_from([0, start]))
            stream["event_sync_id"] = draw(st.integers(1, 2))
            timeline.synchronization("event_record", moment, moment, **stream)
    return timeline.recording()


RECORDINGS = st.one_of(any_timeline(), any_program())
