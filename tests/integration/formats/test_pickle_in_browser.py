"""Pickles in the browser: plain values of every protocol, and nothing that could run."""

import datetime as dt
import os
import pickle
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.integration.formats.browser_reader import BrowserReader, browser_reader, tagged

PROTOCOLS = [2, 3, 4, 5]
DEEP = 300_000

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
integers = st.integers(-(2**66), 2**66) | st.sampled_from([2**53, 2**63, 2**64 - 1, -(2**63)])
scalars = st.none() | st.booleans() | integers | texts
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(texts | st.integers(), inner, max_size=5)
    ),
    max_leaves=40,
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserReader]:
    with browser_reader(tmp_path_factory.mktemp("pickles")) as reader:
        yield reader


@examples(20)
@given(value=values, protocol=st.sampled_from(PROTOCOLS), is_shared=st.booleans())
def test_plain_values_come_as_they_were_written(browser, value, protocol, is_shared):
    whole = [value, value, {"again": value}] if is_shared else value

    assert browser.value(pickle.dumps(whole, protocol)) == {"value": tagged(whole)}


@pytest.mark.parametrize("number", [0.0, -2.5, 1e300, 0.1, 1_700_000_000_000_000.0])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_floating_point_numbers_keep_their_kind(browser, number, protocol):
    answer = browser.value(pickle.dumps(number, protocol))

    assert float(answer["value"]["float"]) == number


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_large_containers_and_long_texts_come_whole(browser, protocol):
    value = {
        "numbers": list(range(5000)),
        "entries": {f"name {number}": number for number in range(3000)},
        "text": "é" * 70_000,
    }

    assert browser.value(pickle.dumps(value, protocol)) == {"value": tagged(value)}


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_bytes_and_sets_are_passed_over(browser, protocol):
    value = [b"abc", bytes(300)] if protocol == 3 else [b"abc", bytes(300), {7}, frozenset([8])]
    answer = browser.value(pickle.dumps(value, protocol))

    others = [{"other": True}, {"other": True}]
    sets = [] if protocol == 3 else [{"set": [tagged(7)]}, {"set": [tagged(8)]}]
    assert answer == {"value": {"list": others + sets}}


class Runs:
    """Calls a function where it is unpickled."""

    def __reduce__(self):
        return os.getcwd, ()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("value", [Runs(), dt.date(2024, 5, 6), len, 1j], ids=repr)
def test_a_pickle_that_would_run_code_is_refused_by_its_byte(browser, value, protocol):
    answer = browser.value(pickle.dumps({"segments": [value]}, protocol))

    assert "asks to run code" in answer["error"]
    assert "At byte " in answer["error"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_truncated_pickle_is_refused_wherever_it_ends(browser, protocol):
    whole = pickle.dumps({"segments": [{"address": 2**40, "name": "é"}], "time": 1.5}, protocol)

    for size in range(len(whole)):
        error = browser.value(whole[:size])["error"]
        assert "At byte " in error
        assert size < 2 or "truncated" in error


@examples(20)
@given(
    value=values,
    protocol=st.sampled_from(PROTOCOLS),
    changes=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_a_damaged_pickle_is_read_or_refused_with_the_byte(browser, value, protocol, changes):
    damaged = bytearray(pickle.dumps([value, {"key": value}], protocol))
    for place, byte in changes:
        damaged[place % len(damaged)] = byte

    answer = browser.value(bytes(damaged))

    assert "value" in answer or "At byte " in answer["error"]


@pytest.mark.parametrize("opcode", [b"]" * DEEP + b"a" * (DEEP - 1), b")" + b"\x85" * DEEP])
def test_deep_nesting_is_read_without_recursion(browser, opcode):
    answer = browser.tables(b"\x80\x02" + opcode + b".")

    assert "no torch memory snapshot" in answer["error"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"h\x05.", "entry 5 is used before it is made"),
        (b"Nr" + struct.pack("<I", 2**31) + b".", "entry 2147483648 comes after entry -1"),
        (b"a.", "a value that is not there"),
        (b"Na.", "a value that is not there"),
        (b"NNa.", "adds to a container of another kind"),
        (b"t.", "needs a mark"),
        (b"}(Nu.", "a key without a value"),
        (b"NN.", "ends with 2 values"),
        (b".", "ends with 0 values"),
        (b"X\xff\xff\xff\x7fabc", "truncated"),
        (b"\x95" + struct.pack("<Q", 2**40) + b"N.", "truncated"),
        (b"\x80\x02N.", "opcode 0x80"),
    ],
)
def test_what_is_wrong_is_said(browser, body, problem):
    assert problem in browser.value(b"\x80\x04" + body)["error"]


@pytest.mark.parametrize("start", [b"\x80\x01N.", b"\x80\x06N.", b"N.", b""])
def test_other_protocols_are_refused(browser, start):
    assert "2 to 5" in browser.value(start)["error"]


def test_lists_of_lists_that_would_need_exabytes_are_not_unfolded(browser):
    levels = [["lol"] * 10]
    for _ in range(30):
        levels.append([levels[-1]] * 10)

    answer = browser.tables(pickle.dumps({"segments": levels[-1]}, 4))

    assert "segments[0]: expected a dict" in answer["error"]


def test_a_row_that_is_named_again_and_again_is_refused(browser):
    event = {"action": "snapshot"} | {f"key {number}": number for number in range(4000)}
    trace = [event] * 10_000

    answer = browser.tables(pickle.dumps({"segments": [], "device_traces": [trace]}, 4))

    assert "each row of a snapshot to be written once" in answer["error"]
