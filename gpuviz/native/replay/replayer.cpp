#include "replay/replayer.hpp"

#include <chrono>

#include "allocator/out_of_memory.hpp"
#include "record/clock.hpp"

namespace gpuviz::replay {

using device::Address;

namespace {

// A stream of its own for each block that waits for an unknown one; above all handles of the
// driver.
constexpr device::StreamHandle unknown_streams = device::StreamHandle{1} << 47;

}  // namespace

Replayer::Replayer(const ReplayProgram& program, device::OfflineDevice& device,
                   allocator::Allocator& allocator, ReplaySink* sink)
    : program_(program),
      device_(device),
      allocator_(allocator),
      simulated_(dynamic_cast<device::SimulatedDevice*>(&device)),
      sink_(sink),
      blocks_(program.block_count(), 0) {
    for (std::uint64_t pool = 0; pool < program.pool_count(); ++pool) {
        pools_.push_back(allocator.create_pool());
    }
}

ReplayResult Replayer::run(double speed) {
    ReplayResult result;
    const bool timed = speed > 0 && !program_.time_ns.empty();
    const std::int64_t start_ns = record::now_ns();
    for (std::size_t row = 0; row < program_.size(); ++row) {
        if (stopped_.load(std::memory_order_relaxed)) {
            break;
        }
        if (timed) {
            const auto offset_ns = static_cast<double>(program_.time_ns[row]) / speed;
            if (!wait_until(start_ns + static_cast<std::int64_t>(offset_ns))) {
                break;
            }
        }
        if (sink_ != nullptr) {
            sink_->begin(program_.origin[row]);
        }
        carry_out(row, result);
        ++result.operations;
    }
    result.elapsed_ns = record::now_ns() - start_ns;
    return result;
}

void Replayer::stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    stopping_.notify_all();
}

bool Replayer::wait_until(std::int64_t time_ns) {
    const std::int64_t pause_ns = time_ns - record::now_ns();
    if (pause_ns <= 0) {
        return true;
    }
    std::unique_lock lock(mutex_);
    return !stopping_.wait_for(lock, std::chrono::nanoseconds(pause_ns),
                               [this] { return stopped_.load(); });
}

// 0: out of memory.
Address Replayer::try_allocate(std::uint64_t size, device::StreamHandle stream,
                               const record::CallSite& site) {
    Address address = 0;
    try {
        address = allocator_.allocate(size, stream, site);
    } catch (const allocator::OutOfMemory&) {
        address = 0;
    }
    if (simulated_ != nullptr) {
        simulated_->suggest(0);
    }
    return address;
}

void Replayer::allocate(std::size_t row, const record::CallSite& site, ReplayResult& result) {
    const Address address = try_allocate(program_.argument[row], program_.stream[row], site);
    blocks_[program_.id[row]] = address;
    result.addresses.push_back(address);
}

void Replayer::restore_segment(std::size_t row, const record::CallSite& site) {
    const std::uint32_t pool = program_.id[row];
    restored_stream_ = program_.stream[row];
    gap_ = 0;
    const std::uint64_t number = pool < 2 ? 0 : pools_[pool / 2 - 1];
    const std::uint64_t size = program_.argument[row];
    if (static_cast<Operation>(program_.operation[row]) == Operation::restore_pages) {
        allocator_.restore_pages(place_, size, restored_stream_, number, pool % 2 == 0, site);
    } else {
        allocator_.restore_segment(size, restored_stream_, number, pool % 2 == 0, site);
    }
    if (simulated_ != nullptr) {
        simulated_->suggest(0);
    }
}

// Where the segment has no room for the block, it is allocated as any other.
void Replayer::restore_block(std::size_t row, const record::CallSite& site) {
    const std::uint64_t requested = program_.stream[row];
    const Address address = allocator_.restore_block(gap_, program_.argument[row], requested, site);
    gap_ = 0;
    blocks_[program_.id[row]] =
        address != 0 ? address : try_allocate(requested, restored_stream_, site);
}

// A block without known stream uses waits for a stream of its own.
void Replayer::free(std::size_t row, const record::CallSite& site) {
    const std::uint32_t id = program_.id[row];
    const Address address = blocks_[id];
    if (address == 0) {
        return;
    }
    if (static_cast<Operation>(program_.operation[row]) == Operation::free) {
        allocator_.free(address, site);
        return;
    }
    if (program_.argument[row] == 0) {
        allocator_.add_stream_use(address, unknown_streams + id);
    }
    device_.hold(id);
    allocator_.free(address, site);
    device_.release_hold();
}

void Replayer::set_expandable(bool on) {
    allocator::Settings settings = allocator_.settings();
    settings.expandable_segments = on;
    allocator_.apply_settings(settings);
}

record::Framework Replayer::framework_of(std::size_t row) const noexcept {
    return program_.framework.empty() ? record::Framework::none
                                      : static_cast<record::Framework>(program_.framework[row]);
}

void Replayer::carry_out(std::size_t row, ReplayResult& result) {
    const record::CallSite site{.stack = program_.stack.empty() ? 0 : program_.stack[row],
                                .thread = program_.thread.empty() ? 0 : program_.thread[row],
                                .framework = framework_of(row)};
    const std::uint64_t argument = program_.argument[row];
    switch (static_cast<Operation>(program_.operation[row])) {
        case Operation::malloc:
            allocate(row, site, result);
            break;
        case Operation::free:
        case Operation::free_pending:
            free(row, site);
            break;
        case Operation::complete:
            device_.complete(program_.id[row]);
            break;
        case Operation::record_stream:
            if (const Address address = blocks_[program_.id[row]]; address != 0) {
                allocator_.record_stream(address, program_.stream[row], site);
            }
            break;
        case Operation::busy:
            device_.occupy(program_.stream[row]);
            break;
        case Operation::sync:
            device_.finish_all();
            break;
        case Operation::empty_cache:
            allocator_.empty_cache(site);
            break;
        case Operation::begin_pool:
            allocator_.begin_pool(pools_[argument], program_.pool_filter);
            break;
        case Operation::end_pool:
            allocator_.end_pool(pools_[argument]);
            break;
        case Operation::release_pool:
            allocator_.release_pool(pools_[argument], site);
            break;
        case Operation::memory_limit:
            allocator_.set_memory_limit(argument, site);
            break;
        case Operation::expandable:
            set_expandable(argument != 0);
            break;
        case Operation::place:
            place_ = argument;
            if (simulated_ != nullptr) {
                simulated_->suggest(argument);
            }
            break;
        case Operation::restore_segment:
        case Operation::restore_pages:
            restore_segment(row, site);
            break;
        case Operation::restore_gap:
            gap_ = argument;
            break;
        case Operation::restore_block:
            restore_block(row, site);
            break;
        case Operation::settings:
            allocator_.apply_settings(allocator_.settings().parse(program_.settings[argument]));
            break;
        case Operation::stats:
            result.statistics.push_back(allocator_.statistics());
            break;
    }
}

}  // namespace gpuviz::replay
