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
    for each in zip(part["correlation"], part["address"], strict=True)
]
print(json.dumps([found, tracer.launches, tracer.unreadable_launches]))
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """Return the paths of a driver and a CUPTI without a GPU."""
    folder = tmp_path_factory.mktemp("cuda")
    return [compile_fake("fake_cuda.cpp", folder / "libcuda.so.1"), compile_cupti(folder)]


def test_launches_have_the_blocks_that_their_arguments_point_into(libraries):
    first, second = 0x100000000, 0x200000000
    launches = [
        (first % 2**31, 0, 0, 0),  # only a small number
        (0, first + 8, 0, 0),
        (0, second, first, second + 4095),
        (0, second + 4096, first - 1, 2**63),  # beside the blocks, and no address
        (0, 0x300000008, 0, 0),  # an array of JAX, which may have been another's meanwhile
    ]
    out = run([sys.executable, "-c", PROGRAM, *libraries, json.dumps(launches)])
    blocks, seen, unreadable = json.loads(out)

    assert sorted(blocks) == [[2, first + 8], [3, first], [3, second], [3, second + 4095]]
    assert (seen, unreadable) == (5, 0)
