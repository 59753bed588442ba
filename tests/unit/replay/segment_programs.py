"""Programs whose memory depends on the settings of the allocator."""

from random import Random

from gpuviz import _core

MIB = 1 << 20
EXPANDABLE = "expandable_segments:True"


# The programs of PyTorch's "When does fragmentation occur" and their figures.


def small_before_large(gpu):
    small = [gpu.empty(16 * MIB) for _ in range(8)]
    del small
    return [gpu.empty(32 * MIB) for _ in range(4)]


def large_before_small(gpu):
    large = [gpu.empty(32 * MIB) for _ in range(4)]
    del large
    return [gpu.empty(16 * MIB) for _ in range(8)]


def small_only(gpu):
    return [gpu.empty(16 * MIB) for _ in range(8)]


def random_gpu_program(gpu, seed, *, shares=True):
    """Allocate, free, share and release at random, until a request fails.

    A failure is explained, which takes longer than the rest.
    """
    random, streams, live = Random(seed), [gpu.null_stream, gpu.Stream()], []
    for _ in range(150):
        drawn = random.random()
        if drawn < 0.55 or not live:
            try:
                with random.choice(streams):
                    live.append(gpu.empty(random.randrange(1, random.choice([MIB, 30 * MIB]))))
            except _core.OutOfMemoryError:
                return
        elif drawn < 0.9:
            live.pop(random.randrange(len(live)))
        elif drawn < 0.97 and shares:
            gpu.record_stream(random.choice(live), random.choice(streams))
        else:
            gpu.empty_cache()


def parts_of_a_segment(gpu):
    """Free every second part of a segment, which cannot be released as a whole then."""
    segment = gpu.empty(240 * MIB)
    del segment
    blocks = [gpu.empty(60 * MIB) for _ in range(4)]
    blocks[0] = blocks[2] = None
    return [*blocks, gpu.empty(100 * MIB)]
