"""CuPy programs that hold arrays longer than they need them, or beside their parts."""

import cupy as cp

import gpuviz


def many_parts() -> cp.ndarray:
    parts = [cp.full(1 << 22, step, cp.float32) for step in range(24)]
    whole = cp.concatenate(parts)
    del parts
    whole += 1
    return whole


def many_slices() -> cp.ndarray:
    whole = cp.empty(24 << 22, cp.float32)
    for step in range(24):
        whole[step << 22 : (step + 1) << 22] = step
    whole += 1
    return whole


def small_parts() -> cp.ndarray:
    parts = [cp.full(1 << 18, step, cp.float32) for step in range(64)]
    whole = cp.concatenate(parts)
    del parts
    whole += 1
    return whole


def small_slices() -> cp.ndarray:
    whole = cp.empty(64 << 18, cp.float32)
    for step in range(64):
        whole[step << 18 : (step + 1) << 18] = step
    whole += 1
    return whole


def parts_that_live_on() -> cp.ndarray:
    parts = [cp.full(1 << 25, step, cp.float32) for step in range(2)]
    whole = cp.concatenate(parts)
    parts[0] += 1
    parts[1] += 1
    return whole[:1] + parts[0][:1]


def cache_released_in_each_step() -> None:
    x = cp.ones(1 << 24, cp.float32)
    for _ in range(40):
        y = x * 2
        z = y + x
        del y, z
        gpuviz.empty_cache()


def cache_kept() -> None:
    x = cp.ones(1 << 24, cp.float32)
    for _ in range(40):
        y = x * 2
        z = y + x
        del y, z


def source_at_the_peak(*, deleted: bool = False) -> None:
    raw = cp.ones(1 << 26, cp.float32)
    roots = cp.sqrt(raw)
    if deleted:
        del raw
    table = cp.concatenate([roots[:1], cp.ones(1 << 27, cp.float32)])
    table *= roots[0]


def result_before_its_use(*, late: bool = False) -> None:
    if not late:
        result = cp.empty(1 << 26, cp.float32)
    x = cp.ones(1 << 26, cp.float32)
    highest = cp.sort(x)[-1]
    del x
    if late:
        result = cp.empty(1 << 26, cp.float32)
    result[:] = highest


def new_array_for_a_result(*, in_place: bool = False) -> None:
    # No kernel of the expression could also do what is before and after it.
    x = cp.random.random(1 << 27, dtype=cp.float32)
    x = cp.exp(x, out=x) if in_place else cp.exp(x)
    cp.take(x, cp.arange(16))


def outputs_joined_in_each_round() -> None:
    outputs = []
    for step in range(40):
        outputs.append(cp.full(1 << 20, step, cp.float32))
        mean = cp.stack(outputs).mean(axis=0)
        del mean


def outputs_in_one_array() -> None:
    outputs = cp.empty((40, 1 << 20), cp.float32)
    for step in range(40):
        outputs[step] = cp.full(1 << 20, step, cp.float32)
        mean = outputs[: step + 1].mean(axis=0)
        del mean


def history_of_arrays() -> None:
    x, history = cp.ones(1 << 22, cp.float32), []
    for _ in range(40):
        x = cp.sqrt(x + 1)
        history.append(x)


def history_of_means() -> None:
    x, history = cp.ones(1 << 22, cp.float32), []
    for _ in range(40):
        x = cp.sqrt(x + 1)
        history.append(x.mean())


def paths_that_wait_for_their_mean() -> None:
    paths = []
    for _ in range(24):
        steps = cp.random.standard_normal((256, 1 << 14), dtype=cp.float32)
        paths.append(cp.cumsum(steps, axis=0))
        del steps
    means = [path.mean(axis=0) for path in paths]
    del means


def means_of_paths() -> None:
    means = []
    for _ in range(24):
        steps = cp.random.standard_normal((256, 1 << 14), dtype=cp.float32)
        path = cp.cumsum(steps, axis=0)
        means.append(path.mean(axis=0))
        del steps, path


def paths_that_are_used_again() -> None:
    paths = []
    for _ in range(24):
        steps = cp.random.standard_normal((256, 1 << 14), dtype=cp.float32)
        paths.append(cp.cumsum(steps, axis=0))
        del steps
    whole = sum(path.mean() for path in paths)
    means = [(path - whole / 24).std(axis=0) for path in paths]
    del means
