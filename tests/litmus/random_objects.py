"""Streams and blocks of a random litmus program, and random accesses to them."""

import random
from typing import Any

Fields = dict[str, Any]


class RandomObjects:
    """The objects of a program that is being made, always the same ones for a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.ops: list[Fields] = []
        self.count = 0
        self.threads = self.random.choice((1, 1, 1, 2, 3))
        self.strict = self.threads > 1 and self.maybe(0.7)
        # The host's own accesses, which strict threads order, belong to no device.
        self.devices = 1 if self.strict else self.random.choice((1, 1, 2, 3))
        self.streams: dict[str, str] = {"legacy": "legacy"}
        self.destroyed: list[str] = []
        self.pinned: dict[str, int] = {}
        self.device: dict[str, int] = {}
        self.freed: list[tuple[str, int, str]] = []
        self.place_of: dict[str, tuple[int, int]] = {}
        self.how: dict[str, str] = {}
        self.recorded: set[str] = set()
        self.graphs: list[str] = []
        self.captures: dict[str, set[str]] = {}
        self.captured_events: dict[str, str] = {}
        self.roots = 0

    def maybe(self, probability: float) -> bool:
        return self.random.random() < probability

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def op(self, name: str, **fields: Any) -> None:
        self.ops.append({"op": name, **fields})

    def device_field(self) -> Fields:
        device = self.random.randrange(self.devices)
        return {"device": device} if device else {}

    def stream(self) -> str:
        return self.random.choice(list(self.streams))

    def is_legacy(self, stream: str | None) -> bool:
        return stream is not None and self.streams[stream] == "legacy"

    def idle_stream(self) -> str | None:
        """Return a stream that does not capture; None if there is none."""
        busy = {each for joined in self.captures.values() for each in joined}
        return self.random.choice([each for each in self.streams if each not in busy])

    def new_place(self, size: int) -> tuple[int, int]:
        self.roots += 1
        return self.roots * 1000, self.roots * 1000 + size

    def add_block(
        self, name: str, size: int, how: str, place: tuple[int, int], *, is_pinned: bool = False
    ) -> None:
        (self.pinned if is_pinned else self.device)[name] = size
        self.how[name], self.place_of[name] = how, place

    def any_block(self) -> tuple[str, int] | None:
        blocks = [*self.device.items(), *self.pinned.items()]
        if self.maybe(0.04):  # an access after the free
            blocks += [(name, size) for name, size, _ in self.freed if name not in self.pinned]
        return self.random.choice(blocks) if blocks else None

    def entry(self, name: str, size: int, unknown: float = 0.1) -> Any:
        if self.maybe(unknown):
            return [name, self.random.choice((0, 0, 4, self.random.randrange(size))), None]
        if self.maybe(0.6):
            return name
        start, stop = sorted(self.random.randint(0, size) for _ in range(2))
        return [name, start, stop]

    def lists(self, modes: tuple[str, ...] = ("reads", "writes", "atomics", "unknown")) -> Fields:
        lists: Fields = {}
        for _ in range(self.random.choice((1, 1, 2, 3))):
            block = self.any_block()
            if block is not None:
                weights = (6, 6, 1, 1)[: len(modes)]
                mode = self.random.choices(modes, weights)[0]
                lists.setdefault(mode, []).append(self.entry(*block))
        return lists
