#include "clients/library_observer.hpp"

#include <stdexcept>

#include "record/observed_call.hpp"

namespace gpuviz::clients {

using record::Framework;
using record::ObservedPool;

namespace {

std::uint32_t owner_of(Framework framework) {
    switch (framework) {
        case Framework::rmm:
            return record::rmm_owner;
        case Framework::jax:
            return record::jax_owner;
        default:
            throw std::invalid_argument("This library's blocks have no pool of their own.");
    }
}

}  // namespace

LibraryObserver::LibraryObserver(Framework framework)
    : framework_(framework), owner_(owner_of(framework)) {}

void LibraryObserver::allocated(int device, std::uint64_t address, std::uint64_t size,
                                std::uint64_t stream, std::optional<std::uint32_t> stack) {
    if (address != 0 && size != 0 && !record::ObservedCall::is_active()) {
        pool(device).allocated({address, size, size, stream}, ObservedPool::kUnknownTotal,
                               call_site(stack));
    }
}

void LibraryObserver::freed(int device, std::uint64_t address, std::optional<std::uint32_t> stack) {
    const auto found = pools_.find(device);
    if (found != pools_.end()) {
        found->second.freed(address, call_site(stack));
    }
}

void LibraryObserver::out_of_memory(int device, std::uint64_t size) {
    pool(device).out_of_memory(size, 0, call_site());
}

void LibraryObserver::set_session(record::Session* session, bool stacks) {
    session_ = session;
    stacks_ = stacks;
    if (session != nullptr) {
        std::erase_if(pools_, [](const auto& known) { return !known.second.has_blocks(); });
    }
    for (auto& [device, known] : pools_) {
        known.set_sink(session == nullptr ? nullptr : &session->sink(device));
        known.describe_state({.framework = framework_});
    }
}

std::vector<int> LibraryObserver::devices() const {
    std::vector<int> seen;
    seen.reserve(pools_.size());
    for (const auto& [device, known] : pools_) {
        seen.push_back(device);
    }
    return seen;
}

void LibraryObserver::abandon() noexcept {
    session_ = nullptr;
    for (auto& [device, known] : pools_) {
        known.set_sink(nullptr);
    }
}

ObservedPool& LibraryObserver::pool(int device) {
    const auto [found, is_new] =
        pools_.try_emplace(device, device, ObservedPool::kUnknownTotal, 2 * owner_);
    if (is_new && session_ != nullptr) {
        found->second.set_sink(&session_->sink(device));
    }
    return found->second;
}

record::CallSite LibraryObserver::call_site(std::optional<std::uint32_t> stack) const noexcept {
    if (session_ == nullptr) {
        return {.framework = framework_};
    }
    if (stack) {
        return {.stack = *stack, .framework = framework_};
    }
    return session_->call_site(stacks_, framework_);
}

}  // namespace gpuviz::clients
