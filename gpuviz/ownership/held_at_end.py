"""What holds the memory that is in use when a recording ends."""

import re
from collections import Counter

from gpuviz import _core
from gpuviz.ownership.held_memory import HeldBlock
from gpuviz.ownership.holders import DEFAULT_AT_LEAST, holders
from gpuviz.ownership.live_memory import live_memory

_MOST_BLOCKS = 200
# Among more, the search takes seconds.
_MOST_OBJECTS = 1_000_000
_MOST_NAMED = 3
# A variable of a function, and what leads from it to the block.
_LOCAL = re.compile(r"^local `(\w+)` of (?:the running )?(.+?\(\))(.*)$")


def held_at_end() -> list[dict[str, object]]:
    """Return rows of the table ``held_blocks`` about the largest blocks in use.

    What has a holder that no Python object shows is left out, and so are addresses in use on
    several simulated GPUs. Without a large block, and among more than a million objects of Python,
    nothing is searched.
    """
    blocks = live_memory().blocks
    if not any(size >= DEFAULT_AT_LEAST for size, _ in blocks.values()):
        return []
    if sum(count for _, count in _core.object_types()) > _MOST_OBJECTS:
        return []
    used = Counter(address for _, address in blocks)
    return [
        {"device": block.device, "address": block.address, "holder": text}
        for block in holders(DEFAULT_AT_LEAST, most=_MOST_BLOCKS).blocks
        for text in [_text(block)]
        if text and used[block.address] == 1
    ]


def _text(block: HeldBlock) -> str:
    if any(holder.kind == "unknown" for holder in block.holders):
        return ""
    shown = block.holders if block.only is None else (block.only,)
    paths = [*dict.fromkeys(_LOCAL.sub(r"\1\3 in \2", holder.path) for holder in shown)]
    more = len(paths) - _MOST_NAMED
    return " and ".join(paths[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
