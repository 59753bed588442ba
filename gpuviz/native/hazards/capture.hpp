#pragma once

#include <unordered_map>
#include <vector>

#include "hazards/history.hpp"
#include "hazards/order.hpp"

namespace gpuviz::hazards {

// What streams record into a graph: nodes in the order of streams and events, which do not run.
class Capture {
  public:
    explicit Capture(Slot origin) : origin(origin) { join(origin); }

    // The stream's slot in the capture's own order.
    Slot join(Slot stream) {
        const auto found = slots_.find(stream);
        if (found != slots_.end()) return found->second;
        return slots_[stream] = order.create_stream(StreamKind::non_blocking);
    }

    // Appends a node to the stream; returns the stream's slot.
    Slot act(Slot stream) {
        const Slot slot = join(stream);
        order.act(slot, 0);
        return slot;
    }

    const Slot origin;
    bool is_open = true;
    Order order{false};
    History history;
    std::vector<Access> accesses;  // of all nodes

  private:
    std::unordered_map<Slot, Slot> slots_;
};

}  // namespace gpuviz::hazards
