"""The derived tables of a recording: those of its file, else computed on first use."""

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from gpuviz.analysis.classification import derive
from gpuviz.analysis.processes import derive_by_process, processes
from gpuviz.data.derived import if_current, marked, schemas
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import Tables


class DerivedTables(Mapping[str, "pa.Table"]):
    """The derived tables, each computed on first use by a function of its name."""

    def __init__(self, compute: Callable[[str], pa.Table]) -> None:
        self._compute = compute
        self._made: dict[str, pa.Table] = {}

    def __getitem__(self, name: str) -> pa.Table:
        if name not in schemas():
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self._compute(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(schemas())

    def __len__(self) -> int:
        return len(schemas())


@Once
def derived(recording: RecordingData) -> Tables:
    """Return the tables of `gpuviz.data.derived`, each computed on first use."""
    known = if_current(recording.stored, recording.tables)
    if known is not None:
        return known
    tables, bounds = recording.tables, recording.bounds
    if processes(recording):
        return DerivedTables(lambda name: derive_by_process(recording, name, bounds))
    return DerivedTables(lambda name: derive(tables, name, bounds))


def derived_for_file(recording: RecordingData) -> dict[str, pa.Table]:
    """Return the derived tables in the form stored in files."""
    return marked(derived(recording), recording.tables)
