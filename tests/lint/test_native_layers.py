"""Allowed includes between layers of C++. A file without a rule fails."""

import re

import pytest

from tests.lint.source_files import NATIVE, cpp_files, relative

# A layer, and the layers that it may import besides itself.
CPP = {
    "device": set[str](),
    "record": set[str](),
    "state": {"record"},
    "analysis": set[str](),
    "packing": set[str](),
    "hazards": set[str](),
    "allocator": {"device", "record", "hazards"},
    "cupti": {"device", "record"},
    "nvtx": {"record"},
    "nccl": {"record"},
    "simulation": {"device", "record"},
    "replay": {"device", "record", "allocator"},
    "formats": {"record", "state", "allocator", "torch"},
    "torch": {"record", "allocator"},
    "clients": {"device", "record", "allocator"},
    "python": {"record", "allocator"},
    "cupy": {"device", "record", "allocator", "python"},
    "bindings": {"device", "record", "state", "analysis", "allocator", "cupti", "nvtx", "nccl"}
    | {
        "packing",
        "hazards",
        "simulation",
        "replay",
        "formats",
        "clients",
        "python",
        "cupy",
        "torch",
    },
    "testing": {"record", "cupti", "python"},
    "viewer": {"record", "state", "analysis", "formats"},
}
# Layers that may include the headers of Python and nanobind.
CPP_PYTHON = {"python", "cupy", "bindings", "testing"}


@pytest.mark.parametrize("path", cpp_files(), ids=relative)
def test_a_native_file_includes_only_layers_below_it(path):
    layer = path.relative_to(NATIVE).parts[0]
    included = set(re.findall(r'#include "(\w+)/', path.read_text()))

    assert included - CPP[layer] - {layer} == set()


@pytest.mark.parametrize("path", cpp_files(), ids=relative)
def test_python_is_included_only_by_the_rooms_that_serve_it(path):
    included = re.findall(r"#include [<\"](?:nanobind|Python\.h)", path.read_text())

    assert not included or path.relative_to(NATIVE).parts[0] in CPP_PYTHON


@pytest.mark.parametrize("path", cpp_files(), ids=relative)
def test_a_native_file_declares_its_names_in_the_namespace_of_its_room(path):
    opened = set(re.findall(r"^namespace (gpuviz\S*) \{", path.read_text(), re.MULTILINE))

    if path.suffix == ".hpp" or opened:
        assert opened == {"gpuviz::" + path.relative_to(NATIVE).parts[0]}


@pytest.mark.parametrize("path", cpp_files(), ids=relative)
def test_the_gil_is_given_up_only_in_a_way_that_outlives_the_exit_of_python(path):
    nanobinds = re.findall(r"nb::gil_scoped_\w+", path.read_text())

    assert nanobinds == [] or path == NATIVE / "testing" / "module.cpp"
