"""Lifetimes of blocks, until their frees are requested, against plain Python."""

from hypothesis import given

from gpuviz.analysis.lifetimes import lifetimes
from tests.examples import examples
from tests.unit.analysis.test_memory_state import any_events
from tests.unit.analysis.test_packing import of_rows
from tests.unit.recording.plain_memory import ALLOCATED, PlainMemory


def plain_spans(rows):
    """By the row of each allocation: the first row after which the block is not allocated."""
    memories: dict[int, PlainMemory] = {}
    spans: dict[int, int] = {}
    for number, row in enumerate(rows):
        memories.setdefault(row["device"], PlainMemory()).apply(row)
        blocks = [block for memory in memories.values() for block in memory.live]
        # Each row's stack is its number, counted from 1.
        allocated = {block.stack - 1 for block in blocks if block.state == ALLOCATED}
        spans |= dict.fromkeys(allocated, len(rows))
        spans |= {
            begin: number
            for begin, end in spans.items()
            if end == len(rows) and begin not in allocated
        }
    return spans


@examples(200)
@given(rows=any_events())
def test_any_blocks_are_allocated_as_in_plain_python(rows):
    found = lifetimes(of_rows(rows))
    spans = plain_spans(list(rows))

    assert dict(zip(found.alloc.tolist(), found.free.tolist(), strict=True)) == spans
    times = [*(row["time"] for row in rows), -1]
    assert found.begin.tolist() == [times[row] for row in sorted(spans)]
    assert found.end.tolist() == [times[spans[row]] for row in sorted(spans)]
