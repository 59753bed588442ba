#include "clients/torch_functions.hpp"

#include <atomic>
#include <stdexcept>

#include "clients/torch_error.hpp"

namespace gpuviz::clients {

namespace {

std::atomic<SharedPool*> served{nullptr};

SharedPool& served_pool() {
    SharedPool* const pool = served.load(std::memory_order_acquire);
    if (pool == nullptr) {
        throw std::runtime_error(
            "Call gpuviz.allocators.torch.install() instead of using this function directly.");
    }
    return *pool;
}

std::uint64_t number(const void* pointer) noexcept {
    return reinterpret_cast<std::uint64_t>(pointer);
}

}  // namespace

void serve_torch(SharedPool& pool) noexcept { served.store(&pool, std::memory_order_release); }

extern "C" {

void* gpuviz_torch_malloc(std::size_t size, int device, void* stream) {
    SharedPool& pool = served_pool();
    try {
        return reinterpret_cast<void*>(
            pool.allocate(size, device, number(stream), record::Framework::torch));
    } catch (const allocator::OutOfMemory& error) {
        throw_torch_out_of_memory(pool.describe(error));
    }
}

void gpuviz_torch_free(void* pointer, std::size_t /*size*/, int device, void* /*stream*/) noexcept {
    if (SharedPool* const pool = served.load(std::memory_order_acquire)) {
        pool->free(number(pointer), device);
    }
}

void gpuviz_torch_record_stream(void* pointer, void* stream) noexcept {
    if (SharedPool* const pool = served.load(std::memory_order_acquire)) {
        pool->record_stream(number(pointer), number(stream));
    }
}

void gpuviz_torch_empty_cache() noexcept {
    if (SharedPool* const pool = served.load(std::memory_order_acquire)) {
        pool->empty_cache();
    }
}

void gpuviz_torch_set_memory_fraction(double fraction, int device) {
    served_pool().set_memory_fraction(fraction, device);
}
}

}  // namespace gpuviz::clients
