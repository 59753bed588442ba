#include "hazards/stream_values.hpp"

#include <algorithm>
#include <utility>

namespace gpuviz::hazards {

void StreamValues::write(Order& order, Slot stream, std::uint64_t address) {
    Value& value = values_[address];
    value.is_written = true;
    value.clock.join(order.tail(stream));
    for (const Moment wait : value.early_waits) {
        order.follow(wait.slot, value.clock);
        std::erase_if(doubts_, [&](const Doubt& doubt) {
            return doubt.first.slot == wait.slot && doubt.first.index > wait.index &&
                   value.clock.has(doubt.second);
        });
    }
    value.early_waits.clear();
}

void StreamValues::wait(Order& order, Moment action, std::uint64_t address) {
    Value& value = values_[address];
    if (value.is_written) {
        order.follow(action.slot, value.clock);
        return;
    }
    order.follow_all(action.slot);
    const bool is_known = std::any_of(value.early_waits.begin(), value.early_waits.end(),
                                      [&](Moment earlier) { return earlier.slot == action.slot; });
    if (!is_known) value.early_waits.push_back(action);
}

bool StreamValues::waits_early(Moment action) const {
    return std::any_of(values_.begin(), values_.end(), [&](const auto& each) {
        const std::vector<Moment>& waits = each.second.early_waits;
        return std::any_of(waits.begin(), waits.end(), [&](Moment wait) {
            return wait.slot == action.slot && wait.index < action.index;
        });
    });
}

void StreamValues::doubt(Moment first, Moment second, Hazard hazard) {
    doubts_.push_back({first, second, std::move(hazard)});
}

void StreamValues::take_doubts(std::vector<Hazard>& hazards) {
    for (Doubt& each : doubts_) hazards.push_back(std::move(each.hazard));
    doubts_.clear();
}

}  // namespace gpuviz::hazards
