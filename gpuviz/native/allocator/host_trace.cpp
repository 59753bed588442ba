#include "allocator/host_trace.hpp"

namespace gpuviz::allocator {

using record::Action;
using record::CallSite;

void HostTrace::write(Action action, const HostBlock& block, std::uint64_t requested_size) {
    if (log_ != nullptr && !log_->is_abandoned()) {
        const record::SampledCost::Call call(log_->memory_cost);
        append(action, block, requested_size, log_->since_start(clock_()), site_);
    }
}

// At time 0 and without a call stack, which may be another recording's.
void HostTrace::describe(const HostBlock& block) {
    append(Action::segment_alloc, block, 0, 0, {});
    if (block.allocated || block.is_used()) {
        append(Action::alloc, block, block.requested_size, 0, {});
    }
    if (!block.allocated && block.is_used()) {
        append(Action::free_requested, block, block.requested_size, 0, {});
    }
}

void HostTrace::append(Action action, const HostBlock& block, std::uint64_t requested_size,
                       std::int64_t time, const CallSite& site) {
    log_->host_memory_events.append({.time = time,
                                     .action = action,
                                     .address = block.address,
                                     .size = std::int64_t(block.size),
                                     .requested_size = std::int64_t(requested_size),
                                     .stack = site.stack,
                                     .thread = site.thread,
                                     .range = site.range});
}

}  // namespace gpuviz::allocator
