#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "hazards/capture.hpp"

namespace gpuviz::hazards {

// The open captures, by the streams that record into them. Not thread-safe.
class Captures {
  public:
    // The capture that the stream records into; null if it does not.
    [[nodiscard]] Capture* of(Slot stream) const {
        if (captures_.empty()) return nullptr;
        const auto found = captures_.find(stream);
        return found == captures_.end() ? nullptr : found->second.get();
    }
    // The same for a stream that records.
    [[nodiscard]] const std::shared_ptr<Capture>& shared(Slot stream) const {
        return captures_.at(stream);
    }

    // Throws std::invalid_argument if the stream records already.
    void begin(Slot stream);
    // Lets the stream record into another's capture.
    void join(Slot stream, const std::shared_ptr<Capture>& capture) { captures_[stream] = capture; }
    // Ends the capture for all its streams; returns the accesses of its nodes. Throws
    // std::invalid_argument unless it began on the stream.
    [[nodiscard]] std::vector<Access> end(Slot stream);

  private:
    std::unordered_map<Slot, std::shared_ptr<Capture>> captures_;
};

}  // namespace gpuviz::hazards
