"""Entries of torch's trace, made from the events of gpuviz's allocator, which is the same."""

import ctypes

from gpuviz import _core
from gpuviz.data.tables import ACTIONS

TRACED = ACTIONS[: ACTIONS.index("oom")]


class Entry(ctypes.Structure):
    """What a tracker passes on."""

    _fields_ = (
        ("action", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("address", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("stream", ctypes.c_uint64),
        ("pool", ctypes.c_uint64 * 2),
    )


def entries(events):
    """Return the entries of rows of ``memory_events``, without those that torch does not trace."""
    return [
        Entry(
            ACTIONS.index(row["action"]),
            row["device"],
            row["address"],
            row["requested_size"] or row["size"],
            row["stream"],
            (ctypes.c_uint64 * 2)(0, row["pool"] // 2),
        )
        for row in events
        if row["action"] in TRACED
    ]


class Observation:
    """An observer with a session."""

    def __init__(self, settings=""):
        self.observer = _core.TorchObserver(_core.AllocatorSettings.parse(settings))
        self.session = _core.Session()
        self.session.start()
        self.observer.set_session(self.session, stacks=False)
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Entry))
        self._trace = kind(_core.TorchObserver.function())

    def trace(self, traced):
        for entry in traced:
            self._trace(self.observer.address, ctypes.byref(entry))

    def end(self):
        """Return the events, with torch's pools numbered as gpuviz's."""
        self.observer.set_session(None)
        self.session.stop()
        return rows_of(self.session)


def rows_of(session):
    """Return the events of a session, with torch's pools numbered as gpuviz's."""
    names = ("action", "address", "size", "requested_size", "pool")
    rows = []
    for chunk in session.take(flush=True):
        columns = (chunk[name].tolist() for name in names)
        for action, address, size, requested, pool in zip(*columns, strict=True):
            of_torch = pool - 2 * _core.torch_pool_owner()
            rows.append((ACTIONS[action], address, size, requested, of_torch))
    return rows
