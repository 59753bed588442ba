"""Kernels that a program compiled or loaded."""

import gpuviz


def launched(gpu, kernel):
    gpu.launch(kernel, duration=1e-3)


def program(gpu):
    gpu.compile("scale", duration=3e-3)
    launched(gpu, "scale")
    with gpuviz.range("a range of the program"):
        gpu.compile("shift", duration=2e-3, cached=True)
        launched(gpu, "shift")


def recorded():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        program(gpu)
        gpu.synchronize()
    return recorder.recording


def test_each_module_has_its_times_its_line_and_whether_it_was_cached(tmp_path):
    recording = recorded()

    rows = recording.compilations().to_pylist()

    assert [(row["kernels"], row["duration_ns"], row["compile_ns"]) for row in rows] == [
        ("scale", 3_000_000, 3_000_000),
        ("shift", 2_000_000, 0),
    ]
    assert [row["cached"] for row in rows] == [False, True]
    assert {row["source"] for row in rows} == {"gpu.launch(kernel, duration=1e-3)"}
    assert [row["stack"] for row in rows] != [0, 0]
    loaded = gpuviz.load(recording.save(tmp_path / "run.gpuviz"))
    assert loaded.compilations().equals(recording.compilations())


def test_a_compilation_is_no_range_of_the_program():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        for _ in range(10):
            gpu.compile("scale", duration=3e-3)
            launched(gpu, "scale")
            gpu.synchronize()
    recording = recorder.recording

    assert {row["kind"] for row in recording.table("ranges").to_pylist()} == {"load", "compile"}
    assert recording.iterations().num_rows == 0


def test_a_recording_without_compilations_has_none():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        launched(gpu, "scale")

    assert recorder.recording.compilations().num_rows == 0


def test_without_a_recording_nothing_is_kept():
    gpu = gpuviz.SimulatedGPU(real_time=False)

    gpu.compile("scale", duration=3e-3)

    with gpuviz.record(device=gpu) as recorder:
        launched(gpu, "scale")
    assert recorder.recording.table("ranges").num_rows == 0
