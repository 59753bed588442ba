#include "hazards/captures.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace gpuviz::hazards {

void Captures::begin(Slot stream) {
    if (of(stream)) {
        throw std::invalid_argument("stream " + std::to_string(stream) + " captures already");
    }
    captures_[stream] = std::make_shared<Capture>(stream);
}

std::vector<Access> Captures::end(Slot stream) {
    const auto found = captures_.find(stream);
    if (found == captures_.end() || found->second->origin != stream) {
        throw std::invalid_argument("no capture began on stream " + std::to_string(stream));
    }
    const std::shared_ptr<Capture> capture = found->second;
    capture->is_open = false;
    std::erase_if(captures_, [&](const auto& each) { return each.second == capture; });
    return std::move(capture->accesses);
}

}  // namespace gpuviz::hazards
