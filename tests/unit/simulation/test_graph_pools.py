"""`gpuviz.graph` on the simulated GPU."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from tests.unit.simulation.captured_graphs import LONG_S, SIZE, captured, reserved


@pytest.fixture
def gpu():
    return gpuviz.SimulatedGPU(real_time=False)


@pytest.fixture
def stream(gpu):
    return gpu.Stream(non_blocking=True)


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
