"""Enumerations that Python, C++ and TypeScript share; the position of a word is its code.

`scripts/generate_codes.py` writes those of C++ and TypeScript from this module.
"""

from enum import IntEnum, IntFlag

# torch.cuda.memory's trace actions, and those of its calls that the trace lacks.
ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "record_stream",
    "snapshot",
    "annotate",
    "empty_cache",
    "memory_limit",
)

# The libraries that own memory; empty: unknown.
FRAMEWORKS = ("", "cupy", "torch", "numba", "cuda_core", "rmm", "jax")

ACTIVITY_KINDS = ("kernel", "memcpy", "memset", "graph", "range")

# The last two are the halves of a copy between devices through the host. CUPTI's rows do not say
# so; they are found when tables are read.
COPY_KINDS = (
    "",
    "host_to_device",
    "device_to_host",
    "device_to_device",
    "host_to_host",
    "peer_to_peer",
    "peer_to_host",
    "host_to_peer",
)

MEMORIES = ("", "pageable", "pinned", "device", "array", "managed")

HOST_MEMORIES = ("", "pageable", "pinned", "managed")

SYNCHRONIZATION_KINDS = (
    "event_record",
    "stream_wait_event",
    "event_synchronize",
    "stream_synchronize",
    "context_synchronize",
)

ACCESS_MODES = ("unknown", "read", "write", "read_write")

GRAPH_CALL_KINDS = ("kernel", "memcpy", "memset", "event_record", "stream_wait_event", "launch")

MEMORY_OPERATIONS = ("allocation", "release")

OVERHEAD_KINDS = (
    "unknown",
    "driver_compiler",
    "buffer_flush",
    "instrumentation",
    "resource",
    "runtime_triggered_module_loading",
    "lazy_function_loading",
    "command_buffer_full",
    "activity_buffer_request",
    "uvm_activity_init",
    "jit_load_cached",
    "jit_compile",
)

# What a thread did between two CUDA calls: it ran, waited in the operating system, waited for the
# GIL, or collected garbage.
HOST_STATES = ("unknown", "working", "waiting", "gil", "collection")

# The names of gpuviz's own threads begin so.
OWN_THREADS = "gpuviz-"

COLLECTIVE_FUNCTIONS = (
    "unknown",
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "reduce",
    "send",
    "receive",
    "all_to_all",
    "gather",
    "scatter",
)

ELEMENT_TYPES = (
    "unknown",
    "int8",
    "uint8",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "float8_e4m3",
    "float8_e5m2",
)

COLLECTIVE_ALGORITHMS = (
    "unknown",
    "tree",
    "ring",
    "collnet_direct",
    "collnet_chain",
    "nvls",
    "nvls_tree",
    "pat",
)

COLLECTIVE_PROTOCOLS = ("unknown", "ll", "ll128", "simple")

POOL_MEMORIES = ("", "device", "pinned", "managed")

RANGE_KINDS = ("range", "cell", "nvtx", "load", "compile")

# The parts of a training step; empty: another one, or unknown.
PHASES = ("", "forward", "backward", "optimizer")

# Those of the tables `ranges` and `phases`.
ALL_RANGE_KINDS = (*RANGE_KINDS, *PHASES[1:])

# What a block of a training program holds; empty: unknown. `gpuviz.analysis.categories` has the
# rules.
CATEGORIES = (
    "",
    "parameter",
    "gradient",
    "optimizer_state",
    "input",
    "activation",
    "temporary",
    "workspace",
)

# What the owner of a tensor says: a category, or a gradient that does not change its parameter.
TENSOR_CATEGORIES = (*CATEGORIES, "unused_gradient")

STREAM_KINDS = ("unknown", "default", "per_thread_default", "blocking", "non_blocking")

HOST_WAIT_KINDS = (
    "event_synchronize",
    "stream_synchronize",
    "context_synchronize",
    "memcpy",
    "pageable_memcpy",
)
IDLE_CAUSES = (
    "host",
    "dependency",
    "synchronization",
    "allocation",
    "unrecorded_event",
    "gpu_busy",
    "unknown",
)

# What has a row in `names`, and what in `memory_marks`.
NAMED_KINDS = ("kernel", "pool", "stream")
MARK_KINDS = ("out_of_memory", "snapshot", "memory_returned", "empty_cache")


class Work(IntEnum):
    """The kind of an activity for the measures of overlap.

    Copies are those from and to the host, device copies those within and between devices.
    """

    OTHER = 0
    KERNEL = 1
    COPY = 2
    DEVICE_COPY = 3


class CallKind(IntEnum):
    """Effect of a CUDA call on its thread."""

    OTHER = 0
    ALLOCATION = 1
    SYNCHRONIZE = 2
    QUERY = 3
    MEMCPY = 4
    PAGEABLE_MEMCPY = 5


class Code(IntEnum):
    """What an operation of the hazard engine does.

    ``object`` is the block of an allocation, a ``record_stream`` or a free; the event of a record,
    a wait or a synchronization; the executable graph of a launch and of another instantiation of
    the graph captured last, and the first one of a node and of the end of a capture; the kind of a
    new stream (1 blocking, 2 non-blocking); of a copy its `HazardCopy` and `CopyBit`s, and
    `CopyBit.PEER` times the number behind its other device if it is between devices and in a
    default stream; of a memset `CopyBit.SYNCHRONOUS` if it is.
    """

    LAUNCH = 0
    COPY = 1
    MEMSET = 2
    RECORD_EVENT = 3
    WAIT_EVENT = 4
    WAIT_FOR_UNKNOWN = 5
    SYNCHRONIZE_EVENT = 6
    SYNCHRONIZE_STREAM = 7
    SYNCHRONIZE_DEVICE = 8
    CREATE_STREAM = 9
    DESTROY_STREAM = 10
    ALLOCATE = 11
    RECORD_STREAM = 12
    FREE = 13
    BEGIN_CAPTURE = 14
    NODE = 15
    END_CAPTURE = 16
    INSTANTIATE = 17
    LAUNCH_GRAPH = 18
    SYNCHRONIZE_ALL = 19
    HOST_ACCESS = 20


class HazardCopy(IntEnum):
    """The sides of a copy for the hazard engine."""

    HOST_TO_DEVICE = 0
    DEVICE_TO_HOST = 1
    DEVICE_TO_DEVICE = 2
    HOST_TO_HOST = 3


class CopyBit(IntFlag):
    """What the hazard engine needs of a copy beside its `HazardCopy`."""

    SYNCHRONOUS = 4
    PAGEABLE = 8
    PEER = 16
