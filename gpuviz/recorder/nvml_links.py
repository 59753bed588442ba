"""How pairs of GPUs are joined, as reported by NVML, which creates no CUDA context."""

from collections.abc import Sequence
from typing import Any

from gpuviz.data.manifest import UNKNOWN

_UNKNOWN_NVLINKS = {"nvlinks": UNKNOWN, "nvlink_version": UNKNOWN}


def nvml_links(pairs: Sequence[tuple[str, str]]) -> list[dict[str, int]]:
    """Return what joins each pair of GPUs, as columns of the manifest's ``device_links``.

    Args:
        pairs: UUIDs, without the prefix ``GPU-``.
    """
    unknown = [_UNKNOWN_NVLINKS | {"pcie": UNKNOWN} for _ in pairs]
    try:
        import pynvml
    except ImportError:
        return unknown
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return unknown
    try:
        return [_link(pynvml, *pair) for pair in pairs]
    finally:
        pynvml.nvmlShutdown()


def _link(nvml: Any, first_uuid: str, second_uuid: str) -> dict[str, int]:
    try:
        first = nvml.nvmlDeviceGetHandleByUUID(f"GPU-{first_uuid}")
        second = nvml.nvmlDeviceGetHandleByUUID(f"GPU-{second_uuid}")
    except nvml.NVMLError:
        return _UNKNOWN_NVLINKS | {"pcie": UNKNOWN}
    try:
        nvlinks = _nvlinks(nvml, first, second)
    except nvml.NVMLError:
        nvlinks = _UNKNOWN_NVLINKS
    try:
        pcie = int(nvml.nvmlDeviceGetTopologyCommonAncestor(first, second))
    except nvml.NVMLError:
        pcie = UNKNOWN
    return nvlinks | {"pcie": pcie}


def _nvlinks(nvml: Any, first: Any, second: Any) -> dict[str, int]:
    """Return the number of NVLinks between two GPUs, direct or through switches."""
    address = nvml.nvmlDeviceGetPciInfo(second).busId
    active = _active_links(nvml, first)
    joining = [link for link in active if _remote_address(nvml, first, link) == address]
    if not joining:
        if not _are_joined(nvml, first, second):
            return {"nvlinks": 0, "nvlink_version": UNKNOWN}
        back = _links_to_switches(nvml, second, _active_links(nvml, second))
        joining = _links_to_switches(nvml, first, active)[: len(back)]
    if not joining:
        return _UNKNOWN_NVLINKS
    version = int(nvml.nvmlDeviceGetNvLinkVersion(first, joining[0]))
    return {"nvlinks": len(joining), "nvlink_version": version}


def _active_links(nvml: Any, gpu: Any) -> list[int]:
    """Return the numbers of a GPU's active links; none if it has no NVLink."""
    active = []
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            if nvml.nvmlDeviceGetNvLinkState(gpu, link):
                active.append(link)
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_InvalidArgument):
            break
    return active


def _remote_address(nvml: Any, gpu: Any, link: int) -> Any:
    """Return the PCI address at the other end of a link; None if it has none, as some switches."""
    try:
        return nvml.nvmlDeviceGetNvLinkRemotePciInfo(gpu, link).busId
    except nvml.NVMLError:
        return None


def _are_joined(nvml: Any, first: Any, second: Any) -> bool:
    try:
        status = nvml.nvmlDeviceGetP2PStatus(first, second, nvml.NVML_P2P_CAPS_INDEX_NVLINK)
    except nvml.NVMLError_NotSupported:
        return False
    return bool(status == nvml.NVML_P2P_STATUS_OK)


def _links_to_switches(nvml: Any, gpu: Any, links: list[int]) -> list[int]:
    switch = nvml.NVML_NVLINK_DEVICE_TYPE_SWITCH
    return [link for link in links if nvml.nvmlDeviceGetNvLinkRemoteDeviceType(gpu, link) == switch]
