#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "record/memory_event.hpp"
#include "record/observed_pool.hpp"
#include "record/session.hpp"

namespace gpuviz::clients {

// Records what the memory resources that a program has chosen for RMM allocate and free.
//
// It knows their live blocks also between recordings. All functions require the GIL.
class RmmObserver {
  public:
    RmmObserver() = default;
    RmmObserver(const RmmObserver&) = delete;
    RmmObserver& operator=(const RmmObserver&) = delete;

    // After an allocation. It is ignored inside a call of another observed allocator.
    void allocated(int device, std::uint64_t address, std::uint64_t size, std::uint64_t stream);
    // Before a free.
    void freed(int device, std::uint64_t address);

    // Pushes the live blocks, and sends events to this session from now on; null ends this.
    void set_session(record::Session* session, bool stacks);

    // Those with events since set_session().
    [[nodiscard]] std::vector<int> devices() const;

    // To be called in the child of a fork: stops recording.
    void abandon() noexcept;

  private:
    [[nodiscard]] record::ObservedPool& pool(int device);
    [[nodiscard]] record::CallSite call_site() const noexcept;

    std::map<int, record::ObservedPool> pools_;
    record::Session* session_ = nullptr;
    bool stacks_ = true;
};

}  // namespace gpuviz::clients
