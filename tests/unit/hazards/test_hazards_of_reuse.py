"""Hazards of memory that is freed and used again."""

import pytest

from gpuviz.data.tables import DICTIONARIES
from gpuviz.present.text import hazards_text
from tests.unit.hazards.two_streams import (
    RAW,
    Program,
    freed_and_reused,
    with_words,
    write_then_read,
)


def test_pinned_memory_is_reused_without_regard_to_streams(program):
    freed_and_reused(program, lambda program, _: program.s.wait_event(program.t.record()))
    recording = program.recording()
    pinned = DICTIONARIES["pools", "memory"].index("pinned")
    pools = recording.tables["pools"].num_rows

    assert recording.hazards() == ()
    (hazard,) = with_words(recording, "pools", "memory", [pinned] * pools).hazards()
    assert (hazard.kind, hazard.first.name) == ("use_after_free", "use")


def test_a_synchronous_copy_to_the_host_makes_it_complete(program):
    def download(program):
        b = program.empty(program.s)
        program.gpu.copy_to_host(b, blocking=True)

    write_then_read(program, download)

    assert program.found() == [RAW]  # the streams do not synchronize with the default stream
    blocking = Program(non_blocking=False)
    write_then_read(blocking, download)
    assert blocking.found() == []


def test_memory_that_is_reused_while_another_stream_uses_it_is_a_hazard(program):
    freed_and_reused(program, lambda *_: None)

    recording = program.recording()
    reuse, latent = recording.hazards()
    assert (reuse.kind, reuse.tier) == ("reuse", "probable")
    assert (reuse.first.name, reuse.second.name) == ("use", "next")
    assert reuse.block != reuse.other_block >= 0
    assert (latent.kind, latent.tier, latent.second.name) == ("use_after_free", "latent", "free")
    assert latent.second.mode == "frees"
    source = {each.source for each in (latent.second, reuse.first, reuse.second)}
    assert source == {
        "del a",
        'program.launch(program.t, "use", reads=[a])',
        'program.launch(program.s, "next", writes=[b])',
    }
    assert reuse.freed == latent.second.site
    assert "gpuviz.record_stream" in reuse.fix
    text = hazards_text(recording, (reuse, latent))
    assert "1. reuse, probable: memory reused while it may still be in use (1.00 MiB" in text
    assert "it also orders 1 more conflict:\n      use_after_free, latent: " in text


@pytest.mark.parametrize(
    "before_free",
    [
        lambda program, _: program.s.wait_event(program.t.record()),
        lambda program, _: program.t.synchronize(),
        lambda program, a: program.gpu.record_stream(a, program.t),
    ],
)
def test_a_wait_before_the_free_or_record_stream_makes_it_none(program, before_free):
    freed_and_reused(program, before_free)

    assert program.found() == []
