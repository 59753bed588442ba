#include "record/watchpoint.hpp"

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace gpuviz::record {
namespace {

// The processor cannot watch for reads alone.
int open_counter(std::uint64_t address, std::uint32_t accesses, int group) noexcept {
    perf_event_attr wanted{};
    wanted.type = PERF_TYPE_BREAKPOINT;
    wanted.size = sizeof(wanted);
    wanted.bp_type = accesses;
    wanted.bp_addr = address;
    wanted.bp_len = HW_BREAKPOINT_LEN_8;
    wanted.sample_period = 1;
    wanted.read_format = PERF_FORMAT_GROUP;
    wanted.disabled = group < 0;
    wanted.exclude_kernel = 1;
    wanted.exclude_hv = 1;
    return int(syscall(SYS_perf_event_open, &wanted, 0, -1, group, PERF_FLAG_FD_CLOEXEC));
}

void close_if_open(int file) noexcept {
    if (file >= 0) {
        close(file);
    }
}

}  // namespace

Watchpoint::Watchpoint(std::uint64_t address) noexcept
    : all_(open_counter(address, HW_BREAKPOINT_RW, -1)) {
    if (all_ < 0) {
        return;
    }
    writes_ = open_counter(address, HW_BREAKPOINT_W, all_);
    if (writes_ >= 0) {
        ioctl(all_, PERF_EVENT_IOC_REFRESH, int(most_counted));
    }
}

Watchpoint::Watchpoint(Watchpoint&& other) noexcept
    : all_(std::exchange(other.all_, -1)),
      writes_(std::exchange(other.writes_, -1)),
      taken_(other.taken_) {}

Watchpoint& Watchpoint::operator=(Watchpoint&& other) noexcept {
    std::swap(all_, other.all_);
    std::swap(writes_, other.writes_);
    std::swap(taken_, other.taken_);
    return *this;
}

Watchpoint::~Watchpoint() {
    close_if_open(writes_);
    close_if_open(all_);
}

Watchpoint::Counts Watchpoint::take() noexcept {
    std::array<std::uint64_t, 3> found{};  // how many counters, and their values
    if (!is_counting() || read(all_, found.data(), sizeof(found)) != sizeof(found)) {
        return {};
    }
    const Counts now{.reads = found[1] - found[2], .writes = found[2]};
    const Counts before = std::exchange(taken_, now);
    return {.reads = now.reads - before.reads, .writes = now.writes - before.writes};
}

}  // namespace gpuviz::record
