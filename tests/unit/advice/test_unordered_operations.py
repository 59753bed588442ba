"""R40: operations on the same memory without an order."""

import gpuviz
from gpuviz.advice.findings import findings
from gpuviz.conclusions.links import rows_of
from gpuviz.conclusions.ranking import conclusions
from gpuviz.present.text import conclusions_text
from gpuviz.recording import load
from gpuviz.report.page import build_page
from tests.unit.advice.timed_programs import found, small, timed

MIB = 1 << 20
KERNEL_S = 1e-3


def streams(gpu):
    return gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)


def races(gpu, order=lambda *_: None, share=0.1):
    one, other = streams(gpu)
    with one:
        array = gpu.empty(64 * MIB)
        gpu.launch("fill", writes=[array], duration=KERNEL_S, share=share)
    order(one, other)
    with other:
        gpu.launch("use", reads=[array], duration=KERNEL_S, share=share)
    gpu.synchronize()


def follows_the_fix(gpu):
    races(gpu, lambda one, other: other.wait_event(one.record()))


def waits_on_the_host(gpu):
    races(gpu, lambda one, _: one.synchronize())


def only_reads(gpu):
    one, other = streams(gpu)
    with one:
        array = gpu.empty(MIB)
        gpu.launch("fill", writes=[array], duration=KERNEL_S)
    gpu.synchronize()
    for stream in (one, other):
        with stream:
            gpu.launch("use", reads=[array], duration=KERNEL_S)


def frees_without_reuse(gpu):
    one, other = streams(gpu)
    with one:
        array = gpu.empty(MIB)
    with other:
        gpu.launch("use", reads=[array], duration=KERNEL_S)
    del array


def frees_and_reuses(gpu):
    one, other = streams(gpu)
    with one:
        array = gpu.empty(MIB)
    with other:
        gpu.launch("use", reads=[array], duration=KERNEL_S)
    del array
    with one:
        following = gpu.empty(MIB)
        gpu.launch("next", writes=[following], duration=KERNEL_S)


def copies_twice(gpu):
    one, other = streams(gpu)
    array = gpu.empty(64 * MIB)
    for stream in (one, other):
        with stream:
            gpu.copy_to_device(array, pinned=True)


def test_a_hazard_is_a_finding_with_both_lines_and_its_operations():
    recording = timed(races)
    (finding,) = (each for each in recording.findings() if each.rule == "R40")
    (hazard,) = recording.hazards()
    activities = recording.tables["activities"]

    assert finding.title == (
        "The numbers may be wrong: read without waiting for the write, by `fill` and `use` "
        "(64.0 MiB)."
    )
    assert finding.reason == (
        "Nothing orders these operations. They overlapped or ran in the opposite order in this run."
    )
    assert (finding.certainty, finding.change) == ("likely", hazard.fix)
    assert [line.site for line in finding.lines] == [hazard.first.site, hazard.second.site]
    assert [line.stack for line in finding.lines] == [hazard.first.stack, hazard.second.stack]
    assert finding.evidence.table == "activities"
    assert finding.evidence.rows == (hazard.first.activity, hazard.second.activity)
    assert finding.evidence.window == (
        activities["time"][hazard.first.activity].as_py(),
        activities["end"][hazard.second.activity].as_py(),
    )


def test_a_hazard_that_did_not_show_is_one_too():
    (finding,) = found(lambda gpu: races(gpu, share=1.0), "R40")

    assert finding.reason.endswith("They ran in order in this run, and may not in the next.")


def test_what_looks_alike_and_what_follows_the_fix_has_none():
    for program in (follows_the_fix, waits_on_the_host, only_reads, frees_without_reuse):
        assert small(program, "R40") == []


def test_reused_memory_is_one_and_its_latent_free_is_not():
    (finding,) = found(frees_and_reuses, "R40")

    assert "memory reused while it may still be in use, by `use` and `next`" in finding.title
    assert "gpuviz.record_stream" in finding.change
    assert [each.tier for each in timed(frees_and_reuses).hazards()] == ["probable", "latent"]


def test_known_bytes_make_it_certain():
    (finding,) = found(copies_twice, "R40")

    assert finding.certainty == "certain"


def test_it_comes_before_all_that_saves_something():
    def program(gpu):
        unused = gpu.empty(512 * MIB)
        gpu.fill(unused)
        gpu.synchronize()
        races(gpu)

    recording = timed(program)
    rules = [each.rule for each in recording.findings()]
    text = conclusions_text(recording, conclusions(recording), 5)

    assert rules[0] == "R40"
    assert len(rules) > 1
    assert text.startswith("1. The numbers may be wrong: ")
    assert "[R40, likely]\n   Nothing orders" in text


def test_a_report_shows_it_first_and_once():
    recording = timed(races)
    shown = conclusions(recording)
    page = build_page(recording)
    first = page.partition("<ol>")[2].partition("</ol>")[0]

    assert [each.is_alarm for each in shown] == sorted(each.is_alarm for each in shown)[::-1]
    assert rows_of(recording, shown[0]) == ("kernels", ("fill", "use"))
    assert first.count("The numbers may be wrong") == 2  # the line and its tooltip
    assert page.count("The numbers may be wrong") == 3


def hands_over(gpu, *, order=lambda *_: None):
    one, other = streams(gpu)
    with one:
        images, masks = gpu.empty(64 * MIB), gpu.empty(32 * MIB)
        gpu.launch("load", writes=[images], duration=KERNEL_S, share=0.1)
        gpu.launch("label", writes=[masks], duration=KERNEL_S, share=0.1)
    order(one, other)
    with other:
        gpu.launch("filter", reads=[images, masks], duration=KERNEL_S, share=0.1)
        gpu.launch("erase", writes=[masks], reads=[images], duration=KERNEL_S, share=0.1)
    gpu.synchronize()


def test_one_missing_wait_is_one_finding():
    recording = timed(hands_over)
    (finding,) = (each for each in recording.findings() if each.rule == "R40")
    ordered = timed(
        lambda gpu: hands_over(gpu, order=lambda one, two: two.wait_event(one.record()))
    )

    assert len(recording.hazards()) == 4
    assert "The same change also orders 3 more conflicts." in finding.reason
    assert finding.change.startswith("Record an event on ")
    assert [each.rule for each in ordered.findings() if each.rule == "R40"] == []


def test_hazards_that_no_single_wait_orders_are_findings_of_their_own():
    def alternates(gpu):
        one, other = streams(gpu)
        arrays = [gpu.empty(64 * MIB) for _ in range(2)]
        for number, array in enumerate(arrays):
            with one:
                gpu.launch(f"fill {number}", writes=[array], duration=KERNEL_S, share=0.1)
            with other:
                gpu.launch(f"use {number}", reads=[array], duration=KERNEL_S, share=0.1)
        gpu.synchronize()

    found = [each for each in timed(alternates).findings() if each.rule == "R40"]

    assert len(found) == len(timed(alternates).hazards())


def test_a_file_keeps_it(tmp_path):
    recording = timed(races)
    path = recording.save(tmp_path / "run.gpuviz")

    assert load(path).findings() == findings(gpuviz.Recording(recording.tables, recording.manifest))


def test_a_recording_in_progress_has_none():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        races(gpu)
        live = recorder.recording

    assert "R40" not in {each.rule for each in live.findings()}
    assert "R40" in {each.rule for each in recorder.recording.findings()}


def loses_its_memory(gpu):
    (stream, _) = streams(gpu)
    with stream:
        temporary = gpu.empty(64 * MIB)
        stream.begin_capture()
        gpu.launch("make", writes=[temporary], duration=KERNEL_S)
        graph = stream.end_capture()
        del temporary
        other = gpu.empty(64 * MIB)
        graph.launch()
    gpu.synchronize()
    assert other.ptr


def test_a_graph_that_overwrites_another_array_is_one():
    (finding,) = (each for each in timed(loses_its_memory).findings() if each.rule == "R40")

    assert "memory of a graph belongs to another array" in finding.title
    assert finding.reason.startswith("The graph uses memory that was freed")
    assert "as long as the graph is launched" in finding.change
