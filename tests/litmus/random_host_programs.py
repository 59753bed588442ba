"""Random litmus programs whose host uses pinned memory that copies of several streams use too.

The simulated GPU can run them: operations access whole blocks.
"""

import random
from typing import Any

Fields = dict[str, Any]

_DEVICE, _PINNED = ("A0", "A1"), ("H0", "H1")


def random_host_program(seed: int) -> Fields:
    """Return a valid program without a verdict, always the same one for a seed."""
    return _Generator(seed).program()


class _Generator:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.count = 0
        self.recorded: list[str] = []
        kinds = ("non_blocking", "non_blocking", "blocking")
        self.streams = {
            f"s{number}": self.random.choice(kinds) for number in range(self.random.randint(1, 3))
        }

    def program(self) -> Fields:
        """Return the program."""
        copies, accesses = [self.copy] * 2, [self.host_access] * 2
        steps = (*copies, *accesses, self.launch, self.record, self.wait, self.synchronize)
        ops = [self.random.choice(steps)() for _ in range(self.random.randint(4, 16))]
        pinned = {"bytes": 8, "memory": "pinned"}
        return {
            "name": f"random_host_{self.seed}",
            "streams": self.streams,
            "blocks": {**dict.fromkeys(_DEVICE, 8), **dict.fromkeys(_PINNED, pinned)},
            "ops": ops,
            "hazards": [],
        }

    def on_stream(self) -> Fields:
        return {"stream": self.random.choice([*self.streams, "legacy"])}

    def named(self) -> Fields:
        self.count += 1
        return {"id": f"o{self.count}"}

    def copy(self) -> Fields:
        host, device = self.random.choice(_PINNED), self.random.choice(_DEVICE)
        ends = {"kind": "device_to_host", "source": device, "destination": host}
        if self.random.random() < 0.5:
            ends = {"kind": "host_to_device", "source": host, "destination": device}
        how = {"sync": True} if self.random.random() < 0.1 else self.on_stream()
        return {"op": "copy", **self.named(), **ends, **how}

    def host_access(self) -> Fields:
        mode = self.random.choice(("reads", "writes"))
        return {"op": "host_access", **self.named(), mode: [self.random.choice(_PINNED)]}

    def launch(self) -> Fields:
        mode = self.random.choice(("reads", "writes"))
        block = {mode: [self.random.choice(_DEVICE)]}
        return {"op": "launch", **self.named(), **block, **self.on_stream()}

    def record(self) -> Fields:
        self.recorded.append(f"e{self.random.randrange(2)}")
        return {"op": "event_record", "event": self.recorded[-1], **self.on_stream()}

    def wait(self) -> Fields:
        if not self.recorded:
            return self.synchronize()
        event = {"event": self.random.choice(self.recorded)}
        if self.random.random() < 0.5:
            return {"op": "event_synchronize", **event}
        return {"op": "stream_wait_event", **event, **self.on_stream()}

    def synchronize(self) -> Fields:
        if self.random.random() < 0.2:
            return {"op": "device_synchronize"}
        return {"op": "stream_synchronize", **self.on_stream()}
