"""What the host did during a recording, from the newest samples."""

from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.classification import table_of
from gpuviz.analysis.host_work import newest_host_work
from gpuviz.analysis.sampled_work import sampled_work
from gpuviz.analysis.stream_origins import StreamOrigin, calls_of_streams, stream_origins
from gpuviz.data.arrays import batch_of, empty
from gpuviz.data.columns import codes, plain, rows_at
from gpuviz.data.tables import DICTIONARIES, Tables, schemas
from gpuviz.recorder.table_tail import FIRST_NS, TableTail, joined

# The ranges in which the host prepares, and those outside of which nobody asked for work.
_OF_HOST = ("compile", "load", "cell")
_RANGES = DICTIONARIES["ranges", "kind"]


class LiveHostTables:
    """What says what the host did: the newest samples, and what they refer to."""

    def __init__(self) -> None:
        self._samples = TableTail(empty(schemas()["host_samples"]))
        self._named: dict[str, list[pa.RecordBatch]] = {
            name: [] for name in ("stacks", "frames", "threads")
        }
        self._ranges: dict[int, dict[str, Any]] = {}
        self._is_sampled = False

    def take(self, table: str, batch: pa.RecordBatch) -> bool:
        """Add rows of a table; return whether they say what the host did."""
        if table == "host_samples":
            self._samples.append(batch)
            self._is_sampled = True
            return True
        if table in self._named:
            self._named[table].append(batch)
        elif table == "ranges":
            kinds = [_RANGES.index(kind) for kind in _OF_HOST]
            ranges = pa.Table.from_batches([batch])
            chosen = np.flatnonzero(np.isin(codes(ranges["kind"], _RANGES), kinds))
            rows = ranges.take(chosen).to_pylist() if len(chosen) else []
            self._ranges |= {row["id"]: row for row in rows}
        return False

    def take_all(self, tables: Tables) -> None:
        """Add all rows of a recording so far."""
        for name in ("host_samples", "stacks", "frames", "threads", "ranges"):
            for batch in tables[name].to_batches() if name in tables else ():
                self.take(name, batch)

    def origins(self, rows: Tables) -> dict[int, StreamOrigin]:
        """Return where the streams come from that known calls made."""
        of_calls = calls_of_streams(rows)
        stacks = self._with_ids("stacks", np.array([*of_calls.values()], np.uint32))
        frames = self._with_ids("frames", _frames_of(stacks))
        return stream_origins({**rows, "stacks": stacks, "frames": frames})

    def trim(self, most_rows: int) -> None:
        """Keep the rows that the next update needs, at most this many samples."""
        self._samples.trim(most_rows)

    def work(self, rows: Tables, gaps: pa.Table, from_ns: int = FIRST_NS) -> dict[str, pa.Table]:
        """Return what the host did in some idle gaps after a time, as the table ``host_work``.

        Nothing is returned if no thread was sampled.
        """
        if not self._is_sampled:
            return {}
        samples = self._samples.table(schemas()["host_samples"])
        samples = rows_at(samples, np.flatnonzero(plain(samples["end"]) > from_ns))
        ranges = pa.Table.from_batches([batch_of([*self._ranges.values()], schemas()["ranges"])])
        tables = self._named_by(samples) | {"ranges": ranges}
        return {"host_work": newest_host_work({**rows, **tables}, gaps)}

    def newest_work(self) -> pa.Table:
        """Return the table ``sampled_work`` of the rows since the last update."""
        samples = self._samples.table(schemas()["host_samples"]).slice(self._samples.known)
        return table_of("sampled_work", sampled_work(self._named_by(samples)))

    def _named_by(self, samples: pa.Table) -> dict[str, pa.Table]:
        """Return samples with what they refer to."""
        stacks = self._with_ids("stacks", plain(samples["stack"]))
        return {
            "host_samples": samples,
            "stacks": stacks,
            "frames": self._with_ids("frames", _frames_of(stacks)),
            "threads": joined(self._named["threads"], schemas()["threads"]),
        }

    def _with_ids(self, table: str, ids: np.ndarray) -> pa.Table:
        known = joined(self._named[table], schemas()[table])
        self._named[table] = known.to_batches()
        return rows_at(known, np.flatnonzero(np.isin(plain(known["id"]), ids)))


def _frames_of(stacks: pa.Table) -> np.ndarray:
    frames = stacks["frames"].combine_chunks().flatten().to_numpy()
    others = (plain(stacks[name]) for name in ("user_frame", "forward_frame"))
    return np.concatenate([frames, *others])
