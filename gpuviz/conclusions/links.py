"""Where the rows are that show a finding: a table of the page, and its rows by name."""

import numpy as np

from gpuviz.advice.evidence import Evidence
from gpuviz.advice.finding import Finding
from gpuviz.analysis.derived_tables import derived
from gpuviz.data.columns import plain, rows_at
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts


def rows_of(recording: RecordingData, finding: Finding) -> tuple[str, tuple[str, ...]]:
    """Return the table that shows a finding, ``kernels`` or ``lines``, and its rows by name."""
    kernels = _kernels(recording, finding.evidence)
    if kernels:
        return "kernels", kernels
    return "lines", tuple(dict.fromkeys(line.site for line in finding.lines))


def evidence_rows(
    recording: RecordingData, device: int, evidence: Evidence | None
) -> tuple[str, np.ndarray]:
    """Return the table of evidence and its rows, in the form of the table ``shown``."""
    if evidence is None:
        return "", np.empty(0, np.int64)
    rows = np.array(evidence.rows, np.int64)
    if evidence.table == "memory_events":
        is_ours = plain(recording.tables["memory_events"]["device"]) == device
        rows = (np.cumsum(is_ours) - 1)[rows[is_ours[rows]]]
    elif evidence.table == "idle_gaps":
        ended_by = plain(derived(recording)["idle_gaps"]["activity"])[rows]
        rows = ended_by[ended_by >= 0]
    return evidence.table, rows


def _kernels(recording: RecordingData, evidence: Evidence | None) -> tuple[str, ...]:
    """Return the names of the kernels that are all of the evidence; empty if it is otherwise."""
    if evidence is None or evidence.table != "activities":
        return ()
    rows = rows_at(recording.tables["activities"], np.array(evidence.rows, np.int64))
    if set(rows["kind"].to_pylist()) != {"kernel"}:
        return ()
    return tuple(dict.fromkeys(texts(recording.tables, plain(rows["name"]))))
