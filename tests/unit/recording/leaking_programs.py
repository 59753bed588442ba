"""Programs on a simulated GPU that keep more and more memory, and some that only look so."""

from collections import OrderedDict, deque
from functools import cache

KIB = 1 << 10
MIB = 1 << 20
STEPS = 24
# Sizes without an order.
SIZES = [(7 * step * step + 3 * step) % 11 + 1 for step in range(200)]


def work(gpu, size=MIB):
    """Run two kernels that need nothing from earlier steps; return their result."""
    x = gpu.empty(size)
    gpu.launch("load", duration=1e-5, writes=[x])
    y = gpu.empty(size)
    gpu.launch("step", duration=1e-5, reads=[x], writes=[y])
    return y


def use(gpu, *arrays):
    gpu.launch("use", duration=1e-5, reads=list(arrays))


# ---- Leaks. `kept` outlives the recording, as a module's variables do.


def a_list(gpu, kept):
    for _ in range(STEPS):
        kept.append(work(gpu))


def a_list_that_its_function_frees(gpu, kept):
    own = []
    for _ in range(STEPS):
        y = work(gpu)
        gpu.launch("norm", duration=1e-3, reads=[y])
        own.append(y)
    kept.append(len(own))


def several_arrays_a_step(gpu, kept):
    for _ in range(STEPS):
        kept.extend([work(gpu), work(gpu, 256 * KIB)])


def a_cache_without_a_limit(gpu, kept):
    @cache
    def result(step):
        return work(gpu, MIB + 512 * step)

    kept.append(result)
    for step in range(STEPS):
        result(step)


def closures(gpu, kept):
    for _ in range(STEPS):
        array = work(gpu)
        kept.append(lambda array=array: array)


def every_fourth_step(gpu, kept):
    for step in range(3 * STEPS):
        y = work(gpu)
        if step % 4 == 0:
            kept.append(y)


def arrays_of_different_sizes(gpu, kept):
    for step in range(STEPS):
        kept.append(work(gpu, SIZES[step] * MIB))


def after_a_warm_up(gpu, kept):
    for step in range(2 * STEPS):
        y = work(gpu)
        if step < 4:
            kept.append(gpu.empty(4 * MIB))
        kept.append(y)


def exceptions_that_are_kept(gpu, kept):
    def fails():
        array = work(gpu)
        use(gpu, array)
        raise ValueError

    for _ in range(STEPS):
        try:
            fails()
        except ValueError as error:
            kept.append(error)


def cycles(gpu, kept):
    import gc

    gc.disable()
    kept.append(gc)
    try:
        for _ in range(STEPS):
            node = {"array": work(gpu)}
            node["self"] = node
    finally:
        gc.enable()


def most_but_not_all(gpu, kept):
    for step in range(2 * STEPS):
        y = work(gpu)
        if SIZES[step] > 3:
            kept.append(y)


def a_loop_of_one_launch(gpu, kept, size=MIB):
    state = gpu.empty(size)
    for _ in range(STEPS):
        y = gpu.empty(size)
        gpu.launch("step", duration=1e-5, reads=[state], writes=[state, y])
        kept.append(y)


def exceptions_of_every_third_step(gpu, kept, size=MIB):
    state = gpu.empty(size)

    def fails_now_and_then(step):
        y = gpu.empty(size)
        gpu.launch("sample", duration=1e-5, reads=[state], writes=[y])
        if step % 3 == 2:
            raise ValueError
        gpu.launch("learn", duration=1e-5, reads=[y], writes=[state])

    for step in range(2 * STEPS):
        try:
            fails_now_and_then(step)
        except ValueError as error:
            kept.append(error)


LEAKING = (
    a_list,
    a_list_that_its_function_frees,
    several_arrays_a_step,
    a_cache_without_a_limit,
    closures,
    every_fourth_step,
    arrays_of_different_sizes,
    after_a_warm_up,
    exceptions_that_are_kept,
    cycles,
    most_but_not_all,
    a_loop_of_one_launch,
    exceptions_of_every_third_step,
)


# ---- Honest programs.


def a_cache_that_fills_up(gpu, kept):
    cache = OrderedDict()
    kept.append(cache)
    for step in range(2 * STEPS):
        cache[step] = work(gpu)
        if len(cache) > 8:
            cache.popitem(last=False)


def a_warm_up(gpu, kept):
    for step in range(2 * STEPS):
        y = work(gpu)
        if step < 6:
            kept.append(y)


def double_buffers(gpu, kept):
    buffers = deque(maxlen=2)
    kept.append(buffers)
    for _ in range(STEPS):
        buffers.append(work(gpu))
        use(gpu, *buffers)


def a_history_that_is_read(gpu, kept):
    for _ in range(STEPS):
        kept.append(work(gpu))
        use(gpu, *kept)


def results_that_are_joined(gpu, kept):
    for _ in range(STEPS):
        kept.append(work(gpu))
    whole = gpu.empty(STEPS * MIB)
    gpu.launch("join", duration=1e-4, reads=kept, writes=[whole])
    kept[:] = [whole]


def buffers_of_different_sizes(gpu, kept):
    for step in range(2 * STEPS):
        kept[:] = [work(gpu, SIZES[step] * MIB)]


def a_workspace_that_grows_to_the_largest(gpu, kept):
    kept.append(gpu.empty(MIB))
    largest = 1
    for step in range(3 * STEPS):
        work(gpu)
        if SIZES[step] > largest:
            largest = SIZES[step]
            kept[:] = [gpu.empty(largest * MIB)]
        use(gpu, kept[0])


def a_list_that_is_cleared(gpu, kept):
    for step in range(4 * STEPS):
        kept.append(work(gpu))
        if step % 10 == 9:
            kept.clear()


def weights_that_are_loaded(gpu, kept):
    for _ in range(30):
        weight = gpu.empty(MIB)
        gpu.copy_to_device(weight)
        kept.append(weight)
    for _ in range(2 * STEPS):
        y = work(gpu)
        use(gpu, y, *kept)


def results_that_collect_slower_and_slower(gpu, kept):
    known = {}
    kept.append(known)
    for step in range(200):
        y = work(gpu)
        known.setdefault((step * step * 7) % 23, y)


def one_by_one(gpu, kept, name="step"):
    for _ in range(STEPS):
        kept.append(gpu.empty(MIB))
        gpu.launch(name, duration=1e-5, writes=[kept[-1]])


def one_by_one_until_all_are_joined(gpu, kept):
    one_by_one(gpu, kept)
    gpu.launch("join", duration=1e-4, reads=kept, writes=[gpu.empty(MIB)])


def one_by_one_in_a_window(gpu, kept):
    window = deque(maxlen=6)
    kept.append(window)
    one_by_one(gpu, window)


def one_by_one_at_the_start(gpu, kept):
    one_by_one(gpu, kept, "initialize")
    state = gpu.empty(MIB)
    for _ in range(4 * STEPS):
        gpu.launch("step", duration=1e-5, reads=[state], writes=[state])


HONEST = (
    a_cache_that_fills_up,
    a_warm_up,
    double_buffers,
    a_history_that_is_read,
    results_that_are_joined,
    buffers_of_different_sizes,
    a_workspace_that_grows_to_the_largest,
    a_list_that_is_cleared,
    weights_that_are_loaded,
    results_that_collect_slower_and_slower,
    one_by_one_until_all_are_joined,
    one_by_one_in_a_window,
    one_by_one_at_the_start,
)
