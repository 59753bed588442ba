"""Orders that no common memory needs, on random programs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.replay.work_orders import BY_DEFAULT_STREAM, BY_EVENT
from gpuviz.advice.waits.sharing import sharing
from tests.examples import examples
from tests.unit.advice.timed_programs import timed

STREAMS, ARRAYS = 4, 3
streams = st.integers(0, STREAMS - 1)
launches = st.tuples(st.just("launch"), streams, st.integers(0, ARRAYS - 1), st.booleans())
operations = st.lists(
    st.one_of(
        launches,
        launches,
        launches,
        st.tuples(st.just("wait"), streams, streams),
        st.tuples(st.just("wait"), streams, streams),
        st.sampled_from([("synchronize",), ("wait", 3, 2), ("wait", 2, 3)]),
    ),
    min_size=8,
    max_size=25,
)


def run(gpu, operations):
    """Run kernels on the default stream, a blocking stream and two others."""
    queues = [gpu.null_stream, gpu.Stream(), *(gpu.Stream(non_blocking=True) for _ in range(2))]
    arrays = [gpu.empty(1 << 20) for _ in range(ARRAYS)]
    for operation in operations:
        match operation:
            case ("launch", stream, array, writes):
                used = {"writes" if writes else "reads": [arrays[array]]}
                with queues[stream]:
                    gpu.launch("kernel", duration=1e-5, grid=(1,), **used)
            case ("wait", waiting, recorded):
                queues[waiting].wait_event(queues[recorded].record())
            case _:
                gpu.synchronize()


def ordered(count, pairs):
    """Return which of ``count`` activities come before which, through any of the pairs."""
    reached = np.zeros((count, count), bool)
    for before, after in pairs:
        reached[before, after] = True
    for through in range(count):
        reached |= reached[:, through, None] & reached[None, through, :]
    return reached


def certain_orders(operations, stream):
    """Return the pairs that streams and synchronizations of the device put in order."""
    epochs, epoch = [], 0
    for operation in operations:
        epoch += operation[0] == "synchronize"
        if operation[0] == "launch":
            epochs.append(epoch)
    return [
        (before, after)
        for after in range(len(epochs))
        for before in range(after)
        if stream[before] == stream[after] or epochs[before] < epochs[after]
    ]


@examples(150)
@given(operations)
def test_work_that_shares_memory_stays_in_order_without_the_needless_orders(operations):
    schedule = Schedule(timed(lambda gpu: run(gpu, operations)))
    shared = sharing(schedule)
    if shared is None:
        return
    uses = [operation[2:] for operation in operations if operation[0] == "launch"]
    launched = np.argsort(schedule.launch, kind="stable")
    place = np.argsort(launched)
    _, before, after = schedule.orders(BY_EVENT, BY_DEFAULT_STREAM)
    matters = shared.between(before, after, np.stack([before, after]))
    sure = certain_orders(operations, schedule.stream[launched])
    pairs = list(zip(place[before].tolist(), place[after].tolist(), strict=True))
    kept = [pair for pair, matter in zip(pairs, matters, strict=True) if matter]

    all_orders = ordered(len(uses), [*sure, *pairs])
    remaining = ordered(len(uses), [*sure, *kept])

    for second, (array, writes) in enumerate(uses):
        for first, (other, other_writes) in enumerate(uses[:second]):
            if array == other and (writes or other_writes) and all_orders[first, second]:
                assert remaining[first, second], (first, second)
