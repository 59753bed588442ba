#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allocator/size_classes.hpp"
#include "formats/pickle_value.hpp"

namespace gpuviz::formats {

// The last microsecond whose nanoseconds since 1970 fit into 64 bits, in the year 2262.
inline constexpr std::int64_t latest_us = 0x7FFF'FFFF'FFFF'FFFF / 1000;

// Texts of a recording's manifest that are stored in gpuviz's own key of a snapshot.
inline constexpr auto kept_texts = std::to_array<std::string_view>({
    "gpuviz_version",
    "python",
    "platform",
    "cupy",
    "driver",
    "runtime",
    "allocator",
    "allocator_name",
    "label",
});

// The settings of torch's allocator that determine block sizes.
struct TorchRounding {
    std::uint64_t max_split_size = ~std::uint64_t{0};
    allocator::RoundupDivisions divisions{};
};

// `allocator_settings`; what is missing or of another type is unknown.
struct TorchSettings {
    TorchRounding rounding;
    std::optional<std::int64_t> max_split_size;  // in bytes
    std::string configuration;                   // PYTORCH_CUDA_ALLOC_CONF
    std::string json = "{}";                     // all of them
};

// gpuviz's own key, which it adds to the snapshots that it writes.
struct TorchRecorder {
    std::vector<std::pair<std::string_view, std::string>> texts;  // those of kept_texts
    std::optional<std::vector<std::string>> program;
    std::optional<std::int64_t> start_unix_ns;
    bool simulated = false;
    // Devices of successive events, each followed by how many there are.
    std::vector<std::int64_t> device_order;
    std::string memory_stats;  // JSON, by device; empty if unknown
};

// These throw FormatError if the value is no dict, or nested deeper or longer than in a snapshot.
[[nodiscard]] TorchSettings torch_settings(PickleValue value);
[[nodiscard]] TorchRecorder torch_recorder(PickleValue value);

}  // namespace gpuviz::formats
