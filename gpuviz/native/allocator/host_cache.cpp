#include "allocator/host_cache.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

namespace gpuviz::allocator {

namespace {

constexpr std::uint64_t kLargestRounded = std::uint64_t{1} << 62;

std::size_t class_of(std::uint64_t size) { return std::size_t(std::bit_width(size - 1)); }

}  // namespace

std::uint64_t HostCache::rounded(std::uint64_t size, const Settings& settings) {
    const std::uint64_t most = std::min(
        {settings.pinned_max_round_threshold, settings.pinned_max_cached_size, kLargestRounded});
    return size > most ? size : std::bit_ceil(size);
}

HostBlock* HostCache::take(std::uint64_t size) {
    std::vector<HostBlock*>& blocks = blocks_.at(class_of(size));
    const auto newest =
        std::find_if(blocks.rbegin(), blocks.rend(),
                     [size](const HostBlock* block) { return block->size >= size; });
    if (newest == blocks.rend()) {
        return nullptr;
    }
    HostBlock* const block = *newest;
    blocks.erase(std::next(newest).base());
    return block;
}

void HostCache::add(HostBlock& block) { blocks_.at(class_of(block.size)).push_back(&block); }

HostBlock* HostCache::take_any() noexcept {
    for (std::vector<HostBlock*>& blocks : blocks_) {
        if (!blocks.empty()) {
            HostBlock* const block = blocks.back();
            blocks.pop_back();
            return block;
        }
    }
    return nullptr;
}

}  // namespace gpuviz::allocator
