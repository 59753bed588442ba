"""Three small programs for a simulated GPU, each with a finding about its streams."""

CHUNK = 32 << 20
KERNEL_S = 600e-6


def _pipeline(gpu, chunks, *, pinned):
    lanes = [(gpu.Stream(non_blocking=True), gpu.empty(CHUNK), gpu.empty(CHUNK)) for _ in range(2)]
    for chunk in range(chunks):
        stream, x, y = lanes[chunk % 2]
        with stream:
            gpu.copy_to_device(x, pinned=pinned)
            gpu.launch("filter", reads=[x], writes=[y], duration=KERNEL_S)
            gpu.copy_to_host(y, pinned=pinned)
    gpu.synchronize()


def pinned_pipeline(gpu, chunks=8):
    """Copies chunks in and out during the kernel of the other stream, so that they overlap."""
    _pipeline(gpu, chunks, pinned=True)


def pageable_pipeline(gpu, chunks=8):
    """The same with pageable memory: each copy blocks the host, so nothing overlaps."""
    _pipeline(gpu, chunks, pinned=False)


def host_bound(gpu, steps=20):
    """Launches short kernels between long host work, so the GPU is idle most of the time."""
    state = gpu.empty(1 << 20)
    for _ in range(steps):
        gpu.launch("step", reads=[state], writes=[state], duration=50e-6, share=0.25)
        gpu.work_on_host(450e-6)
    gpu.synchronize()
