#pragma once

#include <cstdint>
#include <functional>

#include "allocator/host_block.hpp"
#include "record/activity_log.hpp"
#include "record/codes.hpp"
#include "record/memory_event.hpp"

namespace gpuviz::allocator {

// Writes what happens to blocks of pinned host memory into a log. Not thread-safe. The clock must
// outlive it.
class HostTrace {
  public:
    explicit HostTrace(const std::function<std::int64_t()>& clock) : clock_(clock) {}
    HostTrace(const HostTrace&) = delete;
    HostTrace& operator=(const HostTrace&) = delete;

    // Null: writes nothing from now on. Otherwise the log must stay until the next call.
    void set_log(record::ActivityLog* log) noexcept { log_ = log; }
    [[nodiscard]] bool has_log() const noexcept { return log_ != nullptr; }
    // The call that causes what is written from now on.
    void set_site(const record::CallSite& site) noexcept { site_ = site; }

    void write(record::Action action, const HostBlock& block, std::uint64_t requested_size);
    // Writes how the block came to be as it is. Requires a log.
    void describe(const HostBlock& block);

  private:
    void append(record::Action action, const HostBlock& block, std::uint64_t requested_size,
                std::int64_t time, const record::CallSite& site);

    const std::function<std::int64_t()>& clock_;  // in ns
    record::ActivityLog* log_ = nullptr;
    record::CallSite site_;
};

}  // namespace gpuviz::allocator
