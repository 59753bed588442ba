"""Blocks of launches by their arguments, against a driver and a CUPTI without a GPU."""

import json
import sys

import pytest

from tests.native.compilation import compile_cupti, compile_fake, run

# Blocks are found from the first page of addresses on that the program has allocated.
PROGRAM = """
import ctypes, json, struct, sys
from gpuviz import _core, _testing

ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
launch = ctypes.CDLL(sys.argv[2]).fake_launch_with
session = _core.Session(launch_blocks=True, stack_depth=0)
session.start()
for address in (0x100000000, 0x200000000):
    _testing.push_event(
        session.sink(0), time_ns=1, address=address, size=4096, requested_size=4096
    )
sampled = _core.LibraryObserver(_core.Framework.jax)
sampled.set_session(session)
sampled.allocated(0, 0x300000000, 4096, 0)
tracer = _core.CuptiTracer(sys.argv[2], session, stacks=False)
tracer.start()
for int_, pointer, one, two in json.loads(sys.argv[3]):
    values = [struct.pack(form, *each) for form, each in (
        ("i", [int_]), ("Q", [pointer]), ("i", [7]), ("QQ", [one, two]))]
    buffers = [ctypes.create_string_buffer(value, len(value)) for value in values]
    launch(0, (ctypes.c_void_p * 4)(*map(ctypes.addressof, buffers)))
tracer.stop()
session.stop()
rows = session.take_tables(flush=True)["launch_blocks"]
found = [
    [int(row) for row in each]
    for part in rows
    for each in zip(part["correlation"], part["address"], part["content"], strict=True)
]
print(json.dumps([found, tracer.launches, tracer.unreadable_launches]))
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """Return the paths of a driver and a CUPTI without a GPU."""
    folder = tmp_path_factory.mktemp("cuda")
    return [compile_fake("fake_cuda.cpp", folder / "libcuda.so.1"), compile_cupti(folder)]


FIRST, SECOND = 0x100000000, 0x200000000


def launched(libraries, launches):
    """Return correlation, address and content of the rows, and the counts of launches."""
    out = run([sys.executable, "-c", PROGRAM, *libraries, json.dumps(launches)])
    rows, seen, unreadable = json.loads(out)
    return sorted(rows), (seen, unreadable)


def test_launches_have_the_blocks_that_their_arguments_point_into(libraries):
    launches = [
        (FIRST % 2**31, 0, 0, 0),  # only a small number
        (0, FIRST + 8, 0, 0),
        (0, SECOND, FIRST, SECOND + 4095),
        (0, SECOND + 4096, FIRST - 1, 2**63),  # beside the blocks, and no address
        (0, 0x300000008, 0, 0),  # an array of JAX, which may have been another's meanwhile
    ]
    rows, counts = launched(libraries, launches)

    blocks = [row[:2] for row in rows]
    assert blocks == [[2, FIRST + 8], [3, FIRST], [3, SECOND], [3, SECOND + 4095]]
    assert counts == (5, 0)


def test_launches_have_equal_contents_if_all_but_their_blocks_is_equal(libraries):
    launches = [
        (5, FIRST, 9, 0),
        (5, SECOND, 9, 0),  # another block
        (6, FIRST, 9, 0),  # another number in the first parameter
        (5, FIRST, 10, 0),  # another one in the structure
        (5, FIRST, 9, SECOND),
    ]
    rows, _ = launched(libraries, launches)
    first, other_block, other_number, other_word, *two = (row[2] for row in rows)

    assert first == other_block
    assert len({0, first, other_number, other_word}) == 4
    assert sorted(each == 0 for each in two) == [False, True]
