"""What recording costs, found with calls whose times are known."""

import pytest

from gpuviz.recorder import calibration
from gpuviz.recorder.calibration import KINDS, measured_costs

PLAIN_NS, TRACED_NS = 1_000, 1_600
NODES, LONG_NODES, NODE_GAP_NS = 10, 51, 70


class Calls:
    """Calls that a tracer makes longer, and that take no time after other work."""

    graph_nodes, long_graph_nodes = NODES, LONG_NODES
    traced = False

    def measure(self, _):
        return [TRACED_NS if self.traced else PLAIN_NS] * len(KINDS)

    def make(self, kind):
        pass

    def time_graph(self, _):
        return 50_000 + (LONG_NODES - 1) * NODE_GAP_NS * self.traced


class Session:
    """A session without rows."""

    start_ns = 0

    def __init__(self, **options):
        pass

    def start(self):
        pass

    def stop(self):
        pass

    def take_tables(self, *, flush):
        assert flush
        return {"api_calls": []}


class Tracer:
    """A tracer that makes calls longer."""

    def __init__(self, library, session, *, stacks):
        pass

    def start(self):
        Calls.traced = True

    def stop(self):
        Calls.traced = False


@pytest.fixture
def _known_calls(monkeypatch):
    for name, fake in (("CalibrationCalls", Calls), ("Session", Session), ("CuptiTracer", Tracer)):
        monkeypatch.setattr(calibration._core, name, fake)


@pytest.mark.usefixtures("_known_calls")
def test_a_call_after_other_work_costs_no_less_than_one_in_a_row():
    costs = measured_costs("libcupti.so.13")

    in_a_row = TRACED_NS - PLAIN_NS
    least = {kind: low for kind, (low, _) in costs.items()}
    assert least == dict.fromkeys(KINDS, in_a_row) | {
        "graph_node": in_a_row // NODES,
        "graph_gap": NODE_GAP_NS,
        "launch_duration": 0,
    }
    assert all(low <= high for low, high in costs.values())
