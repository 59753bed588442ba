"""The allocators that a recording installs in other libraries until its end."""

import sys
from types import SimpleNamespace

import pytest

import gpuviz
from gpuviz.frameworks import rmm as rmm_framework
from gpuviz.frameworks.libraries import RecordedLibraries
from tests.unit.allocators.client_libraries import RmmResources, numba_driver


@pytest.fixture
def libraries():
    """The libraries of a recording that has begun."""
    made = RecordedLibraries()
    yield made
    made.end()


@pytest.mark.usefixtures("core")
def test_a_recording_installs_the_allocator_in_imported_libraries_until_its_end(
    monkeypatch, rmm, libraries
):
    driver = numba_driver(monkeypatch)

    libraries.begin()
    names = ("numba", "cuda_core", "rmm")
    during = [getattr(gpuviz.allocators, name).is_installed() for name in names]
    notes = libraries.end()
    after = [getattr(gpuviz.allocators, name).is_installed() for name in names]

    assert during == [True, True, True]
    assert after == [False, False, False]
    assert notes == ()
    assert type(rmm.devices[0]) is rmm.CudaMemoryResource
    assert driver._memory_manager is driver.NumbaCUDAMemoryManager


@pytest.mark.usefixtures("rmm")
def test_a_recording_leaves_what_was_installed_before(libraries):
    gpuviz.allocators.rmm.install()

    libraries.begin()
    libraries.end()

    assert gpuviz.allocators.rmm.is_installed()


def test_a_recording_installs_the_allocator_in_a_library_that_is_imported_later(
    monkeypatch, tmp_path, libraries
):
    monkeypatch.setattr(rmm_framework._Process, "ours", {})
    monkeypatch.setattr(rmm_framework._Process, "previous", {})
    monkeypatch.delitem(sys.modules, "rmm", raising=False)
    monkeypatch.setattr(sys, "rmm_resources", RmmResources(), raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "rmm.py").write_text("import sys\nmr = sys.rmm_resources\n")
    before = list(sys.meta_path)

    libraries.begin()
    import rmm  # type: ignore[import-not-found]

    is_installed = gpuviz.allocators.rmm.is_installed()
    libraries.end()
    del sys.modules["rmm"]

    assert is_installed
    assert type(rmm.mr.devices[0]) is RmmResources.CudaMemoryResource
    assert sys.meta_path == before


def test_a_recording_leaves_the_allocators_that_the_program_has_chosen(
    monkeypatch, core, rmm, libraries
):
    class Chosen(core.MemoryResource):
        """The program's."""

    driver = numba_driver(monkeypatch)
    driver._memory_manager = Chosen
    core.Device(1).memory_resource = Chosen()
    rmm.devices[1] = chosen = Chosen()

    libraries.begin()
    notes = libraries.end()

    assert [note.split(" keeps the program's ")[0] for note in notes] == [
        "Numba",
        "cuda.core",
        "RMM",
    ]
    assert all("Chosen, whose memory is not recorded." in note for note in notes[:2])
    assert "Chosen: its allocations are recorded" in notes[2]
    assert rmm.devices[1] is chosen
    assert type(core.Device(0).memory_resource) is core.DeviceMemoryResource


def test_a_recording_leaves_the_manager_that_a_variable_names(monkeypatch, libraries):
    driver = numba_driver(monkeypatch)
    driver.config.CUDA_MEMORY_MANAGER = "rmm.allocators.numba"

    libraries.begin()

    assert libraries.end() == (
        "Numba keeps the program's rmm.allocators.numba, whose memory is not recorded.",
    )
    assert driver._memory_manager is None


def test_a_recording_notes_that_the_program_replaced_the_resource_of_rmm(rmm, libraries):
    later = object()

    libraries.begin()
    rmm.devices[0] = later

    assert libraries.end() == (rmm_framework.REPLACED,)
    assert rmm.devices[0] is later


def test_a_recording_notes_what_was_too_late(monkeypatch, libraries):
    driver = numba_driver(monkeypatch)
    driver.driver.devices[0] = SimpleNamespace(primary_context=object())

    libraries.begin()
    [note] = libraries.end()

    assert note.startswith("The memory of Numba is not recorded: Numba already has a context")


def test_a_recording_goes_on_with_a_library_of_an_unknown_version(rmm, libraries):
    rmm.CallbackMemoryResource = None

    libraries.begin()
    [note] = libraries.end()

    assert note.startswith("The memory of RMM is not recorded (TypeError: ")
