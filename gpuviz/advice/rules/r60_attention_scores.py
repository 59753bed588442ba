"""R60: attention that stores its scores, of every query for every key."""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.training_blocks import BACKWARD
from gpuviz.advice.finding import Finding, named
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.rule import Rule
from gpuviz.analysis.categories import block_categories
from gpuviz.analysis.launches import phases_of, stacks_of
from gpuviz.analysis.touches import PRODUCT
from gpuviz.data.call_stacks import BACKWARD_OF
from gpuviz.data.codes import CATEGORIES
from gpuviz.data.columns import plain
from gpuviz.data.strings import are_named
from gpuviz.quantities import format_bytes, format_counted

RULES = (
    Rule(
        "R60",
        "attention that stores its scores",
        "at least four times, a softmax reads what other kernels make of the result of a product "
        "of matrices that are smaller, nothing else but a backward pass reads that, and another "
        "product alone what they make of the softmax; its result has less than a quarter of the "
        "bytes; the saving is without all "
        "arrays of these lines that are about as large",
        "`torch.nn.functional.scaled_dot_product_attention`",
    ),
)

_SOFTMAX = re.compile(r"softmax\w*forward", re.IGNORECASE)
_LEAST_CALLS = 4
# Of the bytes of the softmax: arrays of scores have as many elements, of a type of 2 bytes or more.
_OF_SCORES = 0.25
# Between a product and the softmax: a scale, a mask, dropout, changes of type.
_MOST_STEPS = 8
_WORKSPACE = CATEGORIES.index("workspace")


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find attention whose scores are arrays of the program.

    Trigger: at least four times, a kernel of a softmax reads an array that one kernel after the
    other makes of the result of a product of matrices. These arrays are not used otherwise, but by
    backward passes, and the matrices are smaller. What the softmax writes is read, perhaps after
    further such kernels, by another product alone, and by backward passes. The result of that
    product has at most a quarter of the bytes, as where the queries are many.

    Saving: the decrease of the peak if the arrays of these lines with a quarter of the bytes of the
    softmax or more did not exist, in the backward pass either. The program may want to see the
    scores: ``possible``.
    """
    scores = _Scores(device)
    of_site: dict[int, list[int]] = defaultdict(list)
    chains: dict[int, set[int]] = defaultdict(set)
    for block in scores.softmaxes:
        chain = scores.chain(block)
        place = int(device.place[block])
        if chain and place >= 0:
            of_site[int(device.site[place])].append(place)
            chains[int(device.site[place])] |= chain
    for site, places in of_site.items():
        if len(places) >= _LEAST_CALLS:
            yield _finding(device, np.array(places), np.array(sorted(chains[site])))


class _Scores:
    """What makes and reads the blocks of a device, by the block."""

    def __init__(self, device: DeviceBlocks) -> None:
        self._used, self._recording = device.used, device.recording
        self._requested = device.used.blocks.requested

    @cached_property
    def _touches(self) -> np.ndarray:
        """Each call with each block that it uses."""
        pairs: np.ndarray = np.unique(np.stack([self._used.call, self._used.block]), axis=1)
        return pairs

    @cached_property
    def _blocks(self) -> dict[int, list[int]]:
        """The blocks that each call uses."""
        return _grouped(*self._touches)

    @cached_property
    def _calls(self) -> dict[int, list[int]]:
        """The calls that use each block."""
        return _grouped(*self._touches[::-1])

    def _named(self, pattern: re.Pattern[str]) -> set[int]:
        """Return the calls that launch a kernel with such a name."""
        used, activities = self._used, self._recording.tables["activities"]
        seen = used.activity >= 0
        names = plain(activities["name"])[used.activity[seen]]
        is_named = are_named(self._recording.tables, names, pattern.search)
        return set(used.call[seen][is_named].tolist())

    @cached_property
    def _products(self) -> set[int]:
        return self._named(PRODUCT)

    @cached_property
    def _categories(self) -> np.ndarray:
        return block_categories(self._recording)[1]

    @cached_property
    def _backward(self) -> set[int]:
        """The calls of backward passes."""
        tables, calls = self._recording.tables, np.unique(self._touches[0])
        phases = phases_of(tables, stacks_of(tables, calls))
        return set(calls[phases == BACKWARD].tolist())

    @property
    def softmaxes(self) -> Iterator[int]:
        """The blocks that kernels of a softmax write."""
        for call in sorted(self._named(_SOFTMAX)):
            made = self._made(call)
            if len(made) == 1:
                yield made[0]

    def chain(self, softmax: int) -> set[int]:
        """Return the arrays of scores around a softmax; empty if it is not that of attention."""
        least = _OF_SCORES * self._requested[softmax]
        before = self._to_product(softmax, least, 0)
        after = self._applied(softmax, least, 0)
        if before is None or after is None or self._are_used_besides(before):
            return set()
        return {*before, *after}

    def _are_used_besides(self, before: list[int]) -> bool:
        """Return whether scores are used for something else than the softmax that they lead to.

        Or whether their product is of scores itself, as where heads are mixed.
        """
        makers = {int(self._used.first[each]) for each in before}
        others = {call for each in before[1:] for call in self._calls[each]} - makers
        if any(self._made(call) for call in others - self._backward):
            return True
        factors = self._inputs(before[-1], self._requested[before[-1]])
        return any(self._categories[each] != _WORKSPACE for each in factors)

    def _made(self, call: int) -> list[int]:
        """Return the blocks that nothing has used before a call."""
        return [each for each in self._blocks[call] if self._used.first[each] == call]

    def _inputs(self, block: int, least: float) -> list[int]:
        """Return the large blocks that the call which made a block may have read."""
        maker = int(self._used.first[block])
        return [
            each
            for each in self._blocks.get(maker, ())
            if self._requested[each] >= least and self._used.first[each] != maker
        ]

    def _to_product(self, block: int, least: float, steps: int) -> list[int] | None:
        """Return the blocks from one back to the result of a product; None if there is none."""
        if int(self._used.first[block]) in self._products:
            return [block]
        if steps < _MOST_STEPS:
            for each in self._inputs(block, least):
                found = self._to_product(each, least, steps + 1)
                if found is not None:
                    return [block, *found]
        return None

    def _applied(self, block: int, least: float, steps: int) -> list[int] | None:
        """Return the blocks that kernels make of one until a product reads them.

        None if something else reads one of them, other than a backward pass, or no product does.
        """
        maker, is_read, found = int(self._used.first[block]), False, []
        for call in self._calls[block]:
            if call == maker or call in self._backward:
                continue
            made = self._made(call)
            large = [each for each in made if self._requested[each] >= least]
            if call in self._products:
                if large:
                    return None
                is_read = True
            elif len(large) == 1 and steps < _MOST_STEPS:
                after = self._applied(large[0], least, steps + 1)
                if after is None:
                    return None
                found += [large[0], *after]
                is_read = True
            elif made:
                return None
        return found if is_read else None


def _grouped(keys: NDArray[np.int64], values: NDArray[np.int64]) -> dict[int, list[int]]:
    order = np.argsort(keys, kind="stable")
    distinct, first = np.unique(keys[order], return_index=True)
    parts = np.split(values[order], first[1:])
    return {key: part.tolist() for key, part in zip(distinct.tolist(), parts, strict=True)}


def _of_lines(device: DeviceBlocks, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which blocks are of the lines of some, or of what a backward pass does for these."""
    call_site, stacks = device.recording.call_stacks.call_site, np.unique(device.stack)
    sites = {stack: call_site(stack)[0] for stack in stacks.tolist()}
    lines = {sites[stack] for stack in np.unique(device.stack[places[places >= 0]]).tolist()}
    lines |= {f"{BACKWARD_OF}{each}" for each in lines}
    return np.isin(device.stack, [stack for stack, site in sites.items() if site in lines])


def _finding(
    device: DeviceBlocks, softmaxes: NDArray[np.int64], chain: NDArray[np.int64]
) -> Finding:
    least = _OF_SCORES * device.requested[softmaxes].min()
    is_of_lines = _of_lines(device, device.place[chain])
    gone = np.flatnonzero(is_of_lines & (device.requested >= least) & ~device.is_shared)
    at_peak = gone[device.at_peak[gone]]
    shown = at_peak if len(at_peak) else softmaxes
    line = device.lines.line_of(softmaxes)
    size = format_bytes(int(device.requested[softmaxes].max()))
    return Finding(
        rule="R60",
        title=f"{named(line.site, line.source)} computes attention from scores of {size}; they "
        f"and what is made of them hold {format_bytes(int(device.size[at_peak].sum()))} of the "
        "peak.",
        reason=(
            f"{format_counted(len(softmaxes), 'time', 'times')} a softmax of a product of matrices "
            "is read by another product only, whose result is much smaller. The scores grow with "
            "the square of the length of the sequence; each step between the products makes "
            "another array of their size."
        ),
        change=(
            "Use `torch.nn.functional.scaled_dot_product_attention(query, key, value)`, with "
            "`is_causal=True` or a mask: it computes the scores in parts, which also takes less "
            "time, and stores none of them for the backward pass."
        ),
        certainty="possible",
        device=device.device,
        lines=device.lines.lines_of(shown),
        evidence=device.lines.evidence(shown),
        lifetimes=Change(gone, device.begin[gone], device.begin[gone]),
    )
