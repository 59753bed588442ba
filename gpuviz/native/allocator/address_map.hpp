#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "allocator/block.hpp"

namespace gpuviz::allocator {

// Allocated blocks by address: open addressing, at most half full, no tombstones.
class AddressMap {
  public:
    void insert(Block* block) {
        if (2 * (count_ + 1) > slots_.size()) {
            grow();
        }
        place(block->address, block);
        ++count_;
    }

    // Null when no allocated block starts at `address`.
    [[nodiscard]] Block* find(device::Address address) const noexcept {
        return slots_[slot_of(address)].block;
    }

    // Like find(), and removes the block.
    Block* take(device::Address address) noexcept {
        std::size_t hole = slot_of(address);
        Block* block = slots_[hole].block;
        if (block == nullptr) {
            return nullptr;
        }
        for (std::size_t slot = (hole + 1) & mask(); slots_[slot].block != nullptr;
             slot = (slot + 1) & mask()) {
            // An entry may move back to the hole only if the hole is not before its home slot.
            if (((slot - home(slots_[slot].address)) & mask()) >= ((slot - hole) & mask())) {
                slots_[hole] = slots_[slot];
                hole = slot;
            }
        }
        slots_[hole].block = nullptr;
        --count_;
        return block;
    }

    [[nodiscard]] std::size_t size() const noexcept { return count_; }

  private:
    struct Slot {
        device::Address address = 0;
        Block* block = nullptr;
    };

    [[nodiscard]] std::size_t mask() const noexcept { return slots_.size() - 1; }
    [[nodiscard]] std::size_t home(device::Address address) const noexcept {
        return static_cast<std::size_t>((address * 0x9e37'79b9'7f4a'7c15) >> shift_);
    }

    // The slot of the address, or the empty slot where the search for it ends.
    [[nodiscard]] std::size_t slot_of(device::Address address) const noexcept {
        std::size_t slot = home(address);
        while (slots_[slot].block != nullptr && slots_[slot].address != address) {
            slot = (slot + 1) & mask();
        }
        return slot;
    }

    void place(device::Address address, Block* block) noexcept {
        std::size_t slot = home(address);
        while (slots_[slot].block != nullptr) {
            slot = (slot + 1) & mask();
        }
        slots_[slot] = {address, block};
    }

    void grow() {
        std::vector<Slot> old(2 * slots_.size());
        std::swap(old, slots_);
        --shift_;
        for (const Slot& slot : old) {
            if (slot.block != nullptr) {
                place(slot.address, slot.block);
            }
        }
    }

    std::vector<Slot> slots_ = std::vector<Slot>(1024);
    int shift_ = 54;
    std::size_t count_ = 0;
};

}  // namespace gpuviz::allocator
