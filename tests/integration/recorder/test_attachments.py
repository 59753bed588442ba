"""CUPTI that is attached repeatedly, against a library that counts as it does."""

import ctypes

import pytest

from gpuviz import _core
from tests.native.compilation import compile_cupti


@pytest.fixture(scope="module")
def cupti(tmp_path_factory):
    """Return the path of a CUPTI without a GPU."""
    return compile_cupti(tmp_path_factory.mktemp("cupti"))


def test_calls_and_streams_keep_their_ids_over_attachments(cupti):
    launch = ctypes.CDLL(str(cupti)).fake_launch
    session = _core.Session(stack_depth=0)
    session.start()
    tracer = _core.CuptiTracer(str(cupti), session, stacks=False)
    tables = {"api_calls": [], "activities": []}
    streams = []
    for number in range(3):
        tracer.start()
        for _ in range(number + 1):
            launch(0)
        tracer.pause()
        launch(0)  # nobody sees it
        taken = session.take_tables(flush=True)
        for name, correlations in tables.items():
            correlations += [each for rows in taken[name] for each in rows["correlation"].tolist()]
        streams += [each for rows in taken["activities"] for each in rows["stream"].tolist()]
    tracer.start()
    tracer.stop()
    session.stop()

    assert tables["api_calls"] == tables["activities"] == [1, 2, 3, 4, 5, 6]
    assert streams == [streams[0]] * 6
    assert [row[2] for row in session.streams()] == [0x5000]
    assert (tracer.launches, tracer.calls, tracer.records) == (6, 6, 6)
    assert ctypes.CDLL(str(cupti)).fake_attachments() == 4


def test_work_that_does_not_end_delays_a_pause_but_not_for_long(cupti):
    launch = ctypes.CDLL(str(cupti)).fake_launch
    session = _core.Session(stack_depth=0)
    session.start()
    tracer = _core.CuptiTracer(str(cupti), session, stacks=False)
    tracer.start()
    launch(0)
    launch(1)
    paused_ns = tracer.pause()
    tracer.start()
    launch(0)
    tracer.stop()
    session.stop()
    taken = session.take_tables(flush=True)

    calls, work = (taken[name][0]["correlation"].tolist() for name in ("api_calls", "activities"))
    assert (calls, work) == ([1, 2, 3], [1, 3])
    assert session.start_ns < paused_ns
    assert taken["api_calls"][0]["time"].tolist()[1] < paused_ns - session.start_ns


def test_nothing_is_flushed_meanwhile_once_a_program_builds_graphs_itself(cupti):
    library = ctypes.CDLL(str(cupti))
    session = _core.Session(stack_depth=0)
    session.start()
    tracer = _core.CuptiTracer(str(cupti), session, stacks=False)
    tracer.start()
    library.fake_launch(0)
    tracer.flush()
    before = tracer.records
    library.fake_graph_add_node()
    library.fake_launch(0)
    tracer.flush()
    meanwhile = tracer.records
    tracer.stop()
    session.stop()

    assert (before, meanwhile, tracer.records) == (1, 1, 2)
