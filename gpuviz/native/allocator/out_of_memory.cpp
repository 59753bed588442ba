#include "allocator/out_of_memory.hpp"

#include <array>
#include <cstdio>

#include "allocator/size_classes.hpp"

namespace gpuviz::allocator {

namespace {

std::string describe(const OutOfMemoryReport& report) {
    if (report.requested_size >= kLargestRequest) {
        return "CUDA out of memory. Tried to allocate more than 1EB memory.";
    }
    std::string text = "CUDA out of memory. Tried to allocate " + format_size(report.alloc_size) +
                       ". GPU " + std::to_string(report.device) + " has a total capacity of " +
                       format_size(report.device_total) + " of which " +
                       format_size(report.device_free) + " is free. ";
    for (const device::ProcessMemory& each : report.processes) {
        text += each.process == report.this_process
                    ? "Including memory outside gpuviz, this process has "
                    : "Process " + std::to_string(each.process) + " has ";
        text += format_size(each.used) + " memory in use. ";
    }
    if (report.limit) {
        text += format_size(*report.limit) + " allowed; ";
    }
    const std::uint64_t pools = report.private_pools_free;
    const std::uint64_t used = report.allocated + pools;
    text += "Of the allocated memory " + format_size(used) + " is allocated by gpuviz, ";
    if (pools > 0) {
        text += "with " + format_size(pools) + " allocated in private pools (e.g., CUDA Graphs), ";
    }
    text += "and " + format_size(report.reserved > used ? report.reserved - used : 0) +
            " is reserved by gpuviz but unallocated.";
    if (!report.expandable_segments) {
        text +=
            " If reserved but unallocated memory is large, try the setting "
            "expandable_segments:True, which avoids fragmentation.";
    }
    return text;
}

}  // namespace

OutOfMemory::OutOfMemory(const OutOfMemoryReport& reported)
    : report(reported), message(describe(reported)) {}

std::string format_size(std::uint64_t size) {
    if (size <= 1024) {
        return std::to_string(size) + " bytes";
    }
    const char* unit = "GiB";
    double scale = 1024.0 * 1024.0 * 1024.0;
    if (size <= kMiB) {
        unit = "KiB";
        scale = 1024.0;
    } else if (size <= 1024 * kMiB) {
        unit = "MiB";
        scale = 1024.0 * 1024.0;
    }
    std::array<char, 48> text;
    std::snprintf(text.data(), text.size(), "%.2f %s", static_cast<double>(size) / scale, unit);
    return text.data();
}

HostOutOfMemory::HostOutOfMemory(std::uint64_t size)
    : message_("The driver refused " + std::to_string(size) +
               " bytes of pinned host memory, although no pinned memory is cached any more.") {}

}  // namespace gpuviz::allocator
