#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gpuviz::allocator {

// A map with the iteration order of torch's table of event queues, because the order in which
// pending frees complete determines how blocks merge: robin hood hashing over a power of two of
// slots (from 4), Fibonacci hash, at most half full, never shrinking, erasing by shifting back, no
// wrap-around (log2(slots), at least 4, spare slots at the end).
template <typename Value>
class SlotTable {
  public:
    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
    [[nodiscard]] std::size_t slot_count() const noexcept { return slots_.size(); }
    [[nodiscard]] bool has(std::size_t slot) const noexcept { return slots_[slot].distance >= 0; }
    [[nodiscard]] std::uint64_t key(std::size_t slot) const noexcept { return slots_[slot].key; }
    [[nodiscard]] Value& value(std::size_t slot) noexcept { return slots_[slot].value; }

    // The value of `key`, created if missing.
    Value& operator[](std::uint64_t key) {
        const std::size_t slot = find(key);
        if (slot != slots_.size()) {
            return slots_[slot].value;
        }
        insert(key, Value{});
        return slots_[find(key)].value;
    }

    // Afterwards the slot holds the next entry of its chain, or nothing.
    void erase(std::size_t slot) {
        --count_;
        while (slot + 1 < slots_.size() && slots_[slot + 1].distance > 0) {
            slots_[slot] = std::move(slots_[slot + 1]);
            --slots_[slot].distance;
            ++slot;
        }
        slots_[slot] = Slot{};
    }

  private:
    struct Slot {
        int distance = -1;  // from the home slot of the hash; -1: empty
        std::uint64_t key = 0;
        Value value{};
    };

    [[nodiscard]] std::size_t home(std::uint64_t key) const noexcept {
        return static_cast<std::size_t>((key * 11400714819323198485u) >>
                                        (64 - std::countr_zero(buckets_)));
    }

    [[nodiscard]] std::size_t find(std::uint64_t key) const noexcept {
        if (buckets_ == 0) {
            return slots_.size();
        }
        std::size_t slot = home(key);
        for (int distance = 0; slot < slots_.size() && slots_[slot].distance >= distance;
             ++slot, ++distance) {
            if (slots_[slot].key == key) {
                return slot;
            }
        }
        return slots_.size();
    }

    void insert(std::uint64_t key, Value value) {
        if (2 * (count_ + 1) > buckets_) {
            grow();
        }
        Slot moving{0, key, std::move(value)};
        for (std::size_t slot = home(key);; ++slot, ++moving.distance) {
            if (moving.distance == max_distance_) {
                grow();
                insert(moving.key, std::move(moving.value));
                return;
            }
            if (slots_[slot].distance < 0) {
                slots_[slot] = std::move(moving);
                ++count_;
                return;
            }
            if (slots_[slot].distance < moving.distance) {
                std::swap(slots_[slot], moving);
            }
        }
    }

    void grow() {
        buckets_ = std::max<std::size_t>(4, 2 * buckets_);
        max_distance_ = std::max(4, std::countr_zero(buckets_));
        std::vector<Slot> old(buckets_ + static_cast<std::size_t>(max_distance_));
        std::swap(old, slots_);
        count_ = 0;
        for (Slot& slot : old) {
            if (slot.distance >= 0) {
                insert(slot.key, std::move(slot.value));
            }
        }
    }

    std::vector<Slot> slots_;
    std::size_t buckets_ = 0;
    std::size_t count_ = 0;
    int max_distance_ = 0;
};

}  // namespace gpuviz::allocator
