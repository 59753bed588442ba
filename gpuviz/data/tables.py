"""The tables of a recording: their columns, types and meaning.

Times are nanoseconds since the recording's start. Ids start at 1; 0 means "none", except for
``device`` (an ordinal) and ``pool`` (see ``pools``).
"""

from collections.abc import Mapping
from functools import cache

import pyarrow as pa

from gpuviz.data import codes

# Tables by name, at least those that are needed.
Tables = Mapping[str, pa.Table]

ACTIONS = codes.ACTIONS
FRAMEWORKS = codes.FRAMEWORKS

DICTIONARIES = {
    ("memory_events", "action"): codes.ACTIONS,
    ("host_memory_events", "action"): codes.ACTIONS,
    ("activities", "kind"): codes.ACTIVITY_KINDS,
    ("activities", "copy_kind"): codes.COPY_KINDS,
    ("activities", "source"): codes.MEMORIES,
    ("activities", "destination"): codes.MEMORIES,
    ("activities", "host_memory"): codes.HOST_MEMORIES,
    ("synchronizations", "kind"): codes.SYNCHRONIZATION_KINDS,
    ("launch_blocks", "mode"): codes.ACCESS_MODES,
    ("graph_calls", "kind"): codes.GRAPH_CALL_KINDS,
    ("memory_operations", "operation"): codes.MEMORY_OPERATIONS,
    ("memory_operations", "memory"): codes.MEMORIES,
    ("host_accesses", "mode"): codes.ACCESS_MODES,
    ("overheads", "kind"): codes.OVERHEAD_KINDS,
    ("host_samples", "state"): codes.HOST_STATES,
    ("collectives", "function"): codes.COLLECTIVE_FUNCTIONS,
    ("collectives", "element"): codes.ELEMENT_TYPES,
    ("collectives", "algorithm"): codes.COLLECTIVE_ALGORITHMS,
    ("collectives", "protocol"): codes.COLLECTIVE_PROTOCOLS,
    ("memory_events", "framework"): codes.FRAMEWORKS,
    ("pools", "framework"): codes.FRAMEWORKS,
    ("pools", "memory"): codes.POOL_MEMORIES,
    ("ranges", "kind"): codes.RANGE_KINDS,
    ("stacks", "phase"): codes.PHASES,
    ("tensors", "category"): codes.TENSOR_CATEGORIES,
    ("streams", "kind"): codes.STREAM_KINDS,
}

# Tables whose rows may be updated; the last row of an id is valid.
REVISED = ("streams", "ranges", "unrecorded_spans")

# Tables that grow with activity of the GPU and the host.
ACTIVITY_TABLES = (
    "activities",
    "api_calls",
    "synchronizations",
    "launch_blocks",
    "graph_calls",
    "host_accesses",
    "memory_operations",
    "overheads",
    "host_samples",
    "collectives",
    "tensors",
)

# Values of columns that a source lacks, such as an older file, a snapshot or a CSV file.
DEFAULTS = {
    ("activities", "source_device"): -1,
    ("activities", "destination_device"): -1,
    ("api_calls", "own_cost"): 0,
    ("api_calls", "stream"): 0,
    ("devices", "uuid"): "",
    ("devices", "multiprocessors"): 0,
    ("devices", "memory_bandwidth"): 0,
    ("frames", "context"): "",
    ("frames", "context_line"): 0,
    ("launch_blocks", "bytes"): 0,
    ("launch_blocks", "content"): 0,
    ("launch_blocks", "element"): 0,
    ("launch_blocks", "stride"): 0,
    ("pools", "framework"): "",
    ("pools", "memory"): "",
    ("stacks", "module"): "",
    ("stacks", "phase"): "",
    ("stacks", "forward_frame"): 0,
    ("stacks", "differentiable"): 0,
    ("streams", "kind"): "unknown",
    ("streams", "priority"): 0,
    ("streams", "created"): 0,
    ("streams", "destroyed"): -1,
}

# Columns computed from other columns if a source lacks them, or lacks some of their values.
IMPLIED = (
    ("frames", "installed"),
    ("frames", "assigned"),
    ("stacks", "user_frame"),
    ("activities", "host_memory"),
    ("memory_events", "framework"),
    ("streams", "named"),
)

DEVICE_COLUMNS = frozenset({"device", "source_device", "destination_device"})

# Columns of ids, and the table that each id other than 0 refers to.
REFERENCES = (
    ("stacks", "frames", "frames"),
    ("stacks", "user_frame", "frames"),
    ("stacks", "forward_frame", "frames"),
    ("memory_events", "stack", "stacks"),
    ("host_memory_events", "stack", "stacks"),
    ("host_accesses", "stack", "stacks"),
    ("api_calls", "stack", "stacks"),
    ("api_calls", "name", "strings"),
    ("host_samples", "stack", "stacks"),
    ("activities", "name", "strings"),
    ("activities", "launch", "launch_configurations"),
    ("graph_calls", "name", "strings"),
    ("memory_operations", "source", "strings"),
    ("ranges", "name", "strings"),
    ("tensors", "name", "strings"),
    ("processes", "devices", "devices"),
    ("processes", "threads", "threads"),
)


@cache
def schemas() -> dict[str, pa.Schema]:
    """Return the Arrow schema of every table in a file, by name.

    Activity of allocators:

    - ``memory_events``: one row for each allocator event, in the order in which they happened on a
      device. ``size`` is the rounded size of the block or the bytes of the segment,
      ``requested_size`` the caller's bytes (0 for segments). For ``oom``, ``address`` is the
      device's free memory. For ``record_stream``, ``stream`` is the stream that uses the block. For
      ``empty_cache``, ``size`` is the bytes it released, in the ``segment_free`` and
      ``segment_unmap`` rows before it; releases without it are retries and garbage collection.
      ``framework`` is the library that owns the block, or that asked for the segment; empty if
      unknown. For ``memory_limit``, ``size`` is the most bytes that the allocator may reserve from
      then on: the device's memory if it has no limit.
    - ``host_memory_events``: one row for each event of pinned host memory, of gpuviz's allocator or
      of CuPy's pool, whose blocks are in no segment, in order, with the columns and the actions of
      ``memory_events``. Memory of no device and no pool: a segment is one block, which copies of
      any stream may use. ``free_requested`` is the free,
      ``free_completed`` the moment from which the block can be reused. Rows at the start of the
      recording, which is time 0 unless it is a window, describe the memory that existed then.
    - ``device_memory``: samples of the memory ``used`` on a device by all processes, in bytes.
    - ``clock_snapshots``: the host's clocks, read back to back at ``time``: ``wall`` in nanoseconds
      since 1970 (``CLOCK_REALTIME``), ``boot`` in nanoseconds since the host's start, suspended
      time included (``CLOCK_BOOTTIME``). Both are within ``uncertainty`` nanoseconds of ``time``.
      One at the start of a recording, one each second, one at its end.
    - ``memory_operations``: CUDA's allocations and frees for any caller: segments of the allocator,
      and memory that bypasses it. ``source`` is the library that called.

    Activity of the GPU and the host, in the order in which it became known:

    - ``activities``: one kernel, copy, memset or graph launch on the GPU from ``time`` to ``end``;
      or a ``gpuviz.range`` on a stream, measured by CUDA events (kind ``range``). ``name`` is an id
      of ``strings``. ``bytes`` is 0 for kernels; ``source`` and ``destination`` are the memories of
      a copy. ``graph`` and ``graph_node`` are those of a kernel launched by a graph. ``launch`` is
      an id of ``launch_configurations``. ``correlation`` is the CUDA call that caused it.
      ``source_device`` and ``destination_device`` are those of a copy between devices, else -1;
      ``device`` is where its stream is. Without peer access such a copy goes through the host, and
      has two rows with one correlation: ``peer_to_host`` on the source and ``host_to_peer`` on the
      destination, one of them in a stream of the driver's own.
      ``host_memory`` is the kind of host memory of a copy; if both sides are host memory,
      ``pageable`` if either is; empty for copies between devices, and if unknown.
    - ``api_calls``: one CUDA call on the host: launches, copies and synchronizations, and all
      others on request. ``name`` is an id of ``strings``. ``stream`` is the one that a copy within
      or between devices was issued on, which may run in another one, or that calls a function on
      the host. It is 0 if unknown, and for other calls. ``own_cost`` is how long gpuviz worked
      in the thread after the call, to record it, in ns; 0 if unknown.
    - ``synchronizations``: an event record, a wait, or the host waiting from ``time`` to ``end``.
      For ``event_record`` both are the time when the GPU reached it; 0 if that was not recorded,
      as in programs on a real GPU. ``event`` and ``event_sync_id`` join a record with its waits:
      event handles are reused, sync ids are not. A wait for an event that was created in the
      recording and not yet recorded waits for nothing, and has no row.
    - ``launch_blocks``: a launch, copy or memset received a pointer ``address`` into the block that
      begins at ``block``. ``mode`` is what it did with the memory from there on: with ``write`` and
      ``read_write`` some of it may stay as it was, as when a kernel writes under a condition.
      ``bytes`` is how much it accesses from there on, without gaps; 0 if that is not known. The
      ``address`` of an array of CuPy is its lowest, also if its strides are negative. ``content``
      is a number that is equal for copies of as many bytes from or to the host with equal bytes at
      64 places of the host's memory, as the call left it. In the first row of a launch, it is equal
      for kernels whose arguments are equal but for the addresses of blocks. It is 0 if unknown, and
      for all other work. ``element`` is how many bytes an element of an array of CuPy has of which
      a kernel accesses all elements, and ``stride`` the distance in bytes from one to the next if
      there are gaps between all of them, as in a column of a matrix; 0 if not, or if unknown.
    - ``graph_calls``: a call that a stream capture recorded instead of running it, or a launch of
      a graph (kind ``launch``). ``capture`` numbers the captures; of a launch it is 0 unless all
      nodes of the graph are known. ``graph`` numbers the executable graphs made of captures; it is
      0 if the call is no launch. ``name`` is the
      kernel's, an id of ``strings``. ``event`` is the handle of a recorded or awaited event.
    - ``host_accesses``: the host's own accesses to pinned memory that a copy may still have been
      using, as far as ``gpuviz.record(hazards=True)`` found them. ``correlation`` is the copy's
      call, ``address`` and ``bytes`` are what it copied there. If ``exact`` is 1, the access was at
      ``time``, in the line of ``stack``; else some time between the copy's call and the call of
      ``stack``, which began at ``time``.
    - ``tensors``: a tensor that had this ``category`` at ``time``, as its owner said: a parameter
      or a buffer of a module, the gradient or a state of a parameter, or memory that a library
      works in; ``unused_gradient`` is one that an optimizer gets with a learning rate of 0.
      ``address`` is that of its first element, and ``name`` that of the parameter, such
      as ``layer3.5.conv2.weight``; 0 if unknown. A row is about the block that was there then.
    - ``held_blocks``: the ``holder`` that kept a large block alive when the recording ended, such
      as ``cache[7]``; several are joined by `` and ``. Blocks with an unknown one have no row.
    - ``overheads``: time spent by CUPTI, lazy loading or compilation. ``thread`` may be 0.
    - ``host_samples``: what a thread that launches did from ``time`` to ``end``, between two of its
      CUDA calls, as long as the same was found each time: its ``stack`` and its ``state``. It was
      ``working``, ``waiting`` in the operating system, waiting for the GIL (``gil``) that the
      thread ``holder`` had (0: unknown), or in a garbage ``collection``, whose rows are exact, of
      any thread, and overlap with the others. It was looked at ``samples`` times. There are none
      between calls that are less than a quarter of a millisecond apart.
    - ``collectives``: a collective, or one side of a transfer between two ranks, at the ``time``
      just after NCCL launched its kernel. ``communicator`` is the same number in all its ``ranks``,
      and ``sequence`` counts the calls of a ``function`` in a communicator, so that they find the
      rows of one collective; it is 0 for ``send`` and ``receive``. ``peer`` is the root or the
      other rank, -1 for none. ``bytes`` are those of ``count`` elements; ``source`` and
      ``destination`` are addresses, 0 for none. ``stream`` is 0 if unknown. ``range`` is the
      innermost range on the ``thread``.
    - ``unrecorded_spans``: streams were not recorded from ``time`` to ``end``, to keep the cost
      within ``gpuviz.record(budget=...)``; ``end`` is -1 while that lasts. Memory was. What is
      unknown of the GPU lasts longer, as work that was launched meanwhile may run afterwards; see
      `gpuviz.analysis.unseen`. ``settled`` is 1 if that is included, as in windows of recordings.
    - ``ranges``: a notebook cell, a ``gpuviz.range`` or an NVTX range on a host thread; ``end`` is
      -1 while it is open. ``parent`` is the range around it. ``name`` is an id of ``strings``.

    Objects that these refer to:

    - ``devices``: the GPUs seen. ``uuid`` is the one that ``nvidia-smi -L`` prints after ``GPU-``
      or ``MIG-``, empty if unknown; ordinals may denote other GPUs in other processes.
      ``multiprocessors`` is 0 if unknown, and so is ``memory_bandwidth``, the most bytes per second
      that the clock and the width of its memory allow.
    - ``streams``: ``id`` is ``stream`` in other tables; ``handle`` is the raw CUstream, which may
      be reused after the stream is destroyed; 2**64 - 1 for one that the driver made for itself,
      such as that of a graph's branch. ``named`` is 1 if the program gave it its ``name``, else 0.
      ``created`` is 0 for streams that existed before, ``destroyed`` is -1 if no end was recorded.
    - ``pools``: ``id`` is ``2 * n + (1 if large)``; n is 0 for the default pool, else the number of
      the MemPool. ``segment_type`` is ``small``, ``large`` or ``unknown`` (another allocator's).
      ``memory`` is the kind of its blocks, and ``framework`` the library whose pool it is; both are
      empty if unknown. The blocks of a pool that libraries share have theirs in ``memory_events``.
    - ``stacks``: ``frames`` are ids of ``frames``, innermost first; ``user_frame`` is the innermost
      of the program's own files, else of code made while it ran, else of all; 0 if there is none.
      ``module`` is the innermost module of a neural network that was being called, as the path from
      its model, such as ``layer3.5.conv2``, and ``phase`` the part of a training step; both are
      empty if unknown or if there is none. Of the work of a backward pass, ``module`` is that of
      the forward work whose gradients it computes, and ``forward_frame`` is the user's frame there;
      otherwise it is 0. ``differentiable`` is 1 if autograd recorded the work, so that a backward
      pass could follow.
    - ``frames``: ``source`` is the text of the line, empty if unknown; ``cell`` is the execution
      count of a notebook cell, 0 outside notebooks. ``filename`` is then ``In [7]``. ``installed``
      is 1 if the file belongs to Python or to an installed package, 2 if the code was made while
      the program ran, else 0. ``assigned`` has the names that the line assigns to, empty if it does
      not or if ``source`` is empty. ``context`` is the text of the function around it, one line
      below the other from ``context_line``; empty if unknown, and for other files than the
      program's own.
    - ``launch_configurations``: launch parameters of kernels; shared memory in bytes.
    - ``threads``: ``id`` is the operating system's thread id, ``name`` the thread's name in Python,
      or the one that a library has given it; empty without one.
    - ``strings``: names; those of kernels are demangled, and untrusted.
    - ``processes``: the processes of a merged recording; no rows in a recording of one process.
      ``name`` is what it is called: its rank, else host and process id. ``rank`` is -1 if unknown.
      ``program`` is its command line. ``start`` and ``end`` are the times that
      its own recording covered. ``devices`` are the ids of its GPUs, each of which has this process
      alone; two rows of ``devices`` with one ``uuid`` are one GPU. ``ordinals`` are their ordinals
      in the process. ``threads`` are ids of ``threads``. Its CUDA calls have the correlation ids
      from ``first_correlation`` to ``last_correlation``. Its addresses are ``address_shift`` higher
      than they were, so that those of two processes differ: they lie from ``first_address`` to
      ``last_address``. Only those of 2**57 and above, which no machine has, are as they were.
      ``clock_error`` is the bound of the error of its times in ns, as far as the wall clocks of the
      hosts agree: 0 on the host of the first process, -1 if unknown. ``manifest`` is the manifest
      of its own recording, as JSON.
    """
    return {
        name: pa.schema(
            [(column, _type(name, column, kind)) for column, kind in columns.items()],
        )
        for name, columns in _COLUMNS.items()
    }


_COLUMNS = {
    "memory_events": {
        "time": "int64",
        "action": "enum",
        "address": "uint64",
        "size": "int64",
        "requested_size": "int64",
        "device": "int16",
        "stream": "uint32",
        "pool": "uint32",
        "stack": "uint32",
        "thread": "uint32",
        "range": "uint32",
        "framework": "enum",
    },
    "host_memory_events": {
        "time": "int64",
        "action": "enum",
        "address": "uint64",
        "size": "int64",
        "requested_size": "int64",
        "stack": "uint32",
        "thread": "uint32",
        "range": "uint32",
    },
    "devices": {
        "id": "int16",
        "name": "utf8",
        "total_memory": "int64",
        "kind": "utf8",
        "uuid": "utf8",
        "multiprocessors": "int32",
        "memory_bandwidth": "int64",
    },
    "streams": {
        "id": "uint32",
        "device": "int16",
        "handle": "uint64",
        "name": "utf8",
        "named": "uint8",
        "kind": "enum",
        "priority": "int32",
        "created": "int64",
        "destroyed": "int64",
    },
    "pools": {
        "id": "uint32",
        "owner": "uint32",
        "segment_type": "utf8",
        "framework": "enum",
        "memory": "enum",
    },
    "stacks": {
        "id": "uint32",
        "frames": "ids",
        "user_frame": "uint32",
        "module": "text",
        "phase": "enum",
        "forward_frame": "uint32",
        "differentiable": "uint8",
    },
    "frames": {
        "id": "uint32",
        "name": "text",
        "filename": "text",
        "line": "int32",
        "cell": "int32",
        "source": "text",
        "installed": "uint8",
        "assigned": "text",
        "context": "text",
        "context_line": "int32",
    },
    "device_memory": {"time": "int64", "device": "int16", "used": "int64"},
    "held_blocks": {"device": "int16", "address": "uint64", "holder": "utf8"},
    "clock_snapshots": {
        "time": "int64",
        "wall": "int64",
        "boot": "int64",
        "uncertainty": "int64",
    },
    "threads": {"id": "uint32", "name": "utf8"},
    "activities": {
        "time": "int64",
        "end": "int64",
        "kind": "enum",
        "name": "uint32",
        "device": "int16",
        "context": "uint32",
        "stream": "uint32",
        "correlation": "uint32",
        "bytes": "int64",
        "copy_kind": "enum",
        "source": "enum",
        "destination": "enum",
        "graph": "uint32",
        "graph_node": "uint64",
        "launch": "uint32",
        "source_device": "int16",
        "destination_device": "int16",
        "host_memory": "enum",
    },
    "launch_configurations": {
        "id": "uint32",
        "grid_x": "uint32",
        "grid_y": "uint32",
        "grid_z": "uint32",
        "block_x": "uint32",
        "block_y": "uint32",
        "block_z": "uint32",
        "registers": "uint32",
        "static_shared_memory": "uint32",
        "dynamic_shared_memory": "uint32",
    },
    "api_calls": {
        "time": "int64",
        "end": "int64",
        "name": "uint32",
        "thread": "uint32",
        "correlation": "uint32",
        "stack": "uint32",
        "range": "uint32",
        "stream": "uint32",
        "own_cost": "uint32",
    },
    "synchronizations": {
        "time": "int64",
        "end": "int64",
        "kind": "enum",
        "device": "int16",
        "context": "uint32",
        "stream": "uint32",
        "event": "uint32",
        "event_sync_id": "uint64",
        "correlation": "uint32",
    },
    "launch_blocks": {
        "correlation": "uint32",
        "block": "uint64",
        "address": "uint64",
        "mode": "enum",
        "bytes": "uint64",
        "content": "uint64",
        "element": "uint32",
        "stride": "uint32",
    },
    "graph_calls": {
        "correlation": "uint32",
        "kind": "enum",
        "name": "uint32",
        "stream": "uint32",
        "capture": "uint32",
        "graph": "uint32",
        "event": "uint64",
    },
    "memory_operations": {
        "time": "int64",
        "operation": "enum",
        "memory": "enum",
        "address": "uint64",
        "bytes": "int64",
        "device": "int16",
        "stream": "uint32",
        "correlation": "uint32",
        "source": "uint32",
    },
    "host_accesses": {
        "time": "int64",
        "mode": "enum",
        "correlation": "uint32",
        "address": "uint64",
        "bytes": "uint64",
        "stack": "uint32",
        "thread": "uint32",
        "exact": "uint8",
    },
    "overheads": {
        "time": "int64",
        "end": "int64",
        "kind": "enum",
        "thread": "uint32",
        "correlation": "uint32",
    },
    "host_samples": {
        "time": "int64",
        "end": "int64",
        "thread": "uint32",
        "stack": "uint32",
        "state": "enum",
        "holder": "uint32",
        "samples": "uint32",
    },
    "tensors": {
        "time": "int64",
        "device": "int16",
        "address": "uint64",
        "category": "enum",
        "name": "uint32",
    },
    "collectives": {
        "time": "int64",
        "function": "enum",
        "communicator": "uint64",
        "rank": "int32",
        "ranks": "int32",
        "sequence": "uint64",
        "peer": "int32",
        "count": "uint64",
        "element": "enum",
        "bytes": "int64",
        "source": "uint64",
        "destination": "uint64",
        "stream": "uint32",
        "algorithm": "enum",
        "protocol": "enum",
        "channels": "int32",
        "thread": "uint32",
        "range": "uint32",
    },
    "unrecorded_spans": {"id": "uint32", "time": "int64", "end": "int64", "settled": "uint8"},
    "ranges": {
        "id": "uint32",
        "time": "int64",
        "end": "int64",
        "name": "uint32",
        "kind": "enum",
        "thread": "uint32",
        "parent": "uint32",
    },
    "strings": {"id": "uint32", "text": "utf8"},
    "processes": {
        "id": "uint32",
        "name": "utf8",
        "rank": "int32",
        "process_id": "int64",
        "host": "utf8",
        "program": "utf8",
        "start": "int64",
        "end": "int64",
        "devices": "ids",
        "ordinals": "ids",
        "threads": "ids",
        "first_correlation": "uint32",
        "last_correlation": "uint32",
        "address_shift": "int64",
        "first_address": "uint64",
        "last_address": "uint64",
        "clock_error": "int64",
        "manifest": "utf8",
    },
}


def _type(table: str, column: str, kind: str) -> pa.DataType:
    if kind == "enum":
        assert (table, column) in DICTIONARIES  # noqa: S101
        return pa.dictionary(pa.int8(), pa.utf8())
    if kind == "ids":
        return pa.list_(pa.uint32())
    if kind == "text":
        return pa.dictionary(pa.int32(), pa.utf8())
    return getattr(pa, kind)()
