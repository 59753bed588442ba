"""GPU memory by process, and sharing modes."""

from collections.abc import Iterator

from gpuviz.doctor.finding import Finding
from gpuviz.doctor.machine import Machine
from gpuviz.doctor.nvml import Gpu
from gpuviz.quantities import format_bytes, format_share

_MUCH = 0.5
_MPS_PIPES = "tmp/nvidia-mps"


def findings(machine: Machine, gpus: list[Gpu] | str, *, has_driver: bool) -> Iterator[Finding]:
    """Yield memory by process, MIG, MPS and compute modes.

    Args:
        machine: Where to look for MPS.
        gpus: What `gpuviz.doctor.nvml.gpus` returns.
        has_driver: Whether NVML would be missed.
    """
    if isinstance(gpus, str):
        if has_driver:
            meaning = "Memory of other processes is not shown."
            yield Finding("NVML", "warning", gpus, meaning, "Install libnvidia-ml of the driver.")
        return
    for gpu in gpus:
        yield _memory(machine, gpu)
        if gpu.mig:
            yield Finding(
                f"MIG on GPU {gpu.index}",
                "warning",
                "divided into instances",
                "CUDA sees one instance in each process; memory and busy times are the instance's.",
                "Choose it by CUDA_VISIBLE_DEVICES=MIG-...; `nvidia-smi -L` lists them.",
            )
        if gpu.compute_mode:
            yield _compute_mode(gpu)
    pipes = machine.environment.get("CUDA_MPS_PIPE_DIRECTORY")
    if (machine.root / (pipes or _MPS_PIPES).lstrip("/") / "control").exists():
        meaning = "Processes share the GPU: a kernel's time includes waiting for theirs."
        yield Finding("MPS", "warning", "its daemon runs", meaning)


def _memory(machine: Machine, gpu: Gpu) -> Finding:
    shares = [
        f"process {process} ({_command(machine, process)}) "
        f"{'an unknown size' if used is None else format_bytes(used)}"
        for process, used in gpu.processes
    ]
    found = f"{format_bytes(gpu.used)} of {format_bytes(gpu.total)} used"
    if shares:
        found += f": {', '.join(shares)}"
    elif gpu.used > gpu.total * _MUCH:
        found += ", by processes that are not shown here"
    topic = f"GPU {gpu.index}, {gpu.name}"
    if gpu.used > gpu.total * _MUCH:
        left = format_bytes(gpu.total - gpu.used)
        meaning = f"{format_share(gpu.used / gpu.total)} is taken; {left} is left."
        return Finding(
            topic, "warning", found, meaning, "End what is not needed, idle kernels too."
        )
    return Finding(topic, "ok", found)


def _command(machine: Machine, process: int) -> str:
    words = machine.text(f"proc/{process}/cmdline").replace("\0", " ").strip()
    return words[:60] or "of another container or user"


def _compute_mode(gpu: Gpu) -> Finding:
    topic = f"compute mode of GPU {gpu.index}"
    remedy = f"nvidia-smi -i {gpu.index} -c DEFAULT, as an administrator."
    if gpu.compute_mode == "prohibited":
        return Finding(topic, "problem", gpu.compute_mode, "No program may use it.", remedy)
    return Finding(topic, "warning", gpu.compute_mode, "One process at a time may use it.", remedy)
