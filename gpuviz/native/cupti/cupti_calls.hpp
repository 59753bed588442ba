#pragma once

#include <cupti.h>

#include <cstdint>
#include <vector>

#include "cupti/cupti_library.hpp"

namespace gpuviz::cupti {

// A driver call that is worth a row in `api_calls`, and where its parameters lie in the structure
// that CUPTI shows: offsets in bytes, -1 for those that it has not.
struct CuptiCall {
    enum class Kind : std::uint8_t { other, launch, launch_ex, copy };

    const char* name = nullptr;  // as CUPTI has it, for example cuMemcpyHtoDAsync_v2_ptsz
    Kind kind = Kind::other;
    bool is_traced = false;      // also unless all calls are asked for
    bool is_per_thread = false;  // stream 0 is the thread's own default stream
    std::int16_t stream = -1;
    std::int16_t destination = -1;
    std::int16_t source = -1;
};

// The driver calls of a library, at their callback ids.
[[nodiscard]] std::vector<CuptiCall> driver_calls(const CuptiLibrary& library);

}  // namespace gpuviz::cupti
