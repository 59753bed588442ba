#include "python/allocator_values.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace gpuviz::python {

using allocator::BlockState;

namespace {

const char* name_of(BlockState state) {
    switch (state) {
        case BlockState::active_allocated:
            return "active_allocated";
        case BlockState::active_pending_free:
            return "active_pending_free";
        case BlockState::inactive:
            break;
    }
    return "inactive";
}

nb::list to_python(const std::vector<allocator::SnapshotBlock>& blocks) {
    nb::list values;
    for (const allocator::SnapshotBlock& block : blocks) {
        nb::dict value;
        value["address"] = block.address;
        value["size"] = block.size;
        value["requested_size"] = block.requested_size;
        value["state"] = name_of(block.state);
        value["stack"] = block.stack;
        values.append(value);
    }
    return values;
}

nb::dict to_python(const std::vector<std::pair<std::string, std::int64_t>>& statistics) {
    nb::dict values;
    for (const auto& [key, value] : statistics) {
        values[key.c_str()] = value;
    }
    return values;
}

}  // namespace

nb::dict to_python(const allocator::Statistics& statistics) {
    return to_python(statistics.flattened());
}

nb::dict to_python(const allocator::HostStatistics& statistics) {
    return to_python(statistics.flattened());
}

nb::list to_python(const allocator::Snapshot& snapshot) {
    nb::list values;
    for (const allocator::SnapshotSegment& segment : snapshot) {
        nb::dict value;
        value["device"] = segment.device;
        value["address"] = segment.address;
        value["total_size"] = segment.total_size;
        value["allocated_size"] = segment.allocated_size;
        value["active_size"] = segment.active_size;
        value["requested_size"] = segment.requested_size;
        value["stream"] = segment.stream;
        value["segment_type"] = segment.is_small ? "small" : "large";
        value["segment_pool_id"] = nb::make_tuple(0, segment.pool);
        value["is_expandable"] = segment.is_expandable;
        value["stack"] = segment.stack;
        value["blocks"] = to_python(segment.blocks);
        values.append(value);
    }
    return values;
}

nb::object to_python(const allocator::OutOfMemory& error, nb::handle type) {
    const allocator::OutOfMemoryReport& report = error.report;
    nb::object raised = type(error.message.c_str());
    raised.attr("device") = report.device;
    raised.attr("requested_size") = report.requested_size;
    raised.attr("alloc_size") = report.alloc_size;
    raised.attr("device_free") = report.device_free;
    raised.attr("device_total") = report.device_total;
    raised.attr("allocated") = report.allocated;
    raised.attr("reserved") = report.reserved;
    raised.attr("limit") = report.limit ? nb::cast(*report.limit) : nb::none();
    nb::list processes;
    for (const device::ProcessMemory& each : report.processes) {
        processes.append(nb::make_tuple(each.process, each.used));
    }
    raised.attr("processes") = processes;
    raised.attr("this_process") = report.this_process;
    return raised;
}

nb::dict divisions_by_megabytes(const allocator::Settings& settings) {
    nb::dict values;
    std::uint64_t megabytes = 1;
    for (const std::uint32_t divisions : settings.roundup_power2_divisions) {
        values[std::to_string(megabytes).c_str()] = divisions;
        megabytes *= 2;
    }
    return values;
}

}  // namespace gpuviz::python
