"""GPU memory with its holders, as values that refer to no object of the program."""

from dataclasses import dataclass, field
from typing import Literal

from gpuviz.frameworks.torch_holders import GRAPH_OF_AUTOGRAD
from gpuviz.ownership.identity import Seen
from gpuviz.present.markup import columns, html, inline_table, joined
from gpuviz.quantities import format_bytes, format_counted
from gpuviz.terminal import printable

HolderKind = Literal[
    "variable", "output", "exception", "script", "thread", "running function", "module", "class",
    "IPython", "task", "generator", "coroutine", "cache", "plan cache", "cycle", "unknown",
]  # fmt: skip

MOST_SHOWN = 20
_MOST_HOLDERS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Holder:
    """Something that keeps a block of memory alive.

    Attributes:
        kind: What it is. ``unknown`` are references that belong to no visible object, as those of
            C code and of expressions that are being evaluated.
        name: What removing frees the block from this holder, such as ``x`` or ``Out[3]``.
        path: How it leads to the block, such as ``x.weights[3]``.
    """

    kind: HolderKind
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class HeldBlock:
    """A block of GPU memory in use.

    Attributes:
        address: Address.
        size: Bytes that freeing it makes available, including rounding by the allocator.
        device: Ordinal.
        holders: Everything that keeps it alive; empty if no Python object owns it.
        only: The holder without which the block would be free; None if there is no such holder.
        needs_collection: Whether reference cycles keep it alive until the garbage collector runs,
            even without its holders.
    """

    address: int
    size: int
    device: int
    holders: tuple[Holder, ...]
    only: Holder | None
    needs_collection: bool

    @property
    def kept_by(self) -> str:
        """The names of what keeps it alive, and whether graphs of autograd do; empty if unknown."""
        if any(holder.kind == "unknown" for holder in self.holders):
            return ""
        shown = self.holders if self.only is None else (self.only,)
        names = " and ".join(dict.fromkeys(holder.name for holder in shown[:_MOST_HOLDERS_SHOWN]))
        in_graph = self.holders and all(GRAPH_OF_AUTOGRAD in each.path for each in self.holders)
        return f"{names}, in graphs of autograd" if in_graph else names


@dataclass(frozen=True, slots=True)
class Release:
    """Something that can be let go.

    Attributes:
        title: What `gpuviz.release` does, such as ``Drop Out[3]``.
        name: What it lets go of: an argument of `gpuviz.release`.
        nbytes: Bytes that it frees. Freed memory stays in the pool until the pool is emptied.
        code: Python code with the same effect.
        collects: Whether it also runs the garbage collector.
        seen: What it was about when it was listed; None if that does not matter.
    """

    title: str
    name: str
    nbytes: int
    code: str
    collects: bool
    seen: Seen | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class HeldMemory:
    """The result of `gpuviz.holders`: blocks in use, largest first, and what can be let go.

    Attributes:
        blocks: The blocks that were asked for.
        releases: What can be let go, most bytes first.
        used: Bytes of all blocks in use that gpuviz knows, smaller ones too.
        cached: Bytes that pools keep for reuse.
    """

    blocks: tuple[HeldBlock, ...]
    releases: tuple[Release, ...]
    used: int
    cached: int

    def __str__(self) -> str:
        return printable("\n".join(_lines(self)))

    def __repr__(self) -> str:
        shown = format_counted(len(self.blocks), "block", "blocks")
        return f"<HeldMemory: {shown}, {format_bytes(sum(b.size for b in self.blocks))}>"

    def _repr_html_(self) -> str:
        return str(held_memory_html(self))


@dataclass(frozen=True, slots=True)
class _Row:
    size: int
    count: int
    text: str
    note: str


def _rows(held: HeldMemory) -> list[_Row]:
    """Return the blocks, those with the same holders in one row."""
    groups: dict[tuple[str, ...], list[HeldBlock]] = {}
    for block in held.blocks:
        same = tuple(f"{holder.kind} {holder.name}" for holder in block.holders)
        groups.setdefault(same, []).append(block)
    rows = [_row(blocks) for blocks in groups.values()]
    return sorted(rows, key=lambda row: -row.size)


def _row(blocks: list[HeldBlock]) -> _Row:
    first = blocks[0]
    names = [
        holder.path if len(blocks) == 1 else holder.name
        for holder in first.holders[:_MOST_HOLDERS_SHOWN]
    ]
    text = "; ".join(dict.fromkeys(names)) or "no Python object"
    more = len(first.holders) - _MOST_HOLDERS_SHOWN
    text += f"; {more} more" if more > 0 else ""
    return _Row(sum(block.size for block in blocks), len(blocks), text, _note(blocks))


def _note(blocks: list[HeldBlock]) -> str:
    first = blocks[0]
    if not first.holders:
        return "unknown holder"
    if first.only is None:
        return "each of them keeps it" if len(first.holders) > 1 else ""
    if first.only.kind == "unknown":
        return "cannot be seen from Python"
    note = "only holder" if len(first.holders) == 1 else f"only through {first.only.name}"
    if first.only.kind != "cycle" and any(block.needs_collection for block in blocks):
        note += ", freed by the next garbage collection"
    return note


def _lines(held: HeldMemory) -> list[str]:
    rows = _rows(held)
    lines = [held_memory_headline(held)]
    for row in rows[:MOST_SHOWN]:
        blocks = "" if row.count == 1 else f" in {row.count} blocks"
        note = f"  ({row.note})" if row.note else ""
        lines.append(f"{format_bytes(row.size):>12}{blocks}  {row.text}{note}")
    if len(rows) > MOST_SHOWN:
        lines.append(f"{'':>12}  {len(rows) - MOST_SHOWN} more")
    if held.releases:
        lines += ["", "To free memory:"]
        lines += [
            f"{format_bytes(each.nbytes):>12}  {each.title}: {each.code}"
            for each in held.releases[:MOST_SHOWN]
        ]
    return lines


def held_memory_headline(held: HeldMemory) -> str:
    """Return how much memory is in use and cached, in one sentence."""
    text = f"{format_bytes(held.used)} of GPU memory in use"
    if held.cached:
        text += f", {format_bytes(held.cached)} cached by the pools"
    return f"{text}."


def held_memory_html(held: HeldMemory, *, releases: bool = True) -> str:
    """Return the blocks with their holders as HTML.

    Args:
        held: The blocks.
        releases: Whether to list what can be let go.
    """
    cells = held_memory_cells(held)
    parts = [html("<p>{}</p>", held_memory_headline(held))]
    if cells:
        headings = ("Memory", "Blocks", "Kept alive by", "")
        parts.append(inline_table(headings, cells[:MOST_SHOWN], columns("tttt")))
    if len(cells) > MOST_SHOWN:
        parts.append(html("<p>{} more</p>", len(cells) - MOST_SHOWN))
    if held.releases and releases:
        choices = (
            (format_bytes(each.nbytes), each.title, html("<code>{}</code>", each.code))
            for each in held.releases[:MOST_SHOWN]
        )
        parts.append(inline_table(("Frees", "By", "Code"), choices, columns("ttt")))
    return html('<div class="gpuviz-holders">{}</div>', joined(parts))


def held_memory_cells(held: HeldMemory) -> list[tuple[str, str, str, str]]:
    """Return rows of texts, largest first: size, number of blocks, who keeps them, and a note."""
    return [(format_bytes(r.size), str(r.count), r.text, r.note) for r in _rows(held)]
