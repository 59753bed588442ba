#include "record/host_content.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "record/mixing.hpp"

namespace gpuviz::record {
namespace {

constexpr std::size_t places = 64;
constexpr std::size_t sample_bytes = 64;
constexpr std::size_t lanes = 4;  // multiplications that do not wait for each other

using Lanes = std::array<std::uint64_t, lanes>;

// Where the pieces of a range are, the last one at its end.
std::uint64_t place(std::size_t each, std::uint64_t bytes, std::uint64_t piece) noexcept {
    const std::uint64_t last = bytes - piece;
    return each + 1 == places ? last : last / (places - 1) * each;
}

void mix(Lanes& state, const unsigned char* begin, std::uint64_t bytes) noexcept {
    constexpr std::uint64_t step = sizeof(Lanes);
    for (std::uint64_t offset = 0; offset < bytes; offset += step) {
        Lanes words{};
        std::memcpy(words.data(), begin + offset, std::min(step, bytes - offset));
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            state[lane] = mixed(state[lane], words[lane]);
        }
    }
}

std::uint64_t joined(const Lanes& state) noexcept {
    std::uint64_t content = 0;
    for (const std::uint64_t lane : state) {
        content = mixed(content, lane);
    }
    return content;
}

}  // namespace

std::uint64_t content(std::uint64_t address, std::uint64_t bytes) noexcept {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): CUDA's callbacks give numbers
    const auto* const begin = reinterpret_cast<const unsigned char*>(address);
    Lanes state{1, 2, 3, 4};
    if (bytes <= most_content) {
        mix(state, begin, bytes);
    } else {
        constexpr std::uint64_t piece = most_content / places;
        for (std::size_t each = 0; each < places; ++each) {
            mix(state, begin + place(each, bytes, piece), piece);
        }
    }
    return joined(state);
}

std::uint64_t sampled_content(std::uint64_t address, std::uint64_t bytes) noexcept {
    if (bytes < least_content) {
        return 0;
    }
    std::array<unsigned char, places * sample_bytes> samples;
    std::array<iovec, places> sources;
    for (std::size_t each = 0; each < places; ++each) {
        const std::uint64_t start = address + place(each, bytes, sample_bytes);
        // NOLINTNEXTLINE(performance-no-int-to-ptr): CUDA's callbacks give numbers
        sources[each] = {reinterpret_cast<void*>(start), sample_bytes};
    }
    const iovec target{samples.data(), samples.size()};
    // Unlike a read of this process's own, it fails where memory is missing.
    if (process_vm_readv(getpid(), &target, 1, sources.data(), places, 0) !=
        ssize_t(samples.size())) {
        return 0;
    }
    Lanes state{bytes, 2, 3, 4};
    mix(state, samples.data(), samples.size());
    return std::max(joined(state), std::uint64_t{1});
}

}  // namespace gpuviz::record
