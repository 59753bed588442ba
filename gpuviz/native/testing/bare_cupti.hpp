#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cupti/cupti_library.hpp"

namespace gpuviz::testing {

// The minimum cost of activities: CUPTI records the same kinds as CuptiTracer, and its buffers are
// not read, or only some of these kinds; with `callbacks`, it also calls a function that does
// nothing before and after the driver calls that CuptiTracer follows. Only one may be active in a
// process, and no tracer at the same time.
class BareCupti {
  public:
    BareCupti(const std::string& library, std::optional<std::vector<int>> kinds, bool callbacks);
    BareCupti(const BareCupti&) = delete;
    BareCupti& operator=(const BareCupti&) = delete;
    ~BareCupti();

    // Throws std::runtime_error if CUPTI refuses.
    void start();
    // Does nothing unless started. The GPU should be idle.
    void stop() noexcept;

  private:
    void check(CUptiResult result, const char* call) const;

    std::shared_ptr<const cupti::CuptiLibrary> library_;
    CUpti_SubscriberHandle subscriber_ = nullptr;
    std::optional<std::vector<int>> wanted_;
    bool callbacks_;
    std::vector<CUpti_ActivityKind> kinds_;  // enabled kinds
};

}  // namespace gpuviz::testing
