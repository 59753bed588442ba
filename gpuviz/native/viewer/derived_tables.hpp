#pragma once

#include <vector>

#include "formats/table.hpp"

namespace gpuviz::viewer {

// Appends the derived tables (gpuviz/data/derived.py) that memory and nothing else has: `names`,
// `memory_marks` and `free_levels`. Those about work on GPUs have no rows in a snapshot.
void append_derived_tables(std::vector<formats::Table>& tables);

}  // namespace gpuviz::viewer
