#include "allocator/last_uses.hpp"

#include <algorithm>
#include <unordered_map>

#include "allocator/size_classes.hpp"

namespace gpuviz::allocator {

using device::Address;

namespace {

// The use in the list by the same stream; its end if there is none.
auto find_same_stream(LastUses::Uses& uses, const LastUse& use) {
    return std::find_if(uses.begin(), uses.end(), [&](const auto& each) {
        return each->epoch == use.epoch && each->moment.slot == use.moment.slot;
    });
}

}  // namespace

void LastUses::update_count() noexcept { count_.store(uses_.size(), std::memory_order_relaxed); }

void LastUses::add(Address address, const std::shared_ptr<LastUse>& use) {
    Uses& uses = uses_[address / kMinBlockSize * kMinBlockSize];
    const auto earlier = find_same_stream(uses, *use);
    if (earlier == uses.end()) {
        uses.push_back(use);
    } else {
        *earlier = use;
    }
    update_count();
}

LastUses::Uses LastUses::take(Address address, std::uint64_t size) {
    Uses newest;
    const auto first = uses_.lower_bound(address);
    const auto last = uses_.lower_bound(address + size);
    for (auto entry = first; entry != last; ++entry) {
        for (const std::shared_ptr<LastUse>& use : entry->second) {
            const auto same = find_same_stream(newest, *use);
            if (same == newest.end()) {
                newest.push_back(use);
            } else if ((*same)->moment.index < use->moment.index) {
                *same = use;
            }
        }
    }
    uses_.erase(first, last);
    update_count();
    return newest;
}

void LastUses::clear() {
    uses_.clear();
    update_count();
}

void LastUses::drop_complete(device::Device& device) {
    std::unordered_map<const LastUse*, bool> is_complete;
    const auto is_done = [&](const std::shared_ptr<LastUse>& use) {
        const auto [found, is_new] = is_complete.try_emplace(use.get(), false);
        if (is_new) {
            found->second = use->is_recorded() && device.is_complete(use->event());
        }
        return found->second;
    };
    for (auto& [address, uses] : uses_) {
        std::erase_if(uses, is_done);
    }
    std::erase_if(uses_, [](const auto& entry) { return entry.second.empty(); });
    most_ = std::max(most_, 2 * uses_.size());
    update_count();
}

}  // namespace gpuviz::allocator
