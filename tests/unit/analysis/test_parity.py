"""A recording's numbers equal those of the recorded allocator."""

import pytest
from hypothesis.stateful import invariant, rule

from gpuviz import _core
from tests.conformance.golden import Golden
from tests.conformance.test_recorded_programs import FILES
from tests.examples import examples
from tests.unit.allocator.test_random_programs import RandomPrograms
from tests.unit.recording.from_events import counted, live_segments, recorded, recorded_segments


@pytest.mark.parametrize("path", [path for _, path in FILES], ids=[name for name, _ in FILES])
def test_a_recorded_program_has_the_statistics_and_segments_of_its_allocator(path):
    golden = Golden.read(path)
    device = golden.device()
    allocator = _core.CachingAllocator(device, _core.AllocatorSettings.parse(golden.conf))
    if golden.fraction is not None:
        allocator.set_memory_fraction(golden.fraction)
    for handle, number in zip(golden.stream_handles, golden.stream_ids, strict=False):
        allocator.identify_stream(handle, number)
    log = _core.EventLog()
    allocator.attach(log)
    _core.Replayer(golden.program(), device, allocator).run()

    recording = recorded(log)

    assert counted(recording.memory_stats()) == counted(allocator.memory_stats())
    assert recorded_segments(recording.memory_snapshot()) == live_segments(
        allocator.memory_snapshot(),
    )


class RecordedPrograms(RandomPrograms):
    """Random programs of every kind, recorded from the start or from any time on."""

    def __init__(self) -> None:
        super().__init__()
        self.log = _core.EventLog()
        self.before = 0
        self.allocator.attach(self.log)

    @rule()
    def record_from_now_on(self) -> None:
        """Start a recording, which describes the current state by initial events."""
        self.log = _core.EventLog()
        self.allocator.describe_state(self.log, stacks_are_valid=True)
        self.before = len(self.log)
        self.allocator.attach(self.log)
        self.allocator.reset_peak_stats()
        self.allocator.reset_accumulated_stats()

    @invariant()
    def invariants_hold(self) -> None:
        """The recording agrees with the allocator."""
        if len(self.log) == 0:
            return
        recording = recorded(self.log, initial_events=self.before)
        assert counted(recording.memory_stats()) == counted(self.allocator.memory_stats())
        assert recorded_segments(recording.memory_snapshot()) == live_segments(
            self.allocator.memory_snapshot(),
        )

    def teardown(self) -> None:
        super().teardown()
        assert recorded(self.log, initial_events=self.before).memory_snapshot() == []


RecordedPrograms.TestCase.settings = examples(
    6,
    stateful_step_count=40,
)
TestRecordedPrograms = RecordedPrograms.TestCase
