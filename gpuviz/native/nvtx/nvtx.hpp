#pragma once

#include "record/ranges.hpp"

// NVTX ranges of all libraries of this process that load us as their tool: each does so at its
// first NVTX call, if the environment variable NVTX_INJECTION64_PATH then names our library.
namespace gpuviz::nvtx {

// Sends them to `ranges`, which must live until ignore_nvtx().
void record_nvtx(record::Ranges& ranges) noexcept;
// Returns when no thread is within `ranges`.
void ignore_nvtx() noexcept;
// To be called in the child after fork(), where threads that were within do not exist.
void abandon_nvtx_after_fork() noexcept;

}  // namespace gpuviz::nvtx
