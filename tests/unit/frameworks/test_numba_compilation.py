"""Ranges around what Numba's compiler does."""

import sys
from types import ModuleType

import pytest

import gpuviz
from gpuviz.frameworks import numba_compilation
from gpuviz.frameworks.numba_compilation import watch_dispatcher, watch_numba_compilations
from tests.unit.advice.timed_programs import found, saved_ns, timed

NAME = "numba.cuda.dispatcher"


@pytest.fixture
def numba():
    """The watched module of Numba's dispatcher, with as much as its compilation needs."""
    module = ModuleType(NAME)
    module.frames = []

    class _Kernel:
        def __init__(self, py_func, types):
            module.frames.append(sys._getframe(1).f_code.co_name)
            if types == ("bad",):
                raise ValueError("it cannot be compiled")
            py_func.work()

    class CUDADispatcher:
        specialized = False

        def __init__(self, py_func, disk=None):
            self.py_func, self.overloads = py_func, {}
            self.disk = disk

        def compile(self, types):
            if types not in self.overloads:
                if self.disk is None or types not in self.disk:
                    self.overloads[types] = module._Kernel(self.py_func, types)
                else:
                    self.overloads[types] = self.disk[types]
                if self.disk is not None:
                    self.disk[types] = self.overloads[types]
            return self.overloads[types]

    module._Kernel, module.CUDADispatcher = _Kernel, CUDADispatcher
    watch_dispatcher(module)
    return module


def kernel(gpu=None, seconds=5e-3):
    """Return a function that is a kernel, whose compilation takes some time of the host's."""

    def scale():
        """The kernel."""

    scale.work = lambda: gpu.work_on_host(seconds) if gpu is not None else None
    return scale


def recorded(program):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        program()
    return recorder.recording.compilations().to_pylist()


def test_a_kernel_is_compiled_for_each_type_and_loaded_from_the_disk(numba):
    disk = {}

    def program():
        for types in (("f4",), ("f8",), ("f4",)):
            numba.CUDADispatcher(kernel(), disk).compile(types)
        known = numba.CUDADispatcher(kernel(), disk)
        assert known.compile(("f8",)) is known.compile(("f8",))

    rows = recorded(program)

    assert [row["compiler"] for row in rows] == ["Numba", "Numba", "", ""]
    assert [row["cached"] for row in rows] == [False, False, True, True]
    assert {row["kernels"] for row in rows} == {"kernel.<locals>.scale"}
    # No frame of gpuviz.
    assert set(numba.frames) == {"compile"}


def test_errors_of_the_compiler_are_the_program_s_and_end_the_range(numba):
    def program():
        with pytest.raises(ValueError, match="it cannot be compiled"):
            numba.CUDADispatcher(kernel()).compile(("bad",))
        numba.CUDADispatcher(kernel()).compile(("f4",))

    assert [row["compiler"] for row in recorded(program)] == ["Numba", "Numba"]


def test_without_a_recording_nothing_changes(numba):
    dispatcher = numba.CUDADispatcher(kernel())

    assert type(dispatcher.compile(("f4",))).__name__ == "_Kernel"
    assert numba.CUDADispatcher.compile(dispatcher, ("f8",)) is dispatcher.overloads[("f8",)]


def test_a_version_with_other_names_is_left_alone():
    watch_dispatcher(ModuleType(NAME))


def test_numba_is_watched_when_it_is_imported_later(monkeypatch, tmp_path):
    package = tmp_path / "numba" / "cuda"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text("")
    (package / "dispatcher.py").write_text("class CUDADispatcher:\n    def compile(self): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    for name in [each for each in sys.modules if each.partition(".")[0] == "numba"]:
        monkeypatch.delitem(sys.modules, name)
    seen = []
    monkeypatch.setattr(numba_compilation, "watch_dispatcher", seen.append)
    watch_numba_compilations.__wrapped__()
    from numba.cuda import dispatcher

    assert seen == [dispatcher]


def compiles(numba, disk):
    """Return a program that launches three kernels of Numba, each for the first time."""

    def program(gpu):
        gpu.synchronize()
        for number in range(3):
            numba.CUDADispatcher(kernel(gpu), disk).compile((number,))
            gpu.launch("scale", duration=1e-3)
            gpu.synchronize()

    return program


def test_a_run_that_finds_the_kernels_on_the_disk_is_as_much_faster_as_found(numba):
    (finding,) = found(compiles(numba, None), "R47")

    assert finding.title.startswith("Numba compiled 3 kernels in 15.0 ms")
    assert "`cache=True`" in finding.change
    assert finding.certainty == "likely"


def test_what_is_found_is_what_a_cache_saves(numba):
    disk = {}
    (finding,) = found(compiles(numba, disk), "R47")
    saved = saved_ns(compiles(numba, None), compiles(numba, disk))

    assert finding.saved_ns == pytest.approx(saved, rel=0.1)
    assert found(compiles(numba, disk), "R47") == []


def test_a_redacted_recording_says_whose_compiler_it_was(numba, tmp_path):
    recording = timed(compiles(numba, None))
    redacted = gpuviz.load(recording.report(tmp_path / "report.html", redact=True))

    assert redacted.compilations()["compiler"].to_pylist() == ["Numba"] * 3
    assert "scale" not in str(redacted.compilations()["kernels"].to_pylist())
