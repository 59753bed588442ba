"""A recording of the simulated GPU, told as one of several GPUs of a process."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_LEGACY = "default"


def on_devices(
    recording: "Recording",
    devices: Mapping[int, int],
    *,
    legacy: Sequence[int] = (),
    synchronized: Sequence[int] = (),
) -> "Recording":
    """Return a recording with its streams on several devices.

    Args:
        recording: What ran on one simulated GPU.
        devices: The device of each stream, by its handle; that of others is 0.
        legacy: Handles of blocking streams that become default streams.
        synchronized: The devices that the synchronizations of whole devices are for, in order.
    """
    tables = dict(recording.tables)
    streams = tables["streams"].to_pylist()
    of_stream = {row["id"]: devices.get(row["handle"], 0) for row in streams}
    for row in streams:
        row["device"] = of_stream[row["id"]]
        if row["handle"] in legacy:
            row.update(kind=_LEGACY, handle=0, name="default stream")
    tables["streams"] = _table(tables["streams"], streams)
    events = tables["memory_events"].to_pylist()
    of_block: dict[int, int] = {}
    for row in events:
        if row["action"] == "alloc":
            of_block[row["address"]] = of_stream[row["stream"]]
        row["device"] = of_block.get(row["address"], of_stream.get(row["stream"], 0))
    tables["memory_events"] = _table(tables["memory_events"], events)
    waits = tables["synchronizations"].to_pylist()
    whole = iter(synchronized)
    for row in waits:
        is_whole = row["kind"] == "context_synchronize"
        row["device"] = next(whole) if is_whole else of_stream.get(row["stream"], 0)
    tables["synchronizations"] = _table(tables["synchronizations"], waits)
    activities = tables["activities"].to_pylist()
    touched: dict[int, list[int]] = {}
    for touch in tables["launch_blocks"].to_pylist():
        touched.setdefault(touch["correlation"], []).append(of_block.get(touch["block"], 0))
    for row in activities:
        row["device"] = of_stream[row["stream"]]
        ends = touched.get(row["correlation"], [])
        if row["copy_kind"] == "device_to_device" and len(set(ends)) > 1:
            row.update(copy_kind="peer_to_peer")
            row["source_device"], row["destination_device"] = ends
    tables["activities"] = _table(tables["activities"], activities)
    (first,) = tables["devices"].to_pylist()
    count = 1 + max([0, *of_stream.values()])
    tables["devices"] = _table(tables["devices"], [first | {"id": each} for each in range(count)])
    return type(recording)(tables, recording.manifest)


def _table(like: pa.Table, rows: list[dict[str, Any]]) -> pa.Table:
    columns = []
    for field in like.schema:
        values = [row[field.name] for row in rows]
        if pa.types.is_dictionary(field.type):
            words = like[field.name].combine_chunks().dictionary.to_pylist()
            words += sorted(set(values) - set(words))
            codes = np.array([words.index(value) for value in values], np.int8)
            columns.append(
                pa.DictionaryArray.from_arrays(
                    pa.array(codes), pa.array(words, field.type.value_type)
                )
            )
        else:
            columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, names=like.schema.names)
