#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/trace_rows.hpp"

namespace gpuviz::formats {

// For each row of each table the number, from 0, of a lane of its track, so that two rows of one
// lane are apart, or one lies within the other and the other's table `contains` rows. Few lanes,
// not always the fewest: of very many only the latest are looked through. Instants are all on lane
// 0.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> trace_lanes(
    std::span<const TraceRows> tables);

}  // namespace gpuviz::formats
