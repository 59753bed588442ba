"""How the GPUs of a recording are joined, and whether they can access each other's memory."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuviz.data.manifest import UNKNOWN
from gpuviz.quantities import format_counted

if TYPE_CHECKING:
    from gpuviz.data.recording_data import RecordingData

# By NVML's numbers of its versions.
_NVLINK = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0", 8: "6.0"}
# By NVML's levels: the names of `nvidia-smi topo -m`, and what they mean.
_PCIE = {
    0: ("PSB", "on one board"),
    10: ("PIX", "through at most one bridge"),
    20: ("PXB", "through several bridges"),
    30: ("PHB", "through a host bridge"),
    40: ("NODE", "between host bridges of a NUMA node"),
    50: ("SYS", "between NUMA nodes"),
}
_MEANING = dict(_PCIE.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLink:
    """What joins two devices of a recording; None is unknown.

    Attributes:
        first: A device.
        second: Another one, with a higher id.
        access: Whether each can access the memory of the other one.
        native_atomics: Whether atomic operations on that memory are native.
        performance_rank: Rank of the access among the pairs of the machine; 0 is the fastest.
        nvlinks: Active NVLinks between them, direct or through switches; 0 without NVLink.
        nvlink_version: Version of these NVLinks, such as 4.0.
        pcie: Their closest common ancestor on PCIe as ``nvidia-smi topo -m`` names it: ``PIX``,
            ``PXB``, ``PHB``, ``NODE`` or ``SYS``; ``PSB`` for two GPUs of one board.
    """

    first: int
    second: int
    access: bool | None
    native_atomics: bool | None
    performance_rank: int | None
    nvlinks: int | None
    nvlink_version: str | None
    pcie: str | None

    @property
    def text(self) -> str:
        """The link in words, such as ``NVLink 4.0, 18 links; peer access``."""
        return f"{self._joined}; {self._access}"

    @property
    def _joined(self) -> str:
        if self.nvlinks:
            version = "" if self.nvlink_version is None else f" {self.nvlink_version}"
            return f"NVLink{version}, {format_counted(self.nvlinks, 'link')}"
        nvlink = "NVLink unknown" if self.nvlinks is None else "no NVLink"
        if self.pcie is None:
            return nvlink
        return f"PCIe {_MEANING[self.pcie]} ({self.pcie}), {nvlink}"

    @property
    def _access(self) -> str:
        if self.access is None:
            return "peer access unknown"
        if not self.access:
            return "no peer access"
        return "peer access with native atomics" if self.native_atomics else "peer access"


def device_links(recording: "RecordingData") -> tuple[DeviceLink, ...]:
    """Return what joins each pair of devices, where it was recorded.

    A pair of GPUs that several processes of a merged recording used is returned once.
    """
    gpus = {row["id"]: row["uuid"] or row["id"] for row in recording.tables["devices"].to_pylist()}
    links: dict[frozenset[Any], DeviceLink] = {}
    for device, rows in recording.manifest.device_links.items():
        first = int(device)
        for row in rows:
            pair = frozenset(gpus.get(each, each) for each in (first, row["other"]))
            links.setdefault(pair, _link(first, row["other"], row))
    return tuple(sorted(links.values(), key=lambda link: (link.first, link.second)))


def device_link_lines(links: Iterable[DeviceLink], names: Mapping[int, str]) -> Iterator[str]:
    """Yield a line for each kind of link, with the pairs of devices that have it.

    Args:
        links: Links of a recording.
        names: What its devices are called, if it is not ``Device`` and their id.
    """
    pairs: dict[str, list[str]] = {}
    for link in links:
        first, second = (
            names.get(device, f"Device {device}") for device in (link.first, link.second)
        )
        pairs.setdefault(link.text, []).append(f"{first} to {second}")
    for text, found in pairs.items():
        yield f"{', '.join(found)}: {text}"


def _link(first: int, second: int, row: Mapping[str, int]) -> DeviceLink:
    known = {name: None if value == UNKNOWN else value for name, value in row.items()}
    access, atomics = known["access"], known["native_atomics"]
    return DeviceLink(
        first=first,
        second=second,
        access=None if access is None else bool(access),
        native_atomics=None if atomics is None else bool(atomics),
        performance_rank=known["performance_rank"],
        nvlinks=known["nvlinks"],
        nvlink_version=_NVLINK.get(row["nvlink_version"]),
        pcie=_PCIE.get(row["pcie"], (None,))[0],
    )
