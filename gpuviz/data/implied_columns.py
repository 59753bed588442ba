"""Columns computed from others, such as the names that a line assigns."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import product
from keyword import iskeyword

import numpy as np
import pyarrow as pa

from gpuviz import _core
from gpuviz._core import own_name
from gpuviz.data.arrays import coded
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.tables import DICTIONARIES, FRAMEWORKS, schemas

# Values of ``frames.installed``: whose code it is.
OWN, INSTALLED, GENERATED = 0, 1, 2
_NAME = r"\*?[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_ASSIGNMENT = re.compile(
    rf"\s*\(?\s*({_NAME}(?:\s*,\s*{_NAME})*)\s*,?\s*\)?\s*(?::[^=]*)?(\s*)=(?!=)(.*)",
    re.DOTALL,
)

_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_MEMORIES = DICTIONARIES["activities", "source"]
_HOST_MEMORIES = DICTIONARIES["activities", "host_memory"]


@lru_cache(maxsize=1 << 14)
def origin(filename: str) -> int:
    """Return whose code a file has, as in ``frames.installed``, as far as its name shows.

    It is `INSTALLED` if it belongs to Python or to an installed package, and `GENERATED` if a
    program or a library made it while it ran.
    """
    return _core.code_origin(filename.encode(errors="surrogatepass"))


@lru_cache(maxsize=1 << 14)
def assigned_names(source: str) -> str:
    """Return what a line assigns to, as ``labels, found``; empty if that is nothing with a name.

    Attributes are without their object. Parts of objects, as in ``a[0] = ...``, have no name, and
    nor has what ``a += ...`` changes. A line may be a part of a statement: ``dtype=float,`` is an
    argument.
    """
    found = _ASSIGNMENT.match(source)
    if found is None:
        return ""
    names = [name.strip(" *").rpartition(".")[2] for name in found[1].split(",")]
    value = found[3].rstrip()
    is_argument = not found[2] and value == value.lstrip() and value.endswith(",")
    is_closing = sum(map(value.count, "([{")) < sum(map(value.count, ")]}"))
    return "" if is_argument or is_closing or any(map(iskeyword, names)) else ", ".join(names)


def user_frame(frames: Iterable[int], origins: Callable[[int], int]) -> int:
    """Return the innermost frame of the program's own files, else of other code, else of all.

    A program of which all code is generated, as that of ``python -c``, has no own file.

    Args:
        frames: Ids of frames, innermost first; 0 and None mean no frame.
        origins: Whose code a frame has, as in ``frames.installed``.

    Returns:
        The frame's id; 0 if there are no frames.
    """
    ids = [frame for frame in frames if frame]
    return _core.user_frame(ids, [origins(frame) for frame in ids])


def with_installed(frames: pa.Table) -> pa.Table:
    """Return ``frames`` with the column ``installed`` recomputed from its other columns."""
    chunks = [_installed(chunk) for chunk in frames["filename"].chunks]
    return _with_column(frames, "frames", "installed", pa.chunked_array(chunks, pa.uint8()))


def _installed(filenames: pa.DictionaryArray) -> pa.Array:
    names = filenames.dictionary.to_pylist()
    by_name = pa.array([origin(name) for name in names], pa.uint8())
    return by_name.take(filenames.indices)


def with_assigned(frames: pa.Table) -> pa.Table:
    """Return ``frames`` with the column ``assigned`` recomputed from its other columns."""
    names = [assigned_names(source) for source in frames["source"].to_pylist()]
    values = pa.array(names, pa.utf8()).dictionary_encode()
    return _with_column(frames, "frames", "assigned", values)


def with_user_frames(stacks: pa.Table, frames: pa.Table) -> pa.Table:
    """Return ``stacks`` with the column ``user_frame`` recomputed from its other columns."""
    of_packages = dict(
        zip(frames["id"].to_pylist(), frames["installed"].to_pylist(), strict=True),
    )
    chosen = [
        user_frame(each, lambda frame: of_packages.get(frame, OWN))
        for each in stacks["frames"].to_pylist()
    ]
    return _with_column(stacks, "stacks", "user_frame", pa.array(chosen, pa.uint32()))


def with_host_memories(activities: pa.Table) -> pa.Table:
    """Return ``activities`` with the column ``host_memory`` recomputed from its other columns."""
    places = (
        codes(activities[name], DICTIONARIES["activities", name])
        for name in ("copy_kind", "source", "destination")
    )
    memories = coded(host_memories(*places), _HOST_MEMORIES)
    return _with_column(activities, "activities", "host_memory", memories)


def with_frameworks(events: pa.Table, pools: pa.Table) -> pa.Table:
    """Return ``memory_events`` with the column ``framework`` of each event's pool."""
    # The id 0 is that of a pool.
    ids, used = (plain(each).astype(np.int64) + 1 for each in (pools["id"], events["pool"]))
    # The last is that of an unknown pool, whose row is -1.
    of_pool = np.append(np.maximum(codes(pools["framework"], FRAMEWORKS), 0), 0)
    found = of_pool[first_rows(ids, used)].astype(np.int8)
    return _with_column(events, "memory_events", "framework", coded(found, FRAMEWORKS))


def with_named(streams: pa.Table) -> pa.Table:
    """Return ``streams`` with the column ``named`` recomputed from its other columns."""
    rows = streams.select(["id", "handle", "name"]).to_pylist()
    named = [int(row["name"] not in ("", own_name(row["id"], row["handle"]))) for row in rows]
    return _with_column(streams, "streams", "named", pa.array(named, pa.uint8()))


def host_memories(
    copy_kinds: np.ndarray,
    sources: np.ndarray,
    destinations: np.ndarray,
) -> np.ndarray:
    """Return the kind of host memory of copies; if both sides are host memory, pageable wins.

    It is a position in ``DICTIONARIES``.

    Args:
        copy_kinds: Positions in ``DICTIONARIES``; -1 for other values; the same for all arguments.
        sources: Positions of the source memories.
        destinations: Positions of the destination memories.
    """
    side = len(_MEMORIES) + 1
    places = ((copy_kinds.astype(np.int16) + 1) * side + sources + 1) * side + destinations + 1
    found: np.ndarray = _host_memory_codes()[places]
    return found


@lru_cache(maxsize=1)
def _host_memory_codes() -> np.ndarray:
    """Return the result for each combination of the three columns; index 0 means another value."""
    combinations = product(("", *_COPY_KINDS), ("", *_MEMORIES), ("", *_MEMORIES))
    found = [_HOST_MEMORIES.index(_host_memory(*each)) for each in combinations]
    return np.array(found, np.int8)


def _host_memory(kind: str, source: str, destination: str) -> str:
    if kind == "host_to_host" and destination == "pageable":
        return destination
    of_host = {"host_to_device": source, "host_to_host": source, "device_to_host": destination}
    memory = of_host.get(kind, "")
    return memory if memory in _HOST_MEMORIES else ""


def _with_column(table: pa.Table, name: str, column: str, values: pa.Array) -> pa.Table:
    known = schemas()[name]
    if column in table.schema.names:
        position = table.schema.get_field_index(column)
        return table.set_column(position, known.field(column), values)
    return table.add_column(known.get_field_index(column), known.field(column), values)
