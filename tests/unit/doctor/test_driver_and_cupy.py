from importlib.metadata import version
from types import SimpleNamespace

import pytest

from gpuviz import _core
from gpuviz.doctor import cupy_build, driver
from gpuviz.doctor.machine import Machine

VERSION_FILE = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
    "GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1)\n"
)


@pytest.fixture
def machine(tmp_path):
    return Machine(root=tmp_path, environment={})


class FakeDriver:
    """Like `gpuviz._core.CudaDriver`, with GPUs of these names."""

    version = 13020

    def __init__(self, names):
        self.names = names

    def device_count(self):
        return len(self.names)

    def device_name(self, ordinal):
        return self.names[ordinal]


def install(monkeypatch, opened):
    def open_driver():
        if isinstance(opened, Exception):
            raise opened
        return opened

    monkeypatch.setattr(_core, "CudaDriver", type("Driver", (), {"open": open_driver}))


def with_module(machine):
    (machine.root / "proc/driver/nvidia").mkdir(parents=True)
    (machine.root / "proc/driver/nvidia/version").write_text(VERSION_FILE)


def test_a_machine_without_a_driver_cannot_record_and_is_told_what_works(machine, monkeypatch):
    install(monkeypatch, _core.DeviceError("No NVIDIA driver: libcuda.so.1 was not found."))
    [finding] = driver.findings(machine)

    assert (finding.topic, finding.level) == ("driver", "problem")
    assert finding.found == "No NVIDIA driver: libcuda.so.1 was not found."
    assert "SimulatedGPU" in finding.meaning
    assert finding.remedy.startswith("Install NVIDIA's driver")


def test_a_container_without_the_drivers_libraries_is_told_how_to_get_them(machine, monkeypatch):
    with_module(machine)
    install(monkeypatch, _core.DeviceError("No NVIDIA driver: libcuda.so.1 was not found."))
    [finding] = driver.findings(machine)

    assert "580.95.05" in finding.found
    assert "--gpus all" in finding.remedy


@pytest.mark.parametrize("visible", ["", "-1"])
def test_hidden_gpus_are_told_from_missing_ones(tmp_path, monkeypatch, visible):
    install(monkeypatch, FakeDriver([]))
    machine = Machine(root=tmp_path, environment={"CUDA_VISIBLE_DEVICES": visible})
    [_, finding] = driver.findings(machine)

    assert (finding.topic, finding.level) == ("GPUs", "problem")
    assert finding.remedy == f"CUDA_VISIBLE_DEVICES={visible} hides all GPUs: unset it."


def test_a_driver_is_told_with_its_versions_and_gpus(machine, monkeypatch):
    with_module(machine)
    install(monkeypatch, FakeDriver(["NVIDIA H100", "NVIDIA L4"]))
    found = [(finding.level, finding.found) for finding in driver.findings(machine)]

    assert found == [
        ("ok", "for CUDA 13.2, kernel module 580.95.05"),
        ("ok", "0: NVIDIA H100, 1: NVIDIA L4"),
    ]


@pytest.mark.parametrize(
    ("served", "packages", "runtime", "expected"),
    [
        (13000, [("cupy-cuda13x", "14.2.0")], 13000, [("CuPy", "ok"), ("CUDA", "ok")]),
        (13000, [("cupy-cuda13x", "14.2.0")], 13020, [("CuPy", "ok"), ("CUDA", "ok")]),
        (13000, [("cupy-cuda12x", "13.6.0")], 12090, [("CuPy", "ok"), ("CUDA", "ok")]),
        (12040, [("cupy-cuda13x", "14.2.0")], 13000, [("CuPy", "ok"), ("CUDA", "problem")]),
        (0, [("cupy-cuda13x", "14.2.0")], 13000, [("CuPy", "ok"), ("CUDA", "ok")]),
        (12040, [("cupy-cuda12x", "12.3.0")], 12040, [("CuPy", "warning"), ("CUDA", "ok")]),
        (12040, [], 12040, [("CuPy", "ok"), ("CUDA", "ok")]),
        (12040, [], 0, [("CuPy", "warning")]),
        (12040, [("cupy-cuda12x", "13.6.0")], 0, [("CuPy", "problem")]),
        (
            13000,
            [("cupy-cuda12x", "13.6.0"), ("cupy-cuda13x", "14.2.0")],
            13000,
            [("CuPy", "warning"), ("CUDA", "ok")],
        ),
    ],
)
def test_cupy_is_held_against_the_driver(served, packages, runtime, expected):
    found = cupy_build.findings(served, packages, runtime)

    assert [(finding.topic, finding.level) for finding in found] == expected


@pytest.mark.parametrize(("served", "major"), [(12080, 12), (13000, 13), (0, 13), (14020, 13)])
def test_a_missing_cupy_is_answered_with_the_one_that_fits_the_driver(served, major):
    [finding] = cupy_build.findings(served, [], 0)
    cupy, toolkit = f"'cupy-cuda{major}x[ctk]>=14'", f"'cuda-toolkit[cupti]=={major}.*'"

    assert finding.remedy == f"pip install {cupy} {toolkit}"


def cupy_with(get_version):
    return SimpleNamespace(cuda=SimpleNamespace(nvrtc=SimpleNamespace(getVersion=get_version)))


def test_the_compiler_of_kernels_is_found(monkeypatch):
    monkeypatch.setattr(cupy_build, "import_cupy", lambda: cupy_with(lambda: (13, 2)))
    finding = cupy_build.compiler(13000)

    assert (finding.level, finding.found) == ("ok", "CUDA 13.2")


def test_a_missing_compiler_of_kernels_is_answered_with_what_to_install(monkeypatch):
    def missing():
        raise RuntimeError('Failure finding "libnvrtc.so.12"\n  listdir("/usr/lib")')

    monkeypatch.setattr(cupy_build, "import_cupy", lambda: cupy_with(missing))
    finding = cupy_build.compiler(12080)

    assert (finding.level, finding.found) == (
        "warning",
        'not found: Failure finding "libnvrtc.so.12"',
    )
    assert finding.remedy.startswith("pip install 'cupy-cuda12x[ctk]>=14'")


def test_the_cupy_of_this_environment_is_found():
    [(name, found)] = cupy_build.installed()

    assert found == version(name)
    assert name == f"cupy-cuda{cupy_build.runtime_version() // 1000}x"
