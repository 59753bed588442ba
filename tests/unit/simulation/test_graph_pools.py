"""`gpuviz.graph` on the simulated GPU."""

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz

MIB = 1 << 20
SIZE = 4 * MIB
LONG_S = 1.0


@pytest.fixture
def gpu():
    return gpuviz.SimulatedGPU(real_time=False)


@pytest.fixture
def stream(gpu):
    return gpu.Stream(non_blocking=True)


def reserved(gpu):
    return gpu.memory_stats()["reserved_bytes.all.current"]


def captured(gpu, stream, pool=None, duration=1e-6):
    """Return a graph with a freed temporary, the temporary's address, and the result."""
    with gpuviz.graph(stream, pool) as graph:
        temporary, result = gpu.empty(SIZE), gpu.empty(SIZE)
        gpu.launch("make", writes=[temporary], duration=duration)
        gpu.launch("use", reads=[temporary], writes=[result], duration=duration)
    return graph, temporary.ptr, result


def recorded(gpu, program):
    with gpuviz.record(device=gpu) as recorder:
        program()
    return recorder.recording


def test_nothing_else_gets_the_memory_of_a_temporary(gpu, stream):
    graph, temporary, _result = captured(gpu, stream)
    with stream:
        others = [gpu.empty(SIZE) for _ in range(4)]

    assert temporary not in [each.ptr for each in others]
    assert graph.pool.id == (0, 1)
    assert sum(each["total_size"] for each in graph.pool.snapshot()) >= 2 * SIZE


def test_the_block_makes_the_stream_current_and_ends_with_its_capture(gpu, stream):
    with gpuviz.graph(stream):
        assert gpu.current_stream is stream
        assert stream.is_capturing()

    assert gpu.current_stream is not stream
    assert not stream.is_capturing()


def test_the_memory_is_released_with_the_graph_and_its_arrays(gpu, stream):
    graph, _, result = captured(gpu, stream)
    del graph
    gpu.empty_cache()
    assert reserved(gpu) > 0

    del result
    gpu.empty_cache()
    assert reserved(gpu) == 0


def test_emptying_the_cache_leaves_the_memory_of_a_graph(gpu, stream):
    graph, _, result = captured(gpu, stream)
    del result
    before = graph.pool.snapshot()
    gpu.empty_cache()

    assert graph.pool.snapshot() == before


def test_graphs_with_one_pool_use_the_same_memory(gpu, stream):
    first, temporary, result = captured(gpu, stream)
    second, shared, other = captured(gpu, stream, first.pool)

    assert second.pool is first.pool
    assert shared == temporary
    assert other.ptr != result.ptr

    del first, result, other
    gpu.empty_cache()
    assert reserved(gpu) > 0
    del second
    gpu.empty_cache()
    assert reserved(gpu) == 0


def test_what_a_graph_uses_stays_as_long_as_the_graph_and_nothing_else(gpu, stream):
    used, later, unused = gpu.empty(SIZE), gpu.empty(SIZE), gpu.empty(SIZE)
    addresses = [used.ptr, later.ptr, unused.ptr]
    with gpuviz.graph(stream) as graph:
        gpu.launch("use", reads=[used, later], duration=1e-6)
        del used, unused
        assert gpu.empty(SIZE).ptr not in addresses
    assert graph.held_bytes == 2 * SIZE
    assert gpu.memory_stats()["active_bytes.all.current"] == 2 * SIZE
    del later
    got = [gpu.empty(SIZE) for _ in range(4)]
    assert {each.ptr for each in got} & set(addresses) == {addresses[2]}

    del got, graph
    assert gpu.memory_stats()["active_bytes.all.current"] == 0
    assert {each.ptr for each in [gpu.empty(SIZE) for _ in range(3)]} == set(addresses)


def test_what_two_graphs_use_stays_until_both_are_gone(gpu, stream):
    x = gpu.empty(SIZE)
    graphs = []
    for _ in range(2):
        with gpuviz.graph(stream) as graph:
            gpu.launch("use", reads=[x], duration=1e-6)
        graphs.append(graph)
    del x, graph

    for left in (1, 0):
        assert gpu.memory_stats()["active_bytes.all.current"] == SIZE
        graphs.pop()
        assert len(graphs) == left
    assert gpu.memory_stats()["active_bytes.all.current"] == 0


def test_an_array_that_was_held_still_waits_for_other_streams(gpu, stream):
    def active():
        gpu.empty(1)  # looks for completed frees
        return gpu.memory_stats()["active_bytes.all.current"]

    x, other = gpu.empty(SIZE), gpu.Stream(non_blocking=True)
    with gpuviz.graph(stream) as graph:
        gpu.launch("use", reads=[x], duration=1e-6)
    with other:
        gpu.launch("read", reads=[x], duration=LONG_S)
    gpu.record_stream(x, other)
    del x, graph
    assert active() == SIZE

    other.synchronize()
    assert active() == 0


def test_a_failed_capture_holds_nothing(gpu, stream):
    def use_and_fail():
        x = gpu.empty(SIZE)
        with gpuviz.graph(stream):
            gpu.launch("use", reads=[x], duration=1e-6)
            allocate_and_fail(gpu)

    with pytest.raises(KeyError):
        use_and_fail()
    gc.collect()  # the traceback of the exception referred to the arrays

    assert gpu.memory_stats()["active_bytes.all.current"] == 0


def test_a_kept_object_lives_as_long_as_the_graph(gpu, stream):
    elsewhere = gpuviz.SimulatedGPU(real_time=False)
    x = elsewhere.empty(SIZE)
    graph, _, _result = captured(gpu, stream)
    graph.keep(x)
    del x
    assert elsewhere.memory_stats()["allocated_bytes.all.current"] == SIZE

    del graph
    assert elsewhere.memory_stats()["allocated_bytes.all.current"] == 0


def test_deleting_a_graph_that_runs_waits_for_it(gpu, stream):
    other = gpu.Stream(non_blocking=True)
    graph, _, _result = captured(gpu, stream, duration=LONG_S)
    graph.replay()
    graph.replay(other)
    assert graph.replays == 2
    assert not other.done

    del graph
    assert stream.done
    assert other.done


def test_a_graph_that_its_successor_replaces_keeps_its_memory_until_the_capture_ends(gpu, stream):
    graph, temporary, result = captured(gpu, stream, duration=LONG_S)
    graph.replay()
    del result
    assert not stream.done

    with gpuviz.graph(stream) as graph:  # deletes the one before
        others = [gpu.empty(SIZE) for _ in range(4)]
        gpu.launch("make", writes=[others[0]], duration=1e-6)
        gpu.empty_cache()
        during = reserved(gpu)
    gpu.empty_cache()

    assert stream.done
    assert temporary not in [each.ptr for each in others]
    new = sum(each["total_size"] for each in graph.pool.snapshot())
    assert during > reserved(gpu) == new


def allocate_and_fail(gpu):
    gpu.empty(SIZE)
    raise KeyError("reason")


def test_an_exception_ends_the_capture_and_releases_its_memory(gpu, stream):
    with pytest.raises(KeyError, match="reason"), gpuviz.graph(stream) as graph:
        allocate_and_fail(gpu)
    with pytest.raises(RuntimeError, match="its capture has not ended, or failed"):
        graph.replay()
    assert not stream.is_capturing()

    del graph
    gpu.empty_cache()
    assert reserved(gpu) == 0
    captured(gpu, stream)[0].replay()


def test_a_graph_cannot_be_captured_or_replayed_in_a_capture(gpu, stream):
    graph, _, _result = captured(gpu, stream)
    with gpuviz.graph(stream):
        with (
            pytest.raises(RuntimeError, match="This stream is already capturing"),
            gpuviz.graph(stream),
        ):
            pass
        with pytest.raises(RuntimeError, match="A simulated graph contains kernels only"):
            graph.replay()
    other = gpu.Stream(non_blocking=True)
    other.begin_capture()
    with pytest.raises(RuntimeError, match="cannot be replayed on a stream that is capturing"):
        graph.replay(other)


def test_a_capture_that_cannot_begin_leaves_no_pool_active(gpu, stream, monkeypatch):
    def refuse():
        raise RuntimeError("refused")

    monkeypatch.setattr(stream, "begin_capture", refuse)
    with pytest.raises(RuntimeError, match="refused"), gpuviz.graph(stream):
        pass

    assert gpu.current_stream is not stream
    x = gpu.empty(SIZE)
    gpu.empty_cache()
    del x
    gpu.empty_cache()
    assert reserved(gpu) == 0


def test_a_capture_that_fails_at_its_end_releases_its_memory(gpu, stream, monkeypatch):
    def invalidated():
        raise OSError("the capture was invalidated")

    monkeypatch.setattr(stream, "end_capture", invalidated)
    with pytest.raises(RuntimeError, match="The capture failed: the capture was invalidated"):
        captured(gpu, stream)

    gc.collect()  # the traceback of the exception referred to the arrays
    gpu.empty_cache()
    assert reserved(gpu) == 0


def test_arguments_of_another_kind_are_refused(gpu, stream):
    graph, _, _result = captured(gpu, stream)
    elsewhere = gpuviz.SimulatedGPU(real_time=False).Stream()
    for arguments, error, text in [
        ((7,), TypeError, "stream must be a cupy.cuda.Stream, got int"),
        ((stream, 7), TypeError, "pool must be the pool of a gpuviz.graph, got int"),
        ((elsewhere, graph.pool), ValueError, "another device"),
    ]:
        with pytest.raises(error, match=text), gpuviz.graph(*arguments):
            pass


def reused_temporary(gpu, stream, capture):
    with stream:
        graph, _, _result = capture(gpu, stream)
        other = gpu.empty(SIZE)
        gpu.launch("fill", writes=[other], duration=1e-6)
        graph.launch(stream) if hasattr(graph, "launch") else graph.replay()
        gpu.launch("read", reads=[other], duration=1e-6)
    gpu.synchronize()


def captured_without_pool(gpu, stream):
    stream.begin_capture()
    temporary, result = gpu.empty(SIZE), gpu.empty(SIZE)
    gpu.launch("make", writes=[temporary], duration=1e-6)
    gpu.launch("use", reads=[temporary], writes=[result], duration=1e-6)
    del temporary
    return stream.end_capture(), 0, result


@pytest.mark.parametrize(
    ("capture", "kinds"), [(captured_without_pool, {"reuse"}), (captured, set())]
)
def test_a_pool_prevents_the_reuse_of_a_temporary(gpu, stream, capture, kinds):
    recording = recorded(gpu, lambda: reused_temporary(gpu, stream, capture))

    assert {each.kind for each in recording.hazards()} == kinds


@pytest.mark.parametrize(("holds", "kinds"), [(False, {"reuse"}), (True, set())])
def test_an_input_that_the_program_dropped_is_not_reused(gpu, stream, holds, kinds):
    def program():
        with stream:
            x, result = gpu.empty(SIZE), gpu.empty(SIZE)
            gpu.launch("fill", writes=[x], duration=1e-6)
            if holds:
                with gpuviz.graph(stream) as graph:
                    gpu.launch("use", reads=[x], writes=[result], duration=1e-6)
            else:
                stream.begin_capture()
                gpu.launch("use", reads=[x], writes=[result], duration=1e-6)
                graph = stream.end_capture()
            del x
            other = gpu.empty(SIZE)
            gpu.launch("fill", writes=[other], duration=1e-6)
            graph.replay() if holds else graph.launch(stream)
        gpu.synchronize()

    assert {each.kind for each in recorded(gpu, program).hazards()} == kinds


@pytest.mark.parametrize(("shares", "kinds"), [(True, {"WAW"}), (False, set())])
def test_graphs_that_run_at_once_need_their_own_pools(gpu, stream, shares, kinds):
    def program():
        other = gpu.Stream(non_blocking=True)
        first, _, _result = captured(gpu, stream)
        second, _, _other_result = captured(gpu, stream, first.pool if shares else None)
        first.replay()
        second.replay(other)
        gpu.synchronize()

    assert {each.kind for each in recorded(gpu, program).hazards()} == kinds


def of_three_graphs(gpu, stream):
    first, _, result = captured(gpu, stream)
    shared, _, _shared_result = captured(gpu, stream, first.pool)
    alone, _, _other = captured(gpu, stream)
    del result
    for graph, replays in ((first, 3), (shared, 1), (alone, 4)):
        for _ in range(replays):
            graph.replay()
    gpu.synchronize()


def test_the_pools_of_graphs_are_listed_with_their_memory_and_replays(gpu, stream):
    rows = recorded(gpu, lambda: of_three_graphs(gpu, stream)).graph_pools().to_pylist()

    # The second graph uses the temporary of the first; both results were alive at once.
    assert [(row["pool"], row["graphs"], row["replays"]) for row in rows] == [(1, 2, 4), (2, 1, 4)]
    assert [row["allocated_peak"] for row in rows] == [3 * SIZE, 2 * SIZE]
    assert [row["allocated"] for row in rows] == [0, 0]
    assert all(row["reserved_peak"] >= row["allocated_peak"] for row in rows)


def test_without_captured_graphs_no_pool_is_listed(gpu, stream):
    def program():
        with stream:
            gpu.launch("use", writes=[gpu.empty(SIZE)], duration=1e-6)

    assert recorded(gpu, program).graph_pools().num_rows == 0


@pytest.mark.parametrize("has_graphs", [False, True])
def test_a_report_has_the_pools_of_graphs(gpu, stream, tmp_path, has_graphs):
    recording = recorded(gpu, lambda: of_three_graphs(gpu, stream) if has_graphs else None)
    page = recording.report(tmp_path / "report.html").read_text()

    assert ("<h3>Graphs</h3>" in page) == has_graphs


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["capture", "share", "use", "replay", "allocate", "free", "destroy"]),
            st.integers(0, 5),
        ),
        max_size=30,
    )
)
def test_no_memory_of_a_graph_is_handed_out_while_it_exists(steps):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    stream = gpu.Stream(non_blocking=True)
    # With the address of a temporary, or of an array that the graph uses.
    graphs, arrays = [], []

    def chosen(things, number):
        return things[number % len(things)]

    for step, number in steps:
        if step == "capture" or (step == "share" and not graphs):
            graphs.append(captured(gpu, stream)[:2])
        elif step == "share":
            graphs.append(captured(gpu, stream, chosen(graphs, number)[0].pool)[:2])
        elif step == "use" and arrays:
            used = chosen(arrays, number)
            with gpuviz.graph(stream) as graph:
                gpu.launch("use", reads=[used], duration=1e-6)
            graphs.append((graph, used.ptr))
            del used, graph
        elif step == "replay" and graphs:
            chosen(graphs, number)[0].replay()
        elif step == "allocate":
            with stream:
                arrays.append(gpu.empty(SIZE))
            assert arrays[-1].ptr not in [address for _, address in graphs]
        elif step == "free" and arrays:
            arrays.pop(number % len(arrays))
        elif step == "destroy" and graphs:
            graphs.pop(number % len(graphs))

    graphs.clear()
    arrays.clear()
    gpu.empty_cache()
    assert reserved(gpu) == 0
    assert gpu.memory_stats()["allocated_bytes.all.current"] == 0
