"""Where the rows are that show a finding: a table of the page, and its rows by name."""

from typing import TYPE_CHECKING

import numpy as np

from gpuviz.data.columns import plain, rows_at
from gpuviz.data.strings import texts

if TYPE_CHECKING:
    from gpuviz.advice.finding import Evidence, Finding
    from gpuviz.data.recording_data import RecordingData


def rows_of(recording: "RecordingData", finding: "Finding") -> tuple[str, tuple[str, ...]]:
    """Return the table that shows a finding, ``kernels`` or ``lines``, and its rows by name."""
    kernels = _kernels(recording, finding.evidence)
    if kernels:
        return "kernels", kernels
    return "lines", tuple(dict.fromkeys(line.site for line in finding.lines))


def _kernels(recording: "RecordingData", evidence: "Evidence | None") -> tuple[str, ...]:
    """Return the names of the kernels that are all of the evidence; empty if it is otherwise."""
    if evidence is None or evidence.table != "activities":
        return ()
    rows = rows_at(recording.tables["activities"], np.array(evidence.rows, np.int64))
    if set(rows["kind"].to_pylist()) != {"kernel"}:
        return ()
    return tuple(dict.fromkeys(texts(recording.tables, plain(rows["name"]))))
