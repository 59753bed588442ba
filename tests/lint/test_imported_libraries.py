"""Which files import client libraries, IPython and what is slow to import."""

from pathlib import Path

import pytest

from gpuviz import allocators
from tests.lint.python_imports import imports, imports_from, typing_imports
from tests.lint.python_rooms import PYTHON, layer_of
from tests.lint.source_files import PACKAGE, offenders, python_files

# The packages of client libraries, by the only module that imports them.
CLIENTS = {
    "cupy": {"cupy", "cupyx"},
    "torch": {"torch"},
    "numba": {"numba"},
    "cuda_core": {"cuda"},
    "rmm": {"rmm"},
}

# Rooms that compute with arrays and tables, so that their files import NumPy and pyarrow.
COMPUTING = {
    *("data", "formats", "analysis", "merging", "exports"),
    *(room for room in PYTHON if room.split(".")[0] == "advice"),
    *("hazards", "out_of_memory", "conclusions", "comparison"),
    *("simulation", "simulation.replay", "figures", "present", "report"),
    *("recorder", "notebook"),
}


def test_every_library_with_an_allocator_is_among_the_client_libraries():
    files = sorted(path.stem for path in (PACKAGE / "allocators").glob("[!_]*.py"))

    assert files == sorted(CLIENTS) == sorted(allocators.__all__)


@pytest.mark.parametrize("framework", CLIENTS)
def test_a_library_is_imported_only_by_its_framework_and_by_the_programs_to_record(framework):
    users = [PACKAGE / "frameworks" / f"{framework}.py", PACKAGE / "commands" / "workloads"]
    others = [path for path in python_files() if not any(map(path.is_relative_to, users))]

    def wrong(path: Path) -> set[str]:
        return imports_from(path, CLIENTS[framework]) - typing_imports(path)

    assert offenders(others, wrong) == {}


def test_ipython_is_imported_only_by_what_a_notebook_asks_for():
    others = [path for path in python_files() if layer_of(path) != "notebook"]

    assert offenders(others, lambda path: imports_from(path, {"IPython", "ipykernel"})) == {}


def test_heavy_libraries_are_imported_only_when_they_are_needed():
    assert offenders(python_files(), heavy_imports) == {}


def heavy_imports(path: Path) -> set[str]:
    heavy = {"cupy", "cupyx", "plotly", "ipywidgets", "anywidget", "pyarrow.compute"}
    if layer_of(path) not in COMPUTING:
        # Programs and Jupyter servers import these files before they record or show anything.
        heavy |= {"numpy", "pyarrow"}
    if layer_of(path) == "notebook":
        # Widgets derive from their classes; their files are imported only when a widget is created.
        heavy -= {"ipywidgets", "anywidget"}
    if path.is_relative_to(PACKAGE / "commands" / "workloads"):
        # Programs, which are imported to be run.
        heavy -= {"cupy", "cupyx", "numpy"}
    return {
        name
        for name, at_import in imports(path)
        if at_import and any(f"{name}.".startswith(f"{each}.") for each in heavy)
    }
