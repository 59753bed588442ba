"""CUDA calls and call sites of activities."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from gpuviz.analysis.grouping import numbered
from gpuviz.data.call_stacks import Frame
from gpuviz.data.codes import PHASES
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts
from gpuviz.data.tables import Tables

_LIMIT = 2**60


def check_by(by: str, known: Sequence[str]) -> None:
    """Check that ``by`` is a known value.

    Raises:
        ValueError: It is unknown.
    """
    if by not in known:
        *others, last = (f'"{name}"' for name in known)
        raise ValueError(f"by must be {', '.join(others)} or {last}, got {by!r}")


def durations(table: pa.Table, window: tuple[int, int] | None = None) -> np.ndarray:
    """Return how long each row lasts, in a window; 0 if a damaged row ends before it begins."""
    begin, end = within(table, window or (-_LIMIT, _LIMIT))
    lengths: np.ndarray = end - begin
    return lengths


def within(table: pa.Table, window: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return begin and end of each row, clipped to a window; none ends before it begins."""
    begin, end = (np.clip(plain(table[name]), *window) for name in ("time", "end"))
    return begin, np.maximum(begin, end)


def calls_of(tables: Tables, correlations: np.ndarray) -> np.ndarray:
    """Return the first row of ``api_calls`` with each correlation id; -1 if there is none."""
    return first_rows(plain(tables["api_calls"]["correlation"]), correlations)


def user_frames(tables: Tables, stacks: np.ndarray) -> np.ndarray:
    """Return the id in ``frames`` of the user's line of each call stack; 0 if unknown."""
    return values_of_stacks(tables, "user_frame", stacks)


def phases_of(tables: Tables, stacks: np.ndarray) -> np.ndarray:
    """Return the position in ``PHASES`` of the part of a training step of each call stack."""
    table = tables["stacks"]
    known = np.append(codes(table["phase"], PHASES), np.int8(0))
    found: np.ndarray = known[first_rows(plain(table["id"]), stacks)]
    return found


def values_of_stacks(tables: Tables, column: str, stacks: np.ndarray) -> np.ndarray:
    """Return the numbers in a column of ``stacks`` of some call stacks; 0 of no stack."""
    table = tables["stacks"]
    # The last is that of no stack, whose row is -1.
    values = np.append(plain(table[column]).astype(np.int64), 0)
    found: np.ndarray = values[first_rows(plain(table["id"]), stacks)]
    return found


def have_frame(
    recording: RecordingData, stacks: np.ndarray, matches: Callable[[Frame], bool]
) -> np.ndarray:
    """Return whether each call stack has a frame for which a function returns true."""
    numbers, first = numbered(stacks)
    frames = recording.call_stacks.frames
    of_distinct = [any(map(matches, frames(stack))) for stack in stacks[first].tolist()]
    found: np.ndarray = np.array(of_distinct, bool)[numbers]
    return found


def text_numbers(tables: Tables, ids: np.ndarray) -> np.ndarray:
    """Return a number for each id of ``strings``, equal for equal texts."""
    rows, first = numbered(ids)
    numbers: dict[str, int] = {}
    of_distinct = [numbers.setdefault(each, len(numbers)) for each in texts(tables, ids[first])]
    of_rows: np.ndarray = np.array(of_distinct, np.int64)[rows]
    return of_rows


def stacks_of(tables: Tables, calls: np.ndarray) -> np.ndarray:
    """Return the call stack of each row of ``api_calls``; 0 if the row is -1."""
    stacks: np.ndarray = np.append(plain(tables["api_calls"]["stack"]), np.uint32(0))[calls]
    return stacks


class CallSites:
    """The call sites of some rows.

    Args:
        recording: The recording.
        stacks: The call stack of each row; 0 if unknown.
    """

    def __init__(self, recording: RecordingData, stacks: np.ndarray) -> None:
        self._call_stacks = recording.call_stacks
        self.stacks = stacks

    def numbers(self, by: str) -> np.ndarray:
        """Return a number for each row, equal for the same ``line``, ``stack`` or ``module``."""
        if by == "stack":
            return self.stacks
        rows, first = numbered(self.stacks)
        numbers: dict[str, int] = {}
        name = self._call_stacks.module if by == "module" else self._line
        names = (name(stack) for stack in self.stacks[first].tolist())
        of_distinct = [numbers.setdefault(each, len(numbers)) for each in names]
        of_rows: np.ndarray = np.array(of_distinct, np.int64)[rows]
        return of_rows

    def _line(self, stack: int) -> str:
        return self._call_stacks.call_site(stack)[0]

    def lists(self, rows: list[list[int]]) -> pa.Array:
        """Return the call sites of lists of rows."""
        site_of = cache(lambda stack: self._call_stacks.call_site(stack)[0])
        found = [[site_of(stack) for stack in self.stacks[each].tolist()] for each in rows]
        return pa.array(found, pa.list_(pa.utf8()))

    def columns(self, rows: np.ndarray) -> dict[str, pa.Array]:
        """Return ``site``, ``source`` and ``stack`` of some rows, as in `Recording.sites`."""
        stacks = self.stacks[rows]
        pairs = [self._call_stacks.call_site(stack) for stack in stacks.tolist()]
        return {
            "site": pa.array([site for site, _ in pairs], pa.utf8()),
            "source": pa.array([source for _, source in pairs], pa.utf8()),
            "stack": pa.array(stacks),
        }

    def places(self, rows: np.ndarray) -> dict[str, pa.Array]:
        """Return ``module`` and ``phase`` of some rows."""
        stacks = self.stacks[rows].tolist()
        return {
            "module": pa.array(map(self._call_stacks.module, stacks), pa.utf8()),
            "phase": pa.array(map(self._call_stacks.phase, stacks), pa.utf8()),
        }
