"""The notebooks of the repository, run from top to bottom in a real kernel."""

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import gpuviz
from gpuviz.commands.workloads import WORKLOADS
from gpuviz.conclusions.wording import saving

NOTEBOOKS = {
    path.stem: path for path in sorted((Path(__file__).parents[3] / "notebooks").glob("*.ipynb"))
}
# It fails on purpose, and records nothing.
KEPT_ALIVE = "why_is_memory_not_freed"
# It shows differences instead of recordings.
COMPARED = "before_and_after"
# It records the workers of a cluster, not its own process.
CLUSTER = "cluster"
RECORDED_NOTEBOOKS = sorted(NOTEBOOKS.keys() - {KEPT_ALIVE, COMPARED, CLUSTER})
# It records a program of several libraries, three times.
ONE_POOL = "one_pool"
# It records a program of PyTorch, or loads its recording.
TRAINING = "training"
WORKLOAD_NOTEBOOKS = sorted({*RECORDED_NOTEBOOKS} - {"tour", ONE_POOL, TRAINING})
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


def test_what_a_change_did_is_said_by_line_and_by_kernel(saved):
    notebook = saved(COMPARED).notebook
    printed = "".join(text_of(output) for _, output in outputs(notebook))
    compared = cell_with(notebook, "--compare")

    assert "error" not in {output.output_type for _, output in outputs(notebook)}
    assert "1088 MiB at the peak" in printed
    assert "128 MiB at the peak" in printed
    assert "`sharpen` takes 16.0 ms more (new)." in printed
    assert "peak -88%" in printed
    assert "-384 MiB  edited" in compared


def test_one_pool_for_all_libraries_saves_what_their_caches_hold(saved):
    notebook = saved(ONE_POOL).notebook
    used = cell_with(notebook, "def most_used").splitlines()
    lines = cell_with(notebook, 'sites(by="line")').splitlines()

    assert "recorded on an NVIDIA H200" in cell_with(notebook, "gpuviz.load(")
    separate = "separate used 6.55 GiB recorded 4.80 GiB libraries 1.13 GiB rest 636 MiB"
    assert " ".join(used[0].split()) == separate
    assert used[2].split()[:4] == ["shared", "used", "4.50", "GiB"]
    assert used[3] == "One pool saves 2.05 GiB, 31 %."
    assert {line.split()[2] for line in lines} == {"torch", "cupy"}
    assert "12.0 KiB in use, 20 replays" in cell_with(notebook, "graph_pools()")
    assert "Numba compiled 1 kernel" in cell_with(notebook, ".findings()")


def test_a_training_has_modules_backward_lines_categories_and_steps(saved):
    notebook = saved(TRAINING).notebook
    modules = cell_with(notebook, "recording.modules()").splitlines()
    lines = cell_with(notebook, "recording.lines()").splitlines()

    assert "recorded on an NVIDIA H100" in cell_with(notebook, "gpuviz.load(")
    assert {line.split()[0] for line in modules[1:]} >= {"blocks.0.up", "head", "(none)"}
    assert any(line.endswith("backward of h = self.up(self.norm(x)).relu()") for line in lines)
    assert "activations" in cell_with(notebook, "other_facts(recording)")
    assert len(cell_with(notebook, "recording.iterations()").splitlines()) == 4
    assert cell_with(notebook, "gpuviz.leaks()") == (
        "`loss = gpu.empty(4 << 20)` keeps 4.00 MiB more with each iteration, kept by losses\n"
    )


def test_a_cluster_is_one_recording_and_a_killed_worker_leaves_its_part(saved):
    notebook = saved(CLUSTER).notebook
    bundles = [output.data for _, output in outputs(notebook) if "data" in output]
    kinds = {output.output_type for _, output in outputs(notebook)}
    loud = [output.text for _, output in outputs(notebook) if output.get("name") == "stderr"]
    files = cell_with(notebook, "signal.SIGKILL").splitlines()

    assert "error" not in kinds
    assert loud == []
    assert cell_with(notebook, 'record("run",').endswith("1024 MiB; ['0.gpuviz', '1.gpuviz'] {}\n")
    assert bundles[0]["text/html"].count("recorded</td>") == 2
    assert '<img class="gpuviz-picture"' in bundles[1]["text/html"]
    assert "blur: 64.0 ms on the GPUs\n" in cell_with(notebook, "busy_ns = Counter()")
    assert len(cell_with(notebook, "in recording.processes").splitlines()) == 2
    assert len(files) == 3
    assert [name for name in files if name.endswith(".gpuviz.part")] != []


def outputs(notebook):
    return [(cell, output) for cell in notebook.cells for output in cell.get("outputs", [])]


def cell_with(notebook, text):
    """Return the output text of the only code cell that contains ``text``."""
    [cell] = [c for c in notebook.cells if c.cell_type == "code" and text in c.source]
    return "".join(text_of(output) for output in cell.outputs)


def text_of(output):
    """Return what an output says without HTML and colours, with a line's end."""
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}\n"
    return output.text if output.output_type == "stream" else f"{output.data['text/plain']}\n"


recorded_notebooks = pytest.mark.parametrize("name", RECORDED_NOTEBOOKS)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_stored_without_outputs(name):
    notebook = nbformat.read(NOTEBOOKS[name], as_version=4)

    assert outputs(notebook) == []
    assert {cell.get("execution_count") for cell in notebook.cells} == {None}


def test_there_is_a_notebook_for_each_workload():
    assert sorted(WORKLOADS) == WORKLOAD_NOTEBOOKS


@recorded_notebooks
def test_notebooks_run_without_an_error_or_a_warning(saved, name):
    notebook = saved(name).notebook
    kinds = {output.output_type for _, output in outputs(notebook)}
    loud = [output.text for _, output in outputs(notebook) if output.get("name") == "stderr"]

    assert "error" not in kinds
    assert loud == []


@recorded_notebooks
def test_every_output_of_a_saved_notebook_can_be_read_without_a_kernel_and_is_small(saved, name):
    notebook = saved(name).notebook
    bundles = [output.data for _, output in outputs(notebook) if "data" in output]
    pictures = [bundle for bundle in bundles if "text/html" in bundle]
    widgets = [bundle for bundle in bundles if WIDGET in bundle]

    assert [bundle for bundle in bundles if not bundle.get("text/plain", "").strip()] == []
    assert max(len(json.dumps(bundle).encode()) for bundle in bundles) <= LARGEST_OUTPUT
    assert all('<img class="gpuviz-picture"' in bundle["text/html"] for bundle in pictures)
    texts = ("gpuviz: peak ", "<Recording of ")
    assert all(bundle["text/plain"].startswith(texts) for bundle in pictures)
    assert len(pictures) >= len(widgets) == 1


@recorded_notebooks
def test_nothing_of_a_recording_is_in_the_saved_state_of_the_widgets(saved, name):
    state = saved(name).notebook.metadata.widgets[STATE]["state"]
    [timeline] = [model["state"] for model in state.values() if "_esm" in model["state"]]
    known = {"_anywidget_id", "_css", "_esm", "layout", "tabbable", "tooltip"}
    known |= {"buttons", "message", "numbers", "held", "releases", "findings", "sections"}

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


def test_the_tour_shows_that_the_gpu_waits_for_a_host_that_sleeps(tour):
    text = cell_with(tour.notebook, "%gpuviz findings")

    assert re.search(r"1\. The GPU is idle for [\d.]+ s, \d+ % of the time, while the host", text)
    assert "is waiting in `time.sleep(0.05)`" in text
    assert "[R43, possible]" in text


def test_the_tour_writes_a_report(tour):
    assert (tour.folder / "tour.html").stat().st_size > 0


@pytest.mark.parametrize("name", WORKLOAD_NOTEBOOKS)
def test_without_a_gpu_the_notebook_of_a_workload_says_what_it_shows(saved, name):
    text = cell_with(saved(name).notebook, "gpuviz.load(")

    assert text.startswith("There is no GPU with CuPy here: this was recorded on an NVIDIA H100")
    assert "gpuviz: peak " in text


def number(pattern, text):
    return float(re.search(pattern, text)[1])


def found(notebook):
    """Return what a notebook prints about each finding: first line and second line by rule."""
    lines = cell_with(notebook, "recording.findings()\nfor number").splitlines()
    titles, advice = lines[::2], lines[1::2]
    return {
        re.search(r"\[(R\d+)\]$", title)[1]: f"{title}\n{text}"
        for title, text in reversed(list(zip(titles, advice, strict=True)))
    }


@pytest.mark.parametrize("name", WORKLOAD_NOTEBOOKS)
def test_the_notebook_of_a_workload_prints_all_findings_of_its_recording(saved, name):
    text = cell_with(saved(name).notebook, "recording.findings()\nfor number")
    recording = gpuviz.load(str(files("gpuviz.commands") / "recordings" / f"{name}.gpuviz"))

    expected = [
        f"{number}. {finding.title} [{finding.rule}]\n   Saves {saving(finding)}. {finding.change}"
        for number, finding in enumerate(recording.findings(), 1)
    ]
    assert text.splitlines() == "\n".join(expected).splitlines()
    assert expected != []


def test_kmeans_predicts_the_peak_without_the_squares_and_the_time_of_one_thread_block(saved):
    notebook = saved("kmeans").notebook
    findings = found(notebook)
    first, in_place, as_product = cell_with(notebook, "def as_product").splitlines()

    assert "`distances = cp.square(differences).sum(axis=2)` and 1 line before" in findings["R08"]
    assert "`cupy_sum` takes 40 % of the GPU's busy time on one thread block" in findings["R42"]
    assert "float(inertia)` reads a scalar 29 times and waits 54.6 ms" in findings["R18"]
    predicted = number(r"predicted in place: ([\d.]+) MiB", first)
    assert number(r"in_place: ([\d.]+) MiB", in_place) == pytest.approx(predicted, rel=0.01)
    assert number(r"(\d+) %$", as_product) > 50
    assert cell_with(notebook, "narrow =") == "Predicted: about 55.8 ms of 214 ms less\n"


def test_conjugate_gradient_shows_that_launches_cost_time_and_the_wait_is_not_to_blame(saved):
    notebook = saved("conjugate_gradient").notebook
    findings = found(notebook)
    one_by_one, graph, result = cell_with(notebook, "def simulate").splitlines()

    assert findings.keys() == {"R08", "R27"}
    assert "waits for launches: `step = squared / (direction @ product)` makes" in findings["R27"]
    assert number(r"in all: ([\d.]+) %", cell_with(notebook, "waited_ns =")) < 5
    assert number(r"([\d.]+) ms", graph) < number(r"([\d.]+) ms", one_by_one) / 4
    predicted = number(r"predicted: about ([\d.]+) ms", result)
    assert number(r"Saved: ([\d.]+) ms", result) == pytest.approx(predicted, rel=0.1)


def test_fft_filter_shows_the_host_work_pageable_memory_and_what_pinned_memory_gives(saved):
    notebook = saved("fft_filter").notebook
    findings = found(notebook)
    pageable, pinned, result = re.split(r"--- pinned|\n\n", cell_with(notebook, "class PinnedLane"))
    remaining = cell_with(notebook, 'if finding.rule == "R43"').splitlines()

    assert "while the host works between `lane.stream.synchronize()`" in findings["R43"]
    assert "from `self.spectrum = fft.rfft(" in findings["R45"]
    assert "128 copies of pageable memory take 50.8 ms on the GPU" in findings["R17"]
    assert "never work at the same time for this reason." in cell_with(notebook, ").reason")
    assert number(r"([\d.]+) ms of copies", pageable) > 5 * number(r"([\d.]+) ms of copies", pinned)
    assert "0 ns in which the host waited" in pinned
    predicted = number(r"predicted: ([\d.]+) ms", result)
    assert number(r"Saved: ([\d.]+) ms", result) == pytest.approx(predicted, rel=0.2)
    assert [line.split(": The GPU is idle for ")[0] for line in remaining] == ["pageable", "pinned"]


def test_monte_carlo_predicts_the_peak_without_the_same_bytes_twice(saved):
    notebook = saved("monte_carlo").notebook
    findings = found(notebook)
    first, slices, sums = cell_with(notebook, "def slices").splitlines()

    assert "`samples = cp.concatenate(payoffs)` holds the same 38.1 MiB twice" in findings["R46"]
    assert "`cupy_var_core_float64` takes 56 % of the GPU's busy time" in findings["R42"]
    predicted = number(r"predicted: ([\d.]+) MiB", first)
    assert number(r"slices: ([\d.]+) MiB", slices) == pytest.approx(predicted, rel=0.01)
    assert number(r"(\d+) %$", sums) > 65
    assert cell_with(notebook, "error_bar =") == "Predicted: about 6.04 ms of 29.5 ms less\n"


def test_image_pipeline_shows_memory_that_nobody_needs_settings_and_copies_that_hide(saved):
    notebook = saved("image_pipeline").notebook
    findings = found(notebook)
    predicted = cell_with(notebook, "def measure")
    chain = cell_with(notebook, "recording.peak_chain()")
    settings = cell_with(notebook, "recording.what_if(settings)")

    assert "1. 26.0 MiB from `image = NOISE * random.standard_normal(" in findings["R45"]
    assert predicted == "189 MiB at the peak; predicted: 69.1 MiB less\n"
    assert number(r"used arrays +(\d+) MiB", chain) <= 189 - 69
    assert number(r"reserved +(\d+) MiB", chain) == number(
        r"(\d+) MiB reserved  recorded", settings
    )
    assert " 208 MiB reserved  expandable_segments:True\n" in settings
    assert number(r"(\d+) % of all copies ran", cell_with(notebook, "[device] = ")) > 80


def test_what_keeps_memory_alive_is_named_and_freed_in_a_kernel(saved):
    notebook = saved(KEPT_ALIVE).notebook
    printed = "".join(text_of(output) for _, output in outputs(notebook))
    held = [
        "300 MiB  IPython's traceback → local `activations` of train() line 3  (only holder)",
        "128 MiB  kernel_matrix → cache of kernel_matrix() (functools.lru_cache)  (only holder)",
        "96.0 MiB  Model.weights  (only holder)",
        "64.0 MiB  step → variable `buffer` in the closure of make_step.<locals>.<lambda>()",
        "48.0 MiB  loader → local `batch` of generator batches()  (only holder)",
        "256 MiB  a reference cycle  (only holder)",
    ]
    assert [each for each in held if each not in printed] == []
    assert re.search(r"Drop Out\[\d+\] frees 200 MiB\n200 MiB freed", printed)
    assert printed.index("300 MiB freed") < printed.index("256 MiB freed")
