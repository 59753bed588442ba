"""Random programs with pinned memory: what was recorded is what the allocator reported."""

import bisect

from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from tests.examples import examples

MIB = 1 << 20
SIZES = st.one_of(st.integers(1, 8192), st.integers(1, 4 * MIB), st.just(2 * MIB))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), SIZES),
        st.tuples(st.just("free"), st.integers(0, 99)),
        st.tuples(st.just("copy"), st.integers(0, 99)),
        st.tuples(st.just("synchronize"), st.integers(0, 99)),
        st.tuples(st.just("work"), st.integers(1, 200)),
        st.tuples(st.just("empty_cache"), st.just(0)),
    ),
    max_size=40,
)
SETTINGS = st.sampled_from(["", "pinned_max_round_threshold_mb:0", "pinned_max_cached_size_mb:1"])


class Program:
    """Runs steps, and notes what the allocator reports after each.

    Attributes:
        moments: Time, allocated, active and reserved bytes.
    """

    def __init__(self, settings):
        self.gpu = gpuviz.SimulatedGPU(1 << 30, settings=settings, real_time=False)
        self.streams = [self.gpu.Stream(non_blocking=True) for _ in range(2)]
        self.array = self.gpu.empty(MIB)
        self.live = []
        self.moments = []

    def run(self, steps):
        for name, argument in steps:
            getattr(self, name)(argument)
            self.note()

    def note(self):
        stats = self.gpu.host_memory_stats()
        allocated = sum(size for _, size in self.live)
        levels = (allocated, stats["active_bytes.current"], stats["allocated_bytes.current"])
        self.moments.append((self.gpu._native.now_ns, *levels))

    def allocate(self, nbytes):
        before = self.gpu.host_memory_stats()["active_bytes.allocated"]
        pinned = self.gpu.empty_pinned(nbytes)
        taken = self.gpu.host_memory_stats()["active_bytes.allocated"] - before
        self.live.append((pinned, taken))

    def free(self, choice):
        if self.live:
            self.live.pop(choice % len(self.live))

    def copy(self, choice):
        large = [pinned for pinned, _ in self.live if pinned.nbytes >= self.array.nbytes]
        with self.streams[choice % 2]:
            if large:
                self.gpu.copy_to_device(self.array, host=large[choice % len(large)])
            else:
                self.gpu.launch("spin", writes=[self.array], duration=50e-6)

    def synchronize(self, choice):
        self.streams[choice % 2].synchronize()

    def work(self, duration_us):
        self.gpu.work_on_host(duration_us * 1e-6)

    def empty_cache(self, _):
        self.work(1)  # the call takes no time, and follows the levels noted before
        self.gpu._host_allocator.empty_cache()


def levels_at(memory, times):
    """Return allocated, active and reserved bytes at times, from the recorded events."""
    rows = memory.memory_levels.to_pydict()
    found = []
    for time in times:
        row = bisect.bisect_right(rows["time"], time) - 1
        names = ("allocated", "active", "reserved")
        found.append(tuple(rows[name][row] if row >= 0 else 0 for name in names))
    return found


@examples(60)
@given(before=STEPS, steps=STEPS, settings=SETTINGS, cut=st.integers(0, 99))
def test_the_recorded_levels_are_those_that_the_allocator_reported(before, steps, settings, cut):
    program = Program(settings)
    program.run(before)
    program.moments.clear()
    with gpuviz.record(device=program.gpu) as recorder:
        program.note()
        program.run(steps)
    recording = recorder.recording

    times = [time - recording.manifest.start_monotonic_ns for time, *_ in program.moments]
    levels = [tuple(moment[1:]) for moment in program.moments]
    assert levels_at(recording.host_memory, times) == levels
    allocated = [0, *recording.host_memory.memory_levels["allocated"].to_pylist()]
    assert recording.host_memory.peak().bytes == max(allocated)

    first = cut % len(times)
    part = recording.window(times[first], times[-1] + 1).host_memory
    assert levels_at(part, times[first:]) == levels[first:]
