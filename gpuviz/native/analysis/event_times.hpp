#pragma once

#include <cstdint>
#include <vector>

#include "analysis/timed_rows.hpp"

namespace gpuviz::analysis {

// The times of synchronizations, with those of event records that are unknown (0) derived: the GPU
// reaches a record after the call, after all activities launched on its stream before, and after
// the records that its stream had to wait for before. It stays 0 if none of these is known. Calls
// are ordered by correlation id.
[[nodiscard]] std::vector<std::int64_t> event_times(const ActivityRows& activities,
                                                    const HostCallRows& calls,
                                                    const SynchronizationRows& synchronizations);

}  // namespace gpuviz::analysis
