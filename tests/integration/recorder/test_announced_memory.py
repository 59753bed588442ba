"""Memory announced through NVTX, by processes with a tool of these tests."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuviz.allocator import memory
from gpuviz.recorder import cupti
from tests.native.compilation import COMPILER

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def tool(tmp_path_factory):
    """The path of an NVTX tool that keeps what it is told."""
    library = tmp_path_factory.mktemp("tool") / "memory_tool.so"
    source = Path(__file__).with_name("memory_tool.cpp")
    command = [COMPILER, "-std=c++20", "-shared", "-fPIC", source, "-o", library]
    subprocess.run(command, check=True)
    return library


def ran(*arguments, **environment):
    command = [sys.executable, *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    "settings",
    ["", "max_split_size_mb:40,garbage_collection_threshold:0.5", "expandable_segments:True"],
)
def test_what_is_announced_equals_the_live_blocks(tool, settings):
    program = "tests.integration.recorder.announced_memory"
    process = ran("-m", program, settings, "1", NVTX_INJECTION64_PATH=str(tool))

    assert process.stderr == ""
    regions, pending = json.loads(process.stdout)
    assert (regions > 0) == ("expandable" not in settings)
    assert pending > 0


PROGRAM = """
from gpuviz import _core
from gpuviz.allocator import memory
memory._open_device = lambda device: _core.SimulatedDevice(1 << 30)
memory.caching_allocator(0).allocate(1000)
import ctypes, sys
if len(sys.argv) > 1:
    announced = ctypes.CDLL(sys.argv[1]).announced
    announced.restype = ctypes.c_char_p
    print(announced().decode().count("region"))
"""


def test_an_allocator_announces_its_blocks_only_if_asked(tool):
    asked = {"NVTX_INJECTION64_PATH": str(tool), memory.NVTX_MEMORY_VARIABLE: "1"}

    assert ran("-c", PROGRAM, str(tool), **asked).stdout == "1\n"
    asked[memory.NVTX_MEMORY_VARIABLE] = "0"
    assert ran("-c", PROGRAM, str(tool), **asked).stdout == "0\n"


def test_without_a_tool_a_warning_says_how_to_run():
    for path in ("/does/not/exist.so", ""):
        environment = {"NVTX_INJECTION64_PATH": path, memory.NVTX_MEMORY_VARIABLE: "1"}
        assert "compute-sanitizer --tool memcheck" in ran("-c", PROGRAM, **environment).stderr


def test_cupti_is_left_alone_under_compute_sanitizer(monkeypatch):
    monkeypatch.setattr(cupti, "_warned", set())
    monkeypatch.setenv("NVTX_INJECTION64_PATH", "/opt/sanitizer/libsanitizer-collection.so")
    tracer = cupti.CuptiTracing(13, None)

    with pytest.warns(RuntimeWarning, match="compute-sanitizer"):
        tracer.begin(None)
    assert not tracer.is_active
    assert "Only memory is recorded" in tracer.notes[0]


def test_a_loaded_sanitizer_is_noticed_too(monkeypatch):
    monkeypatch.delenv("NVTX_INJECTION64_PATH", raising=False)
    monkeypatch.delenv("CUDA_INJECTION64_PATH", raising=False)
    assert not cupti.sanitizer_is_present()

    loaded = [Path("/lib/libc.so.6"), Path("/opt/sanitizer/libsanitizer-collection.so")]
    monkeypatch.setattr(cupti, "loaded_libraries", lambda: iter(loaded))
    assert cupti.sanitizer_is_present()
