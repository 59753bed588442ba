#include "simulation/simulated_records.hpp"

#include <utility>
#include <vector>

namespace gpuviz::simulation {

using record::ActivityLog;
using record::ActivityRow;
using record::SynchronizationRow;

namespace {

// Whether a tracer omits the call unless all calls are recorded.
bool is_minor(std::string_view call) {
    return call == "cuEventCreate" || call == "cuEventDestroy_v2" || call == "cuGraphExecDestroy" ||
           call == "cuStreamBeginCapture_v2";
}

}  // namespace

void SimulatedRecords::attach(record::Session* session,
                              std::map<device::StreamHandle, GpuStream>& streams,
                              const SimulatedTracing& tracing) {
    expected_.clear();
    last_of_.clear();
    begun_.clear();
    tracing_ = tracing;
    session_ = session;
    is_paused_ = false;
    calls_ = 0;
    ++recording_;
    if (session_ != nullptr) {
        for (auto& [handle, stream] : streams) {
            describe(stream, 0);
        }
    }
}

void SimulatedRecords::pause(bool is_paused, std::map<device::StreamHandle, GpuStream>& streams) {
    is_paused_ = is_paused;
    ++recording_;
    if (is_recording()) {
        for (auto& [handle, stream] : streams) {
            if (stream.row == 0) {
                describe(stream, 0);  // created meanwhile
            }
        }
    }
}

void SimulatedRecords::describe(GpuStream& stream, std::int64_t created) {
    stream.row = session_->log().streams.describe({.id = 0,
                                                   .device = device_,
                                                   .handle = stream.handle,
                                                   .tracer_id = stream.number,
                                                   .kind = stream.kind,
                                                   .priority = stream.priority,
                                                   .created = created});
}

void SimulatedRecords::stream_created(GpuStream& stream, std::int64_t time_ns) {
    if (is_recording()) {
        describe(stream, session_->log().since_start(time_ns));
    }
}

void SimulatedRecords::stream_destroyed(const GpuStream& stream, std::int64_t time_ns) {
    if (is_recording()) {
        ActivityLog& log = session_->log();
        log.streams.destroyed(device_, stream.handle, log.since_start(time_ns));
    }
}

void SimulatedRecords::expect(GpuSchedule::Id work, const ActivityRow& row) {
    if (is_recording()) {
        expected_.emplace(work, row);
    }
}

void SimulatedRecords::expect(GpuSchedule::Id work, const SynchronizationRow& row) {
    if (is_recording()) {
        expected_.emplace(work, row);
    }
}

void SimulatedRecords::expect(GpuSchedule::Id first, GpuSchedule::Id last, const ActivityRow& row) {
    if (is_recording()) {
        last_of_.emplace(first, last);
        expected_.emplace(last, row);
    }
}

void SimulatedRecords::write(std::span<const GpuSchedule::Ended> ended) noexcept {
    for (const GpuSchedule::Ended& work : ended) {
        if (const auto first = last_of_.extract(work.id)) {
            begun_.emplace(first.mapped(), work.start_ns);
        }
        const auto found = expected_.find(work.id);
        if (found == expected_.end()) {
            continue;
        }
        ActivityLog& log = session_->log();
        const auto begun = begun_.extract(work.id);
        const std::int64_t start_ns = begun ? begun.mapped() : work.start_ns;
        const auto times = [&](auto& row) {
            row.time = log.since_start(start_ns);
            row.end = log.since_start(work.end_ns);
        };
        if (auto* activity = std::get_if<ActivityRow>(&found->second)) {
            times(*activity);
            log.activities.append(*activity);
        } else if (auto* passed = std::get_if<SynchronizationRow>(&found->second)) {
            times(*passed);
            log.synchronizations.append(*passed);
        }
        expected_.erase(found);
    }
}

void SimulatedRecords::call(std::string_view name, record::ApiCallRow row) noexcept {
    if (is_recording() && (tracing_.api_calls || (tracing_.launch_sites && !is_minor(name)))) {
        ActivityLog& log = session_->log();
        row.time = log.since_start(row.time);
        row.end = log.since_start(row.end);
        row.name = log.strings.intern(name);
        log.api_calls.append(row);
        ++calls_;
    }
}

void SimulatedRecords::synchronization(SynchronizationRow row) noexcept {
    if (is_recording()) {
        ActivityLog& log = session_->log();
        row.time = log.since_start(row.time);
        row.end = log.since_start(row.end);
        log.synchronizations.append(row);
    }
}

void SimulatedRecords::memory_operation(record::MemoryOperationRow row) noexcept {
    if (is_recording()) {
        ActivityLog& log = session_->log();
        row.time = log.since_start(row.time);
        log.memory_operations.append(row);
    }
}

void SimulatedRecords::graph_call(const record::GraphCallRow& row) noexcept {
    if (is_recording()) {
        session_->log().graph_calls.append(row);
    }
}

void SimulatedRecords::touch(std::span<const GpuAccess> accesses, std::uint32_t correlation,
                             std::int64_t time_ns, std::uint64_t content) {
    record::BlockTouches* touches = is_recording() ? session_->touches() : nullptr;
    if (touches == nullptr) {
        return;
    }
    std::vector<record::BlockTouches::Touch> found;
    for (const GpuAccess& access : accesses) {
        if (touches->may_be_block(access.address)) {
            found.push_back({.time_ns = time_ns,
                             .address = access.address,
                             .correlation = correlation,
                             .mode = access.mode});
        }
    }
    if (!found.empty()) {
        found.front().content = content;
    }
    touches->add(found);
}

std::uint32_t SimulatedRecords::name_id(std::string_view name) noexcept {
    return session_ == nullptr ? 0 : session_->log().strings.intern(name);
}

std::uint32_t SimulatedRecords::launch_id(const record::LaunchConfigurationRow& launch) noexcept {
    return session_ == nullptr ? 0 : session_->log().launch_id(launch);
}

}  // namespace gpuviz::simulation
