"""The derived tables of a recording: those of its file, else computed on first use."""

from typing import TYPE_CHECKING

from gpuviz.analysis.classification import DerivedTables
from gpuviz.analysis.processes import DerivedByProcess, processes
from gpuviz.data.derived import if_current, marked
from gpuviz.data.once import Once

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from gpuviz.data.recording_data import RecordingData


@Once
def derived(recording: "RecordingData") -> "Mapping[str, pa.Table]":
    """Return the tables of `gpuviz.data.derived`, each computed on first use."""
    known = if_current(recording.stored, recording.tables)
    if known is not None:
        return known
    if processes(recording):
        return DerivedByProcess(recording)
    return DerivedTables(recording.tables, recording.bounds)


def derived_for_file(recording: "RecordingData") -> "dict[str, pa.Table]":
    """Return the derived tables in the form stored in files."""
    return marked(derived(recording), recording.tables)
