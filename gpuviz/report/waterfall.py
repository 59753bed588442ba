"""The peak of a device's memory as a waterfall, level by level."""

from typing import Any

import pyarrow as pa

from gpuviz.present.section import Bar, Cell, Part, Row, heading, of_bytes, table
from gpuviz.quantities import format_bytes

_OF = {"program": "the program", "allocator": "the allocator", "others": "others"}


def waterfall(chain: pa.Table) -> tuple[Part, ...]:
    """Return the table of `gpuviz.Recording.peak_chain`, a bar for each level.

    There is none if no memory was recorded.
    """
    rows = chain.to_pylist()
    # What others hold would leave no room for the rest.
    drawn = [row["bytes"] or 0 for row in rows if row["responsible"] != "others"]
    largest = max(drawn)
    if not largest:
        return ()
    names = ("Level", "Bytes", "Added", "By")
    title = "Peak of memory"
    return heading(title), table(title, names, (_row(row, largest) for row in rows))


def _row(row: dict[str, Any], largest: int) -> Row:
    name = Cell(row["level"], hover=row["meaning"])
    if row["bytes"] is None:
        return Row((name, Cell("unknown"), Cell(), Cell()))
    responsible, added = row["responsible"], row["added"]
    cells = (
        name,
        of_bytes(row["bytes"]),
        Cell(f"+{format_bytes(added)}", added) if added else Cell(),
        Cell(_OF[responsible] if added else ""),
    )
    before = row["bytes"] - added
    bar = Bar(before / largest, added / largest, responsible)
    return Row(cells, bar=None if responsible == "others" else bar)
