"""A cross-stream hazard: two unordered operations on the same memory, and what orders them."""

from dataclasses import dataclass
from typing import Literal

from gpuviz.analysis.kernels import short_name
from gpuviz.data.stream_handle import DEFAULT_STREAM

Kind = Literal["RAW", "WAR", "WAW", "reuse", "use_after_free", "use_before_alloc"]
# The memory is given away before its last use has ended.
LIFETIME = frozenset(("reuse", "use_after_free"))
# Where the host's own accesses are made.
HOST = "the host"
Tier = Literal["certain", "probable", "latent"]


@dataclass(frozen=True, slots=True)
class HazardOperation:
    """One of the two operations of a hazard.

    Attributes:
        name: The kernel, the kind of copy, ``memset``, ``graph launch``, ``free``,
            ``allocation`` or ``host access``.
        mode: ``reads``, ``writes``, ``uses`` if the access mode is unknown, ``frees``, or
            ``reuses`` for the allocation of memory that a graph still uses.
        site: ``function (file:line)`` of the line that issued it; of an access of the host that
            was found later, the line that it came before.
        source: The text of the line; empty if unknown.
        stack: An id of ``stacks``; 0 if unknown.
        stream: The name of its stream; for a free, that of the block's allocation; ``the host`` for
            an access of the host.
        is_named: Whether the program gave the stream its name.
        device: Id in ``devices`` of the GPU of its stream.
        gpu: That GPU among those of the process, such as ``GPU 1``; empty if the process has one.
        activity: The row of ``activities``, or -1.
        event: The row of ``memory_events`` of a free or an allocation, or -1.
        is_before_site: Whether it is an access of the host some time before ``site``.
        variable: The variable that the line which made the stream assigned it to, if the program
            gave the stream no name; empty if unknown, or if it holds several.
    """

    name: str
    mode: str
    site: str
    source: str
    stack: int
    stream: str
    is_named: bool
    device: int
    gpu: str
    activity: int
    event: int
    is_before_site: bool = False
    variable: str = ""

    @property
    def is_of_host(self) -> bool:
        """Whether it is an access of the host itself."""
        return self.stream == HOST

    @property
    def where(self) -> str:
        """The stream, and the GPU if the process has several."""
        return shown_stream(self.stream, self.gpu, is_named=self.is_named)

    @property
    def short_name(self) -> str:
        """The name, of a kernel with parameters without them, its scopes and template arguments."""
        return short_name(self.name) if "(" in self.name else self.name


@dataclass(frozen=True, slots=True)
class EventInLines:
    """An event that was meant to order two operations, in the lines of the program.

    Attributes:
        mistake: ``early``: it is recorded before the first operation; ``late``: the stream of the
            second operation waits for it only after that; ``elsewhere``: it is recorded on a
            stream that has nothing to wait for; ``again``: it is recorded after the first
            operation, and then on another stream before the wait.
        name: What the line that waits for it calls it; empty if it has no name there.
        record: The call site of the record.
        record_source: The text of that line.
        wait: The call site of the wait.
        wait_source: The text of that line.
        recorded_on: The stream that records it, as ``where`` of an operation.
    """

    mistake: Literal["early", "late", "elsewhere", "again"]
    name: str
    record: str
    record_source: str
    wait: str
    wait_source: str
    recorded_on: str


@dataclass(frozen=True, slots=True)
class Hazard:
    """Two operations that access the same memory without a guaranteed order, and the fix.

    Pairs of the same lines, streams and kind are one hazard; the operations are those of the pair
    that showed in this run, else of the first pair.

    Attributes:
        kind: ``RAW``: the second reads what the first writes; ``WAR``: the second overwrites what
            the first reads; ``WAW``: both write; ``reuse``: the second uses memory that the
            allocator gave to a new block while the first was still using the old one;
            ``use_after_free``: the block was freed while the first may still have been using it.
        tier: ``certain`` if modes and extents of both accesses are known, ``probable`` if one is
            not, ``latent`` if the memory must be handed out again before harm is done.
        device: Id in ``devices`` of the GPU whose memory it is; the first one of pinned memory.
        memory: ``device``, or ``pinned`` for host memory of CuPy's pool of pinned memory.
        first: The operation that was issued first.
        second: The operation that was issued second.
        block: The row of ``memory_events``, or of ``host_memory_events``, that allocated the block
            that the second operation accesses or frees.
        other_block: The same for the block that the first accesses, if it is another; else -1.
        allocated: Call site of the allocation of the block that the first operation accesses.
        freed: Call site of the free of that block; empty if it was not freed.
        bytes: Most bytes in conflict, of all pairs.
        count: How many pairs of operations are in conflict.
        showed: Whether two of them overlapped on the GPU or ran in the opposite order in this run,
            which they may do in any other run too.
        fix: What to change in the program.
        misplaced: The event that was meant to order the operations, as far as one is found; else
            None.
        is_freed_by_return: Whether the line that freed the block did so at the end of a call from
            which the first operation was issued.
        workspace: What the memory is for, if a library uses it each time, such as ``the work area
            of an FFT plan``; else empty.
    """

    kind: Kind
    tier: Tier
    device: int
    memory: Literal["device", "pinned"]
    first: HazardOperation
    second: HazardOperation
    block: int
    other_block: int
    allocated: str
    freed: str
    bytes: int
    count: int
    showed: bool
    fix: str
    misplaced: EventInLines | None = None
    is_freed_by_return: bool = False
    workspace: str = ""


def shown_stream(stream: str, gpu: str, *, is_named: bool) -> str:
    """Return a stream as text: a name of the program in quotes, else what the stream is.

    Its GPU follows, if that is not empty.
    """
    shown = f'stream "{stream}"' if is_named else stream
    if shown == DEFAULT_STREAM:
        shown = f"the {shown}"
    elif "stream" not in shown and stream != HOST:
        shown = f"stream {shown}"
    return f"{shown} of {gpu}" if gpu else shown
