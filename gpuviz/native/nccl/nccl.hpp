#pragma once

#include "record/session.hpp"

// The collectives of NCCL, as its profiler plugin. NCCL loads the library that NCCL_PROFILER_PLUGIN
// names when the first communicator of the process is created, and unloads it after the last.
namespace gpuviz::nccl {

// Sends collectives to `session`, which must live until ignore_nccl().
void record_nccl(record::Session& session) noexcept;
// Waits until no thread uses the session.
void ignore_nccl() noexcept;
// To be called in the child after fork(), where the threads that used the session do not exist.
void abandon_nccl_after_fork() noexcept;

}  // namespace gpuviz::nccl
