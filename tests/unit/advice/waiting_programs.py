"""Programs that wait for earlier work."""

STEPS = 20


def steps(gpu, *, read, ahead=0, host=400e-6, array=64):
    """Launch a step again and again; ``read`` its result each time, ``ahead`` steps later."""
    x = gpu.empty(array)
    for step in range(STEPS + ahead):
        if step < STEPS:
            gpu.launch("step", duration=1e-3, writes=[x])
        if step >= ahead:
            read(x)
        gpu.work_on_host(host)


def reads_a_scalar(gpu):
    steps(gpu, read=gpu.copy_to_host, array=8)


def reads_pinned_memory_each_step(gpu):
    steps(gpu, read=lambda x: (gpu.copy_to_host(x, pinned=True), gpu.synchronize()))


def never_waits(gpu):
    steps(gpu, read=lambda _: None)


def frames(gpu, *, slots=8, at_once=False):
    """Upload frames from a ring, and wait for a slot's upload before the host fills it again.

    Args:
        gpu: The GPU.
        slots: The slots of the ring.
        at_once: Whether the host waits right after each upload instead.
    """
    lanes = [(gpu.Stream(non_blocking=True), gpu.empty(32 << 20)) for _ in range(2)]
    uploaded = [None] * slots
    for number in range(4 * STEPS):
        slot = number % slots
        if uploaded[slot] is not None and not at_once:
            uploaded[slot].synchronize()
        gpu.work_on_host(50e-6)
        stream, frame = lanes[number % 2]
        with stream:
            gpu.copy_to_device(frame, pinned=True)
            uploaded[slot] = stream.record()
            if at_once:
                uploaded[slot].synchronize()
            gpu.launch("accumulate", duration=100e-6, writes=[frame])


def hands_over(gpu):
    """Upload a frame while the last one is used, and let the host wait before it is used."""
    uploading, computing = (gpu.Stream(non_blocking=True) for _ in range(2))
    frames = [gpu.empty(32 << 20) for _ in range(2)]
    for number in range(2 * STEPS):
        with uploading:
            gpu.copy_to_device(frames[number % 2], pinned=True)
            uploaded = uploading.record()
        with computing:
            if number:
                gpu.launch("prepare", duration=100e-6, writes=[frames[(number - 1) % 2]])
            uploaded.synchronize()
            gpu.launch("use", duration=100e-6, reads=[frames[number % 2]])
