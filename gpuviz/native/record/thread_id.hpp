#pragma once

#include <unistd.h>

#include <cstdint>

namespace gpuviz::record {

// The operating system's id of the calling thread; one system call per thread.
// A child made by fork() inherits the id of the thread that forked.
inline std::uint32_t current_thread_id() noexcept {
    thread_local constinit std::uint32_t id = 0;
    if (id == 0) [[unlikely]] {
        id = std::uint32_t(gettid());
    }
    return id;
}

}  // namespace gpuviz::record
