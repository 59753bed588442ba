"""How many bytes the page of a part of a recording takes, without writing it."""

import io
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuviz.analysis.columns import codes, plain
from gpuviz.formats.gpuviz import DERIVED_FOLDER, TABLE_SUFFIX
from gpuviz.recording.tables import ACTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from gpuviz.recording.recording import Recording

_EVENTS = "memory_events"
_INTERVALS = ("activities", "api_calls", "synchronizations", "overheads", "ranges")
_MOMENTS = (_EVENTS, "device_memory", "memory_operations")
_BEGINNINGS = ("alloc", "segment_alloc", "segment_map")
_ENDS = ("free_completed", "segment_free", "segment_unmap")
# Derived tables, and the tables that they are longer or shorter with.
_GROWS_WITH = {
    f"{DERIVED_FOLDER}host_waits": "api_calls",
    f"{DERIVED_FOLDER}idle_gaps": "activities",
    f"{DERIVED_FOLDER}stream_waits": "synchronizations",
}
_OPEN = -1
_HALVINGS = 40
# Base64 has 4 letters for 3 bytes.
_LETTERS = 4 / 3


@dataclass(frozen=True, slots=True)
class PageBytes:
    """The bytes of a page, and those that each table has in the archive in it."""

    page: float
    tables: "Mapping[str, int]"

    def without(self, *tables: str) -> "PageBytes":
        """Return what is left without some tables."""
        letters = _LETTERS * sum(self.tables.get(name, 0) for name in tables)
        kept = {name: size for name, size in self.tables.items() if name not in tables}
        return PageBytes(self.page - letters, kept)


def page_bytes(page: bytes, archive: bytes) -> PageBytes:
    """Return what the page and the tables of the archive in it take."""
    sizes: dict[str, int] = {}
    with zipfile.ZipFile(io.BytesIO(archive)) as members:
        for member in members.infolist():
            name = member.filename.removesuffix(TABLE_SUFFIX)
            name = _GROWS_WITH.get(name, name)
            sizes[name] = sizes.get(name, 0) + member.compress_size
    return PageBytes(len(page), sizes)


class SizeModel:
    """Predicts the page of a window from its rows and from what they took in the last page.

    Args:
        recording: Of which there are windows.
        known: The bytes of the page of one window.
        window: That window, in ns.
    """

    def __init__(self, recording: "Recording", known: PageBytes, window: tuple[int, int]) -> None:
        self._begins: dict[str, NDArray[Any]] = {}
        self._ends: dict[str, NDArray[Any]] = {}
        for name in (*_MOMENTS, *_INTERVALS):
            self._begins[name], self._ends[name] = _bounds(recording, name)
        self._living = _living(recording)
        self._row_bytes = dict.fromkeys(self._begins, 0.0)
        self.learn(known, window)

    def learn(self, known: PageBytes, window: tuple[int, int]) -> None:
        """Take the bytes of a row, and of all that is no row, from the page of a window."""
        self._around = known.page
        for name, rows in self.rows(*window).items():
            if rows:
                self._row_bytes[name] = _LETTERS * known.tables.get(name, 0) / rows
            self._around -= self._row_bytes[name] * rows

    def rows(self, start: int, end: int) -> dict[str, int]:
        """Return about how many rows of each table a window has."""
        import numpy as np

        rows = {
            name: int(np.searchsorted(begins, end, "right"))
            - int(np.searchsorted(self._ends[name], start, "right"))
            for name, begins in self._begins.items()
        }
        before = int(np.searchsorted(self._begins[_EVENTS], start, "right"))
        return rows | {_EVENTS: rows[_EVENTS] + int(self._living[before])}

    def share(
        self,
        window_at: "Callable[[float], tuple[int, int]]",
        largest: float,
        bounds: tuple[float, float],
    ) -> float:
        """Return the share of the time, within bounds, whose page has about ``largest`` bytes."""
        low, high = bounds
        if self._predict(*window_at(low)) > largest:
            return low
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if self._predict(*window_at(middle)) <= largest:
                low = middle
            else:
                high = middle
        return low

    def _predict(self, start: int, end: int) -> float:
        rows = self.rows(start, end)
        return self._around + sum(self._row_bytes[name] * count for name, count in rows.items())


def _bounds(recording: "Recording", name: str) -> "tuple[NDArray[Any], NDArray[Any]]":
    """Return the times at which rows of a table begin, and at which they end, each ascending."""
    import numpy as np

    table = recording.tables[name]
    begins = plain(table["time"])
    if name in _MOMENTS:
        ascending = np.sort(begins)
        return ascending, ascending
    ends = plain(table["end"])
    is_unknown = (begins == 0) & (ends == 0)
    never = np.iinfo(np.int64).max
    return (
        np.sort(np.where(is_unknown, -1, begins)),
        np.sort(np.where(is_unknown | (ends == _OPEN), never, ends)),
    )


def _living(recording: "Recording") -> "NDArray[Any]":
    """Return how many blocks and segments live after each number of events."""
    import numpy as np

    table = recording.tables[_EVENTS]
    signs = np.array([(each in _BEGINNINGS) - (each in _ENDS) for each in ACTIONS])
    order = np.argsort(plain(table["time"]), kind="stable")
    changes = signs[codes(table["action"], ACTIONS)][order]
    return np.concatenate([[0], np.maximum(np.cumsum(changes), 0)])
