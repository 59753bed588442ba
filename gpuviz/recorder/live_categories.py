"""What is in the blocks of a training program while it is recorded."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from gpuviz.analysis.categories import category_rows, is_training
from gpuviz.conclusions.store import MOST_CATEGORIZED
from gpuviz.data.arrays import with_columns
from gpuviz.data.columns import plain, rows_at
from gpuviz.data.conclusions import schemas
from gpuviz.data.first_rows import first_rows
from gpuviz.data.recording_data import RecordingData
from gpuviz.recorder.samples import Samples

_TABLE = "categories"
_UNKNOWN = "unknown"


class LiveCategories:
    """The table ``categories`` of a recording that goes on, as far as is known so far.

    Args:
        so_far: Returns the recording up to now.

    Attributes:
        known: The rows as of the last update.
    """

    def __init__(self, so_far: Callable[[], RecordingData]) -> None:
        self._so_far = so_far
        self._updates = Samples(self._update)
        # Not `empty_table`, which imports pandas.
        self.known: pa.Table = pa.Table.from_batches([], schemas()[_TABLE])
        self._changed = self.known

    def changed(self) -> pa.Table:
        """Return the rows that were added or changed since the last call.

        Looks as seldom as that takes at most a hundredth of the time. A later row of a block
        replaces an earlier one: of a step that goes on, not all is known.
        """
        self._changed = self._changed.slice(0, 0)
        self._updates.take()
        return self._changed

    def _update(self) -> None:
        recording = self._so_far()
        events = recording.tables["memory_events"].num_rows
        if events > MOST_CATEGORIZED or not is_training(recording):
            return
        found = category_rows(recording)
        before, after = _keys(self.known), _keys(found)
        place = first_rows(before, after)
        categories = np.append(_categories(self.known), "")
        is_known = categories[place] == _categories(found)
        gone = rows_at(self.known, np.flatnonzero(~np.isin(before, after)))
        unknown = pa.array([_UNKNOWN] * gone.num_rows, pa.utf8())
        gone = with_columns(gone, category=unknown)
        self._changed = pa.concat_tables([rows_at(found, np.flatnonzero(~is_known)), gone])
        self.known = found


def _keys(table: pa.Table) -> np.ndarray:
    """Return a number for each row, not 0, that only those of the same block have."""
    keys: np.ndarray = plain(table["device"]).astype(np.int64) << 32 | plain(table["event"])
    return keys + 1


def _categories(table: pa.Table) -> np.ndarray:
    return np.array(table["category"].to_pylist(), str)
