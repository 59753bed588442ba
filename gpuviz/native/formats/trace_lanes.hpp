#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/trace_rows.hpp"

namespace gpuviz::formats {

// Returns the lane number, from 0, of each row of each table within its track. Rows of a lane are
// disjoint, or one lies within the other and the other's table `contains` rows. The number of lanes
// is small but not always minimal, because only the latest lanes are searched. Instants are on lane
// 0.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> trace_lanes(
    std::span<const TraceRows> tables);

}  // namespace gpuviz::formats
