"""The measures of overlap in plain Python, nanosecond by nanosecond."""

from collections import Counter
from typing import Any

from gpuviz.data.derived import DICTIONARIES
from gpuviz.recording import Recording

ALLOCATING = {"cuMemAlloc_v2"}
BLOCKING = {"cuStreamSynchronize", "cuMemcpyDtoH_v2"}
COPYING = {"cuMemcpyDtoH_v2"}
ON_DEVICE = {"device_to_device", "peer_to_peer"}
COPIES = ("memcpy", "device copy")
CAUSES = DICTIONARIES["idle_gaps", "cause"]
HOST_WAITS = ("event_synchronize", "stream_synchronize", "context_synchronize")

Row = dict[str, Any]


class PlainOverlap:
    """Activities and idle causes in each nanosecond of a recording with small times."""

    def __init__(self, recording: Recording) -> None:
        names = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
        self.activities = [
            row | {"end": max(row["time"], row["end"]), "row": number, "kind": kind_of(row)}
            for number, row in enumerate(recording.table("activities").to_pylist())
            if row["kind"] != "range"
        ]
        self.calls = [
            row | {"name": names[row["name"]]} for row in recording.table("api_calls").to_pylist()
        ]
        self.synchronizations = recording.table("synchronizations").to_pylist()

    def lane(self, device: int, stream: int | None, start: int | None, end: int | None) -> Row:
        """Return the numbers of a device, or of one of its streams."""
        of_device = [row for row in self.activities if row["device"] == device]
        rows = [row for row in of_device if stream in (None, row["stream"])]
        start = min(row["time"] for row in of_device) if start is None else start
        end = max(row["end"] for row in of_device) if end is None else end
        end = max(start, end)
        sums: Counter[str] = Counter()
        for now in range(start, end):
            sums.update(self._moment(rows, now))
        return {"start": start, "end": end, "count": count(rows, start, end)} | sums

    def causes(self, device: int, stream: int | None) -> dict[int, tuple[str, int]]:
        """Return the cause of each idle nanosecond, and the row that ended the gap, or -1."""
        of_device = [row for row in self.activities if row["device"] == device]
        rows = [row for row in of_device if stream in (None, row["stream"])]
        start, end = (min(r["time"] for r in of_device), max(r["end"] for r in of_device))
        return {
            now: (self._cause(rows, now), self._following(rows, now).get("row", -1))
            for now in range(start, end)
            if not any(row["time"] <= now < row["end"] for row in rows)
        }

    def _moment(self, rows: list[Row], now: int) -> dict[str, int]:
        running = [row["kind"] for row in rows if row["time"] <= now < row["end"]]
        if not running:
            return {f"idle_{self._cause(rows, now)}_ns": 1}
        kernels, copies = running.count("kernel"), running.count("memcpy")
        device_copies = running.count("device copy")
        return {
            "sum_ns": len(running),
            "busy_ns": 1,
            "kernel_ns": kernels > 0,
            "copy_ns": copies > 0,
            "device_copy_ns": device_copies > 0,
            "kernel_copy_ns": kernels > 0 and copies > 0,
            "kernel_kernel_ns": kernels > 1,
        }

    def _cause(self, rows: list[Row], now: int) -> str:
        following = self._following(rows, now)
        call = self._call(following["correlation"]) if following else None
        if call and call["time"] <= now < self._completion(following):
            return "dependency"
        if any(during(each, now) and each["name"] in ALLOCATING for each in self.calls):
            return "allocation"
        if call and now < call["time"] and self._blocked(call["thread"], now):
            return "synchronization"
        if not call or now < call["end"]:
            return "host" if call else "unknown"
        if self._waits_for_unrecorded_event(following):
            return "unrecorded_event"
        return "gpu_busy" if self._competing(following, now) else "unknown"

    def _waits_for_unrecorded_event(self, following: Row) -> bool:
        """Return whether an activity is its stream's first after such a wait."""
        rows = self.synchronizations
        recorded = {row["event_sync_id"] for row in rows if row["kind"] == "event_record"}
        return any(
            row["kind"] == "stream_wait_event"
            and row["stream"] == following["stream"]
            and row["event_sync_id"] not in {0} | recorded
            and row["correlation"] < following["correlation"]
            and not any(
                row["correlation"] < each["correlation"] < following["correlation"]
                for each in self.activities
                if each["stream"] == row["stream"]
            )
            for row in rows
        )

    def _competing(self, following: Row, now: int) -> bool:
        """Return whether an activity ran on the device, a copy if the following is one."""
        is_copy = following["kind"] in COPIES
        return any(
            during(each, now) and (each["kind"] in COPIES) == is_copy
            for each in self.activities
            if each["device"] == following["device"]
        )

    def _following(self, rows: list[Row], now: int) -> Row:
        """Return the activity that begins next; empty if there is none."""
        later = [row for row in rows if row["time"] > now]
        return min(later, key=lambda row: row["time"]) if later else {}

    def _call(self, correlation: int) -> Row | None:
        found = (each for each in self.calls if each["correlation"] == correlation != 0)
        return next(found, None)

    def _blocked(self, thread: int, now: int) -> bool:
        calls = (each for each in self.calls if each["thread"] == thread and during(each, now))
        if any(self._blocks(each) for each in calls):
            return True
        waits = (row for row in self.synchronizations if row["kind"] in HOST_WAITS)
        for wait in waits:
            call = self._call(wait["correlation"])
            blocks = call and call["thread"] == thread and not call["name"].endswith("Query")
            if blocks and during(wait, now):
                return True
        return False

    def _blocks(self, call: Row) -> bool:
        """Return whether the host waits in a call; it does not for a copy on the device."""
        on_device = {
            row["correlation"]
            for row in self.activities
            if row["kind"] in COPIES and row["copy_kind"] in ON_DEVICE and row["correlation"]
        }
        is_on_device = call["name"] in COPYING and call["correlation"] in on_device
        return call["name"] in BLOCKING and not is_on_device

    def _completion(self, following: Row) -> int:
        """Return the time at which all events that the activity's stream waits for are complete."""
        latest = -1
        for wait in self.synchronizations:
            if wait["kind"] != "stream_wait_event" or wait["stream"] != following["stream"]:
                continue
            if wait["correlation"] < following["correlation"] and wait["event_sync_id"]:
                latest = max(latest, self._completion_of(wait["event_sync_id"]))
        return latest

    def _completion_of(self, event_sync_id: int) -> int:
        times = (
            record["time"] or self.reached(record)
            for record in self.synchronizations
            if record["kind"] == "event_record" and record["event_sync_id"] == event_sync_id
        )
        return next(filter(None, times), -1)

    def reached(self, record: Row) -> int:
        """Return when the GPU reached a record whose time is unknown; 0 if nothing is known."""
        before = [
            row["end"]
            for row in self.activities
            if row["stream"] == record["stream"] and 0 < row["correlation"] <= record["correlation"]
        ]
        for wait in self.synchronizations:
            is_before = 0 < wait["correlation"] <= record["correlation"] and wait["event_sync_id"]
            is_here = wait["kind"] == "stream_wait_event" and wait["stream"] == record["stream"]
            if is_before and is_here:
                before += self._reached_before(wait)
        if call := self._call(record["correlation"]):
            before.append(call["time"])
        return max(before, default=0)

    def _reached_before(self, wait: Row) -> list[int]:
        """Return the time of the first record that a wait can refer to, if one is known."""
        records = [
            (record["correlation"], row, record)
            for row, record in enumerate(self.synchronizations)
            if record["kind"] == "event_record"
            and record["event_sync_id"] == wait["event_sync_id"]
            and 0 < record["correlation"] < wait["correlation"]
        ]
        times = (
            record["time"] or self.reached(record)
            for _, _, record in sorted(records, key=lambda each: each[:2])
        )
        return list(filter(None, times))[:1]


def kind_of(row: Row) -> str:
    on_device = row["copy_kind"] in {"device_to_device", "peer_to_peer"}
    return "device copy" if row["kind"] == "memcpy" and on_device else row["kind"]


def during(row: Row, now: int) -> bool:
    return row["time"] <= now < row["end"]


def count(rows: list[Row], start: int, end: int) -> int:
    empty = [row for row in rows if row["time"] == row["end"] and start <= row["time"] <= end]
    ran = [row for row in rows if max(row["time"], start) < min(row["end"], end)]
    return len(empty) + len(ran)
