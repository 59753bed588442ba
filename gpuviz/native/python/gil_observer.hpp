#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "record/memory_reader.hpp"

namespace gpuviz::python {

// Which thread holds the GIL, and whether a thread waits for it, as seen by one that does not.
//
// No function of Python reports either. The GIL lies in `_PyRuntime`, and a thread that waits for
// it waits for an address there. The word there that always points to the thread that had it last
// is found by comparison, from several threads; until then the holder is unknown.
class GilObserver {
  public:
    // This and learn() require the GIL.
    GilObserver() noexcept;
    // Compares; does nothing once the word is known.
    void learn() noexcept;

    // Whether an address that a thread waits for is the GIL's.
    [[nodiscard]] bool contains(std::uint64_t address) const noexcept {
        return address - begin_ < size_;
    }
    // The operating system's id of the thread that had the GIL last; 0: unknown.
    [[nodiscard]] std::uint32_t holder(record::MemoryReader& memory) const noexcept;

  private:
    // After how many changes of the thread a word that has followed them all is the right one.
    static constexpr int enough_changes = 3;

    std::uint64_t begin_ = 0;
    std::uint64_t size_ = 0;
    std::vector<std::uint64_t> words_;    // addresses of candidates
    std::vector<std::size_t> id_places_;  // where a thread's state may have its id
    const void* last_ = nullptr;          // the thread that compared last
    int changes_ = 0;
    std::atomic<std::uint64_t> word_{0};  // 0: unknown
    std::size_t id_place_ = 0;
};

}  // namespace gpuviz::python
