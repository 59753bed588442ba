"""How many thread blocks of a kernel run at once."""

import numpy as np

from gpuviz.advice.arrays.elementwise import block_threads
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.data.columns import plain
from gpuviz.data.first_rows import first_rows

# Of a multiprocessor of compute capability 8.0 or 9.0 (CUDA Programming Guide, "Compute
# Capabilities"); of later ones, too.
_THREADS, _BLOCKS, _REGISTERS, _SHARED_BYTES = 2048, 32, 65536, 163 << 10


def resident_blocks(schedule: Schedule) -> np.ndarray:
    """Return how many blocks of each activity's kernel a device has room for, 0 if unknown.

    A multiprocessor has room for as many blocks as it has threads, registers and shared memory for.
    """
    tables = schedule.recording.tables
    table = tables["launch_configurations"]
    launches = plain(tables["activities"]["launch"])[schedule.rows]
    row = first_rows(plain(table["id"]), launches)
    registers, static, dynamic = (
        np.append(np.maximum(plain(table[name]).astype(np.int64), 0), 0)[row]
        for name in ("registers", "static_shared_memory", "dynamic_shared_memory")
    )
    threads = block_threads(schedule.recording, schedule.rows)
    known = np.maximum(threads, 1)
    each = np.minimum(_BLOCKS, _THREADS // known)
    each = np.minimum(each, _REGISTERS // np.maximum(known * registers, 1))
    each = np.minimum(each, _SHARED_BYTES // np.maximum(static + dynamic, 1))
    multiprocessors = np.array(
        [schedule.multiprocessors.get(device, 0) for device in schedule.device.tolist()], np.int64
    )
    found: np.ndarray = np.where(threads > 0, np.maximum(each, 1), 0) * multiprocessors
    return found
