"""Memory that other streams use is not reused before they are done."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import gpuviz
from gpuviz.analysis.delayed_frees import delayed_frees_text
from gpuviz.analysis.writes_after_free import writes_after_free_text
from gpuviz.data.manifest import FORMAT, VERSION, Manifest
from gpuviz.errors import RecorderError
from gpuviz.recorder.tracer import NoTracer
from tests.examples import examples

SIZE = 4 << 20
MS = 1e-3
LAST = 4


@pytest.fixture
def gpu():
    return gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)


def cross_stream_free(gpu, between=None):
    """Free an array that another stream still uses; return the addresses before and after."""
    own, other = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    with own:
        array = gpu.empty(SIZE)
    first = array.ptr
    with other:
        gpu.launch("read", reads=[array], duration=1 * MS)
    if between is not None:
        between(own, other)
    del array
    with own:
        again = gpu.empty(SIZE)
    return first, again.ptr


def test_memory_is_not_reused_while_another_stream_uses_it(gpu):
    with gpuviz.record(device=gpu, record_stream="auto"):
        first, again = cross_stream_free(gpu)

    assert again != first


def test_memory_is_reused_at_once_by_default(gpu):
    with gpuviz.record(device=gpu):
        first, again = cross_stream_free(gpu)

    assert again == first


def test_a_wait_of_the_host_makes_memory_reusable(gpu):
    with gpuviz.record(device=gpu, record_stream="auto") as recorder:
        first, again = cross_stream_free(gpu, lambda _, other: other.synchronize())

    assert again == first
    assert recorder.recording.delayed_frees().num_rows == 0


def test_memory_waits_for_nothing_once_its_stream_has_waited(gpu):
    def wait(own, other):
        own.wait_event(other.record())

    with gpuviz.record(device=gpu, record_stream="auto") as recorder:
        first, again = cross_stream_free(gpu, wait)

    assert again == first
    assert recorder.recording.delayed_frees().num_rows == 0


def test_later_work_does_not_delay_the_reuse(gpu):
    own, other = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    with gpuviz.record(device=gpu, record_stream="auto"):
        with own:
            array = gpu.empty(SIZE)
        first = array.ptr
        with other:
            gpu.launch("read", reads=[array], duration=1 * MS)
            gpu.launch("unrelated", duration=1)
        del array
        gpu.work_on_host(2 * MS)
        with own:
            again = gpu.empty(SIZE)

        assert not other.done
    assert again.ptr == first


def test_a_report_counts_what_would_have_been_delayed(gpu):
    with gpuviz.record(device=gpu, record_stream="report") as recorder:
        first, again = cross_stream_free(gpu)
        gpu.work_on_host(2 * MS)
        gpu.empty(SIZE)

    (row,) = recorder.recording.delayed_frees().to_pylist()
    assert again == first
    assert (row["frees"], row["bytes"]) == (1, SIZE)
    assert row["byte_seconds"] >= SIZE * MS
    assert all("cross_stream_free" in row[key] for key in ("allocated_at", "used_at", "freed_at"))


def test_the_lines_are_printed(gpu):
    with gpuviz.record(device=gpu, record_stream="auto") as recorder:
        cross_stream_free(gpu)
        gpu.work_on_host(2 * MS)
        _ = gpu.empty(SIZE)

    text = delayed_frees_text(recorder.recording)

    first, second = text.splitlines()
    assert first.startswith('record_stream="auto" delayed 1 free, and held 0.0')
    assert second.startswith("  1 free of 4.00 MiB in all")
    assert second.count("cross_stream_free") == 3


def test_nothing_is_printed_by_default(gpu):
    with gpuviz.record(device=gpu) as recorder:
        cross_stream_free(gpu)

    assert delayed_frees_text(recorder.recording) == ""


def test_a_saved_recording_has_the_counts(gpu, tmp_path):
    path = tmp_path / "run.gpuviz"
    with gpuviz.record(path, device=gpu, record_stream="auto") as recorder:
        cross_stream_free(gpu)

    loaded = gpuviz.load(path)

    assert loaded.delayed_frees().equals(recorder.recording.delayed_frees())
    assert loaded.delayed_frees().num_rows == 1


@pytest.mark.parametrize("rows", [{"x": []}, {"0": {}}, {"0": [{"frees": 1}]}, {"0": [3]}])
def test_a_manifest_with_other_counts_is_rejected(rows):
    text = json.dumps({"format": FORMAT, "version": VERSION, "delayed_frees": rows})

    with pytest.raises(ValueError, match="delayed_frees"):
        Manifest.from_json(text)


def test_implicit_order_with_the_default_stream_delays_nothing(gpu):
    blocking = gpu.Stream()
    with gpuviz.record(device=gpu, record_stream="auto") as recorder:
        array = gpu.empty(SIZE)
        first = array.ptr
        with blocking:
            gpu.launch("read", reads=[array], duration=1 * MS)
        del array
        again = gpu.empty(SIZE)

    assert again.ptr == first
    assert recorder.recording.delayed_frees().num_rows == 0


def test_without_visible_launches_it_does_not_start(gpu):
    gpu.tracer = lambda _: NoTracer()
    recorder = gpuviz.record(device=gpu, record_stream="auto")

    with pytest.raises(RecorderError, match="'auto' cannot work, because launches are not visible"):
        recorder.start()


@pytest.mark.parametrize("missing", ["streams", "launch_sites", "launch_blocks"])
def test_options_that_it_needs_cannot_be_off(gpu, missing):
    with pytest.raises(ValueError, match=f"needs {missing}=True"):
        gpuviz.record(device=gpu, record_stream="auto", **{missing: False})


def test_an_unknown_value_is_rejected(gpu):
    with pytest.raises(ValueError, match="record_stream must be"):
        gpuviz.record(device=gpu, record_stream="always")


def test_the_recording_has_the_calls_that_the_program_lacked(gpu):
    with gpuviz.record(device=gpu, record_stream="auto") as recorder:
        cross_stream_free(gpu)
        gpu.synchronize()
        _ = gpu.empty(512)

    events = recorder.recording.tables["memory_events"].to_pylist()
    actions = [event["action"] for event in events]
    assert actions[:5] == [
        "segment_alloc",
        "alloc",
        "record_stream",
        "free_requested",
        "alloc",
    ]
    completed = actions.index("free_completed")
    assert [event["address"] for event in events[2:4]] == [events[1]["address"]] * 2
    assert completed > 4


def test_memory_used_before_the_end_of_the_recording_stays_protected(gpu):
    own, other = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    recorder = gpuviz.record(device=gpu, record_stream="auto")
    recorder.start()
    with own:
        array = gpu.empty(SIZE)
    first = array.ptr
    with other:
        gpu.launch("read", reads=[array], duration=1 * MS)
    recorder.stop()
    del array

    with own:
        again = gpu.empty(SIZE)

    assert again.ptr == first  # the recording waited for the work
    assert gpu.memory_stats()["active.all.current"] == 1


@pytest.mark.parametrize("option", [{"poison": True}, {"quarantine": 1 << 30}])
def test_debugging_options_end_with_the_recording(gpu, option):
    with gpuviz.record(device=gpu, **option) as recorder:
        stream = gpu.Stream(non_blocking=True)
        with stream:
            array = gpu.empty(SIZE)
            gpu.launch("use", writes=[array], duration=1 * MS)
        first = array.ptr
        del array
        with stream:
            second = gpu.empty(SIZE)

    kinds = recorder.recording.tables["activities"]["kind"].to_pylist()
    assert (second.ptr == first) == ("poison" in option)
    assert kinds.count("memset") == ("poison" in option)
    assert recorder.recording.writes_after_free().num_rows == 0
    assert recorder.recording.manifest.notes == ()
    del second
    with stream:
        again = gpu.empty(SIZE)
    assert again.ptr == first


def test_a_write_after_the_free_is_in_the_recording(gpu):
    with gpuviz.record(device=gpu, poison=True) as recorder:
        array = gpu.empty(SIZE)
        first = array.ptr
        del array
        gpu._allocator.device.write(first + 4096, SIZE // 2, 3)
        array = gpu.empty(SIZE)

    (row,) = recorder.recording.writes_after_free().to_pylist()
    assert row["address"] == array.ptr
    assert row["bytes"] == SIZE
    assert row["stream"] == "default stream"
    assert 4096 <= row["offset"] < 3 * 4096
    assert "test_a_write_after_the_free" in row["freed_at"]
    (note,) = recorder.recording.manifest.notes
    assert note == "1 freed block was written to; see recording.writes_after_free()."
    assert "1 freed block was written to" in writes_after_free_text(recorder.recording)


def test_a_destroyed_stream_still_protects(gpu):
    own, other = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    with gpuviz.record(device=gpu, record_stream="auto"):
        with own:
            array = gpu.empty(SIZE)
        first = array.ptr
        with other:
            gpu.launch("read", reads=[array], duration=1 * MS)
        del other
        del array
        with own:
            again = gpu.empty(SIZE)

    assert again.ptr != first


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
