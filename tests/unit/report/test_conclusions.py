"""What a report says about a device."""

import re
from contextlib import suppress
from dataclasses import replace

import gpuviz
from gpuviz.advice.finding import Finding
from gpuviz.analysis.device_summary import summarize
from gpuviz.conclusions.ranking import conclusions, ranked
from gpuviz.conclusions.recording_numbers import headline
from gpuviz.conclusions.shown import items_of
from gpuviz.conclusions.wording import sentences, unknown
from gpuviz.present.markup import parts_html
from gpuviz.present.section import Part
from gpuviz.report.page import build_page
from tests.unit.advice.programs import MIB, recorded
from tests.unit.recording.from_activities import Timeline
from tests.unit.report.recordings import Events, make_recording

FINDING = Finding("R1", "Title.", "Reason.", "Change.", "likely", 0, saved_bytes=8 * MIB)

TITLE = (
    "32.0 MiB from `image = gpu.empty(32 * MIB)` is still allocated at the peak, where nothing "
    "uses it any more."
)


def fails(gpu):
    image = gpu.empty(32 * MIB)
    gpu.launch("make", duration=1e-4, writes=[image])
    large = gpu.empty(64 * MIB)
    gpu.launch("enlarge", duration=1e-4, writes=[large])
    del image
    with suppress(MemoryError):
        gpu.empty(1 << 36)


def idles(gpu):
    array = gpu.empty(MIB)
    gpu.launch("use", duration=1e-6, writes=[array])


def test_failures_come_first_then_findings():
    recording = recorded(fails)
    shown = conclusions(recording)

    assert shown[0].title == "1 allocation failed: out of memory."
    assert [each.is_alarm for each in shown] == sorted(each.is_alarm for each in shown)[::-1]
    assert TITLE in [each.title for each in shown]
    assert "of the GPU's work" in shown[-2].title
    assert "of the peak" in shown[-1].title
    (saves, reason, _) = next(sentences(each) for each in shown if each.title == TITLE)
    assert saves == "Saves 32.0 MiB of the peak."
    assert reason.startswith("Nothing uses the array after ")


def test_a_finding_is_shown_on_its_own_device_only():
    recording = recorded(idles)
    other = replace(FINDING, device=1, title="Other.")
    conclusions.keep(recording, (FINDING, other, FINDING))
    page = build_page(recording)

    assert "Title." in page
    assert "Other." not in page


def test_a_handful_is_shown_at_once():
    recording = recorded(idles)
    shown = items_of(recording, ranked(recording, [replace(FINDING) for _ in range(7)]))
    at_once, _, folded = parts_html([Part("findings", items=tuple(shown))], "h4").partition(
        "<details>"
    )

    assert (at_once.count("Title."), folded.count("Title.")) == (5, 2)
    assert "4 more findings" in folded  # with the two facts that every recording has


def test_the_first_line_of_each_rule_comes_before_the_second_of_one():
    recording = recorded(idles)
    found = [replace(FINDING, rule=rule, title=f"{rule}.") for rule in ("R1", "R1", "R1", "R2")]
    conclusions.keep(recording, ranked(recording, found))
    first, _, _ = build_page(recording).partition("</ol>")

    shown = re.findall(r'__title" title="(R\d)\."', first)
    assert shown == ["R1", "R2", "R1"]


def test_the_host_is_blocked_by_the_device_that_it_waits_for():
    timeline = Timeline()
    for device in (0, 1):
        timeline.kernel(0, 10, device=device)
        for call in range(device + 1):
            timeline.synchronization(
                "stream_synchronize", 100 * call, 100 * call + 50, device=device
            )
    recording = timeline.recording()

    numbers = {
        (device, number.name): number.value
        for device in (0, 1)
        for number in headline(recording, summarize(recording, device))
    }

    assert numbers[0, "Host blocked"] == "50 ns"
    assert numbers[1, "Host blocked"] == "100 ns"


def test_a_recording_with_nothing_wrong_says_so_and_what_is_unknown():
    gpu = gpuviz.SimulatedGPU()
    with gpuviz.record(device=gpu, streams=False) as recorder:
        gpu.empty(MIB)
    text = build_page(recorder.recording)

    assert "Nothing was found that would save 1 % of the peak (and 8 MiB) or of the time." in text
    (sentence,) = unknown(recorder.recording)
    assert sentence.startswith("No kernels and copies were recorded, so nothing is said about time")
    assert sentence in text


def test_what_was_not_recorded_is_named():
    recording = recorded(lambda gpu: gpu.launch("alone", duration=1e-6))

    memory, arrays = unknown(recording)
    assert memory == "No memory was recorded, so nothing is said about it."
    assert arrays.startswith("It was not recorded which kernels use which arrays, so nothing")


def test_missing_events_leave_arrays_unknown():
    recording = recorded(fails)
    lossy = gpuviz.recording.Recording(recording.tables, replace(recording.manifest, dropped=1))

    assert [each.rule for each in recording.findings()] == ["R45"]
    assert lossy.findings() == ()
    assert unknown(lossy) == ("Events are missing, so nothing is said about arrays.",)


def test_an_unknown_free_memory_of_the_device_is_not_zero():
    events = Events()
    events.add("oom", 0, 512, time=10)
    of_rmm = make_recording(events.rows, initial_events=0, allocator="observe")
    own = make_recording(events.rows, initial_events=0)

    reasons = [ranked(each, ())[0].reason for each in (of_rmm, own)]

    assert reasons[0].startswith("The first requested 512 B at 10 ns. ")
    assert reasons[1].startswith(
        "The first requested 512 B at 10 ns, when 0 B of the device were free. "
    )


def test_the_time_of_a_blocked_host_is_unknown_without_its_calls():
    timeline = Timeline()
    timeline.kernel(0, 10)
    recording = timeline.recording()

    numbers = headline(recording, summarize(recording, 0))

    blocked = next(number for number in numbers if number.name == "Host blocked")
    assert (blocked.value, blocked.detail) == ("unknown", "CUDA calls were not recorded")
