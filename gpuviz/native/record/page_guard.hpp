#pragma once

#include <csignal>
#include <cstdint>
#include <mutex>
#include <vector>

#include "record/address_filter.hpp"
#include "record/codes.hpp"
#include "record/pinned_copies.hpp"

namespace gpuviz::record {

class Session;

// Finds what the host does to pinned memory while a copy from or to it is pending: the pages that
// lie in the memory as a whole are protected when the copy is enqueued, until the first access, or
// until the program waits for anything. An access becomes a row of `host_accesses`.
//
// The GPU does not see the protection. A system call that gets protected memory fails with EFAULT,
// which only happens to programs that have not waited. One at a time; thread-safe.
class PageGuard {
  public:
    explicit PageGuard(Session& session);
    PageGuard(const PageGuard&) = delete;
    PageGuard& operator=(const PageGuard&) = delete;
    ~PageGuard();

    // Takes over SIGSEGV, and passes on what is not about protected memory.
    void start();
    // Lifts all protection, and gives SIGSEGV back unless the program has taken it meanwhile.
    void stop() noexcept;

    // Protects the memory of a copy that was enqueued: against writes if the copy reads it, else
    // against all accesses.
    void protect(const PinnedCopies::Copy& copy, AccessMode of_copy) noexcept;
    // To be called before memory is freed, and before the program can know that copies are done.
    void lift(std::uint64_t address, std::uint64_t bytes) noexcept;
    void lift_all() noexcept { lift(0, ~std::uint64_t{0}); }

  private:
    struct Guarded {
        std::uint64_t start;  // of whole pages
        std::uint64_t stop;
        PinnedCopies::Copy copy;
    };

    static void on_fault(int signal, siginfo_t* fault, void* context);
    // Whether the address was protected.
    [[nodiscard]] bool take_fault(std::uint64_t address, AccessMode mode) noexcept;
    [[nodiscard]] bool may_be_lifted(std::uint64_t address) const noexcept;
    void pass_on(int signal, siginfo_t* fault, void* context) const noexcept;
    // Requires the lock.
    void lift_locked(std::uint64_t start, std::uint64_t stop) noexcept;

    Session& session_;
    int process_ = 0;
    AddressFilter filter_;  // of all memory that was ever protected
    bool is_started_ = false;
    std::mutex mutex_;
    std::vector<Guarded> guarded_;
    struct sigaction previous_{};
};

}  // namespace gpuviz::record
