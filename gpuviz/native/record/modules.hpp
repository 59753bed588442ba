#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

namespace gpuviz::record {

// The modules of neural networks whose calls are in call stacks: numbers for the objects at some
// addresses. Thread-safe, without the GIL.
//
// The object at an address is the same from its first number_of() or watched() to forget(), which
// is to be called when it dies. Until somebody watches it, another one could follow at its address.
class Modules {
  public:
    // The code object of the function that calls a module, its first argument; 0: none is known.
    [[nodiscard]] std::uint64_t code() const noexcept { return code_.load(); }

    // From now on, calls of the code name a module. `name_new` is called soon after a module got
    // its number, with the GIL, and again if it returns false. Null ends this; numbers stay.
    void watch(std::uint64_t code, std::function<bool()> name_new);

    struct Number {
        std::uint32_t value;  // 1, 2, ...; 0: out of memory
        bool is_new;
    };
    [[nodiscard]] Number number_of(std::uint64_t address) noexcept;
    // The number of the object at the address; 0 if it has none.
    [[nodiscard]] std::uint32_t find(std::uint64_t address) const noexcept;
    void forget(std::uint64_t address) noexcept;

    void set_name(std::uint32_t number, std::string name);
    // Empty if unknown.
    [[nodiscard]] std::string name_of(std::uint32_t number) const;

    // Changes when an object at some address may be another one.
    [[nodiscard]] std::uint32_t generation() const noexcept { return generation_.load(); }

    // Requires the GIL.
    void name_new() {
        if (name_new_ && has_new_.exchange(false) && !name_new_()) {
            has_new_ = true;
        }
    }

  private:
    std::atomic<std::uint64_t> code_{0};
    std::atomic<std::uint32_t> generation_{0};
    std::atomic<bool> has_new_{false};
    std::function<bool()> name_new_;  // guarded by the GIL
    mutable std::mutex mutex_;        // for what follows
    std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
    std::unordered_map<std::uint32_t, std::string> names_;
    std::uint32_t last_ = 0;
};

}  // namespace gpuviz::record
