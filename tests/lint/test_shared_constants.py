"""Constants of TypeScript and C++ that must equal those of Python, read from the source text."""

import json
import re
from pathlib import Path

import pytest

from gpuviz import server
from gpuviz.data import derived, tables
from gpuviz.figures import palette
from gpuviz.notebook import panel

ROOT = Path(__file__).parents[2]
TYPESCRIPT = ROOT / "extension" / "src"
NATIVE = ROOT / "gpuviz" / "native"
WORDS = {
    ("model/activities.ts", "KINDS"): tables.DICTIONARIES["activities", "kind"],
    ("model/activities.ts", "COPY_KINDS"): tables.DICTIONARIES["activities", "copy_kind"],
    ("model/activities.ts", "MEMORIES"): tables.DICTIONARIES["activities", "source"],
    ("model/activities.ts", "HOST_MEMORIES"): tables.DICTIONARIES["activities", "host_memory"],
    ("model/activities.ts", "ACCESS_MODES"): tables.DICTIONARIES["launch_blocks", "mode"],
    ("model/events.ts", "ACTIONS"): tables.ACTIONS,
    ("model/events.ts", "FRAMEWORKS"): tables.FRAMEWORKS,
    ("model/host_calls.ts", "SYNCHRONIZATION_KINDS"): tables.DICTIONARIES[
        "synchronizations", "kind"
    ],
    ("model/host_calls.ts", "HOST_WAIT_KINDS"): derived.DICTIONARIES["host_waits", "kind"],
    ("model/host_calls.ts", "OVERHEAD_KINDS"): tables.DICTIONARIES["overheads", "kind"],
    ("model/idle_gaps.ts", "IDLE_CAUSES"): derived.DICTIONARIES["idle_gaps", "cause"],
    ("model/memory_operations.ts", "OPERATIONS"): tables.DICTIONARIES[
        "memory_operations", "operation"
    ],
    ("model/ranges.ts", "KINDS"): tables.DICTIONARIES["ranges", "kind"],
}
ENUMERATIONS = {
    ("record/memory_event.hpp", "Action"): tables.ACTIONS,
    ("record/memory_event.hpp", "Framework"): tables.FRAMEWORKS,
    ("record/activity_rows.hpp", "ActivityKind"): tables.DICTIONARIES["activities", "kind"],
    ("record/activity_rows.hpp", "CopyKind"): tables.DICTIONARIES["activities", "copy_kind"],
    ("record/activity_rows.hpp", "MemoryKind"): tables.DICTIONARIES["activities", "source"],
    ("record/activity_rows.hpp", "SynchronizationKind"): tables.DICTIONARIES[
        "synchronizations", "kind"
    ],
    ("record/activity_rows.hpp", "AccessMode"): tables.DICTIONARIES["launch_blocks", "mode"],
    ("record/activity_rows.hpp", "MemoryOperation"): tables.DICTIONARIES[
        "memory_operations", "operation"
    ],
    ("record/activity_rows.hpp", "GraphCallKind"): tables.DICTIONARIES["graph_calls", "kind"],
    ("record/activity_rows.hpp", "CollectiveFunction"): tables.DICTIONARIES[
        "collectives", "function"
    ],
    ("record/activity_rows.hpp", "ElementType"): tables.DICTIONARIES["collectives", "element"],
    ("record/activity_rows.hpp", "CollectiveAlgorithm"): tables.DICTIONARIES[
        "collectives", "algorithm"
    ],
    ("record/activity_rows.hpp", "CollectiveProtocol"): tables.DICTIONARIES[
        "collectives", "protocol"
    ],
    ("record/activity_rows.hpp", "OverheadKind"): tables.DICTIONARIES["overheads", "kind"],
    ("record/activity_rows.hpp", "RangeKind"): tables.DICTIONARIES["ranges", "kind"],
    ("record/stream_table.hpp", "StreamKind"): tables.DICTIONARIES["streams", "kind"],
    ("analysis/idle_causes.hpp", "IdleCause"): derived.DICTIONARIES["idle_gaps", "cause"],
}
# `default` is a word of C++.
CPP_WORDS = {"none": "", "default_stream": "default", "per_thread": "per_thread_default"}


def literal(file, name):
    """Return the text that a constant is set to, as JSON."""
    pattern = rf"^(?:export )?const {name} = (.*?)(?: as const)?;$"
    (found,) = re.findall(pattern, (TYPESCRIPT / file).read_text(), re.MULTILINE | re.DOTALL)
    return re.sub(r",(\s*[\]}])", r"\1", found)


def test_the_version_of_derived_tables_is_one():
    assert json.loads(literal("wire/recording_file.ts", "DERIVED_VERSION")) == (
        derived.DERIVED_VERSION
    )


@pytest.mark.parametrize(("file", "name"), WORDS)
def test_words_have_one_order(file, name):
    assert json.loads(literal(file, name)) == list(WORDS[file, name])


@pytest.mark.parametrize(("file", "name"), ENUMERATIONS)
def test_enumerations_of_the_native_core_are_in_the_order_of_the_words(file, name):
    pattern = rf"enum class {name} : std::u?int8_t \{{(.*?)\}}"
    (found,) = re.findall(pattern, (NATIVE / file).read_text(), re.DOTALL)
    members = re.findall(r"\w+", found)

    assert [CPP_WORDS.get(each, each) for each in members] == list(ENUMERATIONS[file, name])


def test_charts_have_the_colours_of_the_dashboard():
    light = (TYPESCRIPT / "view/theme.css").read_text().partition("@media")[0]
    spans = re.findall(r"(\w+):", literal("model/span_kinds.ts", "TEXTS"))
    colours = dict(re.findall(r"--gpuviz-([\w-]+): (#\w{6});", light))
    kinds = {word: colours[f"kind-{place}"] for place, word in enumerate(spans)}
    copies = tables.DICTIONARIES["activities", "copy_kind"]
    camel = {word: re.sub(r"_(\w)", lambda found: found[1].upper(), word) for word in copies}

    assert (colours["allocated"], colours["reserved"]) == (palette.ALLOCATED, palette.RESERVED)
    assert (colours["cached-edge"], kinds["kernel"]) == (palette.FREE, palette.KERNEL)
    assert kinds["memset"] == palette.MEMSET
    assert {
        word: kinds["deviceToDevice" if "peer" in word else camel[word]]
        if "peer" in word or camel[word] in kinds
        else kinds["otherCopy"]
        for word in copies
    } == palette.COPIES


def test_memories_of_all_tables_are_the_same():
    columns = [("activities", "destination"), ("memory_operations", "memory")]

    assert {tables.DICTIONARIES[each] for each in columns} == {
        tables.DICTIONARIES["activities", "source"]
    }


def test_no_order_that_a_comment_promises_is_left_out():
    promise = re.compile(r"In the order of `(?:DICTIONARIES|ACTIONS)`.*\n(?:export )?const (\w+)")
    promised = {
        (path.relative_to(TYPESCRIPT).as_posix(), name)
        for path in TYPESCRIPT.rglob("*.ts")
        for name in promise.findall(path.read_text())
    }

    assert len(promised) > 3
    assert promised <= WORDS.keys()


@pytest.mark.parametrize(
    ("file", "name", "value"),
    [
        ("lab/server_devices.ts", "PATH", [server.PAGE_OPTION]),
        (
            "lab/conversion.ts",
            "PATHS",
            [server.RECORDINGS_PAGE_OPTION, server.FINDINGS_PAGE_OPTION],
        ),
        ("lab/panel_comm.ts", "TARGET", [panel.TARGET]),
    ],
)
def test_the_page_and_the_server_call_the_same_thing_by_one_name(file, name, value):
    assert re.findall(r'"(.*?)"', literal(file, name)) == value
