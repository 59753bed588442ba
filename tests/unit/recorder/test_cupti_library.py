"""The search for CUPTI in wheels, conda environments, toolkits and the system."""

from itertools import pairwise

import pytest

from gpuviz.recorder import cupti_library
from gpuviz.recorder.cupti_library import SearchPath, find_cupti


@pytest.fixture
def search(tmp_path):
    """Return the search path of an empty machine, on which only the driver may be visible."""
    driver = tmp_path / "root/usr/lib/x86_64-linux-gnu/libcuda.so.1"
    driver.parent.mkdir(parents=True)
    driver.touch()
    return searched(tmp_path)


def searched(folder, machine="x86_64", **environment):
    return SearchPath(
        environment=environment,
        site_packages=(str(folder / "packages"),),
        prefix=str(folder / "prefix"),
        root=folder / "root",
        machine=machine,
    )


def library(folder, path):
    made = folder / path
    made.parent.mkdir(parents=True, exist_ok=True)
    made.touch()
    return made


@pytest.mark.parametrize(
    ("cuda_major", "path"), [(13, "nvidia/cu13/lib"), (12, "nvidia/cuda_cupti/lib")]
)
def test_without_a_toolkit_the_library_of_the_wheel_is_found(search, tmp_path, cuda_major, path):
    wheel = library(tmp_path, f"packages/{path}/libcupti.so.{cuda_major}")

    assert search.find(cuda_major) == wheel
    assert search.find(25 - cuda_major) is None


def test_the_driver_alone_brings_no_cupti(search):
    assert search.find(13) is None


def test_places_are_searched_in_the_order_of_cudas_own_libraries(tmp_path):
    environment = {
        "CONDA_PREFIX": str(tmp_path / "conda"),
        "CUDA_PATH": str(tmp_path / "path"),
        "CUDA_HOME": str(tmp_path / "home"),
        "LD_LIBRARY_PATH": f":{tmp_path}/one:{tmp_path}/two",
    }
    search = searched(tmp_path, **environment)
    places = [
        "packages/nvidia/cu13/lib",
        "prefix/lib",
        "conda/lib",
        "path/extras/CUPTI/lib64",
        "path/targets/x86_64-linux/lib",
        "home/lib64",
        "one",
        "two",
        "root/usr/local/cuda-13.10/lib64",
        "root/usr/local/cuda-13.2/lib64",
        "root/usr/local/cuda/extras/CUPTI/lib64",
    ]
    made = [library(tmp_path, f"{place}/libcupti.so.13") for place in places]

    for found, after in pairwise(made):
        assert search.find(13) == found
        found.unlink()
        assert search.find(13) == after


@pytest.mark.parametrize("target", ["sbsa-linux", "aarch64-linux"])
def test_toolkits_for_arm_are_found_and_those_for_other_machines_are_not(tmp_path, target):
    found = library(tmp_path, f"root/usr/local/cuda/targets/{target}/lib/libcupti.so.13")

    assert searched(tmp_path, machine="aarch64").find(13) == found
    assert searched(tmp_path, machine="x86_64").find(13) is None


def test_cupti_of_this_environment_is_found():
    found = find_cupti(13)

    assert found.name == "libcupti.so.13"
    assert found.is_file()


def test_what_the_linker_finds_is_taken_last(monkeypatch):
    opened = []
    monkeypatch.setattr(SearchPath, "find", lambda *_: None)
    library = cupti_library.Path("/opt/cuda/lib/libcupti.so.12")
    monkeypatch.setattr(cupti_library.ctypes, "CDLL", opened.append)
    monkeypatch.setattr(
        cupti_library, "loaded_libraries", lambda: iter([library] if opened else [])
    )

    assert find_cupti(12) == library
    assert opened == ["libcupti.so.12"]


def test_one_that_is_nowhere_is_answered_with_the_command_that_installs_it(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(cupti_library, "loaded_libraries", lambda: iter(()))
    monkeypatch.setattr(SearchPath, "find", lambda *_: None)
    monkeypatch.setattr(cupti_library.ctypes, "CDLL", missing)
    command = r"pip install 'cuda-toolkit\[cupti\]==12\.\*'"

    with pytest.raises(RuntimeError, match=rf"libcupti\.so\.12\) was not found: `{command}`"):
        find_cupti(12)
