"""Fields of each operation of a litmus program, and checks of their values."""

from collections.abc import Callable, Mapping
from typing import Any

Json = Any
Fields = dict[str, Json]

STREAM_KINDS = ("blocking", "non_blocking", "per_thread", "legacy")
COPY_KINDS = ("host_to_device", "device_to_host", "device_to_device", "host_to_host")
MODES = {"reads": "read", "writes": "write", "atomics": "atomic", "unknown": "unknown"}


def expect(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)


def no_others(value: Mapping[str, Json], known: set[str]) -> None:
    unknown = sorted(set(value) - known)
    if unknown:
        raise ValueError(f"unknown field {unknown[0]!r}")


def _text(value: Json, name: str) -> None:
    expect(isinstance(value, str), f"{name} is not a name: {value!r}")


def _flag(value: Json, name: str) -> None:
    expect(isinstance(value, bool), f"{name} is neither true nor false: {value!r}")


def natural(value: Json, name: str, limit: int = 1 << 40) -> None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    expect(is_number and 0 <= value < limit, f"{name} is no natural number: {value!r}")


def positive(value: Json, name: str) -> None:
    natural(value, name)
    if value == 0:
        raise ValueError(f"{name} is 0")


def _number(value: Json, name: str) -> None:
    expect(
        isinstance(value, int) and not isinstance(value, bool), f"{name} is not a number: {value!r}"
    )


def one_of(values: tuple[str, ...]) -> Callable[[Json, str], None]:
    def check(value: Json, name: str) -> None:
        if value not in values:
            raise ValueError(f"unknown {name} {value!r}, expected {', '.join(values)}")

    return check


def _place(value: Json, name: str) -> None:
    if isinstance(value, str):
        return
    is_range = isinstance(value, list) and len(value) == 3 and isinstance(value[0], str)
    if not is_range:
        raise ValueError(f"{name} is neither a block nor a range: {value!r}")
    natural(value[1], f"start of {name}")
    if value[2] is not None:
        natural(value[2], f"stop of {name}")
        if value[2] < value[1]:
            raise ValueError(f"{name} stops before it starts: {value!r}")


def access_list(value: Json, name: str) -> None:
    expect(isinstance(value, list), f"{name} is not a list: {value!r}")
    for each in value:
        _place(each, name)


_ID = {"id": (_text, True)}
_STREAM = {"stream": (_text, True)}
_EVENT = {"event": (_text, True)}
_BLOCK = {"block": (_text, True)}
_LISTS = dict.fromkeys(MODES, (access_list, False))
_HOW = {"stream": (_text, False), "sync": (_flag, False)}
_MEMORY = {"memory": (one_of(("device", "pinned")), False)}
_DEVICE = {"device": (natural, False)}
_COMPLETE = {"complete": (_flag, True)}
_NEW = {**_BLOCK, "bytes": (positive, True)}
_REUSE = {"reuses": (_text, False), "offset": (natural, False)}
FIELDS: dict[str, dict[str, tuple[Callable[[Json, str], None], bool]]] = {
    "launch": {**_ID, **_STREAM, **_LISTS, "programmatic": (_flag, False)},
    "copy": {
        **_ID,
        **_HOW,
        "kind": (one_of(COPY_KINDS), True),
        "source": (_place, True),
        "destination": (_place, True),
        # Of a copy between devices: the one that is not its stream's.
        "peer": (natural, False),
    },
    "memset": {**_ID, **_HOW, "destination": (_place, True)},
    "host_access": {**_ID, **_LISTS},
    "event_record": {**_EVENT, **_STREAM},
    "stream_wait_event": {**_EVENT, **_STREAM},
    "event_synchronize": _EVENT,
    "event_destroy": _EVENT,
    "stream_synchronize": _STREAM,
    "device_synchronize": _DEVICE,
    "event_query": {**_EVENT, **_COMPLETE},
    "stream_query": {**_STREAM, **_COMPLETE},
    "stream_create": {
        **_STREAM,
        "kind": (one_of(STREAM_KINDS), True),
        "priority": (_number, False),
        "handle_of": (_text, False),
        **_DEVICE,
    },
    "stream_destroy": _STREAM,
    "malloc": {
        **_ID,
        **_NEW,
        **_REUSE,
        **_MEMORY,
        "stream": (_text, False),
        "pool": (_text, False),
    },
    "free": {**_ID, **_BLOCK},
    "record_stream": {**_BLOCK, **_STREAM},
    "malloc_async": {**_ID, **_NEW, **_REUSE, **_STREAM},
    "free_async": {**_ID, **_BLOCK, **_STREAM},
    "cuda_malloc": {**_NEW, **_REUSE, **_MEMORY},
    "cuda_free": _BLOCK,
    "begin_capture": _STREAM,
    "end_capture": {**_STREAM, "graph": (_text, True)},
    "instantiate": {"graph": (_text, True), "of": (_text, True)},
    "graph_launch": {**_ID, **_STREAM, "graph": (_text, True)},
    "write_value": {**_STREAM, "address": (_text, True)},
    "wait_value": {**_STREAM, "address": (_text, True)},
}
