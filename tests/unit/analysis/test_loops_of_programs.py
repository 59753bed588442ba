"""The iterations of programs on a simulated GPU, as their authors would count them."""

import itertools
import threading

import pytest

import gpuviz

LAYERS = 10


def launch(gpu, *names):
    for name in names:
        gpu.launch(name, duration=1e-4)


def model(gpu):
    for _ in range(20):
        gpu.launch("embed", duration=1e-4)
        for _ in range(LAYERS):
            gpu.launch("attention", duration=1e-4)
            gpu.launch("mlp", duration=1e-4)
        gpu.launch("head", duration=1e-4)


def requests(gpu):
    """Each with as many tokens as it needs, each of which runs all layers."""
    for tokens in (9, 15, 12, 20):
        gpu.launch("embed", duration=1e-4)
        for _ in range(tokens):
            for _ in range(LAYERS):
                gpu.launch("attention", duration=1e-4)
                gpu.launch("mlp", duration=1e-4)
            gpu.launch("sample", duration=1e-4)


def steps_that_log(gpu):
    """The same launches as of a model with a head, but for what is indented."""
    for step in range(20 * LAYERS):
        gpu.launch("forward", duration=1e-4)
        gpu.launch("backward", duration=1e-4)
        if step % LAYERS == LAYERS - 1:
            gpu.launch("log", duration=1e-4)


def first_step_logs(gpu):
    for step in range(40):
        gpu.launch("forward", duration=1e-4)
        gpu.launch("backward", duration=1e-4)
        gpu.launch("update", duration=1e-4)
        if step % 10 == 0:
            gpu.launch("norm", duration=1e-4)
            gpu.launch("log", duration=1e-4)


def epochs(gpu):
    for _ in range(5):
        for _ in range(20):
            gpu.launch("forward", duration=1e-4)
            gpu.launch("backward", duration=1e-4)
        gpu.launch("evaluate", duration=1e-4)


def uneven_requests(gpu):
    for number in range(30):
        gpu.launch("decode", duration=1e-4)
        for _ in range((1, 3, 2, 5, 1, 4)[number % 6]):
            gpu.launch("encode", duration=1e-4)
        gpu.launch("answer", duration=1e-4)


def two_phases(gpu):
    for _ in range(30):
        gpu.launch("assemble", duration=1e-4)
        gpu.launch("scatter", duration=1e-4)
    for _ in range(30):
        gpu.launch("multiply", duration=1e-4)
        gpu.launch("reduce", duration=1e-4)
        gpu.launch("update", duration=1e-4)


def workers(gpu):
    """Two threads take turns, so that none of them launches alone."""
    turns = [threading.Semaphore(1), threading.Semaphore(0)]

    def work(own):
        with gpu.Stream(non_blocking=True):
            for _ in range(20):
                turns[own].acquire()
                gpu.launch("load", duration=1e-4)
                turns[1 - own].release()
                turns[own].acquire()
                gpu.launch("filter", duration=1e-4)
                gpu.launch("store", duration=1e-4)
                turns[1 - own].release()

    threads = [threading.Thread(target=work, args=(own,)) for own in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def work_in_turns(gpu):
    """Two lines that run at random are no loop, though they always take turns."""
    for number in range(30):
        launch(gpu, *["first"] * (number * 7 % 5 + 1))
        for _ in range(number * 3 % 4 + 1):
            gpu.launch("second", duration=1e-4)


@pytest.mark.parametrize(
    ("program", "count"),
    [
        (model, 20),
        (requests, 9 + 15 + 12 + 20),
        (steps_that_log, 20 * LAYERS),
        (first_step_logs, 40),
        (epochs, 5 * 20),
        (uneven_requests, 30),
        (two_phases, 30),
        (work_in_turns, 0),
    ],
)
def test_iterations_are_those_of_the_loop_that_its_author_would_count(program, count):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        program(gpu)
    found = recorder.recording.iterations()

    assert found.num_rows == count
    for before, after in itertools.pairwise(found.to_pylist()):
        assert before["end"] == after["start"]


def test_of_threads_that_run_the_same_loop_one_has_the_iterations():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        workers(gpu)

    assert recorder.recording.iterations().num_rows == 20
