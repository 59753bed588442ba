#pragma once

#include <cstddef>

#include "clients/shared_pool.hpp"

// Who is linked into another program as a plugin of torch: torch finds these functions by name.
#define GPUVIZ_EXPORTED __attribute__((visibility("default"), used))

namespace gpuviz::clients {

// Lets torch's functions below use this pool, from now on and forever.
void serve_torch(SharedPool& pool) noexcept;

// For torch.cuda.memory.CUDAPluggableAllocator and the setters of its allocator(). They have no
// argument for an object of ours, hence the pool of serve_torch(). Any thread calls them, with or
// without the GIL, also while the interpreter exits.
extern "C" {

// Throws torch's OutOfMemoryError, or std::exception, which torch turns into a RuntimeError.
GPUVIZ_EXPORTED void* gpuviz_torch_malloc(std::size_t size, int device, void* stream);
GPUVIZ_EXPORTED void gpuviz_torch_free(void* pointer, std::size_t size, int device,
                                       void* stream) noexcept;
GPUVIZ_EXPORTED void gpuviz_torch_record_stream(void* pointer, void* stream) noexcept;
GPUVIZ_EXPORTED void gpuviz_torch_empty_cache() noexcept;
GPUVIZ_EXPORTED void gpuviz_torch_set_memory_fraction(double fraction, int device);
}

}  // namespace gpuviz::clients
