"""Programs that run out of memory, and the same programs with what would have helped them."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

import gpuviz
from gpuviz.out_of_memory.remedies import remedies
from gpuviz.out_of_memory.trials import OWN_SEGMENT, Trials

MIB = 1 << 20
SETTINGS = (
    "",
    "",
    "expandable_segments:True",
    "roundup_power2_divisions:1",
    "roundup_power2_divisions:4",
    "max_split_size_mb:64",
    "garbage_collection_threshold:0.6",
)
CHECKED = "would have succeeded"


@dataclass(frozen=True)
class Program:
    """Requests, uses and frees of arrays by number, until a request fails.

    What can be changed is the settings, the limit, and what is done at one operation: on another
    stream, of another size, after something else.
    """

    memory: int
    settings: str
    limit: float | None
    operations: tuple[tuple[str, int, int, int], ...]
    at: int = -1
    stream: int | None = None
    size: int | None = None
    before: Callable[[gpuviz.SimulatedGPU, dict], object] | None = None

    def fails_at(self):
        """Return the operation that fails; None if the one to change succeeds, or all do."""
        return self._run(*self._made(), {})

    def recorded(self):
        """Return the same, the recording, live arrays by address, and the streams' handles."""
        (gpu, streams), arrays = self._made(), {}
        with gpuviz.record(device=gpu) as recorder:
            failed = self._run(gpu, streams, arrays)
            numbers = {array.ptr: number for number, array in arrays.items()}
        return failed, recorder.recording, numbers, [stream.ptr for stream in streams]

    def _made(self):
        gpu = gpuviz.SimulatedGPU(memory=self.memory, settings=self.settings, real_time=False)
        if self.limit is not None:
            gpu._allocator.set_memory_fraction(self.limit)
        return gpu, [gpu.null_stream, gpu.Stream(), gpu.Stream()]

    def _run(self, gpu, streams, arrays):
        for place, (action, number, size, stream) in enumerate(self.operations):
            if place == self.at and self.before is not None:
                self.before(gpu, arrays)
            if action == "free":
                arrays.pop(number, None)
            elif action == "use":
                if number in arrays:
                    gpu.launch("use", duration=1e-5, reads=[arrays[number]])
            elif action == "share":
                if number in arrays:
                    with streams[stream]:
                        gpu.launch("share", duration=size * 1e-6, reads=[arrays[number]])
                    gpu.record_stream(arrays[number], streams[stream])
            else:
                is_changed = place == self.at
                chosen = self.stream if is_changed and self.stream is not None else stream
                try:
                    with streams[chosen]:
                        arrays[number] = gpu.empty((is_changed and self.size) or size)
                except MemoryError:
                    return place
            if place == self.at:
                return None
        return None


def drawn(seed, *, shares=False):
    """Return a random program that probably fails; other streams may delay its frees."""
    draw = random.Random(seed)
    memory = draw.choice([256, 512, 1000]) * MIB
    size = draw.choice(
        [
            lambda _: draw.choice([draw.randint(1, 900) << 10, draw.randint(2, memory // 5)]),
            lambda _: draw.randint(memory // 12, memory // 3),
            lambda _: draw.randint(1100, 9900) << 10,
            lambda place: int((4 + 0.6 * place) * MIB),
        ]
    )
    several, live, operations = draw.random() < 0.3, [], []
    for place in range(250):
        if live and draw.random() < 0.42:
            operations.append(("free", live.pop(draw.randrange(len(live))), 0, 0))
            continue
        stream = draw.randrange(3) if several else 0
        operations += [("alloc", place, size(place), stream), ("use", place, 0, 0)]
        if shares and draw.random() < 0.4:
            microseconds = draw.choice([10, 100, 1000, 5000])
            operations.append(("share", place, microseconds, draw.randrange(1, 3)))
        live.append(place)
        operations.append(("use", draw.choice(live), 0, 0))
    limit = draw.choice([None, None, 0.5, 0.7])
    return Program(memory, draw.choice(SETTINGS), limit, tuple(operations))


def without(addresses, numbers):
    """Return what frees some live arrays."""
    freed = [numbers[address] for address, _ in addresses]
    return lambda _, arrays: [arrays.pop(number) for number in freed]


def with_settings(program, *, without="", added=""):
    kept = [each for each in program.settings.split(",") if each]
    kept = [each for each in kept if not (without and each.startswith(without))]
    return replace(program, settings=",".join([*kept, *([added] if added else [])]))


def followed(program, text, failed, found):
    """Return the program in which a remedy is followed."""
    _, recording, numbers, handles = found

    def freed(live):
        return replace(program, before=without(live.addresses, numbers))

    def elsewhere():
        rows = recording.table("streams").to_pylist()
        (handle,) = (row["handle"] for row in rows if f", {row['name']} the request" in text)
        return replace(program, stream=handles.index(handle))

    trials = Trials(failed, failed.moment)
    changes = {
        "fraction(1.0) before this line": lambda: replace(
            program, before=lambda gpu, _: gpu._allocator.set_memory_fraction(1.0)
        ),
        "fraction(1.0) the request": lambda: replace(program, limit=None),
        "Without the setting": lambda: with_settings(program, without=text.split()[3]),
        "expandable_segments": lambda: with_settings(
            program, without="expandable", added="expandable_segments:True"
        ),
        "in a segment of its own size": lambda: replace(program, size=OWN_SEGMENT),
        "process smaller pieces": lambda: replace(program, size=trials.largest()),
        "between free blocks": lambda: freed(failed.obstacle),
        "empties segments": lambda: freed(failed.pins),
        "unused for the longest time": lambda: freed(trials.without_unused()),
        "empty_cache": lambda: replace(program, before=lambda gpu, _: gpu.empty_cache()),
        "order streams with events": elsewhere,
    }
    (change,) = (each for part, each in changes.items() if part in text)
    return change()


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("first", range(0, 36, 12))
def test_what_is_offered_lets_the_request_succeed(first, shares):
    failures = with_remedy = 0
    for seed in range(first, first + 12):
        program = drawn(seed, shares=shares)
        found = program.recorded()
        if found[0] is None:
            continue
        failures += 1
        failed = found[1].out_of_memory()[0]
        offered = [text for text in remedies(failed) if CHECKED in text]
        with_remedy += bool(offered)
        for text in offered:
            changed = replace(followed(program, text, failed, found), at=found[0])
            assert changed.fails_at() is None, text

    assert failures >= 8
    assert with_remedy >= failures - 1


@pytest.mark.parametrize("uses_old", [False, True])
def test_arrays_that_are_used_after_the_failure_are_not_offered(uses_old):
    gpu = gpuviz.SimulatedGPU(memory=100 * MIB, real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        old = gpu.empty(40 * MIB)
        new = gpu.empty(40 * MIB)
        gpu.launch("make", duration=1e-5, writes=[old])
        gpu.launch("make", duration=1e-5, writes=[new])
        with pytest.raises(MemoryError):
            gpu.empty(60 * MIB)
        if uses_old:
            gpu.launch("use", duration=1e-5, reads=[old])
    (failed,) = recorder.recording.out_of_memory()

    assert (
        f"1 live block (40.0 MiB) from `{'new' if uses_old else 'old'} = gpu.empty(40 * MIB)` was "
        "unused for the longest time: without it the request would have succeeded."
    ) in remedies(failed)


def pending_in_turn(gpu, *, is_sure):
    """Fail by rounding, with or without a free that another stream delays before."""
    other = gpu.Stream()
    delayed = gpu.empty(100 * MIB)
    if not is_sure:
        with other:
            gpu.launch("use", duration=1e-3, reads=[delayed])
        gpu.record_stream(delayed, other)
    del delayed
    kept = [gpu.empty(20 * MIB)]
    gpu.work_on_host(2e-3)
    kept += [gpu.empty(size * MIB) for size in (512, 320)]
    kept.append(gpu.empty(130 * MIB))
    return kept


@pytest.mark.parametrize(
    ("is_sure", "expected"),
    [(True, "the request would have"), (False, "the request would probably have")],
)
def test_other_settings_are_not_sure_to_help_if_frees_wait_for_streams(is_sure, expected):
    settings = "roundup_power2_divisions:2"
    gpu = gpuviz.SimulatedGPU(memory=1000 * MIB, settings=settings, real_time=False)
    with gpuviz.record(device=gpu) as recorder, pytest.raises(MemoryError):
        pending_in_turn(gpu, is_sure=is_sure)
    (failed,) = recorder.recording.out_of_memory()

    texts = [text for text in remedies(failed) if "Without the setting" in text]

    assert [expected in text for text in texts] == [True]


def test_a_limit_is_lifted_before_the_request():
    program = Program(100 * MIB, "", 0.5, (("alloc", 0, 40 * MIB, 0), ("alloc", 1, 30 * MIB, 0)))
    found = program.recorded()
    (failed,) = found[1].out_of_memory()
    (text,) = (text for text in remedies(failed) if "before this line" in text)

    assert "set_per_process_memory_fraction(1.0)" in text
    assert replace(followed(program, text, failed, found), at=1).fails_at() is None
