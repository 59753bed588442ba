"""Modules, phases and categories of a training program."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import gpuviz
from gpuviz.analysis.categories import block_categories, category_bytes
from gpuviz.conclusions.facts import other_facts
from gpuviz.conclusions.ranking import conclusions
from gpuviz.conclusions.store import conclusion_table
from gpuviz.data.codes import CATEGORIES
from gpuviz.data.manifest import Manifest
from gpuviz.recording import Recording
from gpuviz.report.iterations import iterations_text
from tests.unit.recording.from_activities import Timeline, rows_of
from tests.unit.recording.from_events import rows_table

# Made by tests/gpu/record_training.py on an H100 with torch 2.11.
RECORDED = Path(gpuviz.__file__).parent / "commands" / "training" / "layers.gpuviz"

LOADING, FORWARD, AGAIN, BACKWARD, STEP, CONVERTING, APPLYING = range(1, 8)
STACKS = [
    {"id": LOADING, "frames": [1]},
    {"id": FORWARD, "frames": [2], "module": "layer", "phase": "forward"},
    {"id": AGAIN, "frames": [2], "module": "head", "phase": "forward"},
    {"id": BACKWARD, "frames": [1], "module": "layer", "phase": "backward", "forward_frame": 2},
    {"id": STEP, "frames": [1], "phase": "optimizer"},
    {"id": CONVERTING, "frames": [3, 1]},
    {"id": APPLYING, "frames": [4, 1]},
]
FRAMES = [
    {"id": 1, "name": "train", "filename": "train.py", "line": 3, "source": "step()"},
    {"id": 2, "name": "forward", "filename": "model.py", "line": 8, "source": "x = layer(x)"},
    {"id": 3, "name": "Module._apply", "filename": "/x/site-packages/torch/nn/modules/module.py"},
    {"id": 4, "name": "Module._apply", "filename": "model.py"},
]
FOREVER = 10**6


def recording_of(*blocks, tensors=(), stacks=STACKS):
    """Return a recording of blocks: address, begin, end, allocating and freeing stack."""
    rows = []
    for address, begin, end, stack, freed in blocks:
        common = {"address": address, "size": 512, "requested_size": 500, "framework": "torch"}
        rows.append(common | {"time": begin, "action": "alloc", "stack": stack})
        if end < FOREVER:
            free = common | {"time": end, "stack": freed}
            rows += [free | {"action": name} for name in ("free_requested", "free_completed")]
    rows.sort(key=lambda row: row["time"])
    tables = {
        "memory_events": rows_table(rows),
        "stacks": rows_of("stacks", stacks),
        "frames": rows_of("frames", FRAMES),
        "devices": rows_of("devices", [{"id": 0, "name": "GPU", "total_memory": 1 << 30}]),
        "strings": rows_of("strings", [{"id": 1, "text": "layer.weight"}]),
        "tensors": rows_of("tensors", tensors),
    }
    return Recording(tables, Manifest(duration_ns=FOREVER))


def categories(recording):
    blocks, found = block_categories(recording)
    return {
        int(address): CATEGORIES[code] for address, code in zip(blocks.address, found, strict=True)
    }


# A step: forward at 100, backward at 200, the optimizer at 300; and again from 400 on.
STEPS = [
    (0x10000 + time, time, time + 1, stack, stack)
    for start in (0, 300)
    for time, stack in ((start + 100, FORWARD), (start + 200, BACKWARD), (start + 300, STEP))
]


@pytest.mark.parametrize(
    ("block", "category"),
    [
        ((110, 250, FORWARD, BACKWARD), "activation"),
        ((110, 120, FORWARD, AGAIN), "activation"),
        ((110, 111, FORWARD, FORWARD), "temporary"),
        ((210, 220, BACKWARD, BACKWARD), "temporary"),
        ((210, 420, BACKWARD, LOADING), "gradient"),
        ((310, 320, STEP, STEP), "temporary"),
        ((310, FOREVER, STEP, 0), "optimizer_state"),
        ((10, 11, LOADING, LOADING), "temporary"),
        ((10, FOREVER, LOADING, 0), ""),
        ((10, FOREVER, 0, 0), ""),
        # As in `Net().cuda().half()`, before the model is called for the first time.
        ((10, 20, LOADING, CONVERTING), "parameter"),
        ((10, 20, CONVERTING, CONVERTING), "temporary"),
        ((10, 20, LOADING, APPLYING), ""),
        ((210, 420, BACKWARD, CONVERTING), "gradient"),
    ],
)
def test_a_block_is_what_its_phases_say(block, category):
    found = categories(recording_of((0x1000, *block), *STEPS))

    assert found[0x1000] == category


@pytest.mark.parametrize(
    ("named", "time", "address", "category"),
    [
        ("parameter", 150, 0x1000, "parameter"),
        ("gradient", 150, 0x1000, "gradient"),
        ("optimizer_state", 150, 0x1000, "optimizer_state"),
        ("workspace", 150, 0x1000, "workspace"),
        ("parameter", 150, 0x11FF, "parameter"),
        ("parameter", 150, 0x1200, "activation"),
        ("parameter", 105, 0x1000, "activation"),
    ],
)
def test_a_block_is_what_the_owner_of_a_tensor_in_it_says(named, time, address, category):
    tensor = {"time": time, "address": address, "category": named, "name": 1}

    found = categories(recording_of((0x1000, 110, FOREVER, FORWARD, 0), *STEPS, tensors=[tensor]))

    assert found[0x1000] == category


def test_memory_of_the_size_of_a_workspace_is_none_if_it_is_freed():
    tensor = {"time": 150, "address": 0x1000, "category": "workspace"}

    found = categories(
        recording_of((0x1000, 110, 250, FORWARD, BACKWARD), *STEPS, tensors=[tensor])
    )

    assert found[0x1000] == "activation"


def test_a_block_at_the_address_of_an_earlier_one_is_another():
    first, second = (0x1000, 110, 130, FORWARD, AGAIN), (0x1000, 140, 250, FORWARD, BACKWARD)
    tensor = {"time": 120, "address": 0x1000, "category": "parameter"}
    blocks, found = block_categories(recording_of(first, second, *STEPS, tensors=[tensor]))

    named = {int(begin): CATEGORIES[code] for begin, code in zip(blocks.begin, found, strict=True)}
    assert (named[110], named[140]) == ("parameter", "activation")


def test_without_phases_nothing_is_known():
    blocks = [(0x1000, 10, FOREVER, LOADING, 0), (0x2000, 20, 21, LOADING, LOADING)]
    recording = recording_of(*blocks, stacks=STACKS[:1])

    assert set(categories(recording).values()) == {""}
    assert not [fact for fact in other_facts(recording) if "at the peak" in fact.title]


def test_the_peak_says_its_phase_and_what_the_memory_is():
    blocks = [(0x1000 * n, 110 + n, 250, FORWARD, BACKWARD) for n in range(1, 4)]
    recording = recording_of((0x9000, 10, FOREVER, LOADING, 0), *blocks, *STEPS)

    (fact,) = [fact for fact in other_facts(recording) if "at the peak" in fact.title]

    assert fact.title == (
        "2.50 KiB at the peak in the backward pass of `layer`: activations 1.50 KiB, temporary "
        "512 B, unknown 512 B."
    )


def test_work_of_a_backward_pass_has_the_forward_line_and_module():
    recording = recording_of((0x1000, 210, FOREVER, BACKWARD, 0), *STEPS)

    row = recording.sites(by="line", at="end").to_pylist()[0]
    modules = {row["module"]: row for row in recording.modules().to_pylist()}

    assert row["site"] == "backward of forward (model.py:8)"
    assert row["source"] == "x = layer(x)"
    assert modules["layer"]["total_bytes"] == 5 * 512
    assert modules[""]["total_bytes"] == 2 * 512


def training_steps(losses=1):
    """Return a recording of four steps, with as many kernels of the loss as the step's number."""
    timeline = Timeline()
    number = 0

    def launch(stack, length=10):
        nonlocal number
        number += 1
        timeline.add(
            "api_calls",
            {"time": 100 * number, "end": 100 * number + 5, "correlation": number, "stack": stack}
            | {"name": timeline.text("cuLaunchKernel"), "thread": 1},
        )
        timeline.kernel(100 * number + 20, 100 * number + 20 + length, correlation=number)

    launch(LOADING)
    for step in range(4):
        for _ in range(1 + losses * step):
            launch(FORWARD)
        launch(BACKWARD, 20)
        launch(STEP, 30)
    rows = {name: rows_of(name, each) for name, each in timeline.rows.items()}
    rows |= {"stacks": rows_of("stacks", STACKS), "frames": rows_of("frames", FRAMES)}
    names = [{"id": 1, "text": "cuLaunchKernel"}, {"id": 2, "text": "kernel"}]
    rows["strings"] = rows_of("strings", names)
    rows["launch_configurations"] = rows_of("launch_configurations", [{"id": 1}])
    rows["devices"] = rows_of("devices", [{"id": 0, "name": "GPU", "total_memory": 1 << 30}])
    return Recording(rows, Manifest(duration_ns=FOREVER))


def test_each_step_of_an_optimizer_ends_an_iteration_even_if_no_two_steps_are_alike():
    recording = training_steps()

    found = recording.iterations(0).to_pylist()

    assert [row["kernel_count"] for row in found] == [3, 4, 5, 6]
    assert [row["forward_ns"] for row in found] == [10, 20, 30, 40]
    assert [row["backward_ns"] for row in found] == [20] * 4
    assert [row["optimizer_ns"] for row in found] == [30] * 4
    first, _, phases, _ = iterations_text(recording.iterations(0))
    assert first == "4 iterations: each ends with a step of an optimizer."
    assert phases == "Of its kernel time, forward 20 ns, backward 20 ns, optimizer 30 ns."


def test_a_report_has_the_category_of_each_block_for_its_colours():
    recording = recording_of((0x1000, 110, 250, FORWARD, BACKWARD), (0x2000, 10, FOREVER, 0, 0))

    rows = conclusion_table(recording, "categories").to_pylist()

    assert rows == [{"device": 0, "event": 1, "category": "activation"}]


def test_a_recorded_training_program_has_names_for_its_memory_and_kernels():
    recording = gpuviz.load(RECORDED)

    kernels = recording.kernels(by="module").to_pylist()
    modules = {row["module"]: row for row in recording.modules().to_pylist()}

    assert {row["module"] for row in kernels} == {
        "",
        "head",
        *(f"blocks.{n}.{name}" for n in range(3) for name in ("norm", "up", "down")),
        *(f"blocks.{n}" for n in range(3)),
    }
    for name in ("head", "blocks.1.up", "blocks.1.down", "blocks.1.norm"):
        assert modules[name]["forward_ns"] > 0
        assert modules[name]["backward_ns"] > 0
    assert sum(row["activation_bytes"] for row in modules.values()) > 0
    lines = {row["site"].partition(" (")[0] for row in recording.lines().to_pylist()}
    assert any(line.startswith("backward of ") and line.endswith("Block.forward") for line in lines)


def test_every_block_of_a_recorded_training_program_is_known():
    recording = gpuviz.load(RECORDED)

    blocks, found = block_categories(recording)
    sizes = {name: int(blocks.size[found == code].sum()) for code, name in enumerate(CATEGORIES)}

    assert sizes["parameter"] > 6 << 20
    assert sizes["optimizer_state"] > 2 * (6 << 20)
    assert sizes["gradient"] > 4 * (6 << 20)
    assert sizes["activation"] > 0
    assert sizes["workspace"] > 0
    assert sizes[""] < 4096


def test_the_processes_of_a_merged_recording_have_their_own_tensors_and_modules():
    one = gpuviz.load(RECORDED)
    more = rows_of("strings", [{"id": 1000, "text": "another"}])
    strings = pa.concat_tables([more, one.tables["strings"]])  # so that ids differ
    manifest = replace(one.manifest, process_id=one.manifest.process_id + 1)
    other = Recording({**one.tables, "strings": strings}, manifest)

    merged = gpuviz.merge([one, other])

    named = {row["id"]: row["text"] for row in merged.table("strings").to_pylist()} | {0: ""}
    names = [named[row["name"]] for row in merged.table("tensors").to_pylist()]
    assert names[: len(names) // 2] == names[len(names) // 2 :]
    assert "blocks.0.up.weight" in names
    first, second = (category_bytes(merged, device, FOREVER * 10**6) for device in merged.devices)
    assert first == second == category_bytes(one, 0, FOREVER * 10**6)


def test_the_largest_work_is_said_to_be_of_the_backward_pass_of_its_line():
    first = conclusions(gpuviz.load(RECORDED))[0].title

    assert first.startswith("The backward pass of `h = self.up(self.norm(x)).relu()` takes 402 µs")
