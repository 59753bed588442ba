"""GPU memory by process, and sharing modes."""

from collections.abc import Iterator

from gpuviz.doctor.finding import Finding
from gpuviz.doctor.machine import Machine
from gpuviz.quantities import format_bytes, format_share
from gpuviz.recorder.nvml import Gpu

_MUCH = 0.5
_MPS_PIPES = "tmp/nvidia-mps"


def findings(machine: Machine, gpus: list[Gpu] | str, *, has_driver: bool) -> Iterator[Finding]:
    """Yield memory by process, MIG, MPS and compute modes.

    Args:
        machine: The machine, for MPS.
        gpus: The result of `gpuviz.recorder.nvml.gpus`.
        has_driver: Whether there is a driver, so that NVML should be available.
    """
    if isinstance(gpus, str):
        if has_driver:
            meaning = "The memory of other processes is unknown."
            yield Finding("NVML", "warning", gpus, meaning, "Install the driver's libnvidia-ml.")
        return
    for gpu in gpus:
        yield _memory(machine, gpu)
        if gpu.mig:
            yield Finding(
                f"MIG on GPU {gpu.index}",
                "warning",
                "enabled",
                "A process sees one instance; memory and busy times are those of the instance.",
                "Choose one by CUDA_VISIBLE_DEVICES=MIG-...; `nvidia-smi -L` lists them.",
            )
        if gpu.compute_mode:
            yield _compute_mode(gpu)
    pipes = machine.environment.get("CUDA_MPS_PIPE_DIRECTORY")
    if (machine.root / (pipes or _MPS_PIPES).lstrip("/") / "control").exists():
        meaning = (
            "Processes share the GPU: the time of a kernel includes waiting for other processes."
        )
        yield Finding("MPS", "warning", "the daemon is running", meaning)


def _memory(machine: Machine, gpu: Gpu) -> Finding:
    shares = [
        f"process {process} ({_command(machine, process)}) "
        f"{'an unknown size' if used is None else format_bytes(used)}"
        for process, used in gpu.processes
    ]
    whose = " of the host's memory" if gpu.shares_host_memory else ""
    found = f"{format_bytes(gpu.used)} of {format_bytes(gpu.total)}{whose} used"
    if not gpu.total:
        found = "memory in use unknown"
    if shares:
        found += f": {', '.join(shares)}"
    elif gpu.used > gpu.total * _MUCH and not gpu.shares_host_memory:
        found += ", by processes that are not visible here"
    topic = f"GPU {gpu.index}, {gpu.name}"
    if gpu.used > gpu.total * _MUCH:
        left = format_bytes(gpu.total - gpu.used)
        meaning = f"{format_share(gpu.used / gpu.total)} is in use; {left} is free."
        return Finding(
            topic,
            "warning",
            found,
            meaning,
            "End processes that are not needed, including idle notebook kernels.",
        )
    return Finding(topic, "ok", found)


def _command(machine: Machine, process: int) -> str:
    words = machine.text(f"proc/{process}/cmdline").replace("\0", " ").strip()
    return words[:60] or "in another container, or of another user"


def _compute_mode(gpu: Gpu) -> Finding:
    topic = f"compute mode of GPU {gpu.index}"
    remedy = f"nvidia-smi -i {gpu.index} -c DEFAULT, as an administrator."
    if gpu.compute_mode == "prohibited":
        return Finding(topic, "problem", gpu.compute_mode, "No program can use this GPU.", remedy)
    return Finding(
        topic, "warning", gpu.compute_mode, "Only one process at a time can use this GPU.", remedy
    )
