// Passes the trace of PyTorch's caching allocator on to gpuviz.
//
// gpuviz compiles this file on the user's machine, with the headers of the installed PyTorch, whose
// C++ interface differs from version to version. See torch_tracker.py.
#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdint>
#include <exception>

namespace {

namespace caching_allocator = c10::cuda::CUDACachingAllocator;
using Torch = caching_allocator::TraceEntry;

// The same as in gpuviz/native/torch/torch_observer.hpp.
struct Entry {
    std::int32_t action;
    std::int32_t device;
    std::uint64_t address;
    std::uint64_t size;
    std::uint64_t stream;
    std::uint64_t pool[2];
};
using Function = void (*)(void*, const Entry*);

// The number of gpuviz's action; -1 if it has none.
std::int32_t action_of(Torch::Action action) noexcept {
    switch (action) {
        case Torch::ALLOC:
            return 0;
        case Torch::FREE_REQUESTED:
            return 1;
        case Torch::FREE_COMPLETED:
            return 2;
        case Torch::SEGMENT_ALLOC:
            return 3;
        case Torch::SEGMENT_FREE:
            return 4;
        case Torch::SEGMENT_MAP:
            return 5;
        case Torch::SEGMENT_UNMAP:
            return 6;
        case Torch::OOM:
            return 7;
        default:
            return -1;
    }
}

}  // namespace

// Calls `function` with `self` and each entry from now on, until the process ends. Returns 0, or 1
// if this allocator has no trackers.
extern "C" __attribute__((visibility("default"))) int gpuviz_attach(Function function, void* self) {
    try {
        caching_allocator::attachAllocatorTraceTracker([=](const Torch& traced) {
            const std::int32_t action = action_of(traced.action_);
            if (action >= 0) {
                const Entry entry{action,
                                  static_cast<std::int32_t>(traced.device_),
                                  static_cast<std::uint64_t>(traced.addr_),
                                  static_cast<std::uint64_t>(traced.size_),
                                  reinterpret_cast<std::uint64_t>(traced.stream_),
                                  {traced.mempool_.first, traced.mempool_.second}};
                function(self, &entry);
            }
        });
    } catch (const std::exception&) {
        return 1;
    }
    return 0;
}
