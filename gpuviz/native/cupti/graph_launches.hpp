#pragma once

#include <cstdint>
#include <unordered_map>

#include "record/activity_log.hpp"

namespace gpuviz::cupti {

// Joins the kernels and copies of a graph launch into one row, from the first to the last.
//
// CUPTI can trace whole graphs itself, but in CUDA 13.0 this crashes the program when it launches a
// graph created before tracing began. Not thread-safe.
class GraphLaunches {
  public:
    explicit GraphLaunches(record::ActivityLog& log) : log_(log) {}

    // Adds a node; a node of another launch on the same stream ends the previous launch.
    void add(const record::ActivityRow& node);
    // To be called after the last node.
    void finish();

  private:
    void append(record::ActivityRow launch);

    record::ActivityLog& log_;
    std::unordered_map<std::uint32_t, record::ActivityRow> open_;  // by stream
};

}  // namespace gpuviz::cupti
