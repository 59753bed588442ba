#include "analysis/value_numbers.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace gpuviz::analysis {
namespace {

// A hash of one more word; 0x9e37... is 2**64 divided by the golden ratio.
constexpr std::uint64_t mixed(std::uint64_t state, std::uint64_t word) noexcept {
    const std::uint64_t product = (state ^ word) * 0x9e3779b97f4a7c15U;
    return product ^ (product >> 32);
}

bool has(std::uint8_t bits, Access access) noexcept { return (bits & std::uint8_t(access)) != 0; }

class Memory {
  public:
    explicit Memory(const Contents& blocks)
        : value_(blocks.value.begin(), blocks.value.end()),
          unseen_(blocks.unseen.begin(), blocks.unseen.end()) {}

    // Unseen work may have written anything to it meanwhile.
    std::uint64_t& at(std::uint32_t block, std::uint32_t unseen) {
        if (unseen_[block] != unseen) {
            value_[block] = mixed(mixed(value_[block], block + 1), unseen);
            unseen_[block] = unseen;
        }
        return value_[block];
    }

  private:
    std::vector<std::uint64_t> value_;
    std::vector<std::uint32_t> unseen_;
};

void check(std::size_t works, const Contents& blocks, const Accesses& accesses) {
    const std::size_t count = accesses.work.size();
    const bool same = accesses.block.size() == count && accesses.place.size() == count &&
                      accesses.access.size() == count && accesses.unseen.size() == count &&
                      blocks.value.size() == blocks.unseen.size();
    const auto below = [](std::span<const std::uint32_t> numbers, std::size_t limit) {
        return std::ranges::all_of(numbers, [=](std::uint32_t each) { return each < limit; });
    };
    if (!same || !below(accesses.work, works) || !below(accesses.block, blocks.value.size())) {
        throw std::invalid_argument("accesses must be of works and blocks that exist");
    }
}

}  // namespace

LongColumn<std::uint64_t> value_numbers(std::span<const std::uint64_t> function,
                                        const Contents& blocks, const Accesses& accesses) {
    check(function.size(), blocks, accesses);
    Memory memory(blocks);
    LongColumn<std::uint64_t> numbers(function.begin(), function.end());
    for (std::size_t work = 0; work < numbers.size(); ++work) {
        if (numbers[work] == 0) {
            numbers[work] = mixed(mixed(1, work + 1), work + 1);
        }
    }
    const std::size_t count = accesses.work.size();
    for (std::size_t first = 0, end = 0; first < count; first = end) {
        std::uint64_t& number = numbers[accesses.work[first]];
        for (; end < count && accesses.work[end] == accesses.work[first]; ++end) {
            number = mixed(mixed(number, accesses.place[end]), accesses.access[end]);
            if (has(accesses.access[end], Access::read)) {
                number = mixed(number, memory.at(accesses.block[end], accesses.unseen[end]));
            }
        }
        for (std::size_t row = first; row < end; ++row) {
            if (has(accesses.access[row], Access::write)) {
                std::uint64_t& value = memory.at(accesses.block[row], accesses.unseen[row]);
                const bool is_all = has(accesses.access[row], Access::write_all);
                value = mixed(mixed(is_all ? 0 : value, number), row - first);
            }
        }
    }
    return numbers;
}

}  // namespace gpuviz::analysis
