#include "hazards/blocks.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "hazards/hazard.hpp"
#include "hazards/unknown_id.hpp"

namespace gpuviz::hazards {

namespace {

// Up to here, a pair of accesses to one block is looked for by comparing all.
constexpr std::size_t few_accesses = 16;

bool names_a_block_twice(std::span<const Access> accesses) {
    if (accesses.size() > few_accesses) return true;
    for (std::size_t each = 1; each < accesses.size(); ++each) {
        for (std::size_t other = 0; other < each; ++other) {
            if (accesses[each].block == accesses[other].block) return true;
        }
    }
    return false;
}

}  // namespace

Block& Blocks::live(BlockId id) {
    if (!is_live(id)) throw_unknown("live block", id);
    return *find(id);
}

BlockId Blocks::next() {
    if (unused_.empty()) {
        blocks_.emplace_back();
        unused_.push_back(static_cast<std::uint32_t>(blocks_.size() - 1));
    }
    const std::uint32_t slot = unused_.back();
    return (BlockId(blocks_[slot].generation) << 32) | (slot + 1);
}

Block& Blocks::add(const Allocation& of, Extent& extent) {
    Block& block = blocks_[unused_.back()];
    unused_.pop_back();
    block = {.generation = block.generation,
             .is_live = true,
             .of = of,
             .allocated = {},
             .extent = &extent,
             .recorded = {}};
    return block;
}

void Blocks::release(BlockId id) {
    Block* block = find(id);
    if (!block || block->is_live) throw_unknown("freed block", id);
    block->is_released = true;
    if (block->is_in_graph) return;
    ++block->generation;
    unused_.push_back(static_cast<std::uint32_t>(id) - 1);
}

const std::vector<Access>& Blocks::placed(std::span<const Access> accesses) {
    placed_.clear();
    for (Access access : accesses) {
        const Block* block = find(access.block);
        if (!block) throw_unknown("block", access.block);
        if (!access.is_exact && access.stop == 0) access.stop = block->of.bytes;
        if (access.start > access.stop || access.stop > block->of.bytes) {
            throw std::invalid_argument("an access of bytes " + std::to_string(access.start) +
                                        " to " + std::to_string(access.stop) + " of a block of " +
                                        std::to_string(block->of.bytes) + " bytes");
        }
        if (access.start == access.stop) continue;
        access.start += block->of.address;
        access.stop += block->of.address;
        access.pointer = access.start;
        placed_.push_back(access);
    }
    if (names_a_block_twice(placed_)) placed_ = strongest(std::move(placed_));
    return placed_;
}

}  // namespace gpuviz::hazards
