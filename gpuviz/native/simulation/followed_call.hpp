#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "record/stream_calls.hpp"
#include "simulation/simulated_gpu.hpp"

namespace gpuviz::simulation {

// Tells whoever follows the calls about streams of both ends of one. Made before the call takes the
// GPU's lock, and destroyed after it.
class SimulatedGpu::FollowedCall {
  public:
    FollowedCall(SimulatedGpu& gpu, const record::StreamCall& call, const record::CallSite& site,
                 std::span<const GpuAccess> accesses = {})
        : call_(call), stack_(site.stack), accesses_(accesses) {
        follower_ = gpu.follower();
        if (follower_ != nullptr) {
            follower_->enter(call_);
        }
    }
    FollowedCall(const FollowedCall&) = delete;
    FollowedCall& operator=(const FollowedCall&) = delete;
    ~FollowedCall() {
        if (follower_ == nullptr) {
            return;
        }
        std::vector<std::uint64_t> addresses;
        for (const GpuAccess& access : accesses_) {
            addresses.push_back(access.address);
        }
        follower_->exit(call_, std::uncaught_exceptions() == exceptions_, addresses, stack_);
    }

  private:
    record::StreamCalls* follower_;
    record::StreamCall call_;
    std::uint32_t stack_;
    std::span<const GpuAccess> accesses_;
    int exceptions_ = std::uncaught_exceptions();
};

}  // namespace gpuviz::simulation
