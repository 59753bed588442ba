"""`gpuviz.range` in recordings, with threads, coroutines and generators."""

import asyncio
import threading

import pytest

import gpuviz


def rows(recording):
    """Return the ranges by id, with names instead of the names' ids."""
    texts = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    return {
        row["id"]: row | {"name": texts[row["name"]]}
        for row in recording.table("ranges").to_pylist()
    }


def parents(recording):
    """Return pairs of the names of a range and its parent, in order of begin."""
    found = rows(recording)
    return [
        (row["name"], found[row["parent"]]["name"] if row["parent"] else "")
        for row in found.values()
    ]


def test_nested_ranges_lie_in_each_other_and_name_their_thread(new_recorder, source):
    with new_recorder(source) as recorder, gpuviz.range("outer"), gpuviz.range("inner"):
        pass
    outer, inner = rows(recorder.recording).values()

    assert parents(recorder.recording) == [("outer", ""), ("inner", "outer")]
    assert 0 < outer["time"] <= inner["time"] <= inner["end"] <= outer["end"]
    assert {outer["kind"], inner["kind"]} == {"range"}
    assert {outer["thread"], inner["thread"]} == {threading.get_native_id()}


def test_ranges_that_end_out_of_order_leave_the_innermost_open_one_as_parent(new_recorder, source):
    first, second = gpuviz.range("first"), gpuviz.range("second")
    with new_recorder(source) as recorder:
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        with gpuviz.range("third"):
            second.__exit__(None, None, None)
        with gpuviz.range("fourth"):
            pass

    expected = [("first", ""), ("second", "first"), ("third", "second"), ("fourth", "")]
    assert parents(recorder.recording) == expected
    assert all(row["end"] >= row["time"] for row in rows(recorder.recording).values())


def test_a_range_that_is_open_when_recording_stops_ends_there(new_recorder, source):
    with gpuviz.range("around everything"):
        recorder = new_recorder(source)
        recorder.start()
        within = gpuviz.range("open")
        within.__enter__()
        so_far = rows(recorder.recording)
        recording = recorder.stop()
        within.__exit__(None, None, None)

    assert [row["end"] for row in so_far.values()] == [-1]
    [row] = rows(recording).values()
    assert (row["name"], row["time"] < row["end"]) == ("open", True)
    assert row["end"] <= recording.manifest.duration_ns


def test_a_range_of_an_earlier_recording_is_in_no_later_one(new_recorder, source):
    with new_recorder(source):
        open_before = gpuviz.range("open before")
        open_before.__enter__()
    with new_recorder(source.again()) as recorder:
        with gpuviz.range("later"):
            open_before.__exit__(None, None, None)
        with gpuviz.range("last"):
            pass

    assert parents(recorder.recording) == [("later", ""), ("last", "")]


def test_one_object_may_be_entered_again_and_by_several_threads(new_recorder, source):
    shared = gpuviz.range("shared")
    everybody_in = threading.Barrier(4)

    def enter_twice():
        with shared, shared:
            everybody_in.wait()

    with new_recorder(source) as recorder:
        threads = [threading.Thread(target=enter_twice) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = rows(recorder.recording)

    assert len(found) == 8
    inner = [row for row in found.values() if row["parent"]]
    assert len({row["thread"] for row in inner}) == 4
    for row in inner:
        outer = found[row["parent"]]
        assert outer["thread"] == row["thread"]
        assert outer["time"] <= row["time"] <= row["end"] <= outer["end"]


def test_a_decorated_function_is_in_a_range_at_each_call_also_when_it_raises(new_recorder, source):
    @gpuviz.range("half")
    def half(number):
        """Return a half."""
        if number % 2:
            raise ValueError(number)
        return number // 2

    with new_recorder(source) as recorder:
        assert half(10) == 5
        with pytest.raises(ValueError, match="3"):
            half(3)

    assert half.__doc__ == "Return a half."
    assert parents(recorder.recording) == [("half", ""), ("half", "")]
    assert all(row["end"] >= row["time"] for row in rows(recorder.recording).values())


def test_a_decorated_coroutine_function_is_in_a_range_until_it_returns(new_recorder, source):
    @gpuviz.range("step")
    async def step(waits, proceed):
        waits.set()
        await proceed.wait()
        return 7

    async def first_begun_ends_first():
        begun, proceed = [[asyncio.Event() for _ in "ab"] for _ in "ab"]
        tasks = [asyncio.create_task(step(*events)) for events in zip(begun, proceed, strict=True)]
        for event in begun:
            await event.wait()
        proceed[0].set()
        results = [await tasks[0]]
        proceed[1].set()
        return [*results, await tasks[1]]

    with new_recorder(source) as recorder:
        assert asyncio.run(first_begun_ends_first()) == [7, 7]

    first, second = rows(recorder.recording).values()
    assert first["time"] <= second["time"] <= first["end"] <= second["end"]
    assert (first["parent"], second["parent"]) == (0, first["id"])


def test_a_generator_may_end_its_range_on_another_thread(new_recorder, source):
    def numbers():
        with gpuviz.range("generator"):
            yield 1
            yield 2

    with new_recorder(source) as recorder:
        generator = numbers()
        assert next(generator) == 1
        thread = threading.Thread(target=lambda: list(generator))
        thread.start()
        thread.join()
        with gpuviz.range("after"):
            pass

    generator, after = rows(recorder.recording).values()
    assert generator["thread"] == threading.get_native_id()
    assert 0 < generator["end"] <= after["time"]
    assert after["parent"] == 0


def test_a_generator_function_is_not_decorated_but_told_what_to_do():
    with pytest.raises(TypeError, match=r"(?s)generator function .*numbers.* use `with"):

        @gpuviz.range("numbers")
        def numbers():
            yield 1


@pytest.mark.parametrize("name", [None, 5, b"bytes"])
def test_a_name_must_be_text(name):
    with pytest.raises(TypeError) as caught:
        gpuviz.range(name)

    assert str(caught.value) == f"name must be a str, got {name!r}"


@pytest.mark.parametrize(
    ("name", "recorded"),
    [("Größe ✓", "Größe ✓"), ("nul\0byte", "nul\0byte"), ("half \ud800", "half \\ud800")],
)
def test_any_text_may_be_a_name(new_recorder, source, name, recorded):
    with new_recorder(source) as recorder, gpuviz.range(name):
        pass

    [row] = rows(recorder.recording).values()
    assert row["name"] == recorded


def test_a_range_does_nothing_where_nothing_records():
    with gpuviz.range("nothing") as entered:
        assert repr(entered) == "gpuviz.range('nothing')"
