"""The notebooks of the repository, run from top to bottom in a real kernel."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from gpuviz.commands.workloads import WORKLOADS

NOTEBOOKS = {
    path.stem: path for path in sorted((Path(__file__).parents[3] / "notebooks").glob("*.ipynb"))
}
WORKLOAD_NOTEBOOKS = sorted(NOTEBOOKS.keys() - {"tour"})
WIDGET = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
LARGEST_OUTPUT = 100_000
# Some copies of the widget's script, which is in the state of every widget.
LARGEST_STATE = 500_000


@dataclass(frozen=True, slots=True)
class Saved:
    """A notebook that was executed, saved with the state of its widgets, and loaded again."""

    notebook: nbformat.NotebookNode
    folder: Path


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return each notebook by name, executed once."""

    @cache
    def execute(name):
        folder = tmp_path_factory.mktemp(name)
        notebook = nbformat.read(NOTEBOOKS[name], as_version=4)
        resources = {"metadata": {"path": str(folder)}}
        client = NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources)
        client.execute()
        nbformat.write(notebook, folder / "saved.ipynb")
        return Saved(nbformat.read(folder / "saved.ipynb", as_version=4), folder)

    return execute


@pytest.fixture(scope="module")
def tour(saved):
    return saved("tour")


def outputs(notebook):
    return [(cell, output) for cell in notebook.cells for output in cell.get("outputs", [])]


def cell_with(notebook, text):
    """Return the output text of the only code cell that contains ``text``."""
    [cell] = [c for c in notebook.cells if c.cell_type == "code" and text in c.source]
    return "".join(
        output.text if output.output_type == "stream" else f"{output.data['text/plain']}\n"
        for output in cell.outputs
    )


every_notebook = pytest.mark.parametrize("name", NOTEBOOKS)


@every_notebook
def test_notebooks_are_stored_without_outputs(name):
    notebook = nbformat.read(NOTEBOOKS[name], as_version=4)

    assert outputs(notebook) == []
    assert {cell.get("execution_count") for cell in notebook.cells} == {None}


def test_there_is_a_notebook_for_each_workload():
    assert sorted(WORKLOADS) == WORKLOAD_NOTEBOOKS


@every_notebook
def test_notebooks_run_without_an_error_or_a_warning(saved, name):
    notebook = saved(name).notebook
    kinds = {output.output_type for _, output in outputs(notebook)}
    loud = [output.text for _, output in outputs(notebook) if output.get("name") == "stderr"]

    assert "error" not in kinds
    assert loud == []


@every_notebook
def test_every_output_of_a_saved_notebook_can_be_read_without_a_kernel_and_is_small(saved, name):
    notebook = saved(name).notebook
    bundles = [output.data for _, output in outputs(notebook) if "data" in output]
    pictures = [bundle for bundle in bundles if "text/html" in bundle]
    widgets = [bundle for bundle in bundles if WIDGET in bundle]

    assert [bundle for bundle in bundles if not bundle.get("text/plain", "").strip()] == []
    assert max(len(json.dumps(bundle).encode()) for bundle in bundles) <= LARGEST_OUTPUT
    assert all('<img class="gpuviz-picture"' in bundle["text/html"] for bundle in pictures)
    assert all(bundle["text/plain"].startswith("gpuviz: peak ") for bundle in pictures)
    assert len(pictures) >= len(widgets) == 1


@every_notebook
def test_nothing_of_a_recording_is_in_the_saved_state_of_the_widgets(saved, name):
    state = saved(name).notebook.metadata.widgets[STATE]["state"]
    [timeline] = [model["state"] for model in state.values() if "_esm" in model["state"]]
    known = {"_anywidget_id", "_css", "_esm", "layout", "tabbable", "tooltip"}

    assert len(json.dumps(state)) <= LARGEST_STATE
    assert [model for model in state.values() if model.get("buffers")] == []
    assert {key for key in timeline if not re.match("_(dom|model|view)_", key)} == known


def test_the_tour_names_what_holds_the_memory(tour):
    notebook = tour.notebook
    first = cell_with(notebook, "weights = [")

    held = "192 MiB held by weights[0], weights[1], weights[2], weights[3]"
    assert "reached at  scratch = device.empty(256 * MIB)" in first
    assert held in first
    assert "64 MiB in 8 blocks: result = device.empty(8 * MIB)" in cell_with(notebook, '"end"')
    assert "16.0 MiB held by kept" in cell_with(notebook, "history.clear()")


def test_the_tour_shows_streams_that_overlap_and_streams_that_do_not(tour):
    notebook = tour.notebook
    hidden = [
        float(re.search(r"Copies hidden +([\d.]+) %", cell_with(notebook, call))[1])
        for call in ("pipeline(pinned=True)", "pipeline(pinned=False)")
    ]

    assert hidden[0] > 50
    assert hidden[1] < 30
    assert "pageable memcpy  device.upload" not in cell_with(notebook, "pipeline(pinned=True)")
    assert "self.gpu.copy_to_device" in cell_with(notebook, "pipeline(pinned=False)")


def test_the_tour_writes_a_report(tour):
    assert (tour.folder / "tour.html").stat().st_size > 0


@pytest.mark.parametrize("name", WORKLOAD_NOTEBOOKS)
def test_without_a_gpu_the_notebook_of_a_workload_says_what_it_shows(saved, name):
    text = cell_with(saved(name).notebook, "gpuviz.load(")

    assert text.startswith("There is no GPU with CuPy here: this was recorded on an NVIDIA H100")
    assert "gpuviz: peak " in text


def number(pattern, text):
    return float(re.search(pattern, text)[1])


def test_kmeans_shows_the_temporaries_of_the_peak_and_the_kernel_of_one_block(saved):
    notebook = saved("kmeans").notebook
    first, second = cell_with(notebook, "def show_peak").splitlines()[1:3]

    assert first.endswith("distances = cp.square(differences).sum(axis=2)")
    assert second.endswith("differences = chunk[:, None, :] - centres[None, :, :]")
    assert number(r"(\d+) %", first) + number(r"(\d+) %", second) > 80
    assert number(r"falls to (\d+) %", cell_with(notebook, "def smaller")) < 50
    worst = cell_with(notebook, "alone = max(").splitlines()[0]
    assert worst.endswith(" 1 x 1 x 1 thread blocks  counts += membership.sum(axis=0)")
    assert number(r"(\d+) %", worst) > 30


def test_conjugate_gradient_shows_that_the_host_is_late_and_the_wait_is_not_to_blame(saved):
    notebook = saved("conjugate_gradient").notebook
    idle = cell_with(notebook, "causes = {")
    waits = cell_with(notebook, "waited_ns =")
    one_by_one, graph = cell_with(notebook, "def simulate").splitlines()

    assert number(r"busy (\d+) %", idle) < 20
    assert number(r"Idle, because:\n.* (\d+) %  the host was late", idle) > 50
    assert number(r"in all: ([\d.]+) %", waits) < 5
    assert number(r"([\d.]+) ms", graph) < number(r"([\d.]+) ms", one_by_one) / 4


def test_fft_filter_shows_waits_for_pageable_memory_and_what_pinned_memory_gives(saved):
    notebook = saved("fft_filter").notebook
    pageable, pinned = cell_with(notebook, "class PinnedLane").split("--- pinned")

    assert "0 % of the copies ran beside kernels" in cell_with(notebook, "def show_overlap")
    assert "pageable memcpy: signal.set(" in cell_with(notebook, "GB/s")
    assert number(r"([\d.]+) ms of copies", pageable) > 5 * number(r"([\d.]+) ms of copies", pinned)
    assert "0 ns in which the host waited" in pinned
    assert number(r"([\d.]+) ms in which the host waited", pageable) > 50


def test_monte_carlo_shows_the_same_bytes_twice_and_a_kernel_of_one_block(saved):
    notebook = saved("monte_carlo").notebook
    _, first, second, *_ = cell_with(notebook, "def show_peak").splitlines()

    assert "in 200 blocks  payoffs = " in first
    assert "1 block  samples = cp.concatenate(payoffs)" in second
    assert number(r"falls to (\d+) %", cell_with(notebook, "def price(")) < 35
    worst = cell_with(notebook, "launches {blocks").splitlines()[0]
    assert re.search(r" 1 launches +1 x 1 x 1 thread blocks  error = ", worst)
    assert number(r"(\d+) %", worst) > 40


def test_image_pipeline_shows_copies_that_hide_and_memory_that_nobody_needs(saved):
    notebook = saved("image_pipeline").notebook
    unneeded = cell_with(notebook, "unneeded = Counter()")
    as_it_is, early = cell_with(notebook, "def freed_early").splitlines()

    assert number(r"(\d+) % of all copies ran", cell_with(notebook, "[device] = ")) > 80
    assert number(r"(\d+) MiB of it", unneeded) > 0.5 * number(r"(\d+) MiB at the", unneeded)
    assert number(r"([\d.]+) MiB at", early) < 0.6 * number(r"([\d.]+) MiB at", as_it_is)
