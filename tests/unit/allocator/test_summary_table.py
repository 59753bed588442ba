"""The table of memory_summary, against torch's rules."""

import pytest

from gpuviz.allocator.summary import memory_summary_table

COLUMNS = ("current", "peak", "allocated", "freed")
IN_BYTES = [
    ("Allocated memory", "allocated_bytes.all"),
    ("Active memory", "active_bytes.all"),
    ("Requested memory", "requested_bytes.all"),
    ("GPU reserved memory", "reserved_bytes.all"),
    ("Non-releasable memory", "inactive_split_bytes.all"),
]
COUNTS = [
    ("Allocations", "allocation.all"),
    ("Active allocs", "active.all"),
    ("GPU reserved segments", "segment.all"),
    ("Non-releasable allocs", "inactive_split.all"),
    ("Oversize allocations", "oversize_allocations"),
    ("Oversize GPU segments", "oversize_segments"),
]
MIB = 1 << 20


def cells(title, key, values):
    """Return the cells of a metric's first row."""
    stats = {f"{key}.{column}": value for column, value in zip(COLUMNS, values, strict=True)}
    lines = memory_summary_table(stats, 0).splitlines()
    row = next(line for line in lines if line.startswith(f"| {title} "))
    return [cell.strip() for cell in row.strip("|").split("|")[1:]]


def rows(*, abbreviated):
    text = memory_summary_table({}, 0, abbreviated=abbreviated)
    split = [line.strip("|").split("|") for line in text.splitlines()]
    return [cell[0].strip() for cell in split if len(cell) == 5]


def test_every_line_is_75_wide_within_its_frame():
    lines = memory_summary_table({"num_ooms": 3, "num_alloc_retries": 4}, 12).splitlines()

    assert {len(line) for line in lines} == {77}
    assert {(line[0], line[-1]) for line in lines} == {("|", "|")}
    assert "device ID 12" in lines[1]
    assert "CUDA OOMs: 3" in lines[3]
    assert "cudaMalloc retries: 4" in lines[3]


def test_nine_metrics_have_a_row_for_each_pool_and_two_have_one():
    pools = ["from large pool", "from small pool"]
    titles = [
        "Allocated memory",
        "Active memory",
        "Requested memory",
        "GPU reserved memory",
        "Non-releasable memory",
        "Allocations",
        "Active allocs",
        "GPU reserved segments",
        "Non-releasable allocs",
    ]
    oversize = ["Oversize allocations", "Oversize GPU segments"]

    assert rows(abbreviated=True) == ["Metric", *titles, *oversize]
    assert rows(abbreviated=False) == [
        "Metric",
        *(row for title in titles for row in (title, *pools)),
        *oversize,
    ]


@pytest.mark.parametrize(("title", "key"), IN_BYTES)
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (768 * 1024 - 1, "786431 B"),
        (768 * 1024, "768 KiB"),
        (768 * 1024**2 - 1, "786431 KiB"),
        (768 * 1024**2, "768 MiB"),
        (768 * 1024**3, "768 GiB"),
    ],
)
def test_bytes_change_unit_at_768_of_the_next(title, key, value, text):
    assert cells(title, key, [value] * 4) == [text] * 4


@pytest.mark.parametrize(
    ("value", "text"),
    [(749_999, "749999"), (750_000, "750 K"), (749_999_999, "749999 K"), (750_000_000, "750 M")],
)
@pytest.mark.parametrize(("title", "key"), COUNTS)
def test_counts_change_unit_at_750_of_the_next(title, key, value, text):
    assert cells(title, key, [value] * 4) == [text] * 4


def test_the_current_value_chooses_the_unit_of_its_row():
    row = cells(*IN_BYTES[0], [MIB, 5 * MIB, 3 * MIB + 1023, 10])

    assert row == ["1024 KiB", "5120 KiB", "3072 KiB", "0 KiB"]
