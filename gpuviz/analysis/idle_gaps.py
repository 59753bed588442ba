"""The parts of idle gaps of devices and streams, as columns of the table ``idle_gaps``."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuviz import _core
from gpuviz.analysis.timed_rows import timed_activities, timed_calls, timed_synchronizations
from gpuviz.analysis.unseen import is_whole, parts
from gpuviz.data.columns import codes
from gpuviz.data.derived import schemas
from gpuviz.data.tables import DICTIONARIES, Tables

_ACTIVITY_KINDS = DICTIONARIES["activities", "kind"]
# `idle_gaps` is limited to the larger of this many rows, and this many per source row; with
# thousands of streams there would be more.
_MOST_GAPS = 1 << 20
_MOST_GAPS_PER_ROW = 4


def idle_gaps(tables: Tables, window: tuple[int, int] | None) -> dict[str, Any]:
    """Return the parts of idle gaps while streams were recorded, by lane and time."""
    return _gaps(tables, window) if is_whole(tables) else _seen_gaps(tables, window)


def _seen_gaps(tables: Tables, window: tuple[int, int] | None) -> dict[str, Any]:
    """Return the parts of idle gaps while streams were recorded, by lane and time."""
    found: list[Mapping[str, Any]] = []
    for part in parts(tables, window):
        gaps = _gaps(part.tables, (part.begin, part.end))
        gaps["activity"] = np.append(part.rows, -1)[gaps["activity"]]
        found.append(gaps)
    if not found:
        return {field.name: np.zeros(0, np.int64) for field in schemas()["idle_gaps"]}
    joined = {name: np.concatenate([each[name] for each in found]) for name in found[0]}
    order = np.lexsort((joined["time"], joined["stream"], joined["device"]))
    return {name: column[order] for name, column in joined.items()}


def _gaps(tables: Tables, window: tuple[int, int] | None) -> dict[str, Any]:
    """Return the parts of idle gaps; the native core contains the rule."""
    activities, calls = timed_activities(tables), timed_calls(tables)
    rows = sum(tables[name].num_rows for name in ("activities", "api_calls"))
    most = max(_MOST_GAPS, _MOST_GAPS_PER_ROW * rows)
    bounds = window or (None, None)
    columns = _core.idle_gaps(activities, calls, timed_synchronizations(tables), most, *bounds)
    if len(activities["time"]) < tables["activities"].num_rows:
        kinds = codes(tables["activities"]["kind"], _ACTIVITY_KINDS)
        given = np.flatnonzero(kinds != _ACTIVITY_KINDS.index("range"))
        columns["activity"] = np.append(given, -1)[columns["activity"]]
    return columns
