#include "cupti/graph_launches.hpp"

#include <algorithm>
#include <string_view>

namespace gpuviz::cupti {

using record::ActivityRow;

void GraphLaunches::add(const ActivityRow& node) {
    const auto [place, is_new] = open_.try_emplace(node.stream, node);
    ActivityRow& launch = place->second;
    if (launch.correlation == node.correlation) {
        launch.time = std::min(launch.time, node.time);
        launch.end = std::max(launch.end, node.end);
    } else {
        append(launch);
        launch = node;
    }
}

void GraphLaunches::finish() {
    for (const auto& [stream, launch] : open_) {
        append(launch);
    }
    open_.clear();
}

void GraphLaunches::append(ActivityRow launch) {
    launch.kind = record::ActivityKind::graph;
    launch.name = log_.strings.intern(std::string_view("graph launch"));
    launch.bytes = 0;
    launch.copy_kind = record::CopyKind::none;
    launch.source = launch.destination = record::MemoryKind::none;
    launch.graph_node = 0;
    launch.launch = 0;
    launch.source_device = launch.destination_device = -1;
    log_.activities.append(launch);
}

}  // namespace gpuviz::cupti
