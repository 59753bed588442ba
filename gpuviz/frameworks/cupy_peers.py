"""Access of CuPy's devices to each other's memory."""

from itertools import permutations

from gpuviz.frameworks.cupy_current import import_cupy

# cudaErrorPeerAccessAlreadyEnabled
_ALREADY_ENABLED = 704


def enable_peer_access() -> None:
    """Let all devices that can do so access each other's memory directly."""
    cuda = import_cupy().cuda
    runtime = cuda.runtime
    for device, peer in permutations(range(runtime.getDeviceCount()), 2):
        if not runtime.deviceCanAccessPeer(device, peer):
            continue
        with cuda.Device(device):
            try:
                runtime.deviceEnablePeerAccess(peer)
            except runtime.CUDARuntimeError as error:
                if error.status != _ALREADY_ENABLED:
                    raise
