import pytest

from gpuviz.doctor import gpu_use
from gpuviz.doctor.machine import Machine
from gpuviz.recorder.nvml import Gpu

GIB = 1 << 30


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "proc/11").mkdir(parents=True)
    (tmp_path / "proc/11/cmdline").write_text("python\0train.py\0")
    return Machine(root=tmp_path, environment={})


def told(findings):
    return [(finding.topic, finding.level, finding.found) for finding in findings]


def test_nvml_is_missed_only_where_there_is_a_driver(machine):
    assert told(gpu_use.findings(machine, "NVML Shared Library Not Found", has_driver=False)) == []
    assert told(gpu_use.findings(machine, "Not Found", has_driver=True)) == [
        ("NVML", "warning", "Not Found")
    ]


def test_memory_is_told_by_process(machine):
    processes = ((11, 2 * GIB),)
    gpu = Gpu(index=0, name="L4", uuid="", total=80 * GIB, used=3 * GIB, processes=processes)
    [finding] = gpu_use.findings(machine, [gpu], has_driver=True)

    assert (finding.topic, finding.level) == ("GPU 0, L4", "ok")
    assert finding.found == "3.00 GiB of 80.0 GiB used: process 11 (python train.py) 2.00 GiB"


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        ((), ", by processes that are not visible here"),
        (((99, None),), ": process 99 (in another container, or of another user) an unknown size"),
    ],
)
def test_a_full_gpu_is_a_warning(machine, processes, expected):
    gpu = Gpu(index=0, name="L4", uuid="", total=24 * GIB, used=18 * GIB, processes=processes)
    [finding] = gpu_use.findings(machine, [gpu], has_driver=True)

    assert finding.level == "warning"
    assert finding.found == f"18.0 GiB of 24.0 GiB used{expected}"
    assert finding.meaning == "75 % is in use; 6.00 GiB is free."


def test_a_gpu_without_memory_of_its_own_is_told_with_that_of_the_host(machine):
    gpu = Gpu(
        index=0, name="GB10", uuid="", total=128 * GIB, used=32 * GIB, shares_host_memory=True
    )
    [finding] = gpu_use.findings(machine, [gpu], has_driver=True)

    assert finding.found == "32.0 GiB of 128 GiB of the host's memory used"


def test_a_gpu_whose_memory_is_unknown_is_told_with_its_processes(machine):
    gpu = Gpu(index=0, name="L4", uuid="", processes=((11, 2 * GIB),))
    [finding] = gpu_use.findings(machine, [gpu], has_driver=True)

    assert finding.found == "memory in use unknown: process 11 (python train.py) 2.00 GiB"


def test_mig_and_compute_modes_are_told(machine):
    gpus = [
        Gpu(index=0, name="A", uuid="", mig=True, compute_mode="exclusive process"),
        Gpu(index=1, name="B", uuid="", compute_mode="prohibited"),
    ]
    found = told(gpu_use.findings(machine, gpus, has_driver=True))

    assert [each[:2] for each in found] == [
        ("GPU 0, A", "ok"),
        ("MIG on GPU 0", "warning"),
        ("compute mode of GPU 0", "warning"),
        ("GPU 1, B", "ok"),
        ("compute mode of GPU 1", "problem"),
    ]


@pytest.mark.parametrize("variable", [None, "/run/mps"])
def test_the_daemon_of_mps_is_seen_by_its_pipe(tmp_path, variable):
    environment = {} if variable is None else {"CUDA_MPS_PIPE_DIRECTORY": variable}
    machine = Machine(root=tmp_path, environment=environment)
    before = list(gpu_use.findings(machine, [], has_driver=True))
    pipes = tmp_path / (variable or "/tmp/nvidia-mps").lstrip("/")  # noqa: S108 - MPS's own
    pipes.mkdir(parents=True)
    (pipes / "control").touch()

    assert before == []
    assert told(gpu_use.findings(machine, [], has_driver=True)) == [
        ("MPS", "warning", "the daemon is running")
    ]
