"""Programs whose streams wait for each other."""

STEPS = 10
COPIED = 32 << 20
KERNEL_S = 600e-6


def two(gpu, *, non_blocking):
    """Return a stream for kernels, one for copies, and an array for each."""
    computing, copying = (gpu.Stream(non_blocking=non_blocking) for _ in range(2))
    return computing, copying, gpu.empty(COPIED), gpu.empty(COPIED)


def copies_on_the_default_stream(gpu):
    computing, _, x, y = two(gpu, non_blocking=False)
    for _ in range(STEPS):
        with computing:
            gpu.launch("compute", duration=KERNEL_S, writes=[x])
        gpu.copy_to_host(y, pinned=True)


def copies_beside_kernels(gpu):
    computing, copying, x, y = two(gpu, non_blocking=True)
    for _ in range(STEPS):
        with computing:
            gpu.launch("compute", duration=KERNEL_S, writes=[x])
        with copying:
            gpu.copy_to_host(y, pinned=True)
