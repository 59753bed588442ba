#pragma once

#include <nanobind/nanobind.h>

#include "allocator/out_of_memory.hpp"
#include "allocator/settings.hpp"
#include "allocator/snapshot.hpp"
#include "allocator/statistics.hpp"

namespace gpuviz::python {

// Conversion of the allocator's values to Python.
nanobind::dict to_python(const allocator::Statistics& statistics);
nanobind::dict to_python(const allocator::HostStatistics& statistics);
nanobind::list to_python(const allocator::Snapshot& snapshot);
nanobind::object to_python(const allocator::OutOfMemory& error, nanobind::handle type);
nanobind::dict divisions_by_megabytes(const allocator::Settings& settings);

}  // namespace gpuviz::python
