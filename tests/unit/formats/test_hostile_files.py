"""Damaged and hostile files: either one error that names the file, or a recording."""

import io
import os
import pickle

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from gpuviz import _core
from gpuviz.errors import FormatError
from gpuviz.formats import torch_snapshot
from gpuviz.recording import load
from tests.examples import examples
from tests.unit.formats.plain_snapshots import SNAPSHOTS, golden_snapshot, snapshot_bytes

EXAMPLES = examples(
    30,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
LOG = b"Thread,Time,Action,Pointer,Size,Stream\n" + b"".join(
    b"7,10:00:0%d.000001,%s,0x%x,%d,0\n" % (n % 10, action, 512 * n, 100 + n)
    for n in range(1, 20)
    for action in (b"allocate", b"free")
)
EMPTY = pickle.dumps({"segments": [], "device_traces": []}, 4)
START = b"\x80\x04"
MARKED_DICT = START + b"}("


class Canary:
    """Creates a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def original(kind):
    if kind == "log":
        return LOG
    if kind == "expandable":
        values = golden_snapshot("expandable_record_1", 5500)[0]
        return pickle.dumps(values, 4)
    return snapshot_bytes(kind)


def outcome(content, folder):
    """Return the recording or the error of a file with this content."""
    path = folder / "file"
    path.write_bytes(content)
    recording, error = loaded_or_refused(path)
    if error is not None:
        assert str(error).startswith(str(path))
        assert len(error.problem) > 10
        return error
    for device in recording.devices:
        assert recording.memory_stats(device)["allocation.all.current"] >= 0
    return recording


def loaded_or_refused(path):
    try:
        return load(path), None
    except FormatError as error:
        return None, error


def refused(content, folder):
    found = outcome(content, folder)
    assert isinstance(found, FormatError)
    return f"{found.member}: {found.problem}"


def mutated(data, content):
    """Return a file with some bytes changed, removed, inserted or moved."""
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, max(len(damaged) - 1, 0)))
        change = data.draw(st.sampled_from(["flip", "cut", "insert", "move", "end"]))
        if change == "flip" and damaged:
            damaged[place] ^= data.draw(st.integers(1, 255))
        elif change == "cut":
            del damaged[place : place + data.draw(st.integers(1, 64))]
        elif change == "insert":
            damaged[place:place] = data.draw(st.binary(min_size=1, max_size=16))
        elif change == "move":
            other = data.draw(st.integers(0, max(len(damaged) - 1, 0)))
            damaged[place:place] = damaged[other : other + 40]
        else:
            del damaged[place:]
    return bytes(damaged)


@EXAMPLES
@given(data=st.data(), kind=st.sampled_from([*SNAPSHOTS, "expandable", "log"]))
def test_a_damaged_file_is_refused_or_read(data, kind, tmp_path):
    outcome(mutated(data, original(kind)), tmp_path)


@EXAMPLES
@given(content=st.binary(max_size=300))
def test_random_opcodes_are_refused_or_read(content, tmp_path):
    assert outcome(START + content, tmp_path) is not None


@EXAMPLES
@given(
    values=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
        max_leaves=20,
    ),
    name=st.sampled_from(
        ["segments", "device_traces", "allocator_settings", "external_annotations", "gpuviz"],
    ),
)
def test_other_values_than_expected_are_refused_or_passed_over(values, name, tmp_path):
    content = {"segments": [], "device_traces": []} | {name: values}

    assert outcome(pickle.dumps(content, 4), tmp_path) is not None


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_snapshot_tells_the_byte(cut, tmp_path):
    content = snapshot_bytes("gpt")

    problem = refused(content[: int(cut * len(content))], tmp_path)

    assert problem.startswith("byte ")
    assert "truncated" in problem


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_nothing_in_a_pickle_is_executed(protocol, tmp_path):
    canary = tmp_path / "canary"
    content = pickle.dumps({"segments": [], "device_traces": [], "x": Canary(canary)}, protocol)

    problem = refused(content, tmp_path)

    assert "could run code and is refused" in problem
    assert not canary.exists()
    pickle.loads(content)  # noqa: S301 - the canary works
    assert canary.exists()


@pytest.mark.parametrize(
    "opcodes",
    [
        b"cos\nsystem\n.",
        b"\x8c\x02os\x8c\x06system\x93.",
        b"N)R.",
        b"Nb.",
        b"(ios\nsystem\n.",
        b"(cos\nsystem\no.",
        b"N)\x81.",
        b"N)}\x92.",
        b"Pid\n.",
        b"NQ.",
        b"\x82\x01.",
        b"\x83\x01\x00.",
        b"\x84\x01\x00\x00\x00.",
        b"\x97.",
        b"\x98.",
    ],
)
def test_every_opcode_that_could_run_anything_is_refused(opcodes, tmp_path):
    assert "could run code and is refused" in refused(START + opcodes, tmp_path)


@pytest.mark.parametrize(
    ("opcodes", "problem"),
    [
        (b"X\xff\xff\xff\xff", "truncated (4294967295 bytes must follow"),
        (b"\x8d" + b"\xff" * 8, "a text of 18446744073709551615 bytes"),
        (b"\x8e" + b"\xff" * 7 + b"\x7f", "truncated (9223372036854775807 bytes must follow"),
        (b"\x8b\xff\xff\xff\x7f", "truncated (2147483647 bytes must follow"),
        (b"\x95" + b"\xff" * 8, "truncated (a frame of 18446744073709551615 bytes"),
        (b"Nr\xff\xff\xff\xff.", "memo entry 4294967295 after 0"),
        (b"h\x07.", "memo entry 7 is used before it is made"),
        (b".", "the pickle ends with 0 values"),
        (b"NN.", "the pickle ends with 2 values"),
        (b"N(.", "the pickle ends with 1 values"),
        (b"a", "a value is used that is not there"),
        (b"e", "needs a mark"),
        (b"](NNu", "a container of another kind"),
        (b"}(Nu", "a dict key without a value"),
        (b"N(\x85", "a tuple of values that are not there"),
        (b"](s", "a dict entry without key and value"),
        (b"](NNs", "a container that is not there"),
        (b"\xff", "opcode 0xff is not one"),
        (b"I1\n.", "opcode 0x49 is not one"),
        (b"N.", "no memory snapshot"),
        (b"}.", "no memory snapshot"),
    ],
)
def test_what_is_wrong_with_a_pickle_is_told(opcodes, problem, tmp_path):
    assert problem in refused(START + opcodes, tmp_path)


def test_deep_nesting_is_no_recursion(tmp_path):
    deep = b"]" * 1_000_000 + b"a" * 999_999

    assert "no memory snapshot" not in refused(START + deep + b".", tmp_path)
    inside = EMPTY[:2] + b"}(\x8c\x08segments]\x8c\x01x" + deep + b"u."
    assert outcome(inside, tmp_path).devices == ()


def test_settings_that_hold_themselves_are_refused(tmp_path):
    own = b"\x8c\x12allocator_settings}\x94\x8c\x01ah\x00s"

    problem = refused(MARKED_DICT + own + b"\x8c\x08segments]u.", tmp_path)

    assert problem.startswith("allocator_settings: nested too deep")


def test_rows_that_are_named_again_and_again_are_refused(tmp_path):
    trace = b"]\x94(" + b"}" * 1000 + b"e"
    traces = b"](" + trace + b"h\x00" * 1000 + b"e"

    problem = refused(
        MARKED_DICT + b"\x8c\x08segments]\x8c\x0ddevice_traces" + traces + b"u.", tmp_path
    )

    assert problem.startswith("device_traces: more rows than the file has bytes")


def test_values_need_no_more_memory_than_allowed(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(START + b"](" + b"}" * 500_000 + b"e.")

    with pytest.raises(ValueError, match="need more than 4 MiB of memory"):
        _core.read_torch_snapshot(str(path), 4 << 20)


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        ([], "expected a dict"),
        ({}, 'expected "action" to be there'),
        ({"action": 1}, 'expected "action" to be a text'),
        ({"action": "alloc", "size": -1}, 'expected "size" to be an integer of at least 0'),
        ({"action": "alloc", "size": "1"}, 'expected "size" to be an integer of at least 0'),
        ({"action": "alloc", "addr": 2**63}, 'expected "addr" to be below 2**60'),
        ({"action": "alloc", "addr": 2**65}, 'expected "addr" to be an integer below 2**64'),
        ({"action": "alloc", "frames": 1}, 'expected "frames" to be a list'),
        ({"action": "alloc", "pool_id": (1,)}, 'expected "pool_id" to be a pair of integers'),
        ({"action": "alloc", "time_us": -1}, 'expected "time_us" to be an integer of at least 0'),
    ],
)
def test_an_event_at_fault_is_named(event, problem, tmp_path):
    values = {"segments": [], "device_traces": [[], [{"action": "snapshot"}, event]]}

    assert refused(pickle.dumps(values, 4), tmp_path).startswith(f"device_traces[1][1]: {problem}")


@pytest.mark.parametrize(
    ("blocks", "problem"),
    [
        (None, 'segments[0]: expected "blocks" to be a list'),
        ([{"size": 0}], 'segments[0].blocks[0]: expected "size" to be a positive integer'),
        ([{"size": 600}], "segments[0].blocks[0]: expected the block to lie inside its segment"),
        ([{"size": 1, "state": "lost"}], 'segments[0].blocks[0]: expected "state" to be inactive'),
    ],
)
def test_a_block_at_fault_is_named(blocks, problem, tmp_path):
    values = [{"address": 512, "total_size": 512, "blocks": blocks}]

    assert refused(pickle.dumps(values, 4), tmp_path).startswith(problem)


def test_times_beyond_64_bits_are_refused(tmp_path):
    values = {"segments": [], "device_traces": [[{"action": "snapshot", "time_us": 2**58}]]}

    assert f"a time is {2**58}" in refused(pickle.dumps(values, 4), tmp_path)


def test_a_file_that_cannot_be_read_is_the_systems_error(tmp_path):
    with pytest.raises(IsADirectoryError):
        torch_snapshot.read(tmp_path)
    with pytest.raises(FileNotFoundError, match="nothing"):
        torch_snapshot.read(tmp_path / "nothing")


def test_pickles_as_other_picklers_write_them_are_read(tmp_path):
    values = {"segments": [], "device_traces": [[{"action": "snapshot", "time_us": 2**40}]]}
    buffer = io.BytesIO()
    pickler = pickle._Pickler(buffer, 2)  # in Python, with BINPUT for each value
    pickler.dump(values)

    assert outcome(buffer.getvalue(), tmp_path).table("memory_events").num_rows == 1
