"""Which values the columns of a recording can have: what analyses may rely on in any file.

Beyond types and ids (`gpuviz.data.validation`), times and sizes are small enough to be added
and subtracted, and the processes of a merged recording are apart.
"""

from collections.abc import Iterator
from functools import cache
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa

from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.tables import ACTIONS, Tables, schemas
from gpuviz.data.validation import NonconformingTableError

# Of times in ns (146 years), so that their differences are below 2**63; likewise of sums of sizes.
_LIMIT = 2**62
_TIMES = ("time", "end", "created", "destroyed", "wall", "boot", "uncertainty", "start")
_SIZES = (
    *(("memory_events", "size"), ("memory_events", "requested_size")),
    *(("host_memory_events", "size"), ("host_memory_events", "requested_size")),
    *(("devices", "total_memory"), ("devices", "memory_bandwidth"), ("device_memory", "used")),
    *(("activities", "bytes"), ("memory_operations", "bytes"), ("launch_blocks", "bytes")),
    *(("collectives", "bytes"), ("host_accesses", "bytes")),
)
_ORDINALS = (
    *(("devices", "id"), ("memory_events", "device")),
    *(("activities", "device"), ("device_memory", "device")),
    ("held_blocks", "device"),
)
# Requests and limits of any size, which nothing adds up.
_NOT_ADDED = tuple(ACTIONS.index(action) for action in ("oom", "memory_limit"))


def check_values(tables: Tables) -> None:
    """Check the values of conforming tables.

    Raises:
        NonconformingTableError: A value is impossible; the message contains the first one.
    """
    for table, problem in chain(_outside(tables), _too_much(tables), _processes(tables)):
        raise NonconformingTableError(table, problem)


def _outside(tables: Tables) -> Iterator[tuple[str, str]]:
    """Yield numbers that are too low or too high."""
    for name, columns in _bounded().items():
        if not tables[name].num_rows:
            continue
        for column in columns:
            is_time = column in _TIMES
            least = 1 - _LIMIT if is_time else 0
            values = _plain(tables[name][column])
            lowest, highest = int(values.min(initial=0)), int(values.max(initial=0))
            if lowest < least:
                yield name, f"column {column} has {lowest}, expected at least {least}"
            if highest >= _LIMIT and not is_time:
                highest = int(_added(tables[name], column).max(initial=0))
            if highest >= _LIMIT:
                yield name, f"column {column} has {highest}, expected less than {_LIMIT}"


@cache
def _bounded() -> dict[str, list[str]]:
    """Return the columns of times, sizes and ordinals, by table."""
    others = {*_SIZES, *_ORDINALS}
    return {
        name: [each for each in schema.names if each in _TIMES or (name, each) in others]
        for name, schema in schemas().items()
    }


def _too_much(tables: Tables) -> Iterator[tuple[str, str]]:
    """Yield columns of sizes whose sum is too high."""
    for name, column in _SIZES:
        # Samples are not added up.
        if name == "device_memory" or not tables[name].num_rows:
            continue
        total = _plain(tables[name][column]).sum(dtype=float)
        if total >= _LIMIT:
            total = _added(tables[name], column).sum(dtype=float)
        if total >= _LIMIT:
            yield name, f"column {column} has {total:.3g} bytes in all, expected less than {_LIMIT}"


def _added(table: pa.Table, column: str) -> np.ndarray:
    """Return the values of a column without those of requests and limits."""
    values = _plain(table[column])
    if "action" not in table.schema.names:
        return values
    return values[~np.isin(codes(table["action"], ACTIONS), _NOT_ADDED)]


def _processes(tables: Tables) -> Iterator[tuple[str, str]]:
    """Yield what two processes of a merged recording share, and devices of none."""
    rows = tables["processes"].to_pylist()
    if not rows:
        return
    owner: dict[int, int] = {}
    for row in rows:
        if len(row["devices"]) != len(row["ordinals"]):
            yield "processes", f"process {row['id']} has another number of devices than of ordinals"
        for device in row["devices"]:
            if owner.setdefault(device, row["id"]) != row["id"]:
                problem = f"device {device} belongs to processes {owner[device]} and {row['id']}"
                yield "processes", problem
    for name, column in (("devices", "id"), ("memory_events", "device"), ("activities", "device")):
        alone = sorted(_values(tables[name][column]) - owner.keys())
        if alone:
            yield "processes", f"device {alone[0]} of {name} belongs to no process"
    calls = sorted((row["first_correlation"], row["last_correlation"], row["id"]) for row in rows)
    called = [each for each in calls if each[0] <= each[1]]
    for (_, last, one), (first, _, other) in pairwise(called):
        if first <= last:
            problem = f"processes {one} and {other} share the correlation id {first}"
            yield "processes", problem


def _plain(column: pa.ChunkedArray) -> np.ndarray:
    return plain(column)


def _values(column: pa.ChunkedArray) -> set[int]:
    return set(distinct(_plain(column)).tolist())
