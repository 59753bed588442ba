"""Pinned memory that CuPy's pool hands out again while a copy may still use it."""

import pytest

from gpuviz.present.text import hazards_text
from tests.unit.recording.from_activities import Timeline

BYTES = 1 << 20
DEVICE, HOST = 0x10000000, 0x7F0000000000
KINDS = {"h2d": ("host_to_device", "read", "write"), "d2h": ("device_to_host", "write", "read")}


class Program:
    """A program of one thread that copies between device and pinned memory on two streams."""

    def __init__(self):
        self.timeline = timeline = Timeline()
        self.time = self.correlation = 0
        for number in (1, 2):
            row = {"id": number, "device": 0, "handle": number, "name": ""}
            timeline.add("streams", row | {"kind": "non_blocking", "destroyed": -1})
        timeline.add("devices", {"id": 0, "kind": "cuda"})
        timeline.add("pools", {"id": 0, "segment_type": "small"})
        timeline.add(
            "memory_events",
            {"action": "alloc", "address": DEVICE, "size": BYTES, "requested_size": BYTES}
            | {"stream": 1},
        )

    def _host(self, action, address, **columns):
        self.time += 10
        row = {"time": self.time, "action": action, "address": address, "size": BYTES}
        self.timeline.add("host_memory_events", row | {"requested_size": BYTES} | columns)

    def empty(self, address=HOST, line=1):
        self._host("alloc", address, stack=self.timeline.stack(line, "cupyx"))

    def free(self, address=HOST, line=2):
        self._host("free_requested", address, stack=self.timeline.stack(line, "cupyx"))
        self._host("free_completed", address)

    def segment(self, address=HOST):
        self._host("segment_alloc", address)

    def copy(self, kind, *, stream=1, line=3, address=HOST, lasts=1_000):
        self.time, self.correlation = self.time + 10, self.correlation + 1
        number = self.correlation
        self.timeline.call(
            self.time, self.time + 5, "cuMemcpyHtoDAsync_v2", correlation=number, line=line
        )
        copy_kind, of_host, of_device = KINDS[kind]
        self.timeline.copy(
            self.time + 100, self.time + 100 + lasts, copy_kind=copy_kind, stream=stream,
            correlation=number, bytes=BYTES, host_memory="pinned",
        )  # fmt: skip
        for block, mode in ((address, of_host), (DEVICE, of_device)):
            row = {"correlation": number, "block": block, "address": block}
            self.timeline.add("launch_blocks", row | {"mode": mode, "bytes": BYTES})

    def synchronize(self, stream=1, lasts=2_000):
        self.time, self.correlation = self.time + 10, self.correlation + 1
        begin, self.time = self.time, self.time + lasts
        self.timeline.call(begin, self.time, "cuStreamSynchronize", correlation=self.correlation)
        self.timeline.synchronization(
            "stream_synchronize", begin, self.time, stream=stream, correlation=self.correlation
        )

    def hazards(self):
        self.recording = self.timeline.recording(
            duration_ns=self.time + 10_000, allocator="caching", complete=True
        )
        return [
            (each.kind, each.tier, each.memory, each.showed) for each in self.recording.hazards()
        ]


LATENT = ("use_after_free", "latent", "pinned", False)


def test_a_block_that_is_handed_out_while_a_copy_reads_it_is_reported_with_all_lines():
    program = Program()
    program.empty()
    program.copy("h2d")
    program.free()
    program.empty(line=4)

    assert program.hazards() == [("reuse", "probable", "pinned", True), LATENT]
    assert hazards_text(program.recording, program.recording.hazards()[:1]) == (
        "1. reuse, probable: pinned memory handed out again while a copy may still use it "
        "(1.00 MiB, 1 pair, showed in this run)\n"
        "   first  memcpy uses it on the default stream, step (run.py:3)\n"
        "          line 3\n"
        "   second the program gets it for another array, step (run.py:4)\n"
        "          line 4\n"
        "   allocated in step (run.py:1)\n"
        "   freed in step (run.py:2)\n"
        "   fix: CuPy's pool hands pinned memory out again as soon as it is freed. Keep the array "
        "until the default stream has done its work: synchronize the stream before the array is "
        "freed in step (run.py:2). Or let the pool wait for copies: "
        "cupy.cuda.set_pinned_memory_allocator(gpuviz.malloc_pinned) while streams are recorded, "
        "or gpuviz run --record-stream auto."
    )


@pytest.mark.parametrize("synchronized", [1, 2])
def test_the_host_must_have_waited_for_the_stream_of_the_copy(synchronized):
    program = Program()
    program.empty()
    program.copy("h2d")
    program.synchronize(stream=synchronized)
    program.free()
    program.empty()

    found = program.hazards()
    assert (found == []) == (synchronized == 1)


def test_a_wait_between_free_and_reuse_leaves_a_latent_hazard():
    program = Program()
    program.empty()
    program.copy("h2d")
    program.free()
    program.synchronize()
    program.empty()

    assert program.hazards() == [LATENT]


def test_a_block_that_the_next_copy_of_the_stream_fills_is_not_written_by_the_host():
    program = Program()
    program.empty()
    program.copy("d2h")
    program.free()
    program.empty()
    program.copy("d2h")

    assert program.hazards() == [LATENT]


def test_another_stream_that_fills_the_next_owner_is_reported():
    program = Program()
    program.empty()
    program.copy("h2d")
    program.free()
    program.empty()
    program.copy("d2h", stream=2)

    assert ("reuse", "certain", "pinned", True) in program.hazards()


def test_other_memory_and_blocks_of_gpuvizs_allocator_are_no_hazards():
    program = Program()
    program.segment()
    program.empty()
    program.copy("h2d")
    program.free()
    program.empty()
    elsewhere = Program()
    elsewhere.empty()
    elsewhere.copy("h2d")
    elsewhere.empty(HOST + BYTES)

    assert (program.hazards(), elsewhere.hazards()) == ([], [])


def test_hazards_of_pinned_memory_are_saved_and_shown_in_a_report(tmp_path):
    import gpuviz

    program = Program()
    program.empty()
    program.copy("h2d")
    program.free()
    program.empty(line=4)
    found = program.hazards()
    loaded = gpuviz.load(program.recording.save(tmp_path / "run.gpuviz"))

    assert [(each.kind, each.tier, each.memory, each.showed) for each in loaded.hazards()] == found
    assert "pinned memory handed out again" in loaded.report(tmp_path / "run.html").read_text()
