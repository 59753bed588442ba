#include "cupti/cupti_buffers.hpp"

#include <cstdlib>
#include <exception>
#include <shared_mutex>
#include <stdexcept>

namespace gpuviz::cupti {
namespace {

constexpr std::size_t kAlignment = 64;

// The global state of CUPTI's callbacks. A callback holds a shared lock while it runs.
struct Active {
    std::shared_mutex mutex;
    CuptiBuffers* buffers = nullptr;
};

Active& active() {
    // Never destroyed: CUPTI's threads may call while the process exits.
    static auto* const place = new Active;
    return *place;
}

}  // namespace

CuptiBuffers::~CuptiBuffers() {
    deactivate();
    for (std::uint8_t* buffer : free_) {
        std::free(buffer);
    }
}

void CuptiBuffers::activate() {
    const std::unique_lock lock(active().mutex);
    if (active().buffers != nullptr) {
        throw std::runtime_error("Another tracer of this process is active.");
    }
    const CUptiResult result = library_.register_callbacks(&requested, &completed);
    if (result != CUPTI_SUCCESS) {
        throw std::runtime_error("CUPTI does not accept buffers: " + library_.name(result) + ".");
    }
    active().buffers = this;
    // Detaching drops a record of CUPTI's own overhead, which must not count as ours; the query
    // resets the count.
    std::size_t before = 0;
    library_.dropped_records(nullptr, 0, &before);
}

void CuptiBuffers::deactivate() noexcept {
    const std::unique_lock lock(active().mutex);
    if (active().buffers == this) {
        active().buffers = nullptr;
    }
}

void CUPTIAPI CuptiBuffers::requested(std::uint8_t** buffer, std::size_t* size,
                                      std::size_t* max_records) {
    const std::shared_lock lock(active().mutex);
    *buffer = active().buffers != nullptr
                  ? active().buffers->take()
                  : static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, buffer_bytes));
    *size = *buffer == nullptr ? 0 : buffer_bytes;
    *max_records = 0;
}

void CUPTIAPI CuptiBuffers::completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                                      std::size_t /*size*/, std::size_t valid_size) {
    const std::shared_lock lock(active().mutex);
    if (active().buffers != nullptr) {
        active().buffers->parse(context, stream, buffer, valid_size);
    } else {
        std::free(buffer);
    }
}

std::uint8_t* CuptiBuffers::take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
        return static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, buffer_bytes));
    }
    std::uint8_t* const buffer = free_.back();
    free_.pop_back();
    return buffer;
}

void CuptiBuffers::parse(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                         std::size_t valid_size) {
    parsed_ += records_.parse(buffer, valid_size);
    std::size_t dropped = 0;
    if (library_.dropped_records(context, stream, &dropped) == CUPTI_SUCCESS) {
        log_.count_lost(dropped);
    }
    give_back(buffer);
}

void CuptiBuffers::give_back(std::uint8_t* buffer) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        free_.push_back(buffer);
    } catch (const std::exception&) {
        std::free(buffer);
    }
}

}  // namespace gpuviz::cupti
