"""Perfetto messages that occur once per file: clock, tracks, interned texts.

Field numbers are those of protos/perfetto/trace in Perfetto 0.59.
"""

from collections.abc import Iterator, Mapping, Sequence

from gpuviz.exports.trace_memory import LEVELS
from gpuviz.exports.trace_rows import Track

SEQUENCE = 1
_CLOCK = 64  # the first id of clocks that are local to a sequence
_REALTIME = 1
_TRACE_FILE = 11
_INCREMENTAL_STATE_CLEARED = 1
_NEEDS_INCREMENTAL_STATE = 2
_EXPLICIT_ORDER = 3
_SIZE_BYTES = 3
_TEXTS_IN_A_PACKET = 1000

Value = int | bytes | str


def message(*fields: tuple[int, Value]) -> bytes:
    """Encode a message from fields by number; texts and messages are bytes or str."""
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: Value) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    content = bytearray()
    value &= 2**64 - 1
    while value >= 0x80:  # noqa: PLR2004 - seven bits per byte
        content.append(value & 0x7F | 0x80)
        value >>= 7
    content.append(value)
    return bytes(content)


def packet(*fields: tuple[int, Value], flags: int = _NEEDS_INCREMENTAL_STATE) -> bytes:
    """Encode a TracePacket."""
    return message((1, message(*fields, (10, SEQUENCE), (13, flags))))


def clock_packet(unix_ns: int) -> bytes:
    """Return the first packet, which defines the clock of all others.

    Args:
        unix_ns: Time 0 of that clock, in ns since 1970; at most 0 if unknown.
    """
    times = {_CLOCK: 0, _TRACE_FILE: 0} | ({_REALTIME: unix_ns} if unix_ns > 0 else {})
    clocks = [(1, message((1, clock), (2, time))) for clock, time in times.items()]
    return packet(
        (6, message(*clocks, (2, _TRACE_FILE))),
        (59, message((58, _CLOCK))),
        (87, 1),
        flags=_INCREMENTAL_STATE_CLEARED,
    )


def track_packets(tracks: Mapping[int, Track], description: str) -> Iterator[bytes]:
    """Yield a packet for each track; a track's uuid is its position + 1.

    Args:
        tracks: Tracks by their positions, parents first.
        description: Shown with each process.
    """
    for position, track in tracks.items():
        fields: list[tuple[int, Value]] = [(1, position + 1)]
        if track.kind == "process":
            fields += [(3, message((1, track.process), (6, track.name)))]
            fields += [(11, _EXPLICIT_ORDER), (14, description)]
        elif track.kind == "thread" and track.thread:
            thread = message((1, track.process), (2, track.thread), (5, track.name))
            fields += [(4, thread), (11, _EXPLICIT_ORDER)]
        else:
            fields += [(2, track.name), (5, track.parent + 1), (12, position)]
        if track.kind == "counter":
            scale: list[tuple[int, Value]] = [(7, "levels")] if track.name in LEVELS else []
            fields += [(8, message((3, _SIZE_BYTES), *scale))]
        yield packet((60, message(*fields)))


def text_packets(
    names: Sequence[str],
    argument_names: Sequence[str],
    argument_texts: Sequence[str],
) -> Iterator[bytes]:
    """Yield packets that intern texts; a text's iid is its position + 1."""
    for field, texts in ((1, names), (2, names), (3, argument_names), (29, argument_texts)):
        for first in range(0, len(texts), _TEXTS_IN_A_PACKET):
            some = enumerate(texts[first : first + _TEXTS_IN_A_PACKET], first + 1)
            interned = [(field, message((1, iid), (2, text))) for iid, text in some]
            yield packet((12, message(*interned)))
