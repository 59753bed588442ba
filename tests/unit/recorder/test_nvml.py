import os
import sys
from types import SimpleNamespace

import pytest

from gpuviz.frameworks.shared_pool import has_driver
from gpuviz.recorder import nvml
from gpuviz.recorder.nvml import Gpu

GIB = 1 << 30


class FakeNvmlError(Exception):
    """As NVML's, with the number of an error."""

    value = 999


class FakeNotSupportedError(FakeNvmlError):
    """As NVML's error of a function that a GPU lacks."""

    value = 3


def refuse(*_):
    raise FakeNvmlError("Not Supported")


def fake_nvml(monkeypatch, **changed):
    functions = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda handle: f"NVIDIA {handle}",
        "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}",
        "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(total=80 * GIB, used=3 * GIB),
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: (
            [SimpleNamespace(pid=11, usedGpuMemory=2 * GIB)] if handle == 0 else []
        ),
        "nvmlDeviceGetMigMode": lambda handle: [handle, handle],
        "nvmlDeviceGetComputeMode": lambda handle: 3 * handle,
    }
    constants = {"NVML_ERROR_NOT_SUPPORTED": 3, "NVML_DEVICE_ADDRESSING_MODE_ATS": 2}
    fake = SimpleNamespace(NVMLError=FakeNvmlError, **(constants | functions | changed))
    monkeypatch.setitem(sys.modules, "pynvml", fake)


def test_gpus_are_told_as_nvml_knows_them(monkeypatch):
    fake_nvml(monkeypatch)

    assert nvml.gpus() == [
        Gpu(
            index=0,
            name="NVIDIA 0",
            uuid="GPU-0",
            total=80 * GIB,
            used=3 * GIB,
            processes=((11, 2 * GIB),),
        ),
        Gpu(
            index=1,
            name="NVIDIA 1",
            uuid="GPU-1",
            total=80 * GIB,
            used=3 * GIB,
            mig=True,
            compute_mode="exclusive process",
        ),
    ]


def test_questions_that_a_gpu_does_not_answer_are_left_open(monkeypatch):
    names = ("MemoryInfo", "ComputeRunningProcesses", "MigMode", "ComputeMode", "Name", "UUID")
    fake_nvml(monkeypatch, **{f"nvmlDeviceGet{name}": refuse for name in names})

    assert nvml.gpus()[0] == Gpu(index=0, name="unnamed", uuid="")


@pytest.mark.parametrize("refused", ["nvmlInit", "nvmlDeviceGetCount"])
def test_a_machine_without_nvml_says_why(monkeypatch, refused):
    fake_nvml(monkeypatch, **{refused: refuse})

    assert nvml.gpus() == "Not Supported"
    assert nvml.device_totals() == []


def test_a_machine_without_the_python_module_of_nvml_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)

    assert "pynvml" in nvml.gpus()
    assert nvml.device_totals() == []


def test_the_totals_name_the_process_that_asks(monkeypatch):
    processes = [
        SimpleNamespace(pid=os.getpid(), usedGpuMemory=1234),
        SimpleNamespace(pid=11, usedGpuMemory=None),
    ]
    fake_nvml(
        monkeypatch,
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetComputeRunningProcesses=lambda _: processes,
    )

    assert nvml.device_totals() == [
        {
            "uuid": "GPU-0",
            "name": "NVIDIA 0",
            "total": 80 * GIB,
            "used": 3 * GIB,
            "sharesHostMemory": False,
            "processes": [
                {"pid": os.getpid(), "used": 1234, "own": True},
                {"pid": 11, "used": None, "own": False},
            ],
        }
    ]


def without_memory(*_):
    raise FakeNotSupportedError("Not Supported")


def test_a_gpu_without_memory_of_its_own_has_that_of_the_host(monkeypatch, tmp_path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  125000000 kB\nMemFree: 5 kB\nMemAvailable:  25000000 kB\n")
    monkeypatch.setattr(nvml, "_MEMINFO", meminfo)
    fake_nvml(
        monkeypatch,
        nvmlDeviceGetMemoryInfo=without_memory,
        nvmlDeviceGetAddressingMode=lambda handle: 2 * handle,
    )
    told = [
        (each["total"], each["used"], each["sharesHostMemory"]) for each in nvml.device_totals()
    ]

    assert told == [(0, 0, False), (125_000_000 << 10, 100_000_000 << 10, True)]


@pytest.mark.parametrize("memory", [refuse, without_memory])
def test_the_totals_include_a_gpu_whose_memory_is_unknown(monkeypatch, memory):
    fake_nvml(monkeypatch, nvmlDeviceGetMemoryInfo=memory, nvmlDeviceGetAddressingMode=refuse)
    without_function = [(each["uuid"], each["total"]) for each in nvml.device_totals()]

    assert without_function == [("GPU-0", 0), ("GPU-1", 0)]


def test_the_real_library_answers_where_there_is_a_driver():
    assert isinstance(nvml.gpus(), list) == has_driver()
