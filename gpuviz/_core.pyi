"""
The native core of gpuviz: devices, the caching allocator, recording and replay.
"""

from collections.abc import Callable, Sequence
import enum
import types
from typing import Annotated, Any, Final, overload

import numpy
import numpy.typing
from numpy.typing import NDArray


class DeviceError(RuntimeError):
    pass

class Device:
    """What a caching allocator needs of one GPU."""

    @property
    def ordinal(self) -> int: ...

    @property
    def total_memory(self) -> int:
        """Bytes of the device."""

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes."""

    def processes(self) -> list[tuple[int, int]]:
        """(process id, bytes used) of each process known to use the device."""

class OfflineDevice(Device):
    """A device without hardware; its streams are told when to be busy."""

    def occupy(self, stream: int) -> None:
        """Keep a stream busy: events recorded on it from now on stay pending."""

    def finish(self, stream: int) -> None:
        """Let a stream finish; its events complete."""

    def is_busy(self, stream: int) -> bool: ...

    def write(self, address: int, size: int, value: int) -> None:
        """Set all bytes of a range."""

    def finish_all(self) -> None:
        """Let every stream finish."""

    @property
    def host_used(self) -> int:
        """Bytes of pinned memory."""

    def refuse_host_beyond(self, used: int) -> None:
        """Refuse pinned memory beyond so many bytes."""

class SimulatedDevice(OfflineDevice):
    """
    A device with a capacity that hands out addresses as NVIDIA's driver does.
    """

    def __init__(self, capacity: int, ordinal: int = 0) -> None: ...

    @property
    def used(self) -> int:
        """Bytes allocated and mapped."""

    def refuse_beyond(self, used: int) -> None:
        """
        Refuse what goes beyond so many bytes, though memory_info() tells of more.
        """

class RecordedDevice(OfflineDevice):
    """
    Answers with a recording's addresses: those of its segment allocations and mappings.
    """

    def __init__(self, total_memory: int, segment_addresses: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], map_addresses: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class CudaDriver:
    @staticmethod
    def open() -> CudaDriver:
        """
        Return the driver of libcuda.so.1; DeviceError when it is missing or too old.
        """

    @property
    def version(self) -> int:
        """The CUDA version that the driver supports: 1000 * major + 10 * minor."""

    def exchange_capture_mode(self, mode: int) -> int:
        """
        Set what the calling thread may do while streams capture, and return what it might.
        """

    def captured_addresses(self, stream: int) -> tuple[list[int], bool]:
        """
        Return words that the graph which a stream is capturing uses as addresses, or that may be some, and whether it uses no other memory.
        """

    def device_count(self) -> int: ...

    def device_name(self, ordinal: int) -> str: ...

    def device_uuid(self, ordinal: int) -> str:
        """
        Return the UUID as nvidia-smi prints it after GPU- or MIG-; makes no context.
        """

    def total_memory(self, ordinal: int) -> int:
        """Return the memory of a device in bytes, without creating a context."""

    def multiprocessors(self, ordinal: int) -> int:
        """
        Return the number of multiprocessors of a device, without creating a context.
        """

    def memory_bandwidth(self, ordinal: int) -> int:
        """Return the most bytes per second of a device's memory; 0 if unknown."""

    def peer_access(self, from_: int, to: int) -> tuple[bool, int, bool]:
        """
        Return whether a device can access the memory of another one, the rank of that access (0 is the fastest), and whether it has native atomics; creates no context.
        """

class CudaDevice(Device):
    def __init__(self, driver: CudaDriver, ordinal: int) -> None: ...

class Framework(enum.Enum):
    """Whose memory it is."""

    none = 0

    cupy = 1

    torch = 2

    numba = 3

    cuda_core = 4

    rmm = 5

    jax = 6

class MemoryEventSink:
    """Receives the events of an allocator."""

class StackTable:
    """The distinct call stacks of a session."""

    def __len__(self) -> int: ...

    @property
    def dropped(self) -> int:
        """Captures that were recorded as stack 0 because the table was full."""

class EventRing(MemoryEventSink):
    """Passes the events of one device to the collector; never waits."""

class Session:
    """
    One recording: a ring for each device, the thread that drains them into columns, and the call stacks.
    """

    def __init__(self, *, ring_capacity: int = 65536, interval_ms: float = 5.0, max_stacks: int = 131072, stack_depth: int = 64, launch_blocks: bool = False, checks_pinned: bool = False, guards_pages: bool = False, host_samples: bool = False) -> None:
        """
        `ring_capacity` is events per device, a power of two; `stack_depth` 0 turns call stacks off; with `launch_blocks` the blocks that launches touch are found; with `checks_pinned` pinned memory that copies read is compared and that they fill is watched, with `guards_pages` that of copies is protected.
        """

    def sink(self, device: int) -> EventRing:
        """The sink of a device; it keeps the session alive."""

    def start(self, starts_clock: bool = True) -> None:
        """
        Begin collecting, and the clock unless `start_clock` does later. A session records once.
        """

    def start_clock(self) -> None:
        """
        Make this moment time zero; all that was collected before is at time zero too.
        """

    def since_start(self, time_ns: int) -> int:
        """
        A time on CLOCK_MONOTONIC in ns since time zero; 0 before the clock has started.
        """

    def stop(self) -> None:
        """
        Return when every event pushed before is in columns; does nothing unless running.
        """

    def take(self, flush: bool = False) -> list[dict[str, numpy.ndarray]]:
        """
        Chunks of the table memory_events not yet taken, full ones only unless `flush`; NumPy arrays by column, at most 65536 rows each, in order within a device.
        """

    def take_tables(self, flush: bool = False) -> dict[str, list[dict[str, numpy.ndarray]]]:
        """Return the new rows of all other tables, by name."""

    def streams(self) -> list[tuple[int, int, int, str, int, int, int, int]]:
        """
        Rows (id, device, handle, name, kind, priority, created, destroyed) by id; the name is empty unless the user gave one, `kind` is a number of DICTIONARIES.
        """

    def changed_streams(self) -> list[tuple[int, int, int, str, int, int, int, int]]:
        """Return the rows that are new or have changed since the last call."""

    def strings(self, first_id: int) -> list[str]:
        """
        Return the texts with the ids `first_id`, `first_id + 1`, ... of the table strings.
        """

    @property
    def stacks(self) -> StackTable: ...

    def new_stacks(self, first_id: int) -> list[list[tuple[types.CodeType | None, int]]]:
        """
        The stacks `first_id`, `first_id + 1`, ...: pairs of code object and instruction offset in bytes, innermost first; or None and the number of frames left out, all of them if the stack was captured without the GIL and its thread has left it.
        """

    @property
    def samples_host(self) -> bool:
        """Whether threads are sampled."""

    def learn_gil(self) -> None:
        """
        Help the sampler to find which thread has the GIL; after a few calls from threads that take turns, it does.
        """

    def collection(self, phase: str, info: object | None) -> None:
        """A function for `gc.callbacks`."""

    def marks_of(self, stack: int) -> tuple[bool, str, int, bool]:
        """
        Whether a stack is in a module, and the name of the innermost one, empty if unknown; of a backward pass the stack of its forward work, 0 if unknown, otherwise -1; and whether a node of autograd was made before it.
        """

    def add_tensors(self, device: int, category: int, tensors: Sequence[tuple[int, str]]) -> None:
        """
        Add rows of the table tensors: addresses and names, empty if unknown, of tensors that are of a category (a number of CATEGORIES) now.
        """

    def add_stack(self, codes: Sequence[types.CodeType], instructions: Sequence[int]) -> int:
        """
        The id of a stack given by its code objects, innermost first, and the byte offset of the instruction in each; 0 if this session has no stacks.
        """

    def watch_modules(self, code: types.CodeType | None, name_new: Callable[[], bool] | None) -> None:
        """
        Let stacks contain the modules that are the first argument of calls of `code`, which must stay. `name_new` is called after new ones, again if it returns False; None ends this.
        """

    def module_number(self, module: object) -> int:
        """The number of an object in stacks, which stays until `forget_module`."""

    def first_local_of(self, frame: types.FrameType) -> object:
        """
        The object in the first local variable of a frame that runs; None if there is none or it is unknown. Unlike `f_locals`, it keeps nothing alive.
        """

    def name_module(self, number: int, name: str) -> None: ...

    def forget_module(self, address: int) -> None:
        """To be called when the object at an address dies."""

    def abandon_after_fork(self) -> None:
        """
        In the child after fork(): collect nothing from now on, and wait for nothing.
        """

    @property
    def stack_method(self) -> str:
        """How call stacks are read: `frames`, `attributes` (slow) or `none`."""

    @property
    def running(self) -> bool: ...

    @property
    def events(self) -> int:
        """Events stored in columns."""

    @property
    def dropped(self) -> int:
        """Events lost because a ring was full."""

    @property
    def activities(self) -> int:
        """Activities stored in columns."""

    @property
    def dropped_activities(self) -> int:
        """Rows lost of all tables but memory_events."""

    @property
    def dropped_by_action(self) -> dict[str, int]:
        """Events lost, by action (see ACTIONS)."""

    @property
    def bytes(self) -> int:
        """Bytes held by rings, columns that were not taken yet, and stacks."""

    @property
    def memory_events_ns(self) -> int:
        """
        Estimated time in ns that memory events, also of host memory, took in the threads that caused them.
        """

    @property
    def host_memory_events(self) -> int:
        """Events of host memory stored in columns."""

    @property
    def collector_cpu_ns(self) -> int: ...

    @property
    def comparison_ns(self) -> int:
        """Time that comparing and watching pinned memory took."""

    @property
    def skipped_comparisons(self) -> int:
        """Copies whose pinned memory was not compared."""

    @property
    def unwatched_copies(self) -> int:
        """Copies to pinned memory that was not watched."""

    @property
    def sampler_cpu_ns(self) -> int: ...

    @property
    def start_ns(self) -> int:
        """
        Time zero of the columns on CLOCK_MONOTONIC; 0 before the clock has started.
        """

    @property
    def wall_start_ns(self) -> int:
        """The same moment on CLOCK_REALTIME."""

def declare_kernel_modes(symbol: str, modes: Sequence[int]) -> None:
    """
    Declare the access modes of a kernel's leading parameters, as numbers in the order of `launch_blocks`.
    """

def declare_array_elements(function: int, symbol: str, elements: Sequence[int]) -> None:
    """
    Declare of which leading parameters a function, a CUfunction, accesses all elements: their size in bytes; 0 for other parameters.
    """

def followed(first: object, then: object) -> object:
    """
    A function that calls `first`, and then `then` with the result and the arguments, and returns the result, without a frame of Python.
    """

class CalibrationCalls:
    """Calls of the driver of several kinds, to measure how long they take."""

    def __init__(self) -> None:
        """
        Raise RuntimeError if this thread has no CUDA context, or if the driver refuses.
        """

    def make(self, kind: int) -> None:
        """Make one call of a kind, by its position in what measure() returns."""

    def measure(self, calls: int) -> list[int]:
        """
        Return the median time in ns of a call of each kind, of so many in a row: a launch, a copy to the device, one to the host that waits, an event record, a query, a wait of a stream for an event, a synchronization, a launch of a graph of `graph_nodes`.
        """

    def time_graph(self, launches: int) -> int:
        """
        Return the median time in ns that the GPU takes for a graph of `long_graph_nodes` kernels which follow each other, of so many launches.
        """

    graph_nodes: Final[int] = ...
    """The kernels of the graph."""

    long_graph_nodes: Final[int] = ...
    """The kernels of the graph whose time on the GPU is measured."""

class CuptiTracer:
    """Records the GPU activities of this process into a session."""

    def __init__(self, library: str, session: Session, *, launch_sites: bool = True, stacks: bool = True, api_calls: bool = False, follow_streams: bool = False, graph_nodes: bool = True) -> None:
        """
        `library` is the path of libcupti. Raises RuntimeError if it cannot be used.
        """

    def start(self) -> None:
        """
        Raise RuntimeError, with what stands in the way, or record from now on.
        """

    def stop(self) -> None:
        """Wait until everything that the GPU has completed is in the log."""

    def pause(self) -> int:
        """
        Detach until start() is called again; return when the last call can have been recorded, in ns on CLOCK_MONOTONIC.
        """

    def flush(self) -> None:
        """Move completed records to the log now."""

    def abandon_after_fork(self) -> None: ...

    @property
    def launches(self) -> int:
        """Launches seen by callbacks."""

    @property
    def records(self) -> int:
        """Records delivered by CUPTI."""

    @property
    def calls(self) -> int:
        """Rows of `api_calls`."""

    @property
    def other_calls(self) -> int:
        """Calls that were followed and have no row of `api_calls`."""

    @property
    def own_ns(self) -> int:
        """How long gpuviz worked in these calls."""

    @property
    def attach_ns(self) -> int:
        """How long CUPTI attached and detached, in ns."""

    @property
    def reads_arguments(self) -> bool:
        """Whether the driver reports the parameters of kernels."""

    @property
    def unreadable_launches(self) -> int:
        """Launches whose parameters could not be read."""

def begin_range(session: Session, name: bytes, kind: int) -> int:
    """
    Return the id of a range around what the calling thread does from now on, 0 unless the session records; `name` is UTF-8, `kind` a number of DICTIONARIES.
    """

def enclosed(function: object, enter: object, leave: object) -> object:
    """
    A function that calls `enter` with its arguments, then `function` with them, and then, also after an exception, `leave` with what `enter` returned, without a frame of Python.
    """

def end_range(session: Session, id: int) -> None:
    """
    End a range, from any thread; does nothing for 0 and for ranges that have ended.
    """

def end_ranges(session: Session) -> None:
    """End all open ranges; none begins until the session starts again."""

def add_stream_range(session: Session, name: bytes, device: int, handle: int, time_ns: int, end_ns: int) -> None:
    """
    Add a range that was measured on a stream; times are those of time.monotonic_ns().
    """

def name_stream(session: Session, device: int, handle: int, name: str) -> int:
    """Name the stream that has this handle now, and return its id."""

def stream_kind(handle: int) -> int:
    """Return the kind of a stream, as far as its handle determines it."""

def stream_name(handle: int) -> str:
    """Return a name for the stream with this handle."""

def own_name(number: int, handle: int) -> str:
    """Return the name of a stream that the program has not named."""

def number_alike(devices: Annotated[NDArray[numpy.int16], dict(shape=(None,), order='C', device='cpu', writable=False)], names: Sequence[str]) -> list[str]:
    """
    Return the names, of which those that a device has several times are numbered.
    """

def pool_name(owner: int, segment_type: str, framework: str) -> str:
    """Return what a reader calls a pool, given its row in `pools`."""

def code_origin(filename: bytes) -> int:
    """Return whose code a file has, as in `frames.installed`."""

def user_frame(frames: Sequence[int], origins: Sequence[int]) -> int:
    """Return the innermost frame of the program's own files."""

def record_nccl(session: Session) -> None:
    """
    Send the collectives of NCCL to a session, which must live until ignore_nccl().
    """

def ignore_nccl() -> None:
    """
    Send collectives nowhere; returns when no thread is within the session for them.
    """

def abandon_nccl_after_fork() -> None:
    """Do the same in the child process after fork(), without waiting."""

def record_nvtx(session: Session) -> None:
    """Send NVTX ranges to a session, which must live until ignore_nvtx()."""

def ignore_nvtx() -> None:
    """
    Send NVTX ranges nowhere; returns when no thread is within the session for them.
    """

def abandon_nvtx_after_fork() -> None:
    """Do the same in the child process after fork(), without waiting."""

def announce_memory(allocator: CachingAllocator) -> bool:
    """
    Announce the segments and blocks of a new allocator to the NVTX tool of this process, for good.

    Returns False if there is no tool for memory.
    """

class AllocatorSettings:
    """The allocator's settings, in the syntax of PYTORCH_CUDA_ALLOC_CONF."""

    @staticmethod
    def parse(text: str) -> AllocatorSettings:
        """
        Return the settings that `text` names over the defaults.

        Raises:
            ValueError: An unknown key or a bad value; the message names it.
        """

    def updated(self, text: str) -> AllocatorSettings:
        """
        Return these settings with `text` applied as torch applies it at run time.
        """

    def segment_size(self, size: int) -> int:
        """Return the size of the segment that serves a request of rounded size."""

    @property
    def text(self) -> str: ...

    @property
    def expandable_segments(self) -> bool: ...

    @property
    def garbage_collection_threshold(self) -> float: ...

    @property
    def max_split_size(self) -> int:
        """Bytes; -1: unlimited."""

    @property
    def max_non_split_rounding_size(self) -> int: ...

    @property
    def large_segment_size(self) -> int: ...

    @property
    def pinned_max_round_threshold(self) -> int: ...

    @property
    def pinned_max_cached_size(self) -> int: ...

    @property
    def per_process_memory_fraction(self) -> float | None: ...

    @property
    def roundup_power2_divisions(self) -> dict[str, int]:
        """Divisions by interval, as torch prints them: {'1': 0, '2': 0, ...}."""

class Allocator:
    """An allocator that can be replayed."""

    def memory_stats(self) -> dict[str, int]:
        """Return every value of torch.cuda.memory_stats, by its key."""

    def attach(self, sink: MemoryEventSink) -> None:
        """Push every event to `sink` from now on."""

    def detach(self) -> None: ...

class CupyPool(Allocator):
    """A model of CuPy's memory pool for one device."""

    def __init__(self, device: Device) -> None: ...

class CachingAllocator(Allocator):
    """torch's CUDA caching allocator for one device."""

    @overload
    def __init__(self, device: Device, settings: AllocatorSettings) -> None: ...

    @overload
    def __init__(self, device: Device) -> None: ...

    def allocate(self, size: int, stream: int = 0, stack: int = 0) -> int:
        """
        Return the address of at least `size` bytes for use on `stream`; 0 for size 0.

        Raises:
            OutOfMemoryError: Nothing is left after every retry.
        """

    def free(self, address: int, stack: int = 0) -> None:
        """
        Return a block to the cache.

        Raises:
            ValueError: No allocated block starts there.
        """

    def set_free_memory_callback(self, callback: Callable[[], bool] | None) -> None:
        """
        Call `callback` when the cache has no block; if it returns True, search again.
        """

    def set_last_resort(self, callback: Callable[[], bool] | None) -> None:
        """
        Call `callback` before a request fails; if it returns True, try everything again.
        """

    def record_stream(self, address: int, stream: int) -> None:
        """
        Keep the block's memory, once freed, until `stream` has passed this point.
        """

    def empty_cache(self) -> None:
        """Release unused segments to the device."""

    class PoolFilter(enum.Enum):
        this_thread = 0

        everything = 1

    def create_pool(self, use_on_oom: bool = False, no_split: bool = False) -> int:
        """Return the n of a new private pool's id (0, n)."""

    def begin_pool(self, pool: int, filter: CachingAllocator.PoolFilter = CachingAllocator.PoolFilter.this_thread) -> None:
        """Allocate in the pool from now on."""

    def end_pool(self, pool: int) -> None: ...

    def release_pool(self, pool: int) -> None:
        """Release the pool's memory to the device as its blocks become free."""

    def hold_allocated(self, except_pool: int) -> int:
        """
        Let what is allocated now, except in a private pool, stay so despite its free; return the number of this hold.
        """

    def keep_used(self, hold: int, used: Sequence[int]) -> None:
        """Hold the blocks that contain one of these addresses, and no others."""

    def release_hold(self, hold: int) -> None: ...

    def held_bytes(self, hold: int) -> int:
        """Return the bytes of the blocks of a hold."""

    def memory_snapshot(self) -> list[dict[str, Any]]:
        """
        Return the segments in the shape of torch.cuda.memory_snapshot, with stack ids.
        """

    def releasable_bytes(self) -> int:
        """Return the bytes that empty_cache() would release now."""

    def reset_peak_stats(self) -> None: ...

    def reset_accumulated_stats(self) -> None: ...

    def set_memory_fraction(self, fraction: float) -> None:
        """Limit reserved memory to a fraction of the device's."""

    def set_memory_limit(self, bytes: int) -> None:
        """Limit reserved memory; the device's memory removes the limit."""

    @property
    def device(self) -> Device: ...

    @property
    def memory_fraction(self) -> float: ...

    def apply_settings(self, settings: AllocatorSettings) -> None: ...

    @property
    def settings(self) -> AllocatorSettings: ...

    def identify_stream(self, stream: int, id: int) -> None: ...

    def owns(self, address: int) -> bool: ...

    def block_at(self, address: int) -> dict[str, Any]:
        """
        Return the allocated block that starts at an address; {} when there is none.
        """

    def stop_tracking_uses(self) -> list[dict[str, Any]]:
        """Stop following streams, and return the delayed frees by their lines."""

    def delayed_frees(self) -> list[dict[str, Any]]:
        """Return the delayed frees by their lines, up to now."""

    @property
    def untracked_uses(self) -> int:
        """Calls whose use of memory is unknown."""

    def track_uses(self, session: Session, record_stream: str, poison: bool = False) -> None:
        """
        Delay the reuse of freed blocks until other streams have used them (`auto`), or only count what this would delay (`report`); fill freed blocks (`poison`). The session's tracer must not have started.
        """

    def writes_after_free(self) -> list[dict[str, int]]:
        """Return the writes to freed memory that were found."""

    @property
    def unchecked_frees(self) -> int:
        """Freed blocks that could not be filled or checked."""

    def set_quarantine(self, bytes: int) -> None:
        """
        Hold freed blocks back until they have this many bytes in all; 0: do not.
        """

    def describe_state(self, sink: MemoryEventSink, stacks_are_valid: bool) -> None:
        """Push the events that recreate the current state."""

class HostAllocator:
    """torch's caching allocator of pinned host memory."""

    def __init__(self, device: Device, settings: AllocatorSettings = ...) -> None: ...

    def allocate(self, size: int) -> int:
        """
        Return the address of at least `size` bytes; 0 for size 0.

        Raises:
            MemoryError: The driver has no more pinned memory.
        """

    def free(self, address: int) -> None:
        """Free an allocated block, which is reused once its uses are done."""

    def record_event(self, address: int, device: Device, stream: int) -> bool:
        """
        Note that work of a stream uses the block around an address; False: there is none.
        """

    def add_device(self, device: Device) -> None:
        """Make the copies of another device known."""

    def follow_copies(self, session: Session) -> None:
        """
        Note the copies that the session's tracer sees as uses of their blocks.
        """

    def record_into(self, session: Session) -> None:
        """
        Write the existing memory and, until `stop_recording`, every event into the session.
        """

    def stop_recording(self) -> None: ...

    def end_stream(self, device: Device, stream: int) -> None:
        """Call it before the stream is destroyed."""

    def empty_cache(self) -> None:
        """
        Return all cached blocks to the driver, recorded with the caller's stack.
        """

    def apply_settings(self, settings: AllocatorSettings) -> None: ...

    def memory_stats(self) -> dict[str, int]:
        """Return every value of torch.cuda.host_memory_stats, by its key."""

    def reset_peak_stats(self) -> None: ...

    def reset_accumulated_stats(self) -> None: ...

class MemoryColumns:
    """The columns of `memory_events`, used without copying."""

    def __init__(self, *, time: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], action: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], address: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], size: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], requested_size: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], device: Annotated[NDArray[numpy.int16], dict(shape=(None,), order='C', device='cpu', writable=False)], stream: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], pool: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], stack: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], thread: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], framework: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def __len__(self) -> int: ...

class MemoryState:
    """The memory of every device after the events applied so far."""

    def __init__(self) -> None: ...

    def apply(self, events: MemoryColumns, first: int = 0, last: int | None = None, until: int = 9223372036854775807) -> None:
        """Apply rows [first, last) whose time is at most `until` ns."""

    def apply_with_levels(self, events: MemoryColumns, first: int = 0, last: int | None = None) -> dict[str, Any]:
        """
        Apply rows [first, last) and return the columns of `memory_levels`: one row whenever a level changed.
        """

    def apply_up_to_peak(self, events: MemoryColumns, first: int = 0, device: int | None = None) -> tuple[int, int, int] | None:
        """
        Apply the rows from `first` on until most bytes are allocated, on a device or on all, and return how many rows that makes, the bytes allocated and reserved then. None, without a change, if their times do not ascend.
        """

    def memory_limits(self) -> dict[int, int]:
        """Return the bytes of the last memory_limit of each device that has one."""

    def levels(self, time: int) -> dict[str, Any]:
        """
        Return one row of `memory_levels` for each device, stamped with `time`.
        """

    def forget_the_past(self) -> None:
        """Set peaks to the current values and accumulated statistics to 0."""

    def segments(self) -> dict[str, Any]:
        """Return the segments as columns, by device and address."""

    def blocks(self) -> dict[str, Any]:
        """
        Return the blocks, free ones too, as columns by device and address. `segment` is a row of segments() or -1; `state` is 0 inactive, 1 allocated, 2 pending free.
        """

    def statistics(self, device: int) -> dict[str, int]:
        """Return the keys of torch.cuda.memory_stats that follow from events."""

    def parts(self, device: int) -> dict[str, int]:
        """
        Return how the memory of a device is used, in bytes: allocated and its peak, and of the known segments what is reserved, free, free in partly used segments and in the largest free block; `outside` is active outside known segments. Costs the same however many blocks there are.
        """

    def devices(self) -> list[int]:
        """Return the ordinals of the devices seen, ascending."""

    @property
    def anomalies(self) -> int:
        """Events that contradict those before them."""

class FreeLevels:
    """How free memory changes as events are added."""

    def __init__(self) -> None: ...

    def add(self, events: MemoryColumns) -> dict[str, Any]:
        """Return the columns of `free_levels` that follow from further events."""

def lifetimes(events: MemoryColumns, initial_events: int, device: int) -> dict[str, Any]:
    """
    Return the rows in which each block of a device begins to be active, its free is requested, and it ends, as columns in the order of allocation. `free` and `end` are the number of rows for blocks that are not freed; blocks that end within the initial events are left out.
    """

def overlap(activities: dict[str, Any], calls: dict[str, Any], synchronizations: dict[str, Any], start: int | None = None, end: int | None = None) -> list[dict[str, int]]:
    """
    Return the times of each device and, with a key `stream`, of each of its streams, in ns. `work` is a Work, `kind` of calls a CallKind, of synchronizations a position in SYNCHRONIZATION_KINDS; see gpuviz/data/codes.py.
    """

def idle_gaps(activities: dict[str, Any], calls: dict[str, Any], synchronizations: dict[str, Any], most_rows: int, start: int | None = None, end: int | None = None) -> dict[str, Any]:
    """
    Return the columns of the derived table `idle_gaps`, of the columns that `overlap` takes. `activity` is a row of those given. Streams that would make it longer than `most_rows` are left out.
    """

def event_times(activities: dict[str, Any], calls: dict[str, Any], synchronizations: dict[str, Any]) -> object:
    """
    Return the times of synchronizations, of the columns that `overlap` takes. Unknown times of event records (0) are derived: after the call, all activities launched before on the stream, and the records that the stream waited for; 0 if none is known.
    """

def covered(parts: dict[str, Any], begins: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], ends: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> object:
    """
    Return how much of each interval is covered by parts, in ns. Those have the columns begin and end, ascending.
    """

def earliest_times(not_before: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sources: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], targets: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], lags: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> object:
    """
    Return the earliest time of each moment, where each target is at least its lag after its source. Constraints are sorted by target, and sources precede targets; else ValueError.
    """

def value_numbers(functions: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], blocks: dict[str, Any], accesses: dict[str, Any]) -> object:
    """
    Return a number for each work, equal for works that compute the same values: those of an equal function that read equal values. One of function 0 computes what no other does. `blocks` has the columns value and unseen; `accesses` work, block, place, access (bits: 1 reads, 2 writes, 4 writes all) and unseen, the number of works until then that may have written anything.
    """

class EventFollower:
    """Which blocks addresses were in, and marks of memory events."""

    def __init__(self, followed: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
        """Only followed addresses can be found, if given."""

    def add(self, events: dict[str, Any]) -> None:
        """Add columns of memory_events, in order."""

    def blocks(self, address: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], time: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> dict[str, Any]:
        """
        Return device and event of the allocation of the block at each address and time.
        """

    def take_marks(self, is_whole: bool) -> dict[str, Any]:
        """Return columns of memory_marks since the last call."""

class BusyTimes:
    """
    How long the GPUs were busy, as activities are added roughly in order of time. Of each device, the last `most_parts` separate parts of the time can still change; what begins before them is not counted. Not thread-safe.
    """

    def __init__(self, most_parts: int = 262144) -> None: ...

    def add(self, activities: dict[str, Any]) -> None:
        """
        Add activities: the columns `time` and `end` in ns, `device`, and `is_kernel` and `is_copy`, 0 or 1. Costs time for them and for the parts that they reach.
        """

    def of(self, device: int) -> dict[str, int]:
        """
        Return how many activities a device had, the start of the first and the end of the last, and the time in ns in which any ran, a kernel, a copy, and both; `uncounted_ns` bounds the error.
        """

    def devices(self) -> list[int]:
        """Return the ordinals of the devices seen, ascending."""

    @property
    def parts(self) -> int:
        """The most separate parts kept of a device."""

def numbered(high: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], low: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[object, object, object]:
    """
    Return a number for each row, the same for equal pairs and counted up as they first come; and for each number its first row and how many rows have it.
    """

def group_totals(group: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], groups: int) -> dict[str, Any]:
    """
    Return count, sum, least and greatest of the values of each group; 0 for groups without values.
    """

def group_medians(group: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], groups: int) -> object:
    """
    Return the median of the values of each group, rounded down; 0 for groups without values.
    """

def typical_rows(group: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], third: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], groups: int) -> object:
    """
    Return the first row of each group with the group's most frequent combination of three columns; of equally frequent ones, of the one that occurs first.
    """

@overload
def first_rows(known: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], wanted: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> object: ...

@overload
def first_rows(known: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], wanted: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> object:
    """
    Return the first row of `known` with each wanted id; -1 if there is none, or for id 0.
    """

def alive_blocks(blocks: dict[str, Any], address: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], time: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> object:
    """
    Return the block that begins at each address and lives at the time: of several, the one that was made last; -1 if there is none. `blocks` has the columns address, begin and end, which is negative if it was never freed.
    """

def line_runs(rows: dict[str, Any], order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[object, object]:
    """
    Return when the run of each row began and ended: the rows with a stack that follow each other in an order by thread, and are of the same thread and line. `rows` has the columns time, end, thread, stack and line.
    """

class EventPlaces:
    """
    The order of memory events and of the begins and ends of lines of the program, as numbers. Lines that begin or end between the same two events have an order if they are among those that the scale was made with. If one line ends when another begins, both have the same place.
    """

    def __init__(self, events: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], begins: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], ends: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Times in ns, ascending; those of begins and ends of lines are distinct.
        """

    @property
    def count(self) -> int:
        """More than any place."""

    def of_events(self) -> object:
        """Return the place of each event, and one after all."""

    def before(self, times: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> object:
        """
        Return the places of lines that begin at some times; an event then is in the line.
        """

    def after(self, times: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> object:
        """
        Return the places of lines that end at some times; an event then is in the line.
        """

def pack(begin: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], size: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], seconds: float) -> tuple[object, dict[str, Any]]:
    """
    Return offsets of blocks that exist from their begin until before their end, as low as found in this time; and `load`, the most bytes that exist at once, first after the begin at `load_time`, with the `height` that the offsets need.
    """

class HazardStreamKind(enum.Enum):
    """What orders a stream implicitly."""

    blocking = 1

    non_blocking = 2

class HazardMode(enum.Enum):
    """How an operation accesses memory."""

    read = 0

    unknown = 1

    atomic = 2

    write = 3

class HazardCopyKind(enum.Enum):
    """The sides of a copy."""

    host_to_device = 0

    device_to_host = 1

    device_to_device = 2

    host_to_host = 3

class HazardMemory(enum.Enum):
    """The kind of memory of a block."""

    device = 0

    pinned = 1

class HazardAllocator(enum.Enum):
    """Who frees and reuses a block."""

    cuda = 0

    caching = 1

    private_pool = 2

    stream_ordered = 3

class HazardKind(enum.Enum):
    """What two unordered operations do to the same memory."""

    RAW = 0

    WAR = 1

    WAW = 2

    reuse = 3

    use_after_free = 4

    use_before_alloc = 5

class HazardTier(enum.Enum):
    """How sure a hazard is."""

    certain = 0

    probable = 1

    latent = 2

class HazardEngine:
    """
    Finds operations that access the same memory in conflicting ways without a guaranteed order, in a program given call by call. Stream 0 is the legacy default stream of device 0; operations are numbered from 1, 0 is none. ValueError for what does not exist.
    """

    def __init__(self, *, cuda_free_synchronizes: bool = True, pageable_download_blocks: bool = False, strict_threads: bool = False) -> None: ...

    def create_stream(self, kind: HazardStreamKind, device: int = 0) -> int: ...

    def legacy_stream(self, device: int) -> int: ...

    def destroy_stream(self, stream: int) -> None: ...

    def create_event(self) -> int: ...

    def destroy_event(self, event: int) -> None: ...

    def launch(self, operation: int, accesses: Sequence[tuple[int, HazardMode, int, int | None]], stream: int, thread: int = 0, programmatic: bool = False) -> None: ...

    def copy(self, operation: int, kind: HazardCopyKind, source: tuple[int, int, int | None] | None, destination: tuple[int, int, int | None] | None, stream: int | None, thread: int = 0, peer: int | None = None) -> None:
        """
        Pageable memory and the stream of a synchronous copy are None. `peer` is the other device of a copy between two.
        """

    def memset(self, operation: int, destination: tuple[int, int, int | None], stream: int | None, thread: int = 0) -> None: ...

    def host_access(self, operation: int, accesses: Sequence[tuple[int, HazardMode, int, int | None]], thread: int = 0) -> None: ...

    def record_event(self, thread: int, event: int, stream: int) -> None: ...

    def wait_event(self, thread: int, stream: int, event: int) -> None: ...

    def synchronize_event(self, thread: int, event: int) -> None: ...

    def synchronize_stream(self, thread: int, stream: int) -> None: ...

    def synchronize_device(self, thread: int, device: int = 0) -> None: ...

    def write_value(self, thread: int, stream: int, address: int) -> None: ...

    def wait_value(self, thread: int, stream: int, address: int) -> None: ...

    def allocate(self, operation: int, allocator: HazardAllocator, memory: HazardMemory, address: int, bytes: int, stream: int = 0, thread: int = 0) -> int:
        """Return the id of a block."""

    def record_stream(self, block: int, stream: int) -> None: ...

    def free(self, operation: int, thread: int, block: int) -> None: ...

    def free_async(self, operation: int, thread: int, block: int, stream: int) -> None: ...

    def cuda_free(self, thread: int, block: int) -> None: ...

    def begin_capture(self, stream: int) -> None: ...

    def end_capture(self, stream: int) -> int:
        """Return an executable graph."""

    def create_graph(self, accesses: Sequence[tuple[int, HazardMode, int, int | None]]) -> int: ...

    def instantiate(self, graph: int) -> int: ...

    def launch_graph(self, operation: int, thread: int, graph: int, stream: int) -> None: ...

    def take(self) -> list[tuple[HazardKind, HazardTier, int, int, int, int | None, list[tuple[int, int]]]]:
        """
        Return the hazards found since the last call: kind, tier, first and second operation, block, other block, and bytes of the block.
        """

def hazards_of(operations: dict[str, Any], accesses: dict[str, Any], blocks: dict[str, Any]) -> dict[str, Any]:
    """
    Return the hazards of the columns of gpuviz.hazards.operations. `kind` and `tier` are codes of HazardKind and HazardTier, `first` and `second` rows of the operations; blocks are rows, -1 for none. ValueError if rows do not exist.
    """

class Operation(enum.IntEnum):
    """The operation of a row of a program."""

    malloc = 0

    free = 1

    record_stream = 2

    busy = 3

    sync = 4

    empty_cache = 5

    begin_pool = 6

    end_pool = 7

    settings = 8

    stats = 9

    free_pending = 10

    complete = 11

    release_pool = 12

    memory_limit = 13

    expandable = 14

    place = 15

    restore_segment = 16

    restore_pages = 17

    restore_gap = 18

    restore_block = 19

class EventLog(MemoryEventSink):
    """Keeps every event."""

    def __init__(self) -> None: ...

    def __len__(self) -> int: ...

    def clear(self) -> None: ...

    def events(self) -> dict[str, numpy.typing.NDArray[Any]]:
        """Return the events as NumPy columns, by name."""

class ReplayProgram:
    """An operation stream in columns."""

    def __init__(self, operation: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], id: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], argument: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], stream: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], stack: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, thread: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, time_ns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, settings: Sequence[str] = []) -> None: ...

    def __len__(self) -> int: ...

    @property
    def operation(self) -> numpy.typing.NDArray[numpy.uint8]: ...

    @property
    def id(self) -> numpy.typing.NDArray[numpy.uint32]: ...

    @property
    def origin(self) -> numpy.typing.NDArray[numpy.int64]:
        """The row of the recording that each operation repeats."""

class RecordedOperations:
    """The operations that a recording's events repeat."""

    @property
    def program(self) -> ReplayProgram: ...

    @property
    def inferred_calls(self) -> int:
        """Calls of empty_cache that the recording lacks."""

    @property
    def inferred_limit(self) -> int | None:
        """
        The limit of reserved bytes that follows from failed requests; None without it.
        """

class RecordedEvents:
    """The events of one device of a recording, used without copying."""

    def __init__(self, columns: dict[str, Any], device: int, stream_ids: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], stream_handles: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def operations(self, *, settings: AllocatorSettings, initial_events: int, capacity: int, lacks_calls: bool, omits_calls: bool, keeps_settings: bool, keeps_limits: bool, pool_filter: CachingAllocator.PoolFilter) -> RecordedOperations:
        """
        Return the operations that the events repeat; see RecordedProgram in
        native/replay/recorded_operations.hpp.
        """

class ReplaySink(MemoryEventSink):
    """Receives the events of a replay."""

class ReplayOutcome(ReplaySink):
    """What a replay led to; see native/replay/replay_outcome.hpp."""

    def __init__(self, *, initial_events: int, large_page: int) -> None: ...

    def finish(self) -> None:
        """To be called after the replay."""

    @property
    def peak_allocated(self) -> int: ...

    @property
    def active_at_peak(self) -> int: ...

    @property
    def reserved_at_peak(self) -> int: ...

    @property
    def peak_reserved(self) -> int: ...

    @property
    def peak_reserved_origin(self) -> int:
        """The row of the recording that led to the peak of reserved bytes."""

    @property
    def first_failure(self) -> int:
        """The row of the recording whose request failed first; -1 if none did."""

    @property
    def failures(self) -> int: ...

    @property
    def segments_made(self) -> int: ...

    @property
    def bytes_made(self) -> int: ...

    @property
    def segments_released(self) -> int: ...

    @property
    def bytes_released(self) -> int: ...

    @property
    def pages_mapped(self) -> int: ...

    @property
    def pages_unmapped(self) -> int: ...

class ReplayLog(ReplaySink):
    """Keeps the events of a replay with the times of the recording."""

    def __init__(self, events: RecordedEvents, operations: RecordedOperations) -> None: ...

    def take(self) -> dict[str, numpy.typing.NDArray[Any]]:
        """Return the events as NumPy columns, by name, once."""

class Replayer:
    """Runs a program on an allocator, once."""

    def __init__(self, program: ReplayProgram, device: OfflineDevice, allocator: Allocator, sink: ReplaySink | None = None) -> None: ...

    def run(self, speed: float = 0.0) -> dict[str, Any]:
        """
        Return the addresses of every malloc (0: out of memory), the statistics at every
        `stats`, the operations carried out and the nanoseconds it took. Speed 1 keeps the
        program's pauses, 2 halves them, 0 leaves them out.
        """

    def stop(self) -> None:
        """End run() before its next operation."""

class SharedPool:
    """The caching allocators of the process, for other libraries."""

    def __init__(self, open_device: Callable[[int], CachingAllocator], out_of_memory: Callable[[Any], str]) -> None:
        """`out_of_memory(error)` returns the text of an OutOfMemoryError."""

    def allocate(self, size: int, device: int, stream: object, framework: Framework = Framework.none) -> int:
        """
        `stream` is an object with `__cuda_stream__`, or a handle of this module.
        """

    def free(self, address: int, device: int) -> None: ...

    def free_after(self, address: int, device: int, last: object) -> None:
        """
        Free memory that was used until now on the stream `last`, given as in `allocate`.
        """

    def set_session(self, session: Session | None, stacks: bool = True) -> None: ...

    def abandon_after_fork(self) -> None:
        """In the child of a fork: no longer use devices that were opened before."""

    def serve_torch(self) -> None:
        """Let the functions for torch that this library exports use this pool."""

    @property
    def lost_frees(self) -> int:
        """Frees that failed and were abandoned."""

class StackLender:
    """Lends the call stack of a thread to those that do its work."""

    def __init__(self, work: int) -> None:
        """
        `work` is the address of a function without arguments that returns an int, which is not negative in a thread that does such work.
        """

    def set_autograd(self, *, next_node: int, thread: int, current_node: int, number_offset: int, thread_offset: int) -> None:
        """
        Addresses of functions, and offsets in nodes, that find the forward work of a backward pass, for the sessions set from now on.
        """

    def current_node(self) -> tuple[int, int]:
        """
        The number of the node that this thread runs and that of the thread that made it, after `set_autograd`; 0 without one.
        """

    def set_session(self, session: Session | None) -> None:
        """Lend to the threads that this session records; None ends it."""

    def lending(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """
        The function, which lends the stack of its caller while it runs, without a frame of Python.
        """

class PinnedObserver:
    """
    Records the pinned host memory that a program takes from an allocator of its own.
    """

    def __init__(self) -> None: ...

    def allocated(self, address: int, size: int, requested_size: int) -> None:
        """To be called after an allocation; `size` is the bytes of the block."""

    def freed(self, address: int) -> None:
        """To be called before a free."""

    def set_session(self, session: Session | None, stacks: bool = True) -> None:
        """
        Push the live blocks, and send events to a session, which must outlive this; None ends it.
        """

    def abandon(self) -> None:
        """To be called in the child of a fork."""

class ObservedPinnedMemory:
    """
    Pinned memory of a program's own pool, to which it returns with the last reference to it.
    """

    @property
    def ptr(self) -> int:
        """Address."""

    @property
    def size(self) -> int:
        """Size in bytes."""

    def __int__(self) -> int: ...

class ObservedPinnedPool:
    def __init__(self, observer: PinnedObserver, allocator: Callable[[int], Any], pointer_type: object) -> None:
        """`pointer_type` is cupy.cuda.PinnedMemoryPointer."""

def observed_pinned_malloc(make: Callable[[], ObservedPinnedPool]) -> Callable[[int], Any]:
    """
    Return a function for cupy.cuda.set_pinned_memory_allocator; `make` is called at its first use.
    """

class LibraryObserver:
    """Records what a library allocates, as another one reports."""

    def __init__(self, framework: Framework) -> None: ...

    def allocated(self, device: int, address: int, size: int, stream: object, stack: int | None = None) -> None:
        """
        To be called after an allocation; `stream` is as for SharedPool.allocate, and `stack` an id of Session.add_stack, unless it is the caller's.
        """

    def freed(self, device: int, address: int, stack: int | None = None) -> None:
        """To be called before a free."""

    def out_of_memory(self, device: int, size: int) -> None:
        """To be called after a request that failed."""

    def set_session(self, session: Session | None, stacks: bool = True) -> None:
        """
        Push the live blocks, and send events to a session, which must outlive this; None ends it.
        """

    def devices(self) -> list[int]:
        """Return the devices with events."""

    def abandon(self) -> None: ...

def rmm_pool_owner() -> int:
    """The `owner` of the pool of blocks of RMM's memory resources."""

def jax_pool_owner() -> int:
    """
    The `owner` of the pool of what JAX uses, the lowest of all that are no MemPool's.
    """

class CupyAllocator:
    def __init__(self, memory_module: object, runtime_module: object, stream_module: object, current_device: Callable[[], int], current_stream: Callable[[], int], open_device: Callable[[int], CachingAllocator], out_of_memory: Callable[[Any], Exception], context_device: int = 0) -> None:
        """
        `context_device` is the address of the driver's cuCtxGetDevice; 0 if the current device may be another than that of the current context.
        """

    def empty_cache(self, allocator: CachingAllocator) -> None:
        """Release unused segments to the device, with the caller's stack."""

    def set_session(self, session: Session | None, stacks: bool = True) -> None: ...

    def abandon(self) -> None: ...

    @property
    def is_direct(self) -> bool:
        """
        Whether CuPy's objects are written directly; slower calls build them if not.
        """

    @property
    def lost_frees(self) -> int:
        """Frees that failed and were abandoned."""

def cupy_malloc(make: Callable[[], CupyAllocator]) -> Callable[[int], Any]:
    """
    Return a function for cupy.cuda.set_allocator; `make` is called at its first use.
    """

class CupyObserver:
    def __init__(self, memory_module: object, runtime_module: object, stream_module: object, current_device: Callable[[], int], current_stream: Callable[[], int], allocator: Callable[[int], Any], total_bytes: Callable[[], int] | None, total_bytes_of: Callable[[Any], Callable[[], int] | None] | None = None, out_of_memory: Callable[[BaseException, int, int], None] | None = None, context_device: int = 0) -> None:
        """`context_device` is as for CupyAllocator."""

    def set_session(self, session: Session | None, stacks: bool = True) -> None: ...

    def devices(self) -> list[int]:
        """Return the devices on which it has allocated memory."""

    def abandon(self) -> None: ...

def observed_malloc(make: Callable[[], CupyObserver]) -> Callable[[int], Any]:
    """
    Return a function for cupy.cuda.set_allocator; `make` is called at its first use.
    """

class PinnedMemory:
    """
    Pinned memory of a cupy.cuda.PinnedMemoryPointer, freed with the last reference to it.
    """

    @property
    def ptr(self) -> int:
        """Address."""

    @property
    def size(self) -> int:
        """Size in bytes."""

    def __int__(self) -> int: ...

class PinnedAllocator:
    def __init__(self, *, pointer_type: object, runtime_module: object, stream_module: object, current_device: Callable[[], int], current_stream: Callable[[], int], open_host: Callable[[int], HostAllocator], open_device: Callable[[int], CachingAllocator], refused: Callable[[str], Exception], context_device: int = 0) -> None:
        """`context_device` is as for CupyAllocator."""

    def set_session(self, session: Session | None, stacks: bool = True) -> None: ...

    def abandon(self) -> None: ...

    @property
    def is_direct(self) -> bool:
        """
        Whether CuPy's pointers are written directly; its constructor is slower.
        """

    @property
    def lost_frees(self) -> int:
        """Frees that failed and were abandoned."""

def cupy_malloc_pinned(make: Callable[[], PinnedAllocator]) -> Callable[[int], Any]:
    """
    Return a function for cupy.cuda.set_pinned_memory_allocator; `make` is called at its first use.
    """

class GpuKernel:
    """A kernel for a SimulatedGpu."""

    def __init__(self, *, name: str, duration_ns: int, multiprocessors: int = 132, grid: tuple[int, int, int] = (1, 1, 1), block: tuple[int, int, int] = (1, 1, 1), registers: int = 0, static_shared_memory: int = 0, dynamic_shared_memory: int = 0, accesses: Sequence[tuple[int, int]] = [], arguments: int = 0) -> None:
        """
        `accesses` are pairs of an address and a mode, a number of DICTIONARIES; `arguments` is equal for equal other arguments, 0 if they are unknown.
        """

class SimulatedGpu:
    """A simulated GPU, at the level of CUDA's calls."""

    def __init__(self, device: int = 0, *, real_time: bool = True) -> None:
        """Without `real_time`, only waits and calls advance the clock."""

    multiprocessors: Final[int] = ...
    """(arg: object, /) -> int"""

    def attach(self, session: Session, *, launch_sites: bool = True, api_calls: bool = False, graph_nodes: bool = True) -> None:
        """Record into a running session, which must live until detach()."""

    def detach(self) -> None:
        """Wait for pending GPU activities, and stop recording."""

    def pause(self) -> None:
        """
        Record nothing until resume() but the end of work that was launched before.
        """

    def resume(self) -> None: ...

    @property
    def recorded_calls(self) -> int:
        """Rows of `api_calls` since attach()."""

    def set_clock_of(self, session: Session) -> None:
        """Give ranges of a session this GPU's times, until stop_clock_of()."""

    def stop_clock_of(self, session: Session) -> None:
        """Give ranges of a session the time of now from now on."""

    def abandon(self) -> None:
        """From now on, release memory without waiting for the GPU."""

    def abandon_recording(self) -> None:
        """
        In the child after fork(): record nothing from now on, and wait for nothing.
        """

    @property
    def now_ns(self) -> int:
        """Now, in ns, on CLOCK_MONOTONIC or the virtual clock."""

    def wait_until(self, time_ns: int) -> None:
        """Let the host be busy with something else until then."""

    def allocate(self, allocator: CachingAllocator, size: int, stream: int) -> int:
        """
        Return the address of at least `size` bytes for use on `stream`; 0 for size 0.
        """

    def free(self, allocator: CachingAllocator, address: int) -> None: ...

    def empty_cache(self, allocator: CachingAllocator) -> None: ...

    def host_allocator(self, device: Device, settings: AllocatorSettings) -> HostAllocator:
        """Return a new allocator of pinned memory, on the GPU's clock."""

    def allocate_host(self, allocator: HostAllocator, size: int) -> int:
        """
        Return the address of at least `size` bytes of pinned memory; 0 for size 0.
        """

    def free_host(self, allocator: HostAllocator, address: int) -> None: ...

    def track_uses(self, allocator: CachingAllocator, session: Session, record_stream: str, poison: bool = False) -> None:
        """Like CachingAllocator.track_uses, on the GPU's clock."""

    def create_stream(self, non_blocking: bool = False, priority: int = 0) -> int:
        """Return its handle."""

    def destroy_stream(self, stream: int) -> None: ...

    def synchronize_stream(self, stream: int) -> None: ...

    def is_idle(self, stream: int) -> bool: ...

    def synchronize_device(self) -> None: ...

    def create_event(self) -> int:
        """Return its handle."""

    def destroy_event(self, event: int) -> None: ...

    def record_event(self, event: int, stream: int) -> None: ...

    def wait_event(self, stream: int, event: int) -> None: ...

    def synchronize_event(self, event: int) -> None: ...

    def is_complete(self, event: int) -> bool: ...

    def launch(self, stream: int, kernel: GpuKernel) -> None: ...

    def begin_capture(self, stream: int) -> int:
        """Return the number of a new capture."""

    def capture(self, capture: int, kernel: GpuKernel) -> None: ...

    def captured_addresses(self, capture: int) -> list[int]:
        """Return the addresses that the kernels use."""

    def end_capture(self, capture: int) -> int:
        """Return the number of a new graph, whose kernels run one after another."""

    def destroy_graph(self, graph: int) -> None: ...

    def launch_graph(self, stream: int, graph: int) -> None: ...

    def copy(self, stream: int, kind: int, bytes: int, source: int = 0, destination: int = 0, pinned: bool = True, blocking: bool = False) -> None:
        """
        `kind` is a number of DICTIONARIES; a blocking copy is on the default stream.
        """

    def fill(self, stream: int, address: int, bytes: int) -> None: ...

class ScheduledDevice(SimulatedDevice):
    """The memory of a SimulatedGpu, for a CachingAllocator."""

    def __init__(self, gpu: SimulatedGpu, capacity: int) -> None: ...

class ClockedSink(MemoryEventSink):
    """Passes events on, with times of a SimulatedGpu's clock."""

    def __init__(self, gpu: SimulatedGpu, sink: MemoryEventSink) -> None: ...

class TraceRows:
    """
    Rows of one category for a trace viewer, looked at without a copy. Times are within 2**60 ns, `end` is never before `time`.
    """

    def __init__(self, *, category: int, contains: bool, instant: bool, time: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], track: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], name: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], flow: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], first_flow: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], flow_count: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], arguments: Sequence[tuple[int, bool, Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]]]) -> None: ...

def trace_lanes(tables: Sequence[TraceRows]) -> list[Any]:
    """
    Return for each table the lane of its track, from 0, of each row: what overlaps on a lane lies within a row whose table `contains` others.
    """

def write_perfetto_rows(tables: Sequence[TraceRows], sequence: int, zero_ns: int, write: Callable[[bytes], object]) -> None:
    """
    Write rows as TracePackets of Perfetto, by time; `zero_ns` is the clock at time 0.
    """

def write_perfetto_counter(track: int, time: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], value: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sequence: int, zero_ns: int, write: Callable[[bytes], object]) -> None:
    """Write the values of a counter as TracePackets of Perfetto."""

def write_chrome_rows(tables: Sequence[TraceRows], tracks: Sequence[tuple[int, int]], names: Sequence[str], argument_names: Sequence[str], argument_texts: Sequence[str], write: Callable[[bytes], object]) -> None:
    """
    Write rows as events of Chrome's JSON, by time, each after a comma. `tracks` are process and thread ids, texts are JSON strings.
    """

def write_chrome_counter(process: int, name: str, time: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], value: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], write: Callable[[bytes], object]) -> None:
    """Write the values of a counter as events of Chrome's JSON."""

class TorchObserver:
    """Turns the trace of torch's allocator into events."""

    def __init__(self, settings: AllocatorSettings) -> None:
        """With the settings of torch's allocator."""

    @staticmethod
    def function() -> int:
        """
        The address of the function that a tracker calls with an observer's `address` and an entry.
        """

    @property
    def address(self) -> int:
        """Valid until the process ends."""

    def set_session(self, session: Session | None, stacks: bool = True) -> None:
        """Send events to a session, which must outlive this; None ends it."""

    def describe(self, segments: Sequence[tuple[int, int, int, int, int, int, bool, bool]], blocks: Sequence[tuple[int, int, int, int, bool]]) -> None:
        """
        Push what exists. Segments: device, address, size, stream, both numbers of the pool, whether large, whether expandable. Blocks: device, address, size, requested size, whether freed but in use.
        """

    def update(self, segments: Sequence[tuple[int, int, int, int, int, int, bool, bool]], blocks: Sequence[tuple[int, int, int, int, bool]]) -> None:
        """
        Push how the state differs from the one known so far, without what came and went in between; given as in `describe`.
        """

    def set_workspaces(self, sizes: Sequence[int]) -> None:
        """
        Note blocks as workspaces of a library if one of these sizes was requested; those of `describe` if it was the first.
        """

    def devices(self) -> list[int]:
        """Return the devices with events."""

    def abandon(self) -> None: ...

def torch_pool_owner() -> int:
    """
    The `owner` of the pool of torch's blocks; those of its private pools follow.
    """

def read_torch_snapshot(path: str, memory_limit: int, progress: object | None = None) -> tuple[str, dict[str, dict[str, Any]]]:
    """
    Return the manifest, as JSON, and the tables of a file of torch.cuda.memory._snapshot(). Texts are offsets and bytes, dictionaries codes and texts, lists offsets and items. Nothing in the file is executed. `progress` gets bytes done and in all. Raises ValueError(place, problem).
    """

def kept_manifest_texts() -> list[str]:
    """Return which texts of a manifest a snapshot's key `gpuviz` keeps."""

def are_large_by_size(actions: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], sizes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> object:
    """
    Return 1 for each event that a reader takes to be of a large pool by its size, else 0.
    """

def write_torch_snapshot(write: object, devices: Sequence[int], events: dict[str, Any], segments: dict[str, Any], blocks: dict[str, Any], frames: dict[str, Any], stacks: dict[str, Any], texts: Sequence[str], pools: Sequence[tuple[int, int]], rest: bytes) -> None:
    """
    Write the pickle of a torch memory snapshot: `write` gets it in pieces. Ids are positions from 1, 0 is none; `devices` has the events of each device, which follow each other; `rest` are further keys and values, pickled without memo.
    """

def find_holders(types: list[Any], numpy_array: type | None, skipped: list[Any], names: list[Any], wanted: list[int] | None, hidden: tuple[list[Any], list[int], list[tuple[int, int]]]) -> tuple[list[Any], list[Any], int]:
    """
    Find what keeps the instances of `types` alive, without running Python code.

    `types` has tuples of a class and the descriptors of its address and size, subclasses first; `names` has tuples of a dict, its tier in ascending order, and whether it copies references of a running frame. With `wanted`, only owners of these addresses are looked for. `hidden` has references that objects do not show: the objects, by how much the references to each are more than Python counts, and pairs of positions of a holder and what it holds. Return the owners (object, address, size, paths, dominators, whether a cycle keeps it), the labels of paths, and the number of objects visited.
    """

def object_types() -> list[tuple[type, int]]:
    """
    Return the types of the objects that the garbage collector knows, each with how many there are.
    """

def objects_of(types: list[type]) -> list[Any]:
    """
    Return the objects of exactly these types that the garbage collector knows.

    `gc.get_objects` refers to all objects: meanwhile, `tuple` fails with SystemError in other threads.
    """

def fields_of(object: object) -> dict[Any, Any] | None:
    """
    Return the __dict__ of an object without running its code; None if it has none.
    """
