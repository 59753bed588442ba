"""A small program for ``compute-sanitizer --tool memcheck python tests/gpu/memcheck_workload.py``.

Its kernels write up to the last byte of their arrays, on two streams, while blocks are split,
merged and reused, with and without expandable segments.
"""

import cupy as cp

import gpuviz


def main() -> None:
    """Run once under each setting; exit with an assertion if contents are wrong."""
    for settings in ("expandable_segments:False", "expandable_segments:True"):
        gpuviz.set_allocator_settings(settings)
        with gpuviz.record() as recorder:
            streams = [cp.cuda.Stream(non_blocking=True) for _ in range(2)]
            kept = []
            for size in (1, 511, 512, 513, 1 << 20, (1 << 20) + 1, 3 << 20, 21 << 20):
                for value, stream in enumerate(streams):
                    with stream:
                        array = cp.full(size, value, dtype=cp.int8)
                        kept.append((array, value))
                        array + 1
            cp.cuda.Device().synchronize()
            for array, value in kept:
                if not bool((array == value).all()):
                    raise AssertionError(f"{array.size} bytes of {value} were overwritten")
            del kept, array
        events = recorder.recording.table("memory_events").num_rows
        print(f"settings {settings!r}: {events} events")


if __name__ == "__main__":
    main()
