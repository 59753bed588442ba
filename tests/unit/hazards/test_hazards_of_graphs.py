"""Hazards of the arrays that captured kernels access at each launch of their graph."""

import pytest

import gpuviz
from gpuviz.present.text import hazards_text
from tests.unit.hazards.two_streams import LONG_S, SIZE, captured, write_then_read


def test_a_captured_kernel_accesses_its_arrays_at_each_launch_of_the_graph(program):
    a = program.empty(program.s)
    graph = captured(program, program.s, ("node", [], [a]))
    program.launch(program.t, "read", reads=[a])  # nothing has run before it
    program.gpu.synchronize()
    for _ in range(3):
        graph.launch(program.s)
        program.launch(program.t, "read", reads=[a])
        program.gpu.synchronize()

    (found,) = program.recording().hazards()
    assert (found.kind, found.first.name, found.second.name) == ("RAW", "graph launch", "read")
    assert (found.count, found.showed) == (3, True)
    assert "graph.launch(program.s)" in found.first.source


def test_a_stream_that_waits_for_a_graph_may_use_its_arrays(program):
    a = program.empty(program.s)
    graph = captured(program, program.s, ("node", [], [a]))
    for _ in range(3):
        graph.launch(program.s)
        program.t.wait_event(program.s.record())
        program.launch(program.t, "read", reads=[a])
        program.s.wait_event(program.t.record())

    assert program.found() == []


def test_two_graphs_of_the_same_temporary_are_unordered_on_two_streams(program):
    out = [program.empty(program.s) for _ in range(2)]
    graphs = []
    for each in out:
        temporary = program.empty(program.s)
        graphs.append(
            captured(program, program.s, ("make", [], [temporary]), ("use", [temporary], [each]))
        )
        del temporary
    graphs[0].launch(program.s)
    graphs[1].launch(program.t)

    found = {each.kind: each for each in program.recording().hazards()}
    assert found.keys() == {"WAW", "use_after_free"}
    assert "graphs[0].launch" in found["WAW"].first.source
    assert "graphs[1].launch" in found["WAW"].second.source
    assert found["use_after_free"].tier == "latent"


def test_a_temporary_that_another_array_owns_by_then_is_reused(program):
    out = program.empty(program.s)
    temporary = program.empty(program.s)
    graph = captured(program, program.s, ("make", [], [temporary]), ("use", [temporary], [out]))
    del temporary
    other = program.empty(program.s)
    graph.launch(program.s)

    (found,) = program.recording().hazards()
    assert (found.kind, found.first.name, found.second.name) == (
        "reuse", "allocation", "graph launch",
    )  # fmt: skip
    assert found.showed
    assert "as long as the graph is launched" in found.fix
    assert "memory of a graph belongs to another array" in hazards_text(
        program.recorder.recording, [found]
    )
    assert other.ptr


@pytest.mark.parametrize("input_is_read", [True, False])
def test_what_a_later_owner_left_matters_to_a_graph_that_reads_it(program, input_is_read):
    out = program.empty(program.s)
    first = program.empty(program.s)
    kernel = ("use", [first], [out]) if input_is_read else ("fill", [out], [first])
    graph = captured(program, program.s, kernel)
    del first, kernel
    later = program.empty(program.s)
    program.launch(program.s, "overwrite", writes=[later])
    del later
    graph.launch(program.s)

    (found,) = program.recording().hazards()
    wanted = ("reuse", "allocation") if input_is_read else ("use_after_free", "free")
    assert (found.kind, found.first.name) == wanted
    assert found.tier == ("probable" if input_is_read else "latent")


def test_a_graph_whose_arrays_are_kept_is_none(program):
    out, temporary = program.empty(program.s), program.empty(program.s)
    graph = captured(program, program.s, ("make", [], [temporary]), ("use", [temporary], [out]))
    other = program.empty(program.s)
    program.launch(program.s, "overwrite", writes=[other])
    for _ in range(2):
        graph.launch(program.s)

    assert program.found() == []


def test_a_temporary_that_became_a_result_of_its_own_graph_is_none(program):
    program.s.begin_capture()
    temporary = program.empty(program.s)
    program.launch(program.s, "make", writes=[temporary])
    between = program.empty(program.s)
    program.launch(program.s, "use", reads=[temporary], writes=[between])
    del temporary
    result = program.empty(program.s)  # the same memory
    program.launch(program.s, "finish", reads=[between], writes=[result])
    graph = program.s.end_capture()
    for _ in range(2):
        graph.launch(program.s)

    assert program.found() == []


def test_a_graph_with_a_kernel_of_a_communication_library_orders_what_came_before(program):
    a = program.empty(program.s)
    graph = captured(program, program.t, ("ncclDevKernel_AllReduce", [], [a]))
    write_then_read(program, lambda program: graph.launch(program.t))

    assert program.found() == []


def test_a_graph_captured_before_the_recording_orders_what_came_before():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    s, t = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    t.begin_capture()
    with t:
        gpu.launch("node", duration=LONG_S)
    graph = t.end_capture()
    with gpuviz.record(device=gpu) as recorder:
        with s:
            a = gpu.empty(SIZE)
            gpu.launch("write", writes=[a], duration=LONG_S)
        graph.launch(t)
        with t:
            gpu.launch("read", reads=[a], duration=LONG_S)
        gpu.synchronize()

    assert recorder.recording.tables["graph_calls"]["capture"].to_pylist() == [0]
    assert recorder.recording.hazards() == ()
