"""The lines that made the streams of a program, and the variables that hold them."""

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.data.columns import plain
from gpuviz.data.once import Once
from gpuviz.data.strings import texts

if TYPE_CHECKING:
    from gpuviz.data.recording_data import RecordingData

# Values of assignments: a call that returns a stream, and a display of several.
_ONE_STREAM = re.compile(r"=\s*[\w.]*[Ss]tream\(")
_DISPLAY = re.compile(r"=\s*(\[|\{|\(|list\(|tuple\(|dict\()")
_CREATION = re.compile(r"cu(da)?StreamCreate")


@dataclass(frozen=True, slots=True)
class StreamOrigin:
    """Where a stream comes from.

    Attributes:
        variable: The variable that the line which made it assigns to, after ``one of`` if that
            holds several streams; empty if unknown.
        site: The call site of that line.
    """

    variable: str
    site: str


@Once
def stream_origins(recording: "RecordingData") -> dict[int, StreamOrigin]:
    """Return where the streams that were made during a recording come from, by their ids.

    A line that assigns to several variables makes as many streams, in this order; of any other
    number it is not known which is which. What a line that makes several streams assigns to one
    variable is a collection of them, unless the line shows that it is one stream at a time.
    """
    tables = recording.tables
    calls = tables["api_calls"]
    names = plain(calls["name"])
    distinct = np.unique(names)
    is_creation = [bool(_CREATION.match(text)) for text in texts(tables, distinct)]
    rows = np.flatnonzero(np.isin(names, distinct[is_creation]))
    rows = rows[np.argsort(plain(calls["time"])[rows], kind="stable")]
    begins, ends = (plain(calls[name])[rows] for name in ("time", "end"))
    lines = {
        row["id"]: (row["assigned"], row["source"], row["filename"], row["line"], row["cell"])
        for row in tables["frames"].to_pylist()
    }
    made: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    sites: dict[int, str] = {}
    of_program = (
        row for row in tables["streams"].to_pylist() if row["kind"] in ("blocking", "non_blocking")
    )
    for stream in sorted(of_program, key=lambda row: row["created"]):
        place = int(np.searchsorted(begins, stream["created"], side="right")) - 1
        if place >= 0 and stream["created"] <= ends[place]:
            stack = int(calls["stack"][int(rows[place])].as_py())
            line = lines.get(recording.call_stacks.user_frame_number(stack), ("", ""))
            made[line].append(stream["id"])
            frame = recording.call_stacks.user_frame(stack)
            sites[stream["id"]] = frame.site if frame else ""
    found: dict[int, str] = {}
    for (assigned, source, *_), streams in made.items():
        variables = [each for each in (assigned or "").split(", ") if each]
        if len(variables) == 1:
            is_one = _ONE_STREAM.search(source or "") if len(streams) > 1 else True
            is_one = is_one and not _DISPLAY.search(source or "")
            variables = [variables[0] if is_one else f"one of {variables[0]}"] * len(streams)
        if len(variables) == len(streams):
            found |= dict(zip(streams, variables, strict=True))
    return {stream: StreamOrigin(found.get(stream, ""), site) for stream, site in sites.items()}
