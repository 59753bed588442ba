#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "record/memory_event.hpp"
#include "record/observed_pool.hpp"
#include "record/session.hpp"

namespace gpuviz::clients {

// Records what a library allocates and frees, which another one reports: memory resources that a
// program has chosen for RMM, and what JAX uses.
//
// It knows their live blocks also between recordings. All functions require the GIL.
class LibraryObserver {
  public:
    // Throws std::invalid_argument for a library whose blocks have no pool of their own.
    explicit LibraryObserver(record::Framework framework);
    LibraryObserver(const LibraryObserver&) = delete;
    LibraryObserver& operator=(const LibraryObserver&) = delete;

    // A call stack, where one is given, is not that of the caller, but of a thread that is unknown.

    // After an allocation. It is ignored inside a call of another observed allocator.
    void allocated(int device, std::uint64_t address, std::uint64_t size, std::uint64_t stream,
                   std::optional<std::uint32_t> stack);
    // Before a free.
    void freed(int device, std::uint64_t address, std::optional<std::uint32_t> stack);
    // After a request that failed.
    void out_of_memory(int device, std::uint64_t size);

    // Pushes the live blocks, and sends events to this session from now on; null ends this.
    void set_session(record::Session* session, bool stacks);

    // Those with events since set_session().
    [[nodiscard]] std::vector<int> devices() const;

    // To be called in the child of a fork: stops recording.
    void abandon() noexcept;

  private:
    [[nodiscard]] record::ObservedPool& pool(int device);
    [[nodiscard]] record::CallSite call_site(
        std::optional<std::uint32_t> stack = {}) const noexcept;

    const record::Framework framework_;
    const std::uint32_t owner_;
    std::map<int, record::ObservedPool> pools_;
    record::Session* session_ = nullptr;
    bool stacks_ = true;
};

}  // namespace gpuviz::clients
