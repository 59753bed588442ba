#include "cupti/cupti_captures.hpp"

#include <dlfcn.h>

namespace gpuviz::cupti {

CuptiCaptures::CuptiCaptures() {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (driver == nullptr) {
        return;
    }
    capture_info_ =
        reinterpret_cast<decltype(capture_info_)>(dlsym(driver, "cuStreamGetCaptureInfo_v2"));
    nodes_ = reinterpret_cast<decltype(nodes_)>(dlsym(driver, "cuGraphGetNodes"));
}

void CuptiCaptures::ended() noexcept {
    int open = open_.load();
    // A capture may have begun before the recording.
    while (open > 0 && !open_.compare_exchange_weak(open, open - 1)) {
    }
}

void CuptiCaptures::forget() noexcept {
    const std::lock_guard lock(mutex_);
    captures_.clear();
    graphs_.clear();
    events_.clear();
    open_ = 1;
}

CuptiCaptures::Capture* CuptiCaptures::capture_of(CUstream stream) {
    if (capture_info_ == nullptr || stream == nullptr || stream == CU_STREAM_LEGACY) {
        return nullptr;
    }
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    CUgraph graph = nullptr;
    if (capture_info_(stream, &status, &id, &graph, nullptr, nullptr) != CUDA_SUCCESS ||
        status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        return nullptr;
    }
    Capture& capture = captures_[graph];
    if (capture.number == 0 || capture.id != id) {
        capture = {id, ++capture_count_, 0, {}};
    }
    return &capture;
}

std::uint32_t CuptiCaptures::captured(CUstream stream, bool is_known_node) {
    const std::lock_guard lock(mutex_);
    Capture* const capture = capture_of(stream);
    if (capture == nullptr) {
        return 0;
    }
    capture->nodes += is_known_node ? 1 : 0;
    return capture->number;
}

bool CuptiCaptures::records_event(CUstream stream, std::uint64_t event) {
    const std::lock_guard lock(mutex_);
    Capture* const capture = capture_of(stream);
    if (capture != nullptr) {
        capture->events.push_back(event);
    }
    return capture != nullptr;
}

void CuptiCaptures::instantiated(CUgraph graph, CUgraphExec executable) {
    const std::lock_guard lock(mutex_);
    graphs_.erase(executable);
    events_.erase(executable);
    const auto known = captures_.find(graph);
    if (known != captures_.end() && !known->second.events.empty()) {
        events_[executable] = known->second.events;
    }
    std::size_t nodes = 0;
    if (known != captures_.end() && nodes_ != nullptr &&
        nodes_(graph, nullptr, &nodes) == CUDA_SUCCESS && nodes == known->second.nodes) {
        graphs_[executable] = {++graph_count_, known->second.number};
    }
}

CapturedGraph CuptiCaptures::graph_of(CUgraphExec executable) {
    const std::lock_guard lock(mutex_);
    const auto known = graphs_.find(executable);
    return known == graphs_.end() ? CapturedGraph{} : known->second;
}

std::vector<std::uint64_t> CuptiCaptures::events_of(CUgraphExec executable) {
    const std::lock_guard lock(mutex_);
    const auto known = events_.find(executable);
    return known == events_.end() ? std::vector<std::uint64_t>() : known->second;
}

void CuptiCaptures::destroyed(CUgraph graph) {
    const std::lock_guard lock(mutex_);
    captures_.erase(graph);
}

std::vector<std::uint64_t> CuptiCaptures::changed() {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint64_t> recorded;
    for (const auto& [graph, capture] : captures_) {
        recorded.insert(recorded.end(), capture.events.begin(), capture.events.end());
    }
    for (const auto& [executable, events] : events_) {
        recorded.insert(recorded.end(), events.begin(), events.end());
    }
    captures_.clear();
    graphs_.clear();
    events_.clear();
    return recorded;
}

}  // namespace gpuviz::cupti
