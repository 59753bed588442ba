"""What joins the GPUs of a recording, as NVML and the driver report it."""

import sys
from types import SimpleNamespace

import pytest

from gpuviz.frameworks.shared_pool import has_driver
from gpuviz.recorder import nvml_links
from gpuviz.recorder.device_links import device_links
from gpuviz.recording import load
from tests.unit.recorder.simulated_source import SimulatedSource

SYSTEM = 50
SWITCH, GPU = 2, 0
NVLINK_4 = 6
NO_NVLINK = {"nvlinks": 0, "nvlink_version": -1, "pcie": SYSTEM}
UNKNOWN = {"nvlinks": -1, "nvlink_version": -1, "pcie": -1}


class FakeNvmlError(Exception):
    """As NVML's."""


class NotSupportedError(FakeNvmlError):
    """Of a GPU without NVLink."""


class InvalidArgumentError(FakeNvmlError):
    """Of a link that the GPU does not have."""


class NotFoundError(FakeNvmlError):
    """Of a GPU or a function that the library does not have."""


def refuse(*_):
    raise NotFoundError


def fake_nvml(remotes, *, refused=(), joined=True, are_switches_addressable=True):
    """Return NVML of a machine.

    Args:
        remotes: The ends of the links of each GPU: a GPU's name, ``switch``, or None if the link
            is down.
        refused: Functions that the library lacks.
        joined: Whether NVLink joins each two GPUs without a direct link.
        are_switches_addressable: Whether switches have addresses on PCIe.
    """
    fake = SimpleNamespace(
        NVMLError=FakeNvmlError,
        NVMLError_NotSupported=NotSupportedError,
        NVMLError_InvalidArgument=InvalidArgumentError,
        NVML_NVLINK_MAX_LINKS=36,
        NVML_NVLINK_DEVICE_TYPE_SWITCH=SWITCH,
        NVML_P2P_CAPS_INDEX_NVLINK=2,
        NVML_P2P_STATUS_OK=0,
        sessions=0,
    )

    def count_sessions(change):
        fake.sessions += change

    def handle(uuid):
        name = uuid.removeprefix("GPU-")
        return name if name in remotes else refuse()

    def remote(gpu, link):
        if not remotes[gpu]:
            raise NotSupportedError
        if link >= len(remotes[gpu]):
            raise InvalidArgumentError
        return remotes[gpu][link]

    def address(name):
        if name == "switch" and not are_switches_addressable:
            refuse()
        return SimpleNamespace(busId=f"0000:{name}")

    functions = {
        "Init": lambda: count_sessions(1),
        "Shutdown": lambda: count_sessions(-1),
        "DeviceGetHandleByUUID": handle,
        "DeviceGetPciInfo": address,
        "DeviceGetTopologyCommonAncestor": lambda _first, _second: SYSTEM,
        "DeviceGetNvLinkState": lambda gpu, link: int(remote(gpu, link) is not None),
        "DeviceGetNvLinkRemotePciInfo": lambda gpu, link: address(remote(gpu, link)),
        "DeviceGetNvLinkRemoteDeviceType": lambda gpu, link: (
            SWITCH if remote(gpu, link) == "switch" else GPU
        ),
        "DeviceGetNvLinkVersion": lambda _gpu, _link: NVLINK_4,
        "DeviceGetP2PStatus": lambda *_: int(not joined),
    }
    for name, function in functions.items():
        setattr(fake, f"nvml{name}", refuse if name in refused else function)
    return fake


def links(monkeypatch, fake, pairs=(("a", "b"),)):
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    found = nvml_links.nvml_links(pairs)
    assert fake is None or fake.sessions == 0
    return found


def test_links_that_join_two_gpus_directly_are_counted(monkeypatch):
    remotes = {"a": ["b", "c", "b", None], "b": ["a", "a"], "c": ["a"]}
    fake = fake_nvml(remotes, joined=False)

    assert links(monkeypatch, fake, [("a", "b"), ("a", "c"), ("b", "c")]) == [
        {"nvlinks": 2, "nvlink_version": NVLINK_4, "pcie": SYSTEM},
        {"nvlinks": 1, "nvlink_version": NVLINK_4, "pcie": SYSTEM},
        NO_NVLINK,
    ]


@pytest.mark.parametrize("are_addressable", [True, False])
def test_gpus_on_switches_are_joined_by_as_many_links_as_both_have(monkeypatch, are_addressable):
    remotes = {"a": ["switch"] * 18, "b": ["switch"] * 17 + [None]}
    fake = fake_nvml(remotes, are_switches_addressable=are_addressable)

    assert links(monkeypatch, fake) == [{"nvlinks": 17, "nvlink_version": NVLINK_4, "pcie": SYSTEM}]


def test_gpus_on_switches_of_different_partitions_have_no_link(monkeypatch):
    fake = fake_nvml({"a": ["switch"], "b": ["switch"]}, joined=False)

    assert links(monkeypatch, fake) == [NO_NVLINK]


def test_gpus_without_nvlink_are_joined_by_pcie(monkeypatch):
    assert links(monkeypatch, fake_nvml({"a": [], "b": []}, joined=False)) == [NO_NVLINK]


def test_a_gpu_that_nvml_does_not_know_leaves_its_pairs_unknown(monkeypatch):
    fake = fake_nvml({"a": [], "b": []}, joined=False)

    assert links(monkeypatch, fake, [("a", "b"), ("a", "mig")]) == [NO_NVLINK, UNKNOWN]


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        ("DeviceGetTopologyCommonAncestor", {"nvlinks": 1, "nvlink_version": 6, "pcie": -1}),
        ("DeviceGetNvLinkState", UNKNOWN | {"pcie": SYSTEM}),
        ("DeviceGetNvLinkRemotePciInfo", UNKNOWN | {"pcie": SYSTEM}),
        ("DeviceGetHandleByUUID", UNKNOWN),
        ("Init", UNKNOWN),
    ],
)
def test_what_the_library_lacks_is_unknown(monkeypatch, refused, expected):
    fake = fake_nvml({"a": ["b"], "b": ["a"]}, refused=(refused,))

    assert links(monkeypatch, fake) == [expected]


def test_without_the_python_module_of_nvml_all_is_unknown(monkeypatch):
    assert links(monkeypatch, None) == [UNKNOWN]


@pytest.mark.skipif(has_driver(), reason="the driver knows its devices")
def test_without_a_driver_access_is_unknown(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml({"a": ["b"], "b": ["a"]}))
    rows = [{"id": n, "kind": "cuda", "uuid": uuid} for n, uuid in enumerate("ab")]

    (row,) = device_links(rows)["0"]

    assert row == {"other": 1, "nvlinks": 1, "nvlink_version": NVLINK_4, "pcie": SYSTEM} | (
        {"access": -1, "native_atomics": -1, "performance_rank": -1}
    )


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": 0, "kind": "cuda", "uuid": "a"}],
        [{"id": n, "kind": "simulated", "uuid": ""} for n in (0, 1)],
    ],
)
def test_one_gpu_and_simulated_gpus_have_no_links(rows):
    assert device_links(rows) == {}


def cuda_devices(source):
    """Return the devices of a source as if they were the GPUs ``a`` and ``b``."""
    rows = zip(source.devices(()), "ab", strict=True)
    return [row | {"kind": "cuda", "uuid": uuid} for row, uuid in rows]


def test_a_recording_has_the_links_of_its_devices(monkeypatch, new_recorder, tmp_path):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml({"a": ["b"] * 2, "b": ["a"] * 2}))
    source = SimulatedSource(devices=2)
    rows = cuda_devices(source)
    monkeypatch.setattr(source, "devices", lambda _active: rows)
    recorder = new_recorder(source, tmp_path / "run.gpuviz")
    recorder.start()
    recorder.stop()

    (link,) = load(tmp_path / "run.gpuviz").device_links

    assert (link.first, link.second, link.nvlinks, link.nvlink_version) == (0, 1, 2, "4.0")


def test_links_that_cannot_be_queried_are_noted(monkeypatch, new_recorder):
    nvml = fake_nvml({"a": [], "b": []})
    monkeypatch.setattr(nvml, "nvmlInit", lambda: 1 // 0)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    source = SimulatedSource(devices=2)
    rows = cuda_devices(source)
    monkeypatch.setattr(source, "devices", lambda _active: rows)
    recorder = new_recorder(source)
    recorder.start()

    recording = recorder.stop()

    assert recording.device_links == ()
    assert any("links between the devices" in note for note in recording.notes)
