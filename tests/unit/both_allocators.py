"""Recordings of programs that use two allocators on one simulated device.

The other one is torch's: an allocator like it on the same simulated device, whose pools then get
torch's numbers.
"""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa

import gpuviz
from gpuviz import _core, _testing
from gpuviz.analysis.pools import TORCH_OWNER
from gpuviz.data.columns import plain
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording

MIB = 1 << 20
MEMORY = 1000 * MIB


class Both:
    """CuPy's allocator and torch's."""

    def __init__(self, recorder, gpu, torch_settings):
        self.gpu = gpu
        self.stacks = []
        self._session = recorder._live.session
        self._torch = _core.CachingAllocator(
            gpu._allocator.device, _core.AllocatorSettings.parse(torch_settings)
        )
        self._torch.attach(recorder._live.session.sink(0))
        self._addresses = []

    def torch(self, size):
        """Allocate with torch, which gives the address that `free` takes."""
        self.stacks.append(_testing.capture_stack(self._session))
        address = self._torch.allocate(size)
        self._addresses.append(address)
        return address

    def free(self, address):
        self._torch.free(address)

    def empty_torchs_cache(self):
        self._torch.empty_cache()

    def empty_gpuvizs_cache(self):
        self.gpu.empty_cache()

    def end(self):
        self._torch.detach()


def recorded(program, *, torch_fails=False, settings="", torch_settings=""):
    """Return the recording of a program that fails, and whether it raised an exception."""
    gpu = gpuviz.SimulatedGPU(memory=MEMORY, settings=settings, real_time=False)
    has_failed = True
    with gpuviz.record(device=gpu) as recorder:
        both = Both(recorder, gpu, torch_settings)
        with suppress(MemoryError):
            program(both)
            has_failed = False
        both.end()
    recording = as_recorded(recorder.recording, both.stacks, torch_fails=torch_fails)
    manifest = replace(recording.manifest, torch_settings=torch_settings)
    return Recording(recording.tables, manifest), has_failed


def as_recorded(recording, stacks, *, torch_fails):
    """Return the recording with torch's pools for the events of the other allocator.

    The events of its k-th allocation get the k-th of some call stacks.
    """
    tables = dict(recording.tables)
    events = tables["memory_events"]
    # The other allocator's calls have no stacks yet.
    is_torchs = plain(events["stack"]) == 0
    actions = np.array(events["action"].to_pylist())
    is_torchs = np.where(actions == "oom", torch_fails, is_torchs)
    pools = plain(events["pool"]) + np.where(is_torchs, 2 * TORCH_OWNER, 0).astype(np.uint32)
    served = is_torchs & (actions == "alloc")
    made = is_torchs & np.isin(actions, ("alloc", "segment_alloc"))
    number = np.cumsum(served) - served
    known = plain(events["stack"]).copy()
    known[made] = np.array([*stacks, 0], np.uint32)[number[made]]
    for name, column in (("pool", pools), ("stack", known)):
        place = events.schema.get_field_index(name)
        events = events.set_column(place, name, pa.array(column, pa.uint32()))
    tables["memory_events"] = events
    rows = [
        {"id": number, "owner": number // 2, "segment_type": "large" if number % 2 else "small"}
        | {"framework": "torch" if number >= 2 * TORCH_OWNER else "cupy", "memory": "device"}
        for number in sorted(set(pools.tolist()))
    ]
    tables["pools"] = pa.Table.from_pylist(rows, schemas()["pools"])
    return Recording(tables, recording.manifest)
