#pragma once

#include <nanobind/nanobind.h>

#include "allocator/out_of_memory.hpp"
#include "allocator/settings.hpp"
#include "allocator/snapshot.hpp"
#include "allocator/statistics.hpp"

// The allocator's values as Python's.
nanobind::dict to_python(const gpuviz::Statistics& statistics);
nanobind::list to_python(const gpuviz::Snapshot& snapshot);
nanobind::object to_python(const gpuviz::OutOfMemory& error, nanobind::handle type);
nanobind::dict divisions_by_megabytes(const gpuviz::Settings& settings);
