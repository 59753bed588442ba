#pragma once

#include <nanobind/nanobind.h>

#include "allocator/out_of_memory.hpp"
#include "allocator/settings.hpp"
#include "allocator/snapshot.hpp"
#include "allocator/statistics.hpp"

namespace gpuviz {

// The allocator's values as Python's.
nanobind::dict to_python(const Statistics& statistics);
nanobind::list to_python(const Snapshot& snapshot);
nanobind::object to_python(const OutOfMemory& error, nanobind::handle type);
nanobind::dict divisions_by_megabytes(const Settings& settings);

}  // namespace gpuviz
