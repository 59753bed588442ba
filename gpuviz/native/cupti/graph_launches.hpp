#pragma once

#include <cstdint>
#include <unordered_map>

#include "record/activity_log.hpp"

namespace gpuviz::cupti {

// Joins the kernels and copies of a graph launch into one row, from the first to the last.
//
// CUPTI can trace graphs as a whole itself, but that of CUDA 13.0 crashes the program when it
// launches a graph that was made before tracing began. Not thread-safe.
class GraphLaunches {
  public:
    explicit GraphLaunches(record::ActivityLog& log) : log_(log) {}

    // A node of a graph launch; one of another launch on the same stream ends the one before.
    void add(const record::ActivityRow& node);
    // Nothing more will come.
    void finish();

  private:
    void append(record::ActivityRow launch);

    record::ActivityLog& log_;
    std::unordered_map<std::uint32_t, record::ActivityRow> open_;  // by stream
};

}  // namespace gpuviz::cupti
