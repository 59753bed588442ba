#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "allocator/size_classes.hpp"

namespace gpuviz::allocator {

// The allocator's settings, in the syntax of PYTORCH_CUDA_ALLOC_CONF.
struct Settings {
    static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

    std::string text;  // as last parsed
    std::uint64_t max_split_size = kUnlimited;
    std::uint64_t large_segment_size = 20 * kMiB;
    std::uint64_t max_non_split_rounding_size = 20 * kMiB;
    double garbage_collection_threshold = 0;  // 0: no garbage collection
    RoundupDivisions roundup_power2_divisions{};
    bool expandable_segments = false;
    std::optional<double> per_process_memory_fraction;  // read when an allocator is created
    // Larger pinned blocks have the requested size, not the next power of two.
    std::uint64_t pinned_max_round_threshold = kUnlimited;
    std::uint64_t pinned_max_cached_size = kUnlimited;  // larger pinned blocks are not cached
    std::map<std::string, std::string> inert;  // accepted for compatibility, without effect

    // These settings with the options in `text` changed. max_split_size,
    // max_non_split_rounding_size, garbage_collection_threshold and the divisions return to their
    // defaults first. Throws std::invalid_argument that names the key or value.
    [[nodiscard]] Settings parse(const std::string& text) const;
};

}  // namespace gpuviz::allocator
