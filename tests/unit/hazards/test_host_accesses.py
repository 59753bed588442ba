"""What the host itself does to pinned memory while a copy from or to it is pending."""

import pytest

import gpuviz
from gpuviz._core import stream_name
from gpuviz.present.text import hazards_text
from tests.unit.hazards.test_pinned import BYTES, HOST, Program


class HostProgram(Program):
    """A program whose own accesses to pinned memory were found."""

    def copy(self, kind, **how):
        super().copy(kind, **how)
        self.last_copy = self.correlation

    def host(self, mode, *, exact=False, line=7, copy=None, thread=1):
        """Add what the recorder found about the last copy, or another one."""
        self.time += 10
        self.timeline.add(
            "host_accesses",
            {"time": self.time, "mode": mode, "correlation": copy or self.last_copy}
            | {"address": HOST, "bytes": BYTES, "exact": int(exact), "thread": thread}
            | {"stack": self.timeline.stack(line, "numpy")},
        )

    def call(self, name):
        self.time, self.correlation = self.time + 10, self.correlation + 1
        self.timeline.call(self.time, self.time + 5, name, correlation=self.correlation)


@pytest.fixture
def program():
    made = HostProgram()
    made.empty()
    return made


@pytest.mark.parametrize(
    ("copy", "mode", "kind"),
    [("h2d", "write", "WAR"), ("d2h", "read", "RAW"), ("d2h", "write", "WAW")],
)
def test_an_access_during_a_copy_is_certain(program, copy, mode, kind):
    program.copy(copy)
    program.host(mode, exact=copy == "d2h")
    program.synchronize()

    assert program.hazards() == [(kind, "certain", "pinned", True)]


@pytest.mark.parametrize(("mode", "kind"), [("read", "RAW"), ("write", "WAW")])
@pytest.mark.parametrize("lasts", [1_000, 1])
def test_an_access_before_the_next_call_is_certain_if_that_was_during_the_copy(
    program, mode, kind, lasts
):
    program.copy("d2h", lasts=lasts)
    program.call("cuLaunchKernel")
    program.time += 100
    program.host(mode)
    program.synchronize()

    showed = lasts == 1_000
    assert program.hazards() == [(kind, "certain" if showed else "probable", "pinned", showed)]


def test_an_access_that_an_event_and_another_stream_order_is_right(program):
    program.copy("d2h", lasts=5_000)
    for kind, stream in (("event_record", 1), ("stream_wait_event", 2)):
        program.call("cuEventRecord" if stream == 1 else "cuStreamWaitEvent")
        program.timeline.synchronization(
            kind, program.time, program.time + 5, stream=stream, event_sync_id=7,
            correlation=program.correlation,
        )  # fmt: skip
    program.synchronize(stream=2, lasts=10_000)
    program.host("read")

    assert program.hazards() == []


def test_an_access_after_a_wait_for_the_copy_is_right(program):
    program.copy("h2d")
    program.synchronize()
    program.host("write")
    program.copy("d2h")
    program.synchronize()
    program.host("read", exact=True)

    assert program.hazards() == []


def test_a_wait_for_another_stream_does_not_help(program):
    program.copy("h2d")
    program.synchronize(stream=2)
    program.host("write")

    # The copy was over by then, which the program may know in a way that is not recorded.
    assert program.hazards() == [("WAR", "probable", "pinned", False)]


def test_a_write_whose_line_is_known_is_not_reported_again_for_the_wait(program):
    program.copy("h2d", lasts=5_000)
    program.host("write", exact=True, line=8)
    program.host("write", line=9)
    program.synchronize()

    assert program.hazards() == [("WAR", "certain", "pinned", True)]
    assert program.recording.hazards()[0].second.source == "line 8"


def test_only_the_copy_whose_memory_changed_is_reported(program):
    program.copy("h2d", stream=1, lasts=5_000)
    program.copy("h2d", stream=2, lasts=5_000)
    program.host("write", copy=2)

    assert ("WAR", "certain", "pinned", True) in program.hazards()
    first, *others = (each for each in program.recording.hazards() if each.memory == "pinned")
    assert (first.first.stream, others) == (stream_name(2), [])


def test_what_a_copy_to_the_memory_may_have_changed_is_not_the_hosts(program):
    program.copy("d2h", lasts=5_000)
    program.copy("h2d", lasts=5_000)
    program.host("write")

    assert program.hazards() == []


def test_a_copy_that_filled_the_memory_before_changes_it_no_more(program):
    program.copy("d2h", lasts=100)
    program.synchronize(lasts=100_000)
    program.copy("h2d")
    program.host("write")

    assert program.hazards() == [("WAR", "certain", "pinned", True)]


@pytest.mark.parametrize("name", ["cuLaunchHostFunc", "cuStreamAddCallback"])
def test_a_function_that_a_stream_calls_may_use_the_memory(program, name):
    program.copy("h2d")
    program.call(name)
    program.host("write", copy=1)
    program.host("read", exact=True, copy=1, thread=2)

    assert program.hazards() == []


def test_the_report_has_both_lines_and_the_fix(program):
    program.copy("h2d")
    program.host("write", line=9)

    assert program.hazards() == [("WAR", "certain", "pinned", True)]
    assert hazards_text(program.recording, program.recording.hazards()) == (
        "1. WAR, certain: pinned memory overwritten by the host before the copy from it has ended "
        "(1.00 MiB, 1 pair, showed in this run)\n"
        "   first  memcpy reads it on the default stream, step (run.py:3)\n"
        "          line 3\n"
        "   second the host writes it before this call, step (run.py:9)\n"
        "          line 9\n"
        "   allocated in step (run.py:1)\n"
        "   fix: Wait for the copy on the default stream before the host writes the array: "
        "synchronize the stream, or an event that was recorded after step (run.py:3). Or use "
        "another pinned array until then."
    )


def test_a_change_is_suggested_where_the_line_of_the_access_is_known(program):
    program.copy("d2h")
    program.host("read", exact=True, line=9)

    assert program.hazards() == [("RAW", "certain", "pinned", True)]
    assert hazards_text(program.recording, program.recording.hazards()).splitlines()[-3:] == [
        "      @@ step (run.py:9)",
        "      + default_stream.synchronize()",
        "        line 9",
    ]


def test_accesses_of_the_host_are_saved_merged_and_shown(program, tmp_path):
    program.copy("d2h")
    program.host("read", exact=True)
    found = program.hazards()
    path = program.recording.save(tmp_path / "run.gpuviz")

    loaded = gpuviz.load(path)
    merged = gpuviz.merge([loaded, loaded])
    assert [(each.kind, each.tier, each.memory, each.showed) for each in loaded.hazards()] == found
    assert len(merged.hazards()) == 2
    assert "the host reads it" in loaded.report(tmp_path / "run.html").read_text()
