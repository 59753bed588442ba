from . import allocators as allocators
from . import dask as dask
from .allocator.host_memory import empty_host_cache as empty_host_cache
from .allocator.host_memory import host_memory_stats as host_memory_stats
from .allocator.host_memory import (
    host_memory_stats_as_nested_dict as host_memory_stats_as_nested_dict,
)
from .allocator.host_memory import (
    reset_accumulated_host_memory_stats as reset_accumulated_host_memory_stats,
)
from .allocator.host_memory import reset_peak_host_memory_stats as reset_peak_host_memory_stats
from .allocator.mem_pool import MemPool as MemPool
from .allocator.mem_pool import use_mem_pool as use_mem_pool
from .allocator.memory import empty_cache as empty_cache
from .allocator.memory import get_allocator_settings as get_allocator_settings
from .allocator.memory import get_per_process_memory_fraction as get_per_process_memory_fraction
from .allocator.memory import list_gpu_processes as list_gpu_processes
from .allocator.memory import max_memory_allocated as max_memory_allocated
from .allocator.memory import max_memory_reserved as max_memory_reserved
from .allocator.memory import mem_get_info as mem_get_info
from .allocator.memory import memory_allocated as memory_allocated
from .allocator.memory import memory_reserved as memory_reserved
from .allocator.memory import memory_snapshot as memory_snapshot
from .allocator.memory import memory_stats as memory_stats
from .allocator.memory import memory_stats_as_nested_dict as memory_stats_as_nested_dict
from .allocator.memory import memory_summary as memory_summary
from .allocator.memory import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from .allocator.memory import reset_peak_memory_stats as reset_peak_memory_stats
from .allocator.memory import set_allocator_settings as set_allocator_settings
from .allocator.memory import set_per_process_memory_fraction as set_per_process_memory_fraction
from .allocator.raw_memory import caching_allocator_alloc as caching_allocator_alloc
from .allocator.raw_memory import caching_allocator_delete as caching_allocator_delete
from .allocator.stream_uses import record_stream as record_stream
from .frameworks.cupy import malloc as malloc
from .frameworks.cupy import malloc_pinned as malloc_pinned
from .frameworks.cupy_graphs import graph as graph
from .notebook.dashboard import dashboard as dashboard
from .notebook.magics import load_ipython_extension as load_ipython_extension
from .notebook.magics import unload_ipython_extension as unload_ipython_extension
from .ownership.holders import holders as holders
from .ownership.holders import release as release
from .recorder.latest import leaks as leaks
from .recorder.ranges import range as range
from .recorder.record import record as record
from .recorder.recorder import Recorder as Recorder
from .recorder.status import RecorderStatus as RecorderStatus
from .recorder.stream_names import name_stream as name_stream
from .recording import Recording as Recording
from .recording import load as load
from .recording import merge as merge
from .recording_diff import Diff as Diff
from .recording_diff import diff as diff
from .simulation.gpu import SimulatedGPU as SimulatedGPU
from .simulation.replay import replay as replay

__version__: str
