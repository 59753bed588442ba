#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cupti/cupti_library.hpp"

namespace gpuviz::cupti {

// The devices of the contexts in which calls were seen. Thread-safe. The library must outlive it.
class CuptiDevices {
  public:
    explicit CuptiDevices(const CuptiLibrary& library) : library_(library) {}

    // `number` is CUPTI's id of the context; 0 if unavailable, then the context is not kept.
    [[nodiscard]] int of(CUcontext context, std::uint32_t number);
    [[nodiscard]] std::vector<CUcontext> contexts() const;
    void forget(CUcontext context);
    void forget_all();

  private:
    const CuptiLibrary& library_;
    mutable std::mutex mutex_;  // guards devices_
    std::unordered_map<CUcontext, int> devices_;
};

}  // namespace gpuviz::cupti
