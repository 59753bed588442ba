"""CuPy programs that capture graphs; those with a hazard, and correct twins of them.

Each returns whether its numbers came out right.
"""

import cupy as cp

import gpuviz

COUNT = 1 << 20
# None where the module is only imported.
S, T = (cp.cuda.Stream(non_blocking=True) if cp.cuda.is_available() else None for _ in range(2))


def settle():
    cp.cuda.Device().synchronize()


def temporary_reused(*, kept=False):
    x = cp.arange(COUNT, dtype=cp.float32)
    settle()
    with S:
        S.begin_capture()
        temporary = x * 2
        result = temporary + 1
        keeper = temporary if kept else None
        del temporary
        graph = S.end_capture()
        other = cp.full(COUNT, 7, cp.float32)
        graph.launch(S)
    settle()
    del keeper
    return bool((other == 7).all()) and bool((result == x * 2 + 1).all())


def temporary_kept():
    return temporary_reused(kept=True)


def input_reused(*, kept=False):
    with S:
        x, out = cp.full(COUNT, 3, cp.float32), cp.zeros(COUNT, cp.float32)
        settle()
        S.begin_capture()
        cp.multiply(x, 2, out=out)
        graph = S.end_capture()
        keeper = x if kept else None
        del x
        cp.full(COUNT, 100, cp.float32)
        graph.launch(S)
    settle()
    del keeper
    return float(out.max()) == 6


def input_kept():
    return input_reused(kept=True)


def temporaries_shared(*, ordered=False, pools=False):
    x = cp.arange(COUNT, dtype=cp.float32)
    settle()
    graphs, results, owned = [], [], []
    for factor in (2, 3):
        owned.append(gpuviz.MemPool())
        with S:
            if pools:
                with gpuviz.use_mem_pool(owned[-1]):
                    graphs.append(_captured(x, factor, results))
            else:
                graphs.append(_captured(x, factor, results))
    right = True
    for _ in range(3):
        graphs[0].launch(S)
        if ordered:
            T.wait_event(S.record())
        graphs[1].launch(T)
        settle()
        right &= bool((results[0] == x * 2 + 1).all()) and bool((results[1] == x * 3 + 1).all())
    return right


def _captured(x, factor, results):
    S.begin_capture()
    y = x * factor
    for _ in range(5):
        y = y + 0
    results.append(y + 1)
    del y
    return S.end_capture()


def temporaries_of_own_pools():
    return temporaries_shared(pools=True)


def branches(*, ordered=True):
    x, a, b = (cp.zeros(COUNT, cp.float32) for _ in range(3))
    settle()
    S.begin_capture()
    if not ordered:
        T.wait_event(S.record())
    with S:
        cp.add(x, 2, out=a)
    if ordered:
        T.wait_event(S.record())
    with T:
        cp.add(a, 1, out=b)
    S.wait_event(T.record())
    graph = S.end_capture()
    graph.launch(S)
    settle()
    return not ordered or float(b.min()) == 3


def unordered_branches():
    return branches(ordered=False)


def one_graph():
    x, results = cp.arange(COUNT, dtype=cp.float32), []
    settle()
    with S:
        graph = _captured(x, 2, results)
    for _ in range(3):
        graph.launch(S)
    settle()
    return bool((results[0] == x * 2 + 1).all())


# Kinds of hazards, those that are latent apart.
EXPECTED = {
    one_graph: set(),
    temporary_reused: {"reuse"},
    temporary_kept: set(),
    input_reused: {"reuse"},
    input_kept: set(),
    temporaries_shared: {"WAW"},
    temporaries_of_own_pools: set(),
    branches: set(),
    unordered_branches: {"RAW"},
}
