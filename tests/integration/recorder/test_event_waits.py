"""Which record of an event a wait refers to, against a CUPTI without a GPU."""

import ctypes

import pytest

from gpuviz import _core
from tests.native.compilation import compile_cupti

EVENT, OTHER = 0x7F00, 0x7F10
INTERPROCESS = 4
WAITS = ["event_query", "event_synchronize", "stream_wait_event"]


@pytest.fixture(scope="module")
def cupti(tmp_path_factory):
    """Return the path of a CUPTI without a GPU."""
    return compile_cupti(tmp_path_factory.mktemp("cupti"))


def sync_ids(cupti, *calls):
    """Return the sync id of each row of ``synchronizations`` after these calls."""
    library = ctypes.CDLL(str(cupti))
    session = _core.Session(stack_depth=0)
    session.start()
    tracer = _core.CuptiTracer(str(cupti), session, stacks=False)
    tracer.start()
    for name, *arguments in calls:
        if name == "pause":
            tracer.pause()
            tracer.start()
        else:
            getattr(library, f"fake_{name}")(*arguments)
    tracer.stop()
    session.stop()
    rows = session.take_tables(flush=True)["synchronizations"]
    return [each for part in rows for each in part["event_sync_id"].tolist()]


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_for_an_event_that_was_created_and_not_yet_recorded_has_no_row(cupti, wait):
    found = sync_ids(
        cupti,
        ("event_create", EVENT, 0),
        (wait, EVENT),
        ("event_record", EVENT),
        (wait, EVENT),
        ("event_destroy", EVENT),
        ("event_create", EVENT, 0),
        (wait, EVENT),
    )

    assert found == [1, 1]


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize(
    "before",
    [
        [],
        [("event_create", OTHER, 0)],
        [("event_create", EVENT, INTERPROCESS)],
        [("event_create", EVENT, 0), ("event_destroy", EVENT)],
        [("event_create", EVENT, 0), ("pause",)],
        [("event_create", EVENT, 0), ("graph_add_node",)],
    ],
    ids=["unseen", "other", "interprocess", "destroyed", "paused", "graph"],
)
def test_an_event_that_may_have_been_recorded_unseen_is_unknown(cupti, wait, before):
    assert sync_ids(cupti, *before, (wait, EVENT)) == [0]


def test_an_event_that_is_created_after_a_change_of_a_graph_is_known(cupti):
    changed = [("graph_add_node",), ("event_create", EVENT, 0), ("event_synchronize", EVENT)]

    assert sync_ids(cupti, *changed) == []


@pytest.mark.parametrize("wait", WAITS)
def test_an_event_that_a_launch_records_is_one_whose_record_was_not_seen(cupti, wait):
    recorded = [("event_create", EVENT, 0), ("event_create", OTHER, 0)]

    found = sync_ids(cupti, *recorded, ("launch_with_event", EVENT), (wait, EVENT), (wait, OTHER))

    assert found == [1]
