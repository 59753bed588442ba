"""When JAX traced functions before XLA compiled them."""

import numpy as np

from gpuviz.analysis.preparation import preparations
from gpuviz.analysis.tracing import tracing
from tests.unit.analysis.test_xla import add_range
from tests.unit.recording.from_activities import Timeline

MS = 1_000_000
JAX, NUMPY = "jax/_src/pjit", "numpy/_core/fromnumeric"


def traced(*samples):
    """Return the recording of a line 7 that waits for XLA from 60 to 100 ms, after some samples."""
    timeline = Timeline()
    timeline.call(0, 2 * MS, line=7, library=JAX)
    for begin, end, line, library in samples:
        row = {"time": begin * MS, "end": end * MS, "thread": 1, "state": "working"}
        timeline.add("host_samples", row | {"stack": timeline.stack(line, library)})
    add_range(timeline, "XlaCompile:#module=jit_update#", 60 * MS, 100 * MS)
    timeline.call(100 * MS, 101 * MS, line=7, library=JAX, correlation=1)
    timeline.kernel(102 * MS, 103 * MS, correlation=1)
    timeline.add("devices", {"device": 0, "name": "GPU"})
    return timeline.recording(duration_ns=104 * MS)


def spans_ms(found):
    return [(begin // MS, end // MS) for begin, end in zip(found.begin, found.end, strict=True)]


def test_jax_traces_where_the_line_that_waits_for_the_compilation_has_called_it():
    recording = traced((1, 40, 7, JAX), (40, 50, 7, NUMPY), (50, 55, 5, JAX), (55, 80, 7, JAX))

    assert spans_ms(tracing(recording, np.array([0]))) == [(2, 40), (55, 60)]


def test_tracing_is_preparation_like_the_compilation_after_it():
    compilation, *_ = preparations(traced((10, 60, 7, JAX)), 1)

    assert compilation.length == 90 * MS


def test_without_samples_no_tracing_is_known():
    assert tracing(traced(), np.array([0])).length == 0
