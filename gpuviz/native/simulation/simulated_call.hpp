#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>

#include "simulation/simulated_gpu.hpp"

namespace gpuviz::simulation {

// One CUDA call on the host: holds the GPU's lock except while it waits, and writes its row at the
// end.
class SimulatedGpu::Call {
  public:
    // On a virtual clock, besides what the call waits for.
    static constexpr std::int64_t host_ns = 1000;

    Call(SimulatedGpu& gpu, std::string_view name, const record::CallSite& site)
        : gpu_(gpu), lock_(gpu.mutex_), name_(name), site_(site) {
        began_ns = gpu_.clock_->now();
        correlation = ++gpu_.correlations_;
        recording_ = gpu_.records_.recording();
        if (record::HostSampler* const sampler = gpu_.records_.host_sampler()) {
            sampler->entered(began_ns);
        }
        gpu_.catch_up();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() {
        gpu_.clock_->pass(host_ns);
        if (recording_ == gpu_.records_.recording()) {
            gpu_.records_.call(name_, {.time = began_ns,
                                       .end = gpu_.clock_->now(),
                                       .name = 0,
                                       .thread = site_.thread,
                                       .correlation = correlation,
                                       .stack = site_.stack,
                                       .range = site_.range});
            if (record::HostSampler* const sampler = gpu_.records_.host_sampler()) {
                sampler->exited(gpu_.clock_->now(), true);
            }
        }
    }

    void wait_for(std::span<const Id> works, const Patience& patience) {
        gpu_.wait(lock_, works, patience);
    }
    // Waits until the call has taken this long.
    void let_pass(std::int64_t duration_ns) {
        gpu_.let_pass(lock_, began_ns + duration_ns, nullptr);
    }
    // The host waited since the call began, or made a stream wait.
    void synchronized(record::SynchronizationKind kind, std::uint32_t stream = 0,
                      std::uint32_t event = 0, std::uint64_t sync_id = 0) {
        if (recording_ == gpu_.records_.recording()) {
            gpu_.records_.synchronization({.time = began_ns,
                                           .end = gpu_.clock_->now(),
                                           .kind = kind,
                                           .device = std::int16_t(gpu_.device_),
                                           .context = context,
                                           .stream = stream,
                                           .event = event,
                                           .event_sync_id = sync_id,
                                           .correlation = correlation});
        }
    }

    static constexpr std::uint32_t context = 1;

    std::int64_t began_ns;
    std::uint32_t correlation;

  private:
    SimulatedGpu& gpu_;
    std::unique_lock<record::ForkSafeMutex> lock_;
    std::string_view name_;
    record::CallSite site_;
    std::uint64_t recording_;  // at its beginning; its row belongs to this one only
};

}  // namespace gpuviz::simulation
