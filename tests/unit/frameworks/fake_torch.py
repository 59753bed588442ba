"""A library with the C++ interface of torch's allocator that the tracker is compiled against."""

import ctypes
import subprocess
import threading
from types import SimpleNamespace

from gpuviz.data.tables import ACTIONS

HEADER = """
#pragma once
#include <cstddef>
#include <functional>
#include <utility>
struct CUstream_st;
namespace c10::cuda::CUDACachingAllocator {
struct TraceEntry {
    // In another order than gpuviz's actions.
    enum Action { SNAPSHOT, OOM, SEGMENT_UNMAP, SEGMENT_MAP, SEGMENT_FREE, SEGMENT_ALLOC,
                  FREE_COMPLETED, FREE_REQUESTED, ALLOC, USER_DEFINED };
    signed char device_;
    Action action_;
    std::size_t addr_, size_;
    std::pair<unsigned long long, unsigned long long> mempool_;
    CUstream_st* stream_;
};
using AllocatorTraceTracker = std::function<void(const TraceEntry&)>;
void attachAllocatorTraceTracker(AllocatorTraceTracker tracker);
}
"""
LIBRARY = """
#include <c10/cuda/CUDACachingAllocator.h>
#include <stdexcept>
#include <vector>
namespace allocator = c10::cuda::CUDACachingAllocator;
static std::vector<allocator::AllocatorTraceTracker> trackers;
static bool refuses = false;
void allocator::attachAllocatorTraceTracker(AllocatorTraceTracker tracker) {
    if (refuses) throw std::runtime_error("no trackers");
    trackers.push_back(tracker);
}
extern "C" void refuse(int does) { refuses = does; }
extern "C" void trace(int action, int device, std::size_t address, std::size_t size,
                      std::size_t stream, unsigned long long pool) {
    using Entry = allocator::TraceEntry;
    const Entry entry{static_cast<signed char>(device), static_cast<Entry::Action>(action), address,
                      size, {0, pool}, reinterpret_cast<CUstream_st*>(stream)};
    for (const auto& tracker : trackers) tracker(entry);
}
"""
NAMES = (
    *("snapshot", "oom", "segment_unmap", "segment_map", "segment_free", "segment_alloc"),
    *("free_completed", "free_requested", "alloc", "annotate"),
)


def build(root):
    """Return the path of a package ``torch`` in a folder, and its library."""
    package = root / "torch"
    header = package / "include" / "c10" / "cuda" / "CUDACachingAllocator.h"
    header.parent.mkdir(parents=True)
    header.write_text(HEADER)
    (package / "lib").mkdir()
    source = root / "library.cpp"
    source.write_text(LIBRARY)
    options = ["-std=c++20", "-shared", "-fPIC", f"-I{package / 'include'}"]
    for name, inputs in (("libc10_cuda.so", [str(source)]), ("libc10.so", ["-xc++", "/dev/null"])):
        built = [f"-Wl,-soname,{name}", "-o", str(package / "lib" / name), *inputs]
        subprocess.run(["c++", *options, *built], check=True)  # noqa: S607
    library = ctypes.CDLL(str(package / "lib" / "libc10_cuda.so"), mode=ctypes.RTLD_GLOBAL)
    library.trace.argtypes = [ctypes.c_int, ctypes.c_int, *[ctypes.c_size_t] * 3, ctypes.c_uint64]
    return package, library


class Torch:
    """The parts of the module that gpuviz uses."""

    def __init__(self, package, library):
        self.__file__ = str(package / "__init__.py")
        self.__version__ = "0.0"
        self.library = library
        self.backend = "native"
        self.state = []
        self.observers = []
        self.waiting = []
        self.is_initialized = False
        self._C = SimpleNamespace(
            _GLIBCXX_USE_CXX11_ABI=True,
            _cuda_attach_out_of_memory_observer=self.observers.append,
        )
        self.cuda = SimpleNamespace(
            is_available=lambda: True,
            get_allocator_backend=lambda: self.backend,
            memory_snapshot=lambda: self.state,
            _lazy_call=self._lazy_call,
            _tls=threading.local(),
        )
        self._lock = threading.Lock()

    def _lazy_call(self, call):
        assert self._lock.acquire(timeout=10), "a call within a call waits for itself"
        try:
            if self.is_initialized:
                call()
            else:
                self.waiting.append(call)
        finally:
            self._lock.release()

    def initialize(self):
        """Use the GPU for the first time."""
        with self._lock:
            self.cuda._tls.is_initializing = True
            for call in self.waiting:
                call()
            del self.cuda._tls.is_initializing
            self.is_initialized = True

    def trace(self, entries):
        """Let the allocator do what entries of `torch_trace` tell."""
        for entry in entries:
            name = ACTIONS[entry.action]
            self.library.trace(
                NAMES.index(name),
                entry.device,
                entry.address,
                entry.size,
                entry.stream,
                entry.pool[1],
            )
