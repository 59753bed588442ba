"""State and events of torch's allocator, and recordings of its trace."""

from gpuviz import _core
from gpuviz.frameworks import torch_trace as observed
from tests.unit.frameworks.torch_trace import Entry, rows_of

MIB = 1 << 20
SEGMENT, BLOCK = 0x1000000, 0x2000000
EVENTS = [Entry(3, 0, BLOCK, 20 * MIB, 0x70), Entry(0, 0, BLOCK, 3 * MIB, 0x70)]
STATE = {
    "device": 0,
    "address": SEGMENT,
    "total_size": 2 * MIB,
    "stream": 0,
    "segment_type": "small",
    "segment_pool_id": (0, 0),
    "is_expandable": False,
    "blocks": [
        {"size": 1024, "state": "inactive"},
        {"size": 512, "requested_size": 300, "state": "active_allocated"},
    ],
}


class Recorded:
    """A recording of torch's trace."""

    def __init__(self):
        self.session = _core.Session()
        self.session.start()
        self.trace = observed.TorchTrace(stacks=False)
        self.trace.begin(self.session)

    def end(self):
        """Return the events and the messages for the user."""
        notes = self.trace.end()
        self.session.stop()
        return rows_of(self.session), notes


def names(events):
    return [action for action, *_ in events]
