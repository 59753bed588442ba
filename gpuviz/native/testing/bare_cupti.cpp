#include "testing/bare_cupti.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "cupti/cupti_buffers.hpp"
#include "cupti/cupti_calls.hpp"

namespace gpuviz::testing {
namespace {

// The kinds of CuptiTracer::enable_activities().
constexpr std::array kKinds{
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_MEMORY2,
    CUPTI_ACTIVITY_KIND_OVERHEAD,
    CUPTI_ACTIVITY_KIND_JIT,
};

void CUPTIAPI requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
    *size = cupti::CuptiBuffers::buffer_bytes;
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(64, *size));
    *max_records = 0;
}

void CUPTIAPI completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t) {
    std::free(buffer);
}

void CUPTIAPI ignored(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

}  // namespace

BareCupti::BareCupti(const std::string& library, std::optional<std::vector<int>> kinds,
                     bool callbacks)
    : library_(cupti::CuptiLibrary::open(library)),
      wanted_(std::move(kinds)),
      callbacks_(callbacks) {}

BareCupti::~BareCupti() { stop(); }

void BareCupti::start() {
    check(library_->subscribe(&subscriber_, &ignored, nullptr), "cuptiSubscribe");
    check(library_->register_callbacks(&requested, &completed), "cuptiActivityRegisterCallbacks");
    for (const CUpti_ActivityKind kind : kKinds) {
        const bool is_wanted =
            !wanted_ || std::find(wanted_->begin(), wanted_->end(), int(kind)) != wanted_->end();
        if (is_wanted && library_->enable_activity(kind) == CUPTI_SUCCESS) {
            kinds_.push_back(kind);
        }
    }
    if (library_->enable_allocation_source != nullptr) {
        library_->enable_allocation_source(1);
    }
    if (callbacks_) {
        const std::vector<cupti::CuptiCall> calls = cupti::driver_calls(*library_);
        for (std::size_t id = 1; id < calls.size(); ++id) {
            if (calls[id].is_traced || calls[id].is_about_waits()) {
                library_->enable_callback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API,
                                          CUpti_CallbackId(id));
            }
        }
    }
}

void BareCupti::stop() noexcept {
    for (const CUpti_ActivityKind kind : std::exchange(kinds_, {})) {
        library_->disable_activity(kind);
    }
    if (subscriber_ != nullptr) {
        library_->flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
        library_->unsubscribe(std::exchange(subscriber_, nullptr));
    }
}

void BareCupti::check(CUptiResult result, const char* call) const {
    if (result != CUPTI_SUCCESS) {
        throw std::runtime_error(std::string(call) + ": " + library_->name(result) + ".");
    }
}

}  // namespace gpuviz::testing
