"""A recording of the simulated GPU, with the pinned memory that its copies and the host use."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.unit.recording.from_activities import rows_of

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_BEGIN = 0x7F0000000000


@dataclass(frozen=True)
class HostUse:
    """An operation of a program that uses a pinned block.

    Attributes:
        id: The operation.
        block: The block.
        mode: ``read`` or ``write``.
        place: Of a copy, its place among all activities; of the host's, among its own accesses.
    """

    id: str
    block: str
    mode: str
    place: int


def with_host_memory(
    recording: "Recording",
    sizes: dict[str, int],
    copies: Sequence[HostUse],
    accesses: Sequence[HostUse],
    times: Sequence[int],
) -> "tuple[Recording, dict[int, str]]":
    """Return a recording with pinned blocks, and the ids of the host's accesses by call stack.

    Every call has a line of its own, so that each pair of operations is a hazard of its own. In
    every other program, accesses to memory that copies fill were found by the next call.

    Args:
        recording: What ran on one simulated GPU.
        sizes: The bytes of each pinned block.
        copies: The copies from and to them, in order.
        accesses: The accesses of the host, in order.
        times: When each of these was.
    """
    tables = {name: table.to_pylist() for name, table in recording.tables.items()}
    addresses = {name: _BEGIN + (number << 20) for number, name in enumerate(sizes)}
    tables["host_memory_events"] = [
        {"time": 0, "action": "alloc", "address": addresses[name]}
        | {"size": size, "requested_size": size}
        for name, size in sizes.items()
    ]
    correlations = sorted({row["correlation"] for row in tables["activities"]})
    for copy in copies:
        address = addresses[copy.block]
        row = {"correlation": correlations[copy.place], "block": address, "address": address}
        tables["launch_blocks"].append(row | {"mode": copy.mode, "bytes": sizes[copy.block]})
    calls = tables["api_calls"]
    for stack, call in enumerate(calls, start=1):
        call["stack"] = stack
    found, ids = [], {}
    for use, time in zip(accesses, times, strict=True):
        stack = len(calls) + 1 + use.place
        ids[stack] = use.id
        row = {"time": time, "mode": use.mode, "address": addresses[use.block]}
        row |= {"bytes": sizes[use.block], "stack": stack}
        found += [
            row
            | {"correlation": correlations[copy.place]}
            | {"exact": int(copy.mode == "read" or len(accesses) % 2)}
            for copy in copies
            if copy.block == use.block and "write" in (copy.mode, use.mode)
        ]
    tables["host_accesses"] = found
    numbers = range(1, len(calls) + len(accesses) + 1)
    tables["stacks"] = [{"id": each, "frames": [each]} for each in numbers]
    tables["frames"] = [
        {"id": each, "name": "step", "filename": "run.py", "line": each} for each in numbers
    ]
    rebuilt: dict[str, Any] = {name: rows_of(name, rows) for name, rows in tables.items()}
    return type(recording)(rebuilt, recording.manifest), ids
