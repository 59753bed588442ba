#include "clients/rmm_observer.hpp"

#include "record/observed_call.hpp"
#include "record/thread_id.hpp"

namespace gpuviz::clients {

using record::ObservedPool;

void RmmObserver::allocated(int device, std::uint64_t address, std::uint64_t size,
                            std::uint64_t stream) {
    if (address != 0 && size != 0 && !record::ObservedCall::is_active()) {
        pool(device).allocated({address, size, size, stream}, ObservedPool::kUnknownTotal,
                               call_site());
    }
}

void RmmObserver::freed(int device, std::uint64_t address) {
    const auto found = pools_.find(device);
    if (found != pools_.end()) {
        found->second.freed(address, call_site());
    }
}

void RmmObserver::set_session(record::Session* session, bool stacks) {
    session_ = session;
    stacks_ = stacks;
    if (session != nullptr) {
        std::erase_if(pools_, [](const auto& known) { return !known.second.has_blocks(); });
    }
    for (auto& [device, known] : pools_) {
        known.set_sink(session == nullptr ? nullptr : &session->sink(device));
        known.describe_state({.framework = record::Framework::rmm});
    }
}

std::vector<int> RmmObserver::devices() const {
    std::vector<int> seen;
    seen.reserve(pools_.size());
    for (const auto& [device, known] : pools_) {
        seen.push_back(device);
    }
    return seen;
}

void RmmObserver::abandon() noexcept {
    session_ = nullptr;
    for (auto& [device, known] : pools_) {
        known.set_sink(nullptr);
    }
}

ObservedPool& RmmObserver::pool(int device) {
    const auto [found, is_new] =
        pools_.try_emplace(device, device, ObservedPool::kUnknownTotal, 2 * record::rmm_owner);
    if (is_new && session_ != nullptr) {
        found->second.set_sink(&session_->sink(device));
    }
    return found->second;
}

record::CallSite RmmObserver::call_site() const noexcept {
    if (session_ == nullptr) {
        return {.framework = record::Framework::rmm};
    }
    return {stacks_ ? session_->capture_stack() : 0, record::current_thread_id(),
            session_->current_range(), record::Framework::rmm};
}

}  // namespace gpuviz::clients
