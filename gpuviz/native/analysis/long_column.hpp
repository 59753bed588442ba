#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace gpuviz::analysis {

// An allocator that asks the kernel for huge pages, as NumPy does for its arrays: with those of
// 4 KiB, the first access to each takes longer than most analyses of what is in it.
template <typename Value>
struct HugePages {
    using value_type = Value;

    HugePages() = default;
    template <typename Other>
    explicit HugePages(const HugePages<Other>& /*other*/) noexcept {}

    [[nodiscard]] Value* allocate(std::size_t count) {
        if (!is_long(count)) return std::allocator<Value>().allocate(count);
        const std::size_t bytes = (count * sizeof(Value) + huge - 1) / huge * huge;
        void* memory = std::aligned_alloc(huge, bytes);
        if (memory == nullptr) throw std::bad_alloc();
        static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE));
        return static_cast<Value*>(memory);
    }
    void deallocate(Value* memory, std::size_t count) noexcept {
        if (is_long(count)) {
            std::free(memory);
        } else {
            std::allocator<Value>().deallocate(memory, count);
        }
    }
    friend bool operator==(const HugePages& /*one*/, const HugePages& /*other*/) noexcept {
        return true;
    }

  private:
    static constexpr std::size_t huge = 2 << 20;

    static bool is_long(std::size_t count) noexcept { return count >= 2 * huge / sizeof(Value); }
};

// A column of as many rows as a recording has.
template <typename Value>
using LongColumn = std::vector<Value, HugePages<Value>>;

}  // namespace gpuviz::analysis
