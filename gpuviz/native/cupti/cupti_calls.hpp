#pragma once

#include <cupti.h>

#include <cstdint>
#include <vector>

#include "cupti/cupti_library.hpp"

namespace gpuviz::cupti {

// A driver call that may get a row in `api_calls`, and the offsets in bytes of its parameters in
// CUPTI's structure; -1 for parameters that it lacks.
struct CuptiCall {
    enum class Kind : std::uint8_t { other, launch, launch_ex, copy };

    const char* name = nullptr;  // in CUPTI, for example cuMemcpyHtoDAsync_v2_ptsz
    Kind kind = Kind::other;
    bool is_traced = false;      // even if not all calls are recorded
    bool is_per_thread = false;  // stream 0 is the per-thread default stream
    std::int16_t stream = -1;
    std::int16_t destination = -1;
    std::int16_t source = -1;
};

// The driver calls of a library, indexed by callback id.
[[nodiscard]] std::vector<CuptiCall> driver_calls(const CuptiLibrary& library);

}  // namespace gpuviz::cupti
