#include "record/page_guard.hpp"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "record/clock.hpp"
#include "record/session.hpp"
#include "record/thread_id.hpp"

namespace gpuviz::record {
namespace {

constexpr std::size_t most_guarded = 64;

// A signal handler has no argument of its own.
std::atomic<PageGuard*> current{nullptr};

const std::uint64_t page_bytes = std::uint64_t(sysconf(_SC_PAGESIZE));

bool set_protection(std::uint64_t start, std::uint64_t stop, int protection) noexcept {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): CUDA's callbacks give numbers
    return mprotect(reinterpret_cast<void*>(start), stop - start, protection) == 0;
}

AccessMode mode_of([[maybe_unused]] const void* context) noexcept {
#ifdef __x86_64__
    constexpr greg_t is_write = 2;  // of the page fault's error code
    const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
    return (registers[REG_ERR] & is_write) != 0 ? AccessMode::write : AccessMode::read;
#else
    return AccessMode::unknown;
#endif
}

}  // namespace

PageGuard::PageGuard(Session& session) : session_(session) { guarded_.reserve(most_guarded); }

PageGuard::~PageGuard() {
    stop();
    PageGuard* own = this;
    current.compare_exchange_strong(own, nullptr);
}

void PageGuard::start() {
    process_ = getpid();
    current = this;
    struct sigaction action{};
    action.sa_sigaction = &on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &previous_);
    is_started_ = true;
}

void PageGuard::stop() noexcept {
    if (!is_started_ || getpid() != process_) {
        return;
    }
    is_started_ = false;
    lift_all();
    struct sigaction installed{};
    sigaction(SIGSEGV, nullptr, &installed);
    if ((installed.sa_flags & SA_SIGINFO) != 0 && installed.sa_sigaction == &on_fault) {
        sigaction(SIGSEGV, &previous_, nullptr);
    }
}

void PageGuard::protect(const PinnedCopies::Copy& copy, AccessMode of_copy) noexcept {
    const std::uint64_t start = (copy.address + page_bytes - 1) / page_bytes * page_bytes;
    const std::uint64_t stop = (copy.address + copy.bytes) / page_bytes * page_bytes;
    if (start >= stop) {
        return;
    }
    const std::lock_guard lock(mutex_);
    // Memory of which an earlier copy is pending keeps its protection.
    const bool is_guarded = std::any_of(guarded_.begin(), guarded_.end(), [&](const Guarded& each) {
        return each.start < stop && start < each.stop;
    });
    if (is_guarded || guarded_.size() == most_guarded) {
        return;
    }
    filter_.add(start, stop - start);
    if (set_protection(start, stop, of_copy == AccessMode::read ? PROT_READ : PROT_NONE)) {
        guarded_.push_back({start, stop, copy});
    }
}

void PageGuard::lift(std::uint64_t address, std::uint64_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    lift_locked(address, address + bytes);
}

void PageGuard::lift_locked(std::uint64_t start, std::uint64_t stop) noexcept {
    std::erase_if(guarded_, [&](const Guarded& each) {
        const bool is_chosen = each.start < stop && start < each.stop;
        if (is_chosen) {
            set_protection(each.start, each.stop, PROT_READ | PROT_WRITE);
        }
        return is_chosen;
    });
}

void PageGuard::on_fault(int signal, siginfo_t* fault, void* context) {
    PageGuard* const guard = current;
    const auto address = reinterpret_cast<std::uint64_t>(fault->si_addr);
    if (guard == nullptr) {
        std::signal(SIGSEGV, SIG_DFL);  // the access is made again, and ends the process
    } else if (!guard->take_fault(address, mode_of(context))) {
        guard->pass_on(signal, fault, context);
    }
}

// The thread was in the middle of an access to pinned memory, so it holds neither this lock nor
// one of the recorder's, and is not in malloc().
bool PageGuard::take_fault(std::uint64_t address, AccessMode mode) noexcept {
    if (getpid() != process_) {
        // In the child of a fork, nobody may ever unlock the mutex.
        const auto found = std::find_if(guarded_.begin(), guarded_.end(), [&](const Guarded& each) {
            return each.start <= address && address < each.stop;
        });
        return found != guarded_.end() &&
               set_protection(found->start, found->stop, PROT_READ | PROT_WRITE);
    }
    const std::int64_t now = now_ns();
    PinnedCopies::Copy copy{};
    {
        const std::lock_guard lock(mutex_);
        const auto found = std::find_if(guarded_.begin(), guarded_.end(), [&](const Guarded& each) {
            return each.start <= address && address < each.stop;
        });
        if (found == guarded_.end()) {
            return may_be_lifted(address);
        }
        copy = found->copy;
        lift_locked(found->start, found->stop);
    }
    if (session_.pinned_copies() != nullptr && session_.pinned_copies()->is_reading()) {
        return true;
    }
    ActivityLog& log = session_.log();
    log.host_accesses.append({.time = log.since_start(now),
                              .mode = mode,
                              .correlation = copy.correlation,
                              .address = copy.address,
                              .bytes = copy.bytes,
                              .stack = session_.capture_stack(),
                              .thread = current_thread_id(),
                              .exact = 1});
    return true;
}

// Whether the access may succeed now, because another thread lifted the protection since it failed.
bool PageGuard::may_be_lifted(std::uint64_t address) const noexcept {
    constexpr int most_attempts = 16;
    thread_local std::uint64_t last = 0;
    thread_local int attempts = 0;
    attempts = address == last ? attempts + 1 : 1;
    last = address;
    return filter_.may_contain(address) && attempts < most_attempts;
}

void PageGuard::pass_on(int signal, siginfo_t* fault, void* context) const noexcept {
    if ((previous_.sa_flags & SA_SIGINFO) != 0) {
        previous_.sa_sigaction(signal, fault, context);
    } else if (previous_.sa_handler == SIG_DFL || previous_.sa_handler == SIG_IGN) {
        std::signal(SIGSEGV, SIG_DFL);
    } else {
        previous_.sa_handler(signal);
    }
}

}  // namespace gpuviz::record
