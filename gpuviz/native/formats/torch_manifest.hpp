#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/torch_history.hpp"
#include "formats/torch_snapshot.hpp"
#include "formats/torch_times.hpp"

namespace gpuviz::formats {

// The key of a recording's manifest that has what only torch's snapshots have.
inline constexpr std::string_view manifest_key = "torch_snapshot";

// Returns manifest.json of the recording of a snapshot.
[[nodiscard]] std::string torch_manifest(const TorchSnapshot& snapshot, const TorchHistory& history,
                                         const TorchTimes& times);

}  // namespace gpuviz::formats
