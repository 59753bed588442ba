"""Cost of recording: a push, the collector, a call stack, and the memory of an event."""

import time

from gpuviz import _core, _testing

EVENTS = 1_000_000
RUNS = 7

NO_BOUND = "no bound"

Row = tuple[str, str, str, bool]


def push_ns() -> float:
    """Return the ns to push an event, including its time and thread id, if the ring is not full."""
    sessions = [_core.Session(ring_capacity=1 << 16) for _ in range(RUNS)]
    return min(_testing.push_many(session.sink(0), 1 << 16) for session in sessions)


def drained_per_second() -> float:
    """Return the events per second drained from a full ring of a million, including threads."""

    def once() -> float:
        session = _core.Session(ring_capacity=1 << 20)
        _testing.push_many(session.sink(0), 1 << 20)
        begin = time.perf_counter()
        session.start()
        session.stop()
        return session.events / (time.perf_counter() - begin)

    return max(once() for _ in range(RUNS))


def capture_ns(depth: int) -> float:
    """Return the ns to capture a known stack of ``depth`` frames."""
    session = _core.Session()

    def nested(frames: int) -> float:
        if frames > 1:
            return nested(frames - 1)
        return min(_testing.capture_ns(session, 200_000) for _ in range(RUNS))

    return nested(depth - called_depth())


def called_depth() -> int:
    """Return the number of frames around the caller."""
    session = _core.Session(stack_depth=256)
    _testing.capture_stack(session)
    return len(session.new_stacks(1)[0]) - 1


def bytes_per_event() -> float:
    """Return the bytes per event in a session of a million events."""
    session = _core.Session()
    session.start()
    _testing.push_many(session.sink(0), EVENTS, pause_every=5000)
    session.stop()
    return session.bytes / session.events


def rows() -> list[Row]:
    push, drained, size = push_ns(), drained_per_second(), bytes_per_event()
    lines = [
        ("push of an event", NO_BOUND, f"{push:.0f} ns", True),
        ("events drained", NO_BOUND, f"{drained / 1e6:.0f} M/s", True),
        ("memory while recording 1 million events", "64 B/event", f"{size:.1f} B", size <= 64),
    ]
    for depth in (5, 30, 60):
        what = f"call stack, {depth} frames, seen before"
        lines.append((what, NO_BOUND, f"{capture_ns(depth):.0f} ns", True))
    return lines
