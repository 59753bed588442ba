"""What orders the two operations of a hazard, as a sentence with the code."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuviz.hazards.hazard import HazardOperation, Kind


def fix(  # noqa: PLR0913 - what the sentence names
    kind: "Kind",
    first: "HazardOperation",
    second: "HazardOperation",
    stream: str,
    freed: str,
    *,
    is_of_graph: bool = False,
) -> str:
    """Return what to change.

    Args:
        kind: The kind of the hazard.
        first: Its first operation.
        second: Its second operation.
        stream: The name of the stream on which the block of the first operation was allocated.
        freed: Where that block was freed; empty if it was not.
        is_of_graph: Whether the second operation is the launch of a graph.
    """
    if is_of_graph and kind in ("reuse", "use_after_free"):
        return (
            f"The graph uses this memory at each launch, so keep the array that was freed"
            f"{_at(freed)} as long as the graph is launched. Or allocate what the capture needs "
            f"from a pool of its own: with gpuviz.use_mem_pool(gpuviz.MemPool())."
        )
    if kind not in ("reuse", "use_after_free"):
        return (
            f"Record an event on {shown_stream(first.stream)} after {first.site}, and let "
            f"{shown_stream(second.stream)} wait for it before {second.site}: "
            f"second_stream.wait_event(first_stream.record())."
        )
    if first.stream == stream:
        return (
            f"Keep the array until {shown_stream(first.stream)} has done its work: synchronize the "
            f"stream before the array is freed{_at(freed)}."
        )
    return (
        f"Before the array is freed{_at(freed)}, make the stream on which it was allocated, "
        f"{shown_stream(stream)}, wait for {shown_stream(first.stream)}: "
        f"allocating_stream.wait_event(using_stream.record()). Or call "
        f"gpuviz.record_stream(array, using_stream) with gpuviz's allocator, or keep the array "
        f"until {shown_stream(first.stream)} has done its work."
    )


def _at(site: str) -> str:
    return f" in {site}" if site else ""


def shown_stream(stream: str) -> str:
    """Return a stream as text: its name in quotes, or what it is."""
    is_named = not stream.startswith(("stream ", "default ", "per-thread ", "internal "))
    return f'stream "{stream}"' if is_named else stream
