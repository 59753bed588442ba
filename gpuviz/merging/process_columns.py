"""Columns whose values mean something in one process only: times, addresses and ids."""

from gpuviz.data.tables import ACTIONS
from gpuviz.merging.ids import SPACES

EVENTS = "memory_events"
HOST_EVENTS = "host_memory_events"
TIMES = {
    EVENTS: ("time",),
    HOST_EVENTS: ("time",),
    "device_memory": ("time",),
    "clock_snapshots": ("time",),
    "activities": ("time", "end"),
    "api_calls": ("time", "end"),
    "synchronizations": ("time", "end"),
    "memory_operations": ("time",),
    "host_accesses": ("time",),
    "overheads": ("time", "end"),
    "host_samples": ("time", "end"),
    "collectives": ("time",),
    "tensors": ("time",),
    "ranges": ("time", "end"),
    "streams": ("created", "destroyed"),
}
# Columns whose values below 1 are no times: open, unknown, or before the recording.
UNTIMED = {
    ("synchronizations", "time"),
    ("synchronizations", "end"),
    ("ranges", "end"),
    ("streams", "created"),
    ("streams", "destroyed"),
}
ADDRESSES = {(EVENTS, "address"), ("launch_blocks", "block"), ("launch_blocks", "address")}
ADDRESSES |= {("memory_operations", "address"), (HOST_EVENTS, "address")}
ADDRESSES |= {("host_accesses", "address"), ("held_blocks", "address")}
ADDRESSES |= {("tensors", "address"), ("collectives", "source"), ("collectives", "destination")}
# Actions without an address; of `oom` it is the free memory of the device.
NO_ADDRESS = [ACTIONS.index(name) for name in ("oom", "memory_limit", "empty_cache", "snapshot")]
OF_THREADS = (
    *(EVENTS, HOST_EVENTS, "api_calls", "overheads", "host_samples"),
    *("collectives", "ranges", "host_accesses"),
)
IDS = {
    ("activities", "launch"): "launch",
    ("api_calls", "stack"): "stack",
    (EVENTS, "stack"): "stack",
    (HOST_EVENTS, "stack"): "stack",
    ("host_accesses", "stack"): "stack",
    ("host_samples", "stack"): "stack",
    ("host_samples", "holder"): "thread",
    (EVENTS, "pool"): "pool",
    **{(table, "thread"): "thread" for table in OF_THREADS},
    **{(table, "name"): "string" for table in ("activities", "api_calls", "graph_calls")},
    ("ranges", "name"): "string",
    ("memory_operations", "source"): "string",
    ("tensors", "name"): "string",
    **{column: space for space, columns in SPACES.items() for column in columns},
}
