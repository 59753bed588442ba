import os

import pytest

from gpuviz.doctor import cupy_build, permissions, profiling
from gpuviz.doctor.machine import Machine
from gpuviz.recorder import cupti_library

RUNTIME = cupy_build.runtime_version()
LIBRARY = f"libcupti.so.{RUNTIME // 1000}"


def machine_with(folder, nodes=(), params="", *, is_admin=False):
    (folder / "dev").mkdir()
    for name in nodes:
        (folder / "dev" / name).touch(mode=0o666)
    if params:
        (folder / "proc/driver/nvidia").mkdir(parents=True)
        (folder / "proc/driver/nvidia/params").write_text(params)
    return Machine(root=folder, environment={}, is_admin=is_admin)


def told(findings):
    return [(finding.topic, finding.level) for finding in findings]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([], []),
        (["dxg"], [("device files", "ok")]),
        (["nvidia0", "nvidiactl", "nvidia-uvm"], [("device files", "ok")]),
        (["nvidia3", "nvidiactl", "nvidia-uvm"], [("device files", "ok")]),
        (["nvidiactl", "nvidia-uvm"], [("device files", "problem")]),
        (["nvidia0", "nvidiactl"], [("device files", "problem")]),
    ],
)
def test_device_files_are_all_needed(tmp_path, nodes, expected):
    assert told(permissions.findings(machine_with(tmp_path, nodes))) == expected


def test_device_files_that_are_missing_are_named(tmp_path):
    [finding] = permissions.findings(machine_with(tmp_path, ["nvidiactl"]))

    assert finding.found == "/dev/nvidia-uvm, /dev/nvidia0 missing"


def test_device_files_that_are_closed_are_a_warning(tmp_path, monkeypatch):
    machine = machine_with(tmp_path, ["nvidia0", "nvidiactl", "nvidia-uvm"])
    monkeypatch.setattr(os, "access", lambda path, _: path.name != "nvidia0")
    [finding] = permissions.findings(machine)

    assert finding.level == "warning"
    assert finding.found == "/dev/nvidia0 not accessible to this user"


@pytest.mark.parametrize(
    ("value", "is_admin", "level"), [(0, False, "ok"), (1, True, "ok"), (1, False, "warning")]
)
def test_profiling_for_administrators_only_is_told(tmp_path, value, is_admin, level):
    params = f"RegisterForACPIEvents: 1\nRmProfilingAdminOnly: {value}\nEnableMSI: 1\n"
    nodes = ["nvidia0", "nvidiactl", "nvidia-uvm"]
    machine = machine_with(tmp_path, nodes, params, is_admin=is_admin)
    [_, finding] = permissions.findings(machine)

    assert (finding.topic, finding.level) == ("profiling", level)


def test_cupti_is_found_where_cupy_brings_it():
    [finding] = profiling.findings(RUNTIME, has_driver=False, tools=[])

    assert finding.level == "ok"
    assert LIBRARY in finding.found


def test_a_missing_cupti_limits_to_memory_and_says_what_to_install(monkeypatch):
    monkeypatch.setattr(cupti_library, "loaded_libraries", lambda: iter(()))
    [finding] = profiling.findings(11000, has_driver=False, tools=[])

    assert (finding.level, finding.found) == ("warning", "not found")
    assert "Only memory" in finding.meaning
    assert "pip install 'cuda-toolkit[cupti]==12.*'" in finding.remedy


@pytest.mark.parametrize("error", ["CUPTI serves one tool a process, and nsys has it already.", ""])
def test_cupti_is_taken_and_given_back_to_see_whether_it_is_free(monkeypatch, error):
    calls = []

    class Tracer:
        def __init__(self, library, session):
            calls.append(library.rpartition("/")[2])
            assert session.start_ns > 0

        def start(self):
            calls.append("start")
            if error:
                raise RuntimeError(error)

        def stop(self):
            calls.append("stop")

    monkeypatch.setattr(profiling._core, "CuptiTracer", Tracer)
    [_, finding] = profiling.findings(RUNTIME, has_driver=True, tools=[])

    assert finding.level == ("warning" if error else "ok")
    assert error in finding.found
    assert calls == [LIBRARY, "start", *([] if error else ["stop"])]


def test_cupti_is_left_alone_under_compute_sanitizer(monkeypatch):
    monkeypatch.setenv("NVTX_INJECTION64_PATH", "/opt/sanitizer/libsanitizer-collection.so")
    monkeypatch.delattr(profiling._core, "CuptiTracer")
    [_, finding] = profiling.findings(RUNTIME, has_driver=True, tools=[])

    assert finding.level == "warning"
    assert "compute-sanitizer is running" in finding.found


def test_processes_that_have_loaded_cupti_are_named(tmp_path):
    for process, maps in ((11, "7f00 /usr/lib/libcupti.so.13\n"), (12, "7f00 /usr/lib/libc.so\n")):
        (tmp_path / str(process)).mkdir()
        (tmp_path / str(process) / "maps").write_text(maps)
        (tmp_path / str(process) / "cmdline").write_text("python\0train.py\0")

    assert profiling.tools_of(tmp_path, [11, 12, 13]) == ["process 11 (python train.py) uses CUPTI"]
