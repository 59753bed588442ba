"""Where the streams of a program come from, and what they are called for it."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz._core import number_alike, own_name
from gpuviz.data.columns import distinct, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.strings import texts
from gpuviz.data.tables import Tables

# Values of assignments: a call that returns a stream, or a display of several.
# Not arguments of a call; a walrus may be in parentheses.
_STREAM = re.compile(r"(?:^[^(=]*|:)=\s*[\w.]*[Ss]tream\(")
_DISPLAY = re.compile(r"(?:^[^(=]*|:)=\s*(\[|\{|\(|list\(|tuple\(|dict\().*[Ss]tream\(")
_CREATION = re.compile(r"cu(da)?StreamCreate")
# torch makes all streams of its pool when the program asks for the first one.
_POOL = re.compile(r"[\\/]torch[\\/]cuda[\\/]")
_OF_PROGRAM = ("blocking", "non_blocking")


@dataclass(frozen=True, slots=True)
class StreamOrigin:
    """Where a stream comes from.

    Attributes:
        variable: The variable that the line which made it assigns to; empty if unknown.
        is_one: Whether the variable holds one stream at a time, not a collection of them.
        place: The file and the number of that line.
    """

    variable: str
    is_one: bool
    place: str


def names_of_streams(streams: pa.Table, origins: Mapping[int, StreamOrigin]) -> dict[int, str]:
    """Return the names of the rows of ``streams``, by their ids.

    A stream that the program has not named is called by the variable that holds it, else by the
    line that made it, else by its handle. Where several on a device would have one name, they are
    numbered as they were made.
    """
    names: list[str] = []
    rows = sorted(_latest(streams), key=lambda row: row["created"])
    for row in rows:
        own = own_name(row["id"], row["handle"])
        name = row["name"] or own
        origin = origins.get(row["id"])
        if name == own and origin is not None:
            name = origin.variable or f"stream made at {origin.place}"
        names.append(name)
    devices = np.array([row["device"] for row in rows], np.int16)
    return dict(zip((row["id"] for row in rows), number_alike(devices, names), strict=True))


def _latest(streams: pa.Table) -> Iterable[dict[str, Any]]:
    rows = streams.select(["id", "device", "handle", "name", "created"]).to_pylist()
    return {row["id"]: row for row in rows}.values()


def stream_origins(tables: Tables) -> dict[int, StreamOrigin]:
    """Return where the streams come from whose calls are known, by their ids.

    What a function returns is called by what its caller assigns it to. A line that assigns to
    several variables makes as many streams, in this order; of any other number it is not known
    which is which. What a line that makes several streams assigns to one variable is a collection
    of them, unless the line shows that it is one stream at a time.
    """
    of_calls = calls_of_streams(tables)
    stacks = _by_id(tables["stacks"], np.array([*of_calls.values()], np.uint32))
    used = {frame for row in stacks.values() for frame in row["frames"]}
    frames = _by_id(tables["frames"], np.array([*used], np.uint32))
    made: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    places: dict[int, str] = {}
    for stream, stack in of_calls.items():
        row = stacks.get(stack, {"frames": (), "user_frame": 0})
        called = [frames[each] for each in row["frames"] if each in frames]
        ids = [line["id"] for line in called]
        lines = called[ids.index(row["user_frame"]) :] if row["user_frame"] in ids else []
        if lines and not _POOL.search(called[0]["filename"]):
            places[stream] = f"{PurePath(lines[0]['filename']).name}:{lines[0]['line']}"
            made[_assignment(lines)].append(stream)
    found: dict[int, StreamOrigin] = {}
    for (assigned, source, *_), streams in made.items():
        variables, is_one = _variables(assigned, source, len(streams))
        for stream, variable in zip(streams, variables, strict=True):
            found[stream] = StreamOrigin(variable, is_one, places[stream])
    return found


def _assignment(lines: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    """Return the line that assigns what the first line makes: a caller if that returns it."""
    line = lines[0]
    source = line["source"] or ""
    for caller in lines[1:]:
        function = line["name"].rpartition(".")[2]
        value = f"= {source.removeprefix('return ')}"
        is_one, is_display = _STREAM.search(value), _DISPLAY.search(value)
        is_returned = source.startswith("return ") and (is_one or is_display)
        if not is_returned or f"{function}(" not in (caller["source"] or ""):
            break
        made = "Stream(" if is_one else "[Stream("
        line, source = caller, caller["source"].replace(f"{function}(", made)
    return line["assigned"] or "", source, line["filename"], line["line"], line["cell"]


def _variables(assigned: str, source: str, count: int) -> tuple[list[str], bool]:
    """Return the variable of each stream that a line made, and whether it holds only this one."""
    variables = [each for each in assigned.split(", ") if each]
    is_one, is_display = (bool(each.search(source)) for each in (_STREAM, _DISPLAY))
    # Else a library made a stream for itself, or another object holds it.
    if is_one or is_display:
        if len(variables) == 1:
            return variables * count, is_one
        if len(variables) == count:
            return variables, True
    return [""] * count, False


def calls_of_streams(tables: Tables) -> dict[int, int]:
    """Return the stacks of the calls that made streams, in the order of these calls.

    Where calls of several threads or processes overlap, it is not known which made a stream.
    """
    made = _rows_of_program(tables["streams"])
    if not made:
        return {}
    calls = tables["api_calls"]
    names = plain(calls["name"])
    known = distinct(names)
    is_creation = [bool(_CREATION.match(text)) for text in texts(tables, known)]
    rows = np.flatnonzero(first_rows(known[is_creation], names) >= 0)
    rows = rows[np.argsort(plain(calls["time"])[rows], kind="stable")]
    begins, ends, stacks = (plain(calls[name])[rows] for name in ("time", "end", "stack"))
    ended = np.maximum.accumulate(ends)
    found = {}
    for stream in sorted(made, key=lambda row: row["created"]):
        place = int(np.searchsorted(begins, stream["created"], side="right")) - 1
        is_alone = place < 1 or ended[place - 1] <= stream["created"]
        if place >= 0 and stream["created"] <= ends[place] and is_alone:
            found[stream["id"]] = int(stacks[place])
    return found


def _rows_of_program(streams: pa.Table) -> list[dict[str, Any]]:
    rows = {row["id"]: row for row in streams.select(["id", "kind", "created"]).to_pylist()}
    return [row for row in rows.values() if row["kind"] in _OF_PROGRAM]


def _by_id(table: pa.Table, ids: np.ndarray) -> dict[int, dict[str, Any]]:
    rows = first_rows(plain(table["id"]), distinct(ids))
    found = (table.slice(row, 1).to_pylist()[0] for row in rows[rows >= 0].tolist())
    return {row["id"]: row for row in found}
