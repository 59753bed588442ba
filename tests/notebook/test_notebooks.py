"""The notebooks of the repository, run from top to bottom in a real kernel."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
TOUR = next(path for path in NOTEBOOKS if path.name == "tour.ipynb")
LARGEST_OUTPUT = 100_000


def executed(path, folder):
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        store_widget_state=False,
    )
    client.execute()
    return notebook


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tour")
    return executed(TOUR, folder), folder


def outputs(notebook):
    return [(cell, output) for cell in notebook.cells for output in cell.get("outputs", [])]


def cell_with(notebook, text):
    """Return the text under the only code cell that has ``text`` in it."""
    [cell] = [c for c in notebook.cells if c.cell_type == "code" and text in c.source]
    return "\n".join(
        output.get("text") or output.get("data", {}).get("text/plain", "")
        for output in cell.outputs
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_stored_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)

    assert outputs(notebook) == []
    assert {cell.get("execution_count") for cell in notebook.cells} == {None}


def test_the_tour_runs_without_an_error_or_a_warning(tour):
    notebook, _ = tour
    kinds = {output.output_type for _, output in outputs(notebook)}
    loud = [output.text for _, output in outputs(notebook) if output.get("name") == "stderr"]

    assert "error" not in kinds
    assert loud == []


def test_the_tour_names_what_holds_the_memory(tour):
    notebook, _ = tour
    first = cell_with(notebook, "weights = [")

    held = "192 MiB held by weights[0], weights[1], weights[2], weights[3]"
    assert "reached at  scratch = device.empty(256 * MIB)" in first
    assert held in first
    assert "64 MiB in 8 blocks: result = device.empty(8 * MIB)" in cell_with(notebook, '"end"')
    assert "16.0 MiB held by kept" in cell_with(notebook, "history.clear()")


def test_the_tour_shows_streams_that_overlap_and_streams_that_do_not(tour):
    notebook, _ = tour
    hidden = [
        float(re.search(r"Copies hidden +([\d.]+) %", cell_with(notebook, call))[1])
        for call in ("pipeline(pinned=True)", "pipeline(pinned=False)")
    ]

    assert hidden[0] > 50
    assert hidden[1] < 30
    assert "pageable memcpy  device.upload" not in cell_with(notebook, "pipeline(pinned=True)")
    assert "self.gpu.copy_to_device" in cell_with(notebook, "pipeline(pinned=False)")


def test_every_output_of_the_tour_can_be_read_without_a_browser_and_is_small(tour):
    notebook, folder = tour
    bundles = [output.data for _, output in outputs(notebook) if "data" in output]

    assert [bundle for bundle in bundles if not bundle.get("text/plain", "").strip()] == []
    assert max(len(str(bundle).encode()) for bundle in bundles) <= LARGEST_OUTPUT
    assert (folder / "tour.html").stat().st_size > 0
