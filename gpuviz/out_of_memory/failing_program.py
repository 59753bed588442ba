"""The program until a failed request, as a recording that can be replayed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.allocator_settings import known_settings
from gpuviz.analysis.pools import TORCH_OWNER, are_of, is_torchs
from gpuviz.data.arrays import with_columns
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS, schemas
from gpuviz.out_of_memory.allocator_actions import asked_end
from gpuviz.out_of_memory.moment import Moment
from gpuviz.out_of_memory.request import manifest_of

if TYPE_CHECKING:
    from gpuviz.out_of_memory.failures import OutOfMemory

_EVENTS = "memory_events"
_LIMIT = "memory_limit"
_FRACTION = "per_process_memory_fraction"


class FailingProgram:
    """What a program did until a request failed.

    Args:
        failed: The failure.
        moment: Its place in the recording.

    Attributes:
        settings: The allocator's settings, without the share of the memory that limits it.
    """

    def __init__(self, failed: "OutOfMemory", moment: Moment) -> None:
        self._failed, self._moment = failed, moment
        items = known_settings(manifest_of(moment.recording, failed.pool))
        self.settings = [item for item in items if not item.startswith(_FRACTION)]

    def on_device(
        self,
        capacity: int,
        before: Sequence[Mapping[str, Any]] = (),
        change: Mapping[str, Any] | None = None,
        *,
        is_limited: bool = True,
    ) -> RecordingData:
        """Return a recording of the program that ends in the request.

        Args:
            capacity: The memory of the device, in bytes.
            before: Events before the request that the program did not have, as what differs from
                the request.
            change: What differs in the request.
            is_limited: Whether limits that the program set apply.
        """
        recording, device = self._moment.recording, self._failed.device
        events, initial = self._events(before, change or {}, is_limited=is_limited)
        named = ("streams", "pools", "stacks", "frames", "threads")
        tables = {name: recording.tables[name] for name in named}
        tables[_EVENTS] = events
        tables["devices"] = _device(device, max(capacity, 1))
        if self._failed.of_torch:
            tables |= _as_gpuvizs(tables[_EVENTS], tables["pools"])
        manifest = replace(
            manifest_of(recording, self._failed.pool),
            settings=",".join(self.settings),
            initial_events=initial,
            window_start_ns=0,
            window_end_ns=0,
            failures={},
            memory_stats={},
            tables={},
        )
        return type(recording)(tables, manifest)

    def _events(
        self,
        before: Sequence[Mapping[str, Any]],
        change: Mapping[str, Any],
        *,
        is_limited: bool,
    ) -> tuple[pa.Table, int]:
        """Return the events of memory, and how many are of memory that existed before."""
        recording = self._moment.recording
        events = recording.tables[_EVENTS].slice(0, self._moment.row + 1)
        actions = codes(events["action"], ACTIONS)
        pools = plain(events["pool"])
        kept = (plain(events["device"]) == self._failed.device) & are_of(
            pools, torch=self._failed.of_torch
        )
        kept &= is_limited | (actions != ACTIONS.index(_LIMIT))
        # Earlier failures have no effect beyond what they released, which the replay decides.
        initial = int(np.count_nonzero(kept[: recording.manifest.initial_events]))
        events = events.filter(kept)
        last = events.slice(events.num_rows - 1).to_pylist()[0]
        rows = [{**last, **each} for each in before] + [{**last, **change}]
        added = pa.Table.from_pylist(rows, schema=schemas()[_EVENTS])
        # What the allocator does by itself before the request is a part of it.
        first = max(asked_end(events.slice(0, events.num_rows - 1)), initial)
        head = events.select(added.schema.names).cast(added.schema)
        parts = [head.slice(0, first), added.slice(0, len(before))]
        parts += [head.slice(first, events.num_rows - 1 - first), added.slice(len(before))]
        return pa.concat_tables(parts).unify_dictionaries(), initial


def _as_gpuvizs(events: pa.Table, pools: pa.Table) -> dict[str, pa.Table]:
    """Return tables in which the pools of torch's allocator are those of one like it."""
    own = pools.filter(is_torchs(plain(pools["id"])))
    return {
        _EVENTS: with_columns(events, pool=plain(events["pool"]) - 2 * TORCH_OWNER),
        "pools": with_columns(
            own, id=plain(own["id"]) - 2 * TORCH_OWNER, owner=plain(own["owner"]) - TORCH_OWNER
        ),
    }


def _device(device: int, capacity: int) -> pa.Table:
    row = {"id": device, "name": "", "total_memory": capacity, "kind": "simulated", "uuid": ""}
    return pa.Table.from_pylist([row], schema=schemas()["devices"])
