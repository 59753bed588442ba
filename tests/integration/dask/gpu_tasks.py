"""Tasks that use a simulated GPU, one in each process of a Dask worker."""

import functools
import os
import signal

import gpuviz
from gpuviz.errors import DeviceUnavailableError

MIB = 1 << 20
kept: list[object] = []


class Machine:
    """What a test changes in the process of a worker."""

    has_gpu = True


def gpu() -> gpuviz.SimulatedGPU:
    """Return the GPU of this process.

    Raises:
        DeviceUnavailableError: The test took it away.
    """
    if not Machine.has_gpu:
        raise DeviceUnavailableError("No NVIDIA GPU detected")
    return _own_gpu()


@functools.cache
def _own_gpu() -> gpuviz.SimulatedGPU:
    return gpuviz.SimulatedGPU(1 << 30, real_time=False)


@functools.cache
def gpu_in_real_time() -> gpuviz.SimulatedGPU:
    """Return another GPU of this process, whose time is that of the host."""
    return gpuviz.SimulatedGPU(1 << 30)


def take_gpu_away() -> None:
    Machine.has_gpu = False


def bring_gpu_back() -> None:
    Machine.has_gpu = True


def scale(number: int) -> int:
    """Run one kernel whose name contains ``number``."""
    x = gpu().empty(MIB)
    gpu().launch(f"scale_{number}", writes=[x], duration=1e-6)
    gpu().synchronize()
    return number


def keep(number: int) -> None:
    """Allocate so many MiB of the GPU in real time until `release`."""
    kept.append(gpu_in_real_time().empty(number * MIB))


def release() -> None:
    """Free what `keep` has allocated."""
    kept.clear()


def fail(number: int) -> None:
    scale(number)
    raise ArithmeticError("a task that fails")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def start_own_recorder() -> None:
    gpuviz.record(device=gpu()).start()


def stop_own_recorder() -> None:
    active = gpuviz.Recorder.active()
    if active is not None:
        active.stop()
