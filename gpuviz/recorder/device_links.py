"""Which GPUs of a recording can access each other's memory, and how they are joined."""

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

from gpuviz import _core
from gpuviz.data.manifest import UNKNOWN
from gpuviz.recorder.nvml_links import nvml_links

_UNKNOWN_ACCESS = dict.fromkeys(("access", "native_atomics", "performance_rank"), UNKNOWN)


def device_links(devices: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, int]]]:
    """Return the manifest's ``device_links`` of all pairs of CUDA devices.

    Facts that neither the driver nor NVML reports are unknown. No context is created.

    Args:
        devices: Rows of the table ``devices``.
    """
    cuda = sorted(
        (row["id"], row["uuid"]) for row in devices if row["kind"] == "cuda" and row["uuid"]
    )
    pairs = list(combinations(cuda, 2))
    if not pairs:
        return {}
    joined = nvml_links([(uuid, other_uuid) for (_, uuid), (_, other_uuid) in pairs])
    links: dict[str, list[dict[str, int]]] = {}
    for ((device, _), (other, _)), link in zip(pairs, joined, strict=True):
        row = {"other": other} | _access(device, other) | link
        links.setdefault(str(device), []).append(row)
    return links


def _access(device: int, other: int) -> dict[str, int]:
    """Return what both devices can do with each other's memory, as the driver reports it."""
    try:
        driver = _core.CudaDriver.open()
        both = [driver.peer_access(device, other), driver.peer_access(other, device)]
    except _core.DeviceError:
        return _UNKNOWN_ACCESS
    supported, ranks, atomics = zip(*both, strict=True)
    return {
        "access": int(all(supported)),
        "native_atomics": int(all(atomics)),
        "performance_rank": max(ranks),
    }
