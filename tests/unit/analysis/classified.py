"""Recordings whose rows are classified."""

from tests.examples import examples
from tests.unit.recording.plain_overlap import PlainOverlap

EXAMPLES = examples(40)


def plain_stream_waits(recording):
    rows = [r | {"row": n} for n, r in enumerate(recording.table("synchronizations").to_pylist())]
    work = recording.table("activities").to_pylist()
    plain = PlainOverlap(recording)
    found = []
    for wait in (row for row in rows if row["kind"] == "stream_wait_event"):
        records = [row for row in rows if row["kind"] == "event_record"]
        if wait["event_sync_id"]:
            records = [r for r in records if r["event_sync_id"] == wait["event_sync_id"]]
        else:
            records = [
                row
                for row in records
                if row["event"] == wait["event"] and 0 < row["correlation"] <= wait["correlation"]
            ]
            records.sort(key=lambda row: row["correlation"])
        if not records or records[-1]["stream"] == wait["stream"]:
            continue
        record = records[-1]
        recorded = record["time"] or plain.reached(record)
        after = launched(work, wait["stream"], range(max(1, wait["correlation"] + 1), 99))
        found.append(
            {
                "recorded_stream": record["stream"],
                "recorded_time": recorded,
                "waiting_stream": wait["stream"],
                "resumed_time": after[0]["time"] if after else max(wait["time"], recorded),
                "record": record["row"],
                "wait": wait["row"],
            }
        )
    return found


def launched(work, stream, correlations):
    chosen = [r for r in work if r["stream"] == stream and r["correlation"] in correlations]
    return sorted(chosen, key=lambda row: row["correlation"])
