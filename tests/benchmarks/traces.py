"""Cost of files for other tools, of a million activities and a million memory events."""

import resource
import tempfile
from pathlib import Path

from gpuviz.formats import arrow_directory
from gpuviz.recording import Recording
from tests.benchmarks import overlap, recording
from tests.benchmarks.recording import Row, fastest_s

MIB = 1 << 20


def recorded() -> Recording:
    """Return a recording of both programs, each with a million rows, from 2,000 lines."""
    streams, memory = overlap.recorded(), recording.recorded()
    tables = {name: table for name, table in streams.tables.items() if table.num_rows}
    named = ("memory_events", "stacks", "frames", "pools", "threads")
    return Recording(tables | {name: memory.tables[name] for name in named}, streams.manifest)


def fresh(everything: Recording) -> Recording:
    """Return the same recording without cached derived tables."""
    return Recording(everything.tables, everything.manifest)


def held_mib() -> float:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rows() -> list[Row]:
    """Measure everything; return the lines of the table."""
    everything = recorded()
    before = held_mib()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for suffix, name in (("pftrace", "Perfetto"), ("json", "Chrome JSON")):
            path = Path(folder) / f"run.{suffix}"
            seconds = fastest_s(lambda path=path: fresh(everything).export(path, overwrite=True))
            size = path.stat().st_size / MIB
            text = f"{seconds:.2f} s, {size:.0f} MiB"
            lines.append((f"{name} of 2 million rows", "10 s", text, seconds <= 10))
        grown = held_mib() - before
        lines.append(("memory to write these", "1500 MiB", f"{grown:.0f} MiB", grown <= 1500))
        for kind in ("arrow", "parquet"):
            path = Path(folder) / f"run.{kind}"
            seconds = fastest_s(lambda path=path: everything.export(path, overwrite=True))
            back = fastest_s(lambda path=path: arrow_directory.read(path))
            text = f"{seconds:.2f} s, read back in {back:.2f} s"
            lines.append((f"{kind} folder of 2 million rows", "10 s", text, seconds <= 10))
    return lines
