"""Limits and device memory of a failed request, beside its event."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpuviz.analysis.allocator_settings import allocator_settings
from gpuviz.analysis.pools import TORCH_OWNER
from gpuviz.analysis.stream_names import stream_names
from gpuviz.analysis.torch_alone import of_torch_alone
from gpuviz.data.manifest import NOT_LIMITED, TORCH_ALLOCATOR, UNKNOWN, Manifest
from gpuviz.data.recording_data import RecordingData

if TYPE_CHECKING:
    from gpuviz._core import AllocatorSettings

# Pages of expandable segments for requests of at most 1 MiB.
_MOST_SMALL, _SMALL_PAGE = 1 << 20, 2 << 20


class RequestDetails:
    """What the manifest, the event and the samples of device memory record of a failed request.

    Attributes:
        device_total: Total memory of the device in bytes; 0 if unknown.
        device_free: Its free memory; None if unknown.
        segment_size: Bytes requested from the device.
        limit: What the allocator may reserve; None if nothing limits it, or if unknown.
        limits_are_known: Whether the manifest has the limits.
        splits_are_limited: Whether ``max_split_size_mb`` is set.
        mapped_size: Bytes that expandable segments map for the request; 0 without them.
        other_processes: Memory of other processes; None if unknown.
    """

    def __init__(self, recording: RecordingData, event: Mapping[str, Any]) -> None:
        manifest, own = recording.manifest, manifest_of(recording, event["pool"])
        self._details = manifest.failures.get(failure_key(event["device"], event["time"]), {})
        self.device_total = self._details.get("device_total") or _total(recording, event["device"])
        self.device_free = self._device_free(recording, event)
        segment_size = self._details.get("segment_size", 0)
        self.segment_size = segment_size or wanted_segment(event["size"], own)
        limit = self._details.get("limit")
        self.limits_are_known = limit is not None
        self.limit = None if limit in {None, NOT_LIMITED} else limit
        settings = allocator_settings(own)
        self.splits_are_limited = settings.max_split_size >= 0
        self.mapped_size = _mapped_size(event["size"], settings)
        others = self._details.get("other_processes", UNKNOWN)
        self.other_processes = None if others == UNKNOWN else others

    def _device_free(self, recording: RecordingData, event: Mapping[str, Any]) -> int | None:
        free = self._details.get("device_free", UNKNOWN)
        if free != UNKNOWN:
            return int(free)
        # Of other allocators, only torch's reports the free memory of the device.
        if recording.manifest.allocator != "observe" or event["address"]:
            return int(event["address"])
        used = _last_sample(recording, event["device"], event["time"])
        return None if used is None or not self.device_total else self.device_total - used


def manifest_of(recording: RecordingData, pool: int) -> Manifest:
    """Return a recording's manifest as if a pool's allocator were the only one.

    Torch's own allocator may be recorded beside another one, which the manifest describes.
    """
    manifest = recording.manifest
    return of_torch_alone(manifest) if pool // 2 >= TORCH_OWNER else manifest


def failure_key(device: int, time_ns: int) -> str:
    """Return the key of a failed request in `Manifest.failures`."""
    return f"{device}:{time_ns}"


class PoolNames:
    """Names of a recording's pools and streams, as a user knows them."""

    def __init__(self, recording: RecordingData) -> None:
        self._streams = stream_names(recording)
        self._is_observed = recording.manifest.allocator == "observe"

    def name(self, pool: int, stream: int) -> str:
        """Return the name of a pool and a stream."""
        stream_name = self._streams.get(stream, "unknown stream")
        owner, kind = pool // 2, "large" if pool % 2 else "small"
        library = "PyTorch's " if owner >= TORCH_OWNER else ""
        if self._is_observed and not library:
            return f"the program's allocator, {stream_name}"
        owner -= TORCH_OWNER if library else 0
        pool_name = f"{library}private pool {owner}" if owner else f"{library}default pool"
        return f"{pool_name} ({kind} blocks), {stream_name}"


def wanted_segment(size: int, manifest: Manifest) -> int:
    """Return the size of the segment for a request of ``size`` rounded bytes.

    Other allocators than torch's and gpuviz's are assumed to request what they need.
    """
    if manifest.allocator == "observe" and manifest.allocator_name != TORCH_ALLOCATOR:
        return size
    return allocator_settings(manifest).segment_size(max(0, size))


def _mapped_size(size: int, settings: "AllocatorSettings") -> int:
    """Return the whole pages that hold a request of ``size`` rounded bytes."""
    if not settings.expandable_segments:
        return 0
    page = settings.large_segment_size if size > _MOST_SMALL else _SMALL_PAGE
    return -(-size // page) * page


def _total(recording: RecordingData, device: int) -> int:
    rows = recording.tables["devices"].to_pylist()
    return max((row["total_memory"] for row in rows if row["id"] == device), default=0)


def _last_sample(recording: RecordingData, device: int, time_ns: int) -> int | None:
    samples = recording.tables["device_memory"].to_pylist()
    seen = [row["used"] for row in samples if row["device"] == device and row["time"] <= time_ns]
    return seen[-1] if seen else None
