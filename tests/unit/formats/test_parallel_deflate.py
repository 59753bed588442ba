"""Deflate on several threads against zlib."""

import subprocess
import sys
import zlib
from contextlib import closing
from random import Random

import pytest

from gpuviz.formats.parallel_deflate import PIECE_BYTES, ParallelDeflate, Threads


def deflated(pieces, workers):
    with closing(Threads(workers, "test")) as threads:
        deflate = ParallelDeflate(threads, workers)
        return b"".join([*map(deflate.compress, pieces), deflate.flush()])


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("size", [0, 1, 1000, PIECE_BYTES - 1, PIECE_BYTES, 9 * PIECE_BYTES + 7])
def test_what_was_compressed_comes_back(size, workers):
    random = Random(size)
    content = b"".join(random.choices([b"alloc", b"free", b"\0" * 9], k=size // 4 + 1))
    pieces, start = [], 0
    while start < size:
        length = random.choice([1, 100, 70_000, 3 * PIECE_BYTES])
        pieces.append(memoryview(content)[start : min(start + length, size)])
        start += length

    stream = deflated(pieces, workers)

    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    assert inflate.decompress(stream) == content[:size]
    assert inflate.eof
    assert inflate.unused_data == b""


def test_a_failure_on_a_thread_reaches_the_writer():
    with closing(Threads(1, "test")) as threads:
        deflate = ParallelDeflate(threads, 1)
        deflate.compress("no bytes")

        with pytest.raises(TypeError):
            deflate.flush()


def test_a_recording_can_be_saved_and_reported_while_the_interpreter_exits(tmp_path):
    program = """
import atexit, sys
import gpuviz
from gpuviz.data.manifest import Manifest
recording = gpuviz.Recording({}, Manifest())

def at_exit():
    recording.save(sys.argv[1] + "/run.gpuviz")
    recording.report(sys.argv[1] + "/run.html")

atexit.register(at_exit)
"""

    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.gpuviz", "run.html"]
