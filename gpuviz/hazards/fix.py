"""What orders the two operations of a hazard, as a sentence with the code."""

from collections.abc import Sequence

from gpuviz.hazards.hazard import LIFETIME, EventInLines, HazardOperation, Kind

# Streams that a sentence names.
_MOST_LISTED = 4


def fix(  # noqa: PLR0913 - what the sentence names
    kind: Kind,
    first: HazardOperation,
    second: HazardOperation,
    allocating: str,
    freed: str,
    *,
    device: int,
    is_of_graph: bool = False,
    routine: str = "",
) -> str:
    """Return what to change.

    Args:
        kind: The kind of the hazard.
        first: Its first operation.
        second: Its second operation.
        allocating: The stream on which the block of the first operation was allocated, as
            ``where`` of an operation.
        freed: Where that block was freed; empty if it was not.
        device: The device of the block.
        is_of_graph: Whether the second operation is the launch of a graph.
        routine: The function of a library that allocated the block for the time of a call; else
            empty.
    """
    if is_of_graph and kind in LIFETIME:
        pool = "a pool of its own: with gpuviz.use_mem_pool(gpuviz.MemPool())."
        if routine:
            return (
                f"The graph uses this memory at each launch, but it is a workspace that {routine} "
                f"freed when it returned. Allocate what the capture needs from {pool}"
            )
        return (
            f"The graph uses this memory at each launch, so keep the array that was freed"
            f"{_at(freed)} as long as the graph is launched. Or allocate what the capture needs "
            f"from {pool}"
        )
    if kind not in LIFETIME:
        return fix_of_waits([(first, second)])
    if first.where == allocating:
        return _keep(first, freed)
    # A block belongs to a stream of its own device.
    record_stream = "call gpuviz.record_stream(array, using_stream) with gpuviz's allocator, or "
    if first.device != device:
        record_stream = ""
    return (
        f"Before the array is freed{_at(freed)}, make the stream on which it was allocated, "
        f"{allocating}, wait for {first.where}: "
        f"allocating_stream.wait_event(using_stream.record())."
        f"{_on_current_device(first, device)} Or {record_stream}keep the array until "
        f"{first.where} has done its work."
    )


def fix_of_waits(waits: Sequence[tuple[HazardOperation, HazardOperation]]) -> str:
    """Return the waits that are missing between two lines of a program.

    Args:
        waits: What each should wait for: the last operation before it, and the first after it.
    """
    first, second = waits[0]
    firsts, seconds = (list(dict.fromkeys(each[side].where for each in waits)) for side in range(2))
    if take_turns(waits):
        return (
            "Let each iteration wait for the one before, which may be on another stream: record an "
            f"event after {first.site}, and let the stream of the next iteration wait for it "
            f"before {second.site}."
        )
    each_of = "each of " if len(firsts) > 1 else ""
    return (
        f"Record an event on {each_of}{_listed(firsts)} after {first.site}, and let "
        f"{_listed(seconds)} wait for {'all of them' if each_of else 'it'} before "
        f"{_next(first, second)}: second_stream.wait_event(first_stream.record())."
        f"{_on_current_device(first, second.device)}"
    )


def take_turns(waits: Sequence[tuple[HazardOperation, HazardOperation]]) -> bool:
    """Return whether a stream that one should wait for also waits for another one."""
    firsts, seconds = ({each[side].where for each in waits} for side in range(2))
    return len(waits) > 1 and not firsts.isdisjoint(seconds)


def fix_of_pinned(kind: Kind, first: HazardOperation, second: HazardOperation, freed: str) -> str:
    """Return what to change in a program whose pinned host memory is used without an order.

    Args:
        kind: The kind of the hazard.
        first: Its first operation.
        second: Its second operation.
        freed: Where the block of the first operation was freed; empty if it was not.
    """
    if kind not in LIFETIME:
        return fix(kind, first, second, first.where, freed, device=second.device)
    return (
        "CuPy's pool hands pinned memory out again as soon as it is freed. "
        f"{_keep(first, freed)} Or let the pool wait for copies: "
        "cupy.cuda.set_pinned_memory_allocator(gpuviz.malloc_pinned) while streams are recorded, "
        "or gpuviz run --record-stream auto."
    )


def fix_of_event(event: EventInLines, first: HazardOperation, second: HazardOperation) -> str:
    """Return what to change in a program with an event that is in the wrong place.

    Args:
        event: The event.
        first: The first operation of the hazard.
        second: Its second operation.
    """
    if event.mistake == "late":
        named = f"Event {event.name}, recorded in {event.record},"
        return (
            f"{named if event.name else f'The event recorded in {event.record}'} covers the first "
            f"operation, but {second.where} waits for it only in {event.wait}: wait for it before "
            f"{_next(first, second)}."
        )
    awaited = f"{second.where} waits for in {event.wait}"
    awaited = f"Event {event.name}, which {awaited}," if event.name else f"The event that {awaited}"
    recorded = "" if event.record == event.wait else f" in {event.record}"
    if event.mistake == "again":
        return (
            f"{awaited} was recorded on {first.where} after {first.site}, and then again on "
            f"{event.recorded_on}{recorded}: use another event each time, and wait for each."
        )
    how = f"too early{recorded}"
    if event.mistake == "elsewhere":
        how = f"on {event.recorded_on}{recorded}, whose work it does not need to wait for"
    return f"{awaited} is recorded {how}: record it on {first.where} after {first.site}."


def fix_of_host(first: HazardOperation, second: HazardOperation) -> str:
    """Return what to change in a program that accesses pinned memory before a copy has ended.

    Args:
        first: The copy.
        second: The access of the host.
    """
    return (
        f"Wait for the copy on {first.where} before the host {second.mode} the array: "
        f"synchronize the stream, or an event that was recorded after {first.site}. Or use another "
        "pinned array until then."
    )


def _on_current_device(first: HazardOperation, waiting: int) -> str:
    """Return where the event must be recorded, if a stream of another device waits for it."""
    if first.device == waiting:
        return ""
    return f" Record the event while {first.gpu} is the current device."


def _keep(first: HazardOperation, freed: str) -> str:
    return (
        f"Keep the array until {first.where} has done its work: synchronize the stream before the "
        f"array is freed{_at(freed)}."
    )


def _listed(streams: Sequence[str]) -> str:
    if len(streams) <= _MOST_LISTED:
        return " and ".join(filter(None, (", ".join(streams[:-1]), streams[-1])))
    return f"{', '.join(streams[: _MOST_LISTED - 1])} and {len(streams) - _MOST_LISTED + 1} others"


def _next(first: HazardOperation, second: HazardOperation) -> str:
    """Return what the line of the second operation is called next to that of the first."""
    return f"the next iteration of {second.site}" if first.site == second.site else second.site


def _at(site: str) -> str:
    return f" in {site}" if site else ""
