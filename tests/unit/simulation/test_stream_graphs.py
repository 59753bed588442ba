"""Graphs and captures of simulated streams."""

import pytest

from tests.unit.simulation.tables_of import activities, calls, kernels


def test_the_kernels_of_a_graph_are_activities_of_one_call(recorded):
    def program(gpu):
        stream = gpu.Stream(non_blocking=True)
        stream.begin_capture()
        with stream:
            gpu.launch("a", duration=10e-6, grid=(2, 3), block=(64,), registers=40)
            gpu.launch("b", duration=20e-6)
        graph = stream.end_capture()
        for _ in range(2):
            graph.launch(stream)

    recording = recorded(program)

    rows = activities(recording, "kernel")
    launches = calls(recording, "cuGraphLaunch")
    assert [row["name"] for row in rows] == ["a", "b", "a", "b"]
    assert [row["correlation"] for row in rows] == [
        row["correlation"] for row in launches for _ in range(2)
    ]
    assert rows[0]["end"] == rows[1]["time"]
    assert len({row["graph"] for row in rows}) == 1
    assert [row["graph_node"] for row in rows[:2]] == [row["graph_node"] for row in rows[2:]]
    assert len({row["graph_node"] for row in rows}) == 2
    [configuration] = [
        row
        for row in recording.table("launch_configurations").to_pylist()
        if row["id"] == rows[0]["launch"]
    ]
    assert [configuration[f"grid_{axis}"] for axis in "xyz"] == [2, 3, 1]
    assert (configuration["block_x"], configuration["registers"]) == (64, 40)


def test_a_graph_that_is_gone_has_run_and_is_never_mixed_up_with_another(recorded):
    def program(gpu):
        stream = gpu.Stream(non_blocking=True)
        for name in ("a", "b"):
            stream.begin_capture()
            with stream:
                gpu.launch(name, duration=1e-3)
            stream.end_capture().launch(stream)

    found = kernels(recorded(program))

    assert found["a"]["end"] <= found["b"]["time"]
    assert 0 < found["a"]["graph"] < found["b"]["graph"]


@pytest.mark.parametrize(
    ("refused", "what"),
    [
        (lambda gpu, _: gpu.copy_to_host(gpu.empty(10)), "a copy"),
        (lambda gpu, _: gpu.fill(gpu.empty(10)), "a fill"),
        (lambda _, stream: stream.record(), "an event"),
        (lambda gpu, stream: stream.wait_event(gpu.Event()), "a wait"),
        (lambda _, stream: stream.synchronize(), "a wait"),
    ],
)
def test_a_graph_takes_kernels_only(gpu, refused, what):
    stream = gpu.Stream()
    stream.begin_capture()

    with (
        stream,
        pytest.raises(RuntimeError, match=rf"kernels only; call end_capture\(\) before {what}"),
    ):
        refused(gpu, stream)


def test_captures_begin_and_end_in_turn(gpu):
    stream = gpu.Stream()

    with pytest.raises(RuntimeError, match="not capturing"):
        stream.end_capture()
    stream.begin_capture()
    with pytest.raises(RuntimeError, match="already capturing"):
        stream.begin_capture()
