"""Random litmus programs that use every operation and option of the format."""

from collections.abc import Callable, Iterable
from typing import Any

from tests.litmus.random_objects import Fields, RandomObjects

SIZES = (4, 8, 8, 8, 12)
COPY_SIDES = {
    "host_to_device": ("host", "device"),
    "device_to_host": ("device", "host"),
    "device_to_device": ("device", "device"),
    "host_to_host": ("host", "host"),
}


def random_program(seed: int) -> Fields:
    """Return a valid program without a verdict, always the same one for a seed."""
    return _Generator(seed).program()


class _Generator(RandomObjects):
    def program(self) -> Fields:
        kinds = ("blocking", "non_blocking")
        starting: Fields = {}
        for _ in range(self.random.randint(1, 4)):
            name = self.name("s")
            kind = self.random.choice(kinds)
            self.streams[name] = kind
            starting[name] = self.random.choice((kind, {"kind": kind, "priority": -1}))
        if self.devices > 1:
            starting |= self.streams_on_devices(starting)
        if self.maybe(0.2):
            name = self.name("t")
            self.streams[name] = "blocking"
            thread = self.random.randrange(self.threads)
            starting[name] = {"kind": "per_thread", "thread": thread}
        blocks: Fields = {}
        for _ in range(self.random.randint(1, 2)):
            name, size = self.name("A"), self.random.choice(SIZES)
            blocks[name] = size
            self.add_block(name, size, "cuda", self.new_place(size))
        if self.maybe(0.5):
            name = self.name("H")
            blocks[name] = {"bytes": 8, "memory": "pinned"}
            self.add_block(name, 8, "cuda", self.new_place(8), is_pinned=True)
        graphs = {}
        if self.maybe(0.15):
            name = self.name("g")
            graphs[name] = self.lists()
            self.graphs.append(name)
        steps = self.steps()
        for _ in range(self.random.randint(4, 28)):
            step = self.random.choice(steps)
            before = len(self.ops)
            step()
            for op in self.ops[before:]:
                if self.threads > 1 and self.maybe(0.5):
                    op["thread"] = self.random.randrange(self.threads)
        options = {
            "strict_threads": self.strict,
            "cuda_free_synchronizes": self.maybe(0.7),
            "pageable_download_blocks": self.maybe(0.3),
        }
        return {
            "name": f"random_{self.seed}",
            "options": options,
            "streams": starting,
            "blocks": blocks,
            "graphs": graphs,
            "ops": self.ops,
            "hazards": [],
        }

    def steps(self) -> list[Callable[[], None]]:
        """Return what this program does, in random proportions."""
        common = [self.launch, self.launch, self.copy, self.record, self.wait]
        rare = [
            self.memset, self.host_access, self.event_sync, self.event_destroy, self.query,
            self.stream_sync, self.device_sync, self.create_stream, self.destroy_stream,
            self.malloc, self.free, self.malloc, self.free, self.record_stream, self.malloc_async,
            self.free_async, self.cuda_malloc, self.cuda_free, self.begin_capture,
            self.end_capture, self.instantiate, self.graph_launch, self.graph_launch, self.value,
        ]  # fmt: skip
        chosen = self.random.sample(rare, self.random.randint(2, len(rare)))
        return common * self.random.randint(1, 3) + chosen

    def streams_on_devices(self, names: Iterable[str]) -> Fields:
        """Return streams on random devices, and the default streams of the further ones."""
        streams: Fields = {
            name: {"kind": self.streams[name], **self.device_field()} for name in names
        }
        for device in range(1, self.devices):
            name = f"legacy{device}"
            self.streams[name] = "legacy"
            streams[name] = {"kind": "legacy", "device": device}
        return streams

    # Operations.

    def launch(self) -> None:
        programmatic = {"programmatic": True} if self.maybe(0.08) else {}
        self.op("launch", id=self.name("k"), stream=self.stream(), **self.lists(), **programmatic)

    def side(self, where: str) -> Any:
        blocks = self.pinned if where == "host" else self.device
        if where == "host" and (not blocks or self.maybe(0.4)):
            return "pageable"
        if not blocks:
            return None
        return self.entry(*self.random.choice(list(blocks.items())), unknown=0.03)

    def how_to_run(self) -> Fields:
        return {"sync": True} if self.maybe(0.4) else {"stream": self.stream()}

    def copy(self) -> None:
        kind = self.random.choice(list(COPY_SIDES))
        source, destination = (self.side(where) for where in COPY_SIDES[kind])
        if source is None or destination is None:
            return
        how = self.how_to_run()
        if kind == "device_to_device" and self.devices > 1 and self.maybe(0.7):
            how["peer"] = self.random.randrange(self.devices)
        self.op("copy", id=self.name("c"), kind=kind, source=source, destination=destination, **how)

    def memset(self) -> None:
        side = self.side(self.random.choice(("host", "device", "device")))
        if side not in (None, "pageable"):
            self.op("memset", id=self.name("m"), destination=side, **self.how_to_run())

    def host_access(self) -> None:
        if self.pinned:
            entry = self.entry(*self.random.choice(list(self.pinned.items())))
            self.op(
                "host_access",
                id=self.name("h"),
                **{self.random.choice(("reads", "writes")): [entry]},
            )

    def event(self) -> str:
        return self.random.choice(("e1", "e2", "e3"))

    def capture_of(self, stream: str) -> str | None:
        return next((name for name, joined in self.captures.items() if stream in joined), None)

    def record(self) -> None:
        event, stream = self.event(), self.stream()
        capture = self.capture_of(stream)
        self.captured_events.pop(event, None)
        if capture is not None:
            self.captured_events[event] = capture
        self.op("event_record", event=event, stream=stream)

    def wait(self) -> None:
        event, stream = self.event(), self.stream()
        capture = self.captured_events.get(event)
        if capture is not None:
            if self.capture_of(stream) not in (None, capture) or self.is_legacy(stream):
                return
            if capture in self.captures:
                self.captures[capture].add(stream)
        self.op("stream_wait_event", event=event, stream=stream)

    def event_sync(self) -> None:
        self.op("event_synchronize", event=self.event())

    def event_destroy(self) -> None:
        event = self.event()
        self.captured_events.pop(event, None)
        self.op("event_destroy", event=event)

    def query(self) -> None:
        complete = self.maybe(0.5)
        if self.maybe(0.5):
            self.op("event_query", event=self.event(), complete=complete)
        else:
            self.op("stream_query", stream=self.idle_stream(), complete=complete)

    def stream_sync(self) -> None:
        self.op("stream_synchronize", stream=self.idle_stream())

    def device_sync(self) -> None:
        if self.maybe(0.4):
            self.op("device_synchronize", **self.device_field())

    def create_stream(self) -> None:
        if len(self.streams) > 6:
            return
        name, kind = self.name("s"), self.random.choice(("blocking", "non_blocking"))
        handle = {}
        if self.destroyed and self.maybe(0.7):
            handle = {"handle_of": self.destroyed.pop()}
        self.streams[name] = kind
        self.op("stream_create", stream=name, kind=kind, **handle, **self.device_field())

    def destroy_stream(self) -> None:
        stream = self.idle_stream()
        if stream is not None and not self.is_legacy(stream) and self.maybe(0.6):
            del self.streams[stream]
            self.destroyed.append(stream)
            self.op("stream_destroy", stream=stream)

    def place_for(self, size: int, pool: str) -> tuple[tuple[int, int], Fields]:
        """Return where a new block lies, and the fields that say so."""
        freed = [each for each in self.freed if each[2] == pool]
        if not freed or self.maybe(0.2):
            return self.new_place(size), {}
        name, freed_size, _ = self.random.choice(freed[-4:])
        offset = self.random.choice((0, 0, 0, self.random.randrange(freed_size)))
        start = self.place_of[name][0] + offset
        live = (self.place_of[each] for each in (*self.device, *self.pinned))
        if any(start < end and begin < start + size for begin, end in live):
            return self.new_place(size), {}
        return (start, start + size), {"reuses": name, **({"offset": offset} if offset else {})}

    def allocate(self, op: str, how: str, **fields: Any) -> None:
        if len(self.device) + len(self.pinned) > 6:
            return
        size = self.random.choice(SIZES)
        is_pinned = fields.get("memory") == "pinned"
        place, where = self.place_for(size, f"{how} {is_pinned}")
        name = self.name("B")
        if op != "cuda_malloc":
            fields["id"] = f"malloc_{name}"
        self.op(op, block=name, bytes=size, **fields, **where)
        self.add_block(name, size, how, place, is_pinned=is_pinned)

    def malloc(self) -> None:
        if self.maybe(0.2):
            self.allocate("malloc", "caching", memory="pinned")
        elif self.maybe(0.2):
            self.allocate("malloc", "private", stream=self.stream(), pool="p")
        else:
            self.allocate("malloc", "caching", stream=self.stream())

    def malloc_async(self) -> None:
        self.allocate("malloc_async", "async", stream=self.idle_stream())

    def cuda_malloc(self) -> None:
        memory = {"memory": "pinned"} if self.maybe(0.3) else {}
        self.allocate("cuda_malloc", "cuda", **memory)

    def end(self, op: str, hows: tuple[str, ...], **fields: Any) -> None:
        blocks = [each for each in (*self.device, *self.pinned) if self.how[each] in hows]
        if not blocks:
            return
        name = self.random.choice(blocks)
        is_pinned = name in self.pinned
        size = self.pinned.pop(name) if is_pinned else self.device.pop(name)
        self.freed.append((name, size, f"{self.how[name]} {is_pinned}"))
        self.op(op, block=name, **fields)

    def free(self) -> None:
        self.end("free", ("caching", "private"), id=self.name("free_"))

    def free_async(self) -> None:
        self.end("free_async", ("async",), id=self.name("free_"), stream=self.idle_stream())

    def cuda_free(self) -> None:
        if self.maybe(0.5):
            self.end("cuda_free", ("cuda",))

    def record_stream(self) -> None:
        blocks = [each for each in (*self.device, *self.pinned) if self.how[each] == "caching"]
        if blocks:
            block = self.random.choice(blocks)
            self.op("record_stream", block=block, stream=self.idle_stream())

    def begin_capture(self) -> None:
        stream = self.idle_stream()
        if stream is not None and not self.is_legacy(stream) and len(self.captures) < 2:
            self.captures[stream] = {stream}
            self.op("begin_capture", stream=stream)

    def end_capture(self) -> None:
        if self.captures:
            stream = self.random.choice(list(self.captures))
            del self.captures[stream]
            self.graphs.append(self.name("g"))
            self.op("end_capture", stream=stream, graph=self.graphs[-1])

    def instantiate(self) -> None:
        if self.graphs:
            of = self.random.choice(self.graphs)
            self.graphs.append(self.name("g"))
            self.op("instantiate", graph=self.graphs[-1], of=of)

    def graph_launch(self) -> None:
        if self.graphs:
            graph = self.random.choice(self.graphs)
            self.op("graph_launch", id=self.name("l"), graph=graph, stream=self.stream())

    def value(self) -> None:
        op = self.random.choice(("write_value", "wait_value"))
        self.op(op, stream=self.idle_stream(), address=self.random.choice(("x", "y")))
