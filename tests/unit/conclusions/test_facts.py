"""Facts about memory that follow from no rule."""

from pathlib import Path

import pyarrow as pa

import gpuviz
from gpuviz.analysis.categories import block_categories
from gpuviz.conclusions.ranking import conclusions
from gpuviz.data.codes import CATEGORIES
from gpuviz.recording import Recording

TRAINING = Path(gpuviz.__file__).parent / "commands" / "training" / "layers.gpuviz"


def test_of_what_is_left_at_the_end_the_workspaces_of_libraries_are_named_apart():
    recording = gpuviz.load(TRAINING)
    titles = [each.title for each in conclusions(recording)]

    assert (
        "86 blocks (89.6 MiB) were still allocated at the end, 65.0 MiB of it workspaces of "
        "libraries."
    ) in titles


def test_workspaces_alone_are_nothing_that_a_program_has_left():
    recording = gpuviz.load(TRAINING)
    events = recording.tables["memory_events"]
    blocks, categories = block_categories(recording)
    other = (blocks.end < 0) & (categories != CATEGORIES.index("workspace"))
    freed = events.take(blocks.alloc[other]).to_pylist()
    last = {"action": "free_requested", "time": events["time"][-1].as_py()}
    more = pa.Table.from_pylist([row | last for row in freed], events.schema)
    tables = {**recording.tables, "memory_events": pa.concat_tables([events, more])}
    left = Recording(tables, recording.manifest)

    assert not [each for each in conclusions(left) if "still allocated" in each.title]
