"""Random programs reuse memory that other streams use as soon as they are done, and not before."""

from hypothesis import example, given
from hypothesis import strategies as st

import gpuviz
from tests.examples import examples

SIZE = 4 << 20
MS = 1e-3
LAST = 4


class Program:
    """Random work on arrays of one size, of the default stream, a blocking one and two others.

    The last stream has no arrays, because it is replaced by another one, whose handle is the same.
    """

    def __init__(self, gpu):
        self.gpu = gpu
        kinds = (False, True, True, True)
        self.streams = [gpu.null_stream, *(gpu.Stream(non_blocking=kind) for kind in kinds)]
        self.events = [gpu.Event(), gpu.Event()]
        self.arrays = {}  # live ones with their streams, by number
        self.addresses = []  # by number
        self.owners = []  # stream, by number
        self.used = {}  # events after uses on other streams, by number

    def allocate(self, stream, _):
        stream %= LAST
        freed = set(self.used) - set(self.arrays)
        unfinished = sum(not all(event.done for event in self.used[each]) for each in freed)
        self.gpu.work_on_host(10e-6)  # the latency of an event
        with self.streams[stream]:
            array = self.gpu.empty(SIZE)
        number = len(self.addresses)
        self.arrays[number] = array
        self.addresses.append(array.ptr)
        self.owners.append(stream)
        self.launch(stream, number, 1)
        active = self.gpu.memory_stats()["active.all.current"]
        assert len(self.arrays) <= active <= len(self.arrays) + unfinished

    def launch(self, stream, number, duration):
        with self.streams[stream]:
            array = self.arrays[number]
            self.gpu.launch(f"{number} {stream}", writes=[array], duration=duration * MS, share=0.1)
            if stream != self.owners[number]:
                self.used.setdefault(number, []).append(self.streams[stream].record())

    def use(self, stream, number):
        if self.arrays:
            self.launch(stream, [*self.arrays][number % len(self.arrays)], 1 + number)

    def free(self, _, number):
        if self.arrays:
            del self.arrays[[*self.arrays][number % len(self.arrays)]]

    def replace(self, _, number):
        if self.arrays:
            freed = [*self.arrays][number % len(self.arrays)]
            del self.arrays[freed]
            self.allocate(self.owners[freed], 0)

    def record(self, stream, number):
        self.events[number % 2].record(self.streams[stream])

    def wait(self, stream, number):
        self.streams[stream].wait_event(self.events[number % 2])

    def synchronize(self, stream, number):
        if number < 4:
            self.streams[stream].synchronize()
        elif number == 4:
            self.events[0].synchronize()
        else:
            self.gpu.synchronize()

    def rest(self, _, number):
        self.gpu.work_on_host((1 + number) * MS)

    def recreate(self, *_):
        self.streams[LAST] = None
        self.streams[LAST] = self.gpu.Stream(non_blocking=True)


ACTIONS = ["allocate", "use", "replace", "free", "record", "wait", "synchronize", "rest"]
ACTIONS += ["recreate"]
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, LAST), st.integers(0, 5)), max_size=60
)


# Later work of the default stream holds back events of blocking streams.
LATER_WORK = [("use", 1, 2), ("replace", 0, 0), ("replace", 0, 1), ("rest", 0, 4)]


@examples(400)
@example([*LATER_WORK, ("allocate", 0, 0)], False)
@given(STEPS, st.booleans())
def test_random_programs_reuse_memory_after_its_last_use_and_not_later(steps, poison):
    program = Program(gpuviz.SimulatedGPU(memory=1 << 34, real_time=False))
    options = {"device": program.gpu, "stacks": False, "poison": poison}
    with gpuviz.record(record_stream="auto", **options) as recorder:
        for stream in range(LAST):
            program.allocate(stream, 0)
        for action, stream, number in steps:
            getattr(program, action)(stream, number)

    tables = recorder.recording.tables
    strings = tables["strings"].to_pydict()
    names = dict(zip(strings["id"], strings["text"], strict=True))
    uses = [
        (*map(int, names[row["name"]].split()), row["time"], row["end"])
        for row in tables["activities"].to_pylist()
        if row["kind"] == "kernel"
    ]
    last_end = {}  # of the earlier arrays at an address
    for number, address in enumerate(program.addresses):
        own = program.owners[number]
        of_array = [(stream, start, end) for each, stream, start, end in uses if each == number]
        assert all(
            start >= last_end.get(address, 0) for stream, start, _ in of_array if stream == own
        )
        last_end[address] = max(last_end.get(address, 0), *(end for _, _, end in of_array))
