"""Hazards between the streams of two devices of a process."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.litmus import oracle, simulated
from tests.litmus.devices import on_devices
from tests.litmus.program import program
from tests.unit.hazards.two_streams import Program

STREAMS = {
    "a0": "non_blocking",
    "b0": "blocking",
    "legacy1": {"kind": "legacy", "device": 1},
    "a1": {"kind": "non_blocking", "device": 1},
    "b1": {"kind": "blocking", "device": 1},
}
ANY = ("a0", "b0", "a1", "b1", "legacy", "legacy1")
BLOCKS = {"A": 8, "B": {"bytes": 8, "device": 1}}


@st.composite
def programs(draw):
    """Draw a program whose kernels use the memory of both devices."""
    operations, recorded = [], set()
    for number in range(draw(st.integers(2, 14))):
        op = draw(
            st.sampled_from(("launch", "launch", "copy", "record", "wait", "wait", "synchronize"))
        )
        stream = draw(st.sampled_from(ANY))
        if op == "launch":
            lists = {draw(st.sampled_from(("reads", "writes"))): [draw(st.sampled_from("AB"))]}
            operations.append({"op": op, "id": f"k{number}", "stream": stream, **lists})
        elif op == "copy":
            source, destination = draw(st.sampled_from(("AB", "BA")))
            how = {"kind": "device_to_device", "source": source, "destination": destination}
            is_second = stream in ("a1", "b1", "legacy1")
            how["peer"] = 0 if is_second else 1
            operations.append({"op": op, "id": f"c{number}", "stream": stream, **how})
        elif op == "record":
            event = draw(st.sampled_from(("e", "f")))
            recorded.add(event)
            operations.append({"op": "event_record", "event": event, "stream": stream})
        elif op == "wait" and recorded:
            event = draw(st.sampled_from(sorted(recorded)))
            operations.append({"op": "stream_wait_event", "event": event, "stream": stream})
        elif op == "synchronize":
            kind = draw(st.sampled_from(("device", "stream", "event")))
            if kind == "event" and recorded:
                event = draw(st.sampled_from(sorted(recorded)))
                operations.append({"op": "event_synchronize", "event": event})
            elif kind == "device":
                device = draw(st.sampled_from((0, 1)))
                operations.append({"op": "device_synchronize", "device": device})
            else:
                operations.append({"op": "stream_synchronize", "stream": stream})
    return program({"name": "drawn", "streams": STREAMS, "blocks": BLOCKS, "ops": operations})


@given(programs())
def test_the_recording_of_two_devices_is_judged_as_the_oracle_judges_the_program(judged):
    stream_of = {
        each.id: each.stream for each in judged.operations if each.op in ("launch", "copy")
    }

    def groups(pairs):
        """Return what a hazard stands for: all pairs of one kind, pair of lines and of streams."""
        return {(kind, *((each[0], stream_of[each]) for each in pair)) for kind, *pair in pairs}

    required, possible = (
        groups((each.kind, each.first, each.second) for each in part)
        for part in oracle.judge(judged)
    )

    found = groups(simulated.judge(judged))
    assert required <= found <= required | possible


class TwoDevices(Program):
    """A simulated GPU whose streams are told as those of two devices.

    Each device has a non-blocking stream, a blocking one and the default stream.
    """

    def __init__(self):
        super().__init__()
        stream = self.gpu.Stream
        self.first = SimpleNamespace(
            own=self.s, blocking=stream(), default=self.gpu.null_stream, memory=None
        )
        self.second = SimpleNamespace(own=self.t, blocking=stream(), default=stream(), memory=None)
        self.synchronized = []
        for each in (self.first, self.second):
            each.memory = self.empty(each.own)

    def copy(self, stream):
        """Copy from the first device to the second."""
        with stream:
            self.gpu.copy(self.first.memory, self.second.memory)

    def write(self, stream):
        self.launch(stream, "write", writes=[self.first.memory])

    def read(self, stream):
        self.launch(stream, "read", reads=[self.second.memory])

    def synchronize(self, device):
        self.synchronized.append((self.first, self.second).index(device))
        self.gpu.synchronize()

    def hazards(self):
        streams = (self.second.own, self.second.blocking, self.second.default)
        recording = on_devices(
            self.recording(),
            {each.ptr: 1 for each in streams},
            legacy=[self.second.default.ptr],
            synchronized=[*self.synchronized, 0],
        )
        return recording.hazards()

    def pairs(self):
        return [(each.kind, each.first.name, each.second.name) for each in self.hazards()]


@pytest.fixture
def two():
    return TwoDevices()


PEER = "memcpy"
BEFORE, BEHIND = ("RAW", "write", PEER), ("RAW", PEER, "read")


def test_a_copy_between_devices_that_waits_for_nothing_is_a_hazard_on_both_sides(two):
    two.write(two.first.own)
    two.copy(two.second.own)
    two.read(two.second.blocking)

    hazards = two.hazards()

    assert [(each.kind, each.first.name, each.second.name) for each in hazards] == [BEFORE, BEHIND]
    assert [each.device for each in hazards] == [0, 1]
    assert [(each.first.device, each.second.device) for each in hazards] == [(0, 1), (1, 1)]


@pytest.mark.parametrize(
    "between",
    [
        lambda two: two.second.own.wait_event(two.first.own.record()),
        lambda two: two.first.own.record().synchronize(),
        lambda two: two.first.own.synchronize(),
        lambda two: two.synchronize(two.first),
    ],
)
def test_what_orders_the_devices_makes_it_none(two, between):
    two.write(two.first.own)
    between(two)
    two.copy(two.second.own)
    two.read(two.second.own)

    assert two.pairs() == []


@pytest.mark.parametrize(
    "between",
    [
        lambda two: two.second.own.wait_event(two.first.blocking.record()),
        lambda two: two.second.own.synchronize(),
        lambda two: two.synchronize(two.second),
        lambda two: two.launch(two.first.default),
        lambda two: two.launch(two.second.default),
    ],
)
def test_what_does_not_order_them_leaves_it(two, between):
    two.write(two.first.own)
    between(two)
    two.copy(two.second.own)

    assert two.pairs() == [BEFORE]


def test_the_default_stream_of_a_device_does_not_order_the_streams_of_another(two):
    two.write(two.first.blocking)
    two.launch(two.second.default)
    two.copy(two.second.blocking)

    assert two.pairs() == [BEFORE]


@pytest.mark.parametrize("device", ["first", "second"])
@pytest.mark.parametrize(
    ("kind", "is_ordered"), [("blocking", True), ("default", True), ("own", False)]
)
def test_a_copy_in_a_default_stream_is_in_those_of_both_devices(two, device, kind, is_ordered):
    two.write(getattr(two.first, kind))
    two.copy(getattr(two, device).default)
    two.read(getattr(two.second, kind))

    assert two.pairs() == ([] if is_ordered else [BEFORE, BEHIND])


def test_a_copy_in_a_blocking_stream_waits_for_its_own_device_only(two):
    two.launch(two.first.default, "write", writes=[two.first.memory])
    two.copy(two.second.blocking)
    two.launch(two.second.default, "read", reads=[two.second.memory])

    assert two.pairs() == [BEFORE]


def test_memory_freed_while_another_device_may_copy_from_it_is_a_hazard(two):
    two.copy(two.second.own)
    two.first.memory = None

    (hazard,) = two.hazards()
    assert (hazard.kind, hazard.tier, hazard.device) == ("use_after_free", "latent", 0)


def test_the_fix_names_the_gpus_and_where_the_event_is_recorded(two):
    two.write(two.first.own)
    two.copy(two.second.own)
    two.read(two.second.blocking)

    between, within = (hazard.fix for hazard in two.hazards())
    assert "of GPU 0 after" in between
    assert between.endswith("Record the event while GPU 0 is the current device.")
    assert "of GPU 1 after" in within
    assert "current device" not in within


def test_default_streams_of_two_devices_are_not_taken_for_one(two):
    array = two.empty(two.first.default)
    two.launch(two.second.default, "use", reads=[array])
    del array

    (hazard,) = two.hazards()
    assert hazard.first.where == "the default stream of GPU 1"
    assert "the default stream of GPU 0, wait for the default stream of GPU 1" in hazard.fix
    assert "record_stream" not in hazard.fix
