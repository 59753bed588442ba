"""Reader of litmus programs."""

import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.litmus.fields import (
    FIELDS,
    MODES,
    STREAM_KINDS,
    Fields,
    Json,
    access_list,
    expect,
    natural,
    no_others,
    one_of,
    positive,
)

Bytes = tuple[tuple[int, int], ...]

KINDS = ("RAW", "WAR", "WAW", "reuse", "use_after_free", "use_before_alloc")
TIERS = ("certain", "probable", "latent")
OPTIONS = ("cuda_free_synchronizes", "pageable_download_blocks", "strict_threads")


@dataclass(frozen=True)
class Place:
    """Bytes of a block; `stop` is None if the extent is unknown."""

    block: str
    start: int
    stop: int | None


@dataclass(frozen=True)
class Hazard:
    """A pair of operations that a detector must or may report."""

    kind: str
    first: str
    second: str
    block: str
    tier: str
    bytes: Bytes

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What must be the same in a report."""
        return self.kind, self.first, self.second, self.block, self.tier

    def __str__(self) -> str:
        spans = ", ".join(f"{start}-{stop}" for start, stop in self.bytes)
        return f"{self.kind} {self.first} -> {self.second} in {self.block} {self.tier} [{spans}]"


@dataclass(frozen=True)
class Operation:
    """One operation, with the fields that the format gives it; absent ones are None."""

    op: str
    fields: Mapping[str, Json]

    def __getattr__(self, name: str) -> Json:
        if name in FIELDS[self.op]:
            return self.fields.get(name)
        raise AttributeError(f"{self.op} has no field {name!r}")

    @property
    def thread(self) -> int:
        """The host thread."""
        return int(self.fields.get("thread", 0))

    def accesses(self) -> Iterator[tuple[str, Place]]:
        """Yield mode and place of each access of the access lists."""
        yield from accesses_of(self.fields)


@dataclass(frozen=True)
class Program:
    """A litmus program and its verdict."""

    name: str
    operations: tuple[Operation, ...]
    streams: Mapping[str, str] = field(default_factory=dict)
    devices: Mapping[str, int] = field(default_factory=dict)
    """The device of each stream; 0 if it is not named. Each other device has a legacy stream."""
    blocks: Mapping[str, tuple[int, bool]] = field(default_factory=dict)
    """Bytes, and whether the memory is pinned."""
    block_devices: Mapping[str, int] = field(default_factory=dict)
    graphs: Mapping[str, Fields] = field(default_factory=dict)
    options: Mapping[str, bool] = field(default_factory=dict)
    hazards: tuple[Hazard, ...] = ()
    also: tuple[Hazard, ...] = ()


def accesses_of(lists: Mapping[str, Json]) -> Iterator[tuple[str, Place]]:
    """Yield mode and place of each access of the access lists."""
    for name, mode in MODES.items():
        for entry in lists.get(name) or ():
            yield mode, place_of(entry)


def place_of(entry: Json) -> Place:
    """Return the place that an entry names; `stop` of a whole block is -1."""
    if isinstance(entry, str):
        return Place(entry, 0, -1)
    block, start, stop = entry
    return Place(block, start, stop)


def read(path: Path) -> list[Program]:
    """Return the programs of a file.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not such a file; the text names the file, the program and the part.
    """
    content = path.read_bytes()
    try:
        if path.suffix == ".xz":
            content = lzma.decompress(content)
        found = json.loads(content)
        return programs(found)
    except (lzma.LZMAError, UnicodeDecodeError, json.JSONDecodeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None
    except RecursionError:
        raise ValueError(f"{path}: the values are nested too deeply") from None


def programs(document: Json) -> list[Program]:
    """Return the programs of a document.

    Raises:
        ValueError: It is malformed; the text names the program and the part.
    """
    is_known = isinstance(document, dict) and document.get("format") == 1
    expect(is_known, "expected an object with format 1")
    listed = document.get("programs")
    expect(isinstance(listed, list), "programs is not a list")
    return [program(each, place) for place, each in enumerate(listed)]


def program(value: Json, place: int = 0) -> Program:
    """Return the program that a value of a document describes.

    Raises:
        ValueError: It is malformed.
    """
    is_named = isinstance(value, dict) and isinstance(value.get("name"), str)
    expect(is_named, f"program {place} is not an object with a name")
    name = value["name"]
    try:
        return _program(name, value)
    except ValueError as error:
        raise ValueError(f"program {name}: {error}") from None


def _program(name: str, value: Fields) -> Program:
    no_others(
        value,
        {"name", "why", "origin", "options", "streams", "blocks", "graphs", "ops"}
        | {"hazards", "also"},
    )
    options = _mapping(value, "options")
    for option, setting in options.items():
        if option not in OPTIONS or not isinstance(setting, bool):
            raise ValueError(f"unknown option {option!r}: {setting!r}")
    return Program(
        name,
        tuple(_operation(each, place) for place, each in enumerate(_list(value, "ops"))),
        {each: _stream_kind(kind) for each, kind in _mapping(value, "streams").items()},
        {each: _stream_device(kind) for each, kind in _mapping(value, "streams").items()},
        {each: _block(each, size) for each, size in _mapping(value, "blocks").items()},
        {each: _block_device(size) for each, size in _mapping(value, "blocks").items()},
        {each: _graph(each, lists) for each, lists in _mapping(value, "graphs").items()},
        options,
        tuple(_hazard(each) for each in _list(value, "hazards")),
        tuple(_hazard(each) for each in _list(value, "also")),
    )


def _operation(value: Json, place: int) -> Operation:
    op = value.get("op") if isinstance(value, dict) else value
    expect(isinstance(op, str) and op in FIELDS, f"operation {place} is unknown: {op!r}")
    known = FIELDS[value["op"]]
    try:
        no_others(value, {"op", "thread", *known})
        natural(value.get("thread", 0), "thread", 1 << 31)
        for name, (check, is_required) in known.items():
            is_there = value.get(name) is not None
            expect(is_there or not is_required, f"{name} is missing")
            if is_there:
                check(value[name], name)
    except ValueError as error:
        raise ValueError(f"operation {place}, {value['op']}: {error}") from None
    fields = {name: each for name, each in value.items() if name != "op" and each is not None}
    operation = Operation(value["op"], fields)
    if operation.op in ("copy", "memset") and bool(fields.get("sync")) == ("stream" in fields):
        raise ValueError(f"operation {place}, {operation.op}: needs either stream or sync: true")
    return operation


def _mapping(value: Fields, name: str) -> Fields:
    found = value.get(name)
    if found is not None and not isinstance(found, dict):
        raise ValueError(f"{name} is not an object")
    return found or {}


def _list(value: Fields, name: str) -> list[Json]:
    found = value.get(name)
    if found is not None and not isinstance(found, list):
        raise ValueError(f"{name} is not a list")
    return found or []


def _stream_kind(value: Json) -> str:
    kind = value.get("kind") if isinstance(value, dict) else value
    one_of(STREAM_KINDS)(kind, "kind of stream")
    return str(kind)


def _stream_device(value: Json) -> int:
    device = value.get("device", 0) if isinstance(value, dict) else 0
    natural(device, "device", 8)
    is_second_legacy = isinstance(value, dict) and value.get("kind") == "legacy" and not device
    expect(not is_second_legacy, "device 0 has the stream legacy")
    return int(device)


def _block(name: str, value: Json) -> tuple[int, bool]:
    memory = value.get("memory", "device") if isinstance(value, dict) else "device"
    size = value.get("bytes") if isinstance(value, dict) else value
    one_of(("device", "pinned"))(memory, "memory")
    positive(size, f"size of block {name!r}")
    return size, memory == "pinned"


def _block_device(value: Json) -> int:
    device = value.get("device", 0) if isinstance(value, dict) else 0
    natural(device, "device", 8)
    return int(device)


def _graph(name: str, value: Json) -> Fields:
    if not isinstance(value, dict) or set(value) - set(MODES):
        raise ValueError(f"graph {name!r} is not an object of access lists")
    for each, entries in value.items():
        access_list(entries, each)
    return value


def _hazard(value: Json) -> Hazard:
    expect(isinstance(value, dict), f"a hazard is not an object: {value!r}")
    no_others(value, {"kind", "first", "second", "block", "other_block", "tier", "bytes"})
    texts = [value.get(name) for name in ("kind", "first", "second", "block", "tier")]
    spans = value.get("bytes")
    if not all(isinstance(each, str) for each in texts) or not isinstance(spans, list):
        raise ValueError(f"a hazard is incomplete: {value!r}")
    one_of(KINDS)(texts[0], "kind of hazard")
    one_of(TIERS)(texts[4], "tier")
    for span in spans:
        is_pair = isinstance(span, list) and len(span) == 2
        if not is_pair or not all(isinstance(each, int) for each in span):
            raise ValueError(f"bytes of a hazard are no pairs: {span!r}")
    kind, first, second, block, tier = map(str, texts)
    return Hazard(kind, first, second, block, tier, tuple((start, stop) for start, stop in spans))
