#pragma once

#include "record/ranges.hpp"

// NVTX ranges of all libraries of this process that load gpuviz as their tool. A library does so at
// its first NVTX call, if NVTX_INJECTION64_PATH names our library at that time.
namespace gpuviz::nvtx {

// Sends the ranges to `ranges`, which must live until ignore_nvtx().
void record_nvtx(record::Ranges& ranges) noexcept;
// Waits until no thread uses `ranges`.
void ignore_nvtx() noexcept;
// To be called in the child after fork(), where the threads that used `ranges` do not exist.
void abandon_nvtx_after_fork() noexcept;

}  // namespace gpuviz::nvtx
