#include "record/host_content.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstddef>

#include "record/mixing.hpp"

namespace gpuviz::record {
namespace {

constexpr std::size_t samples = 64;
constexpr std::size_t sample_bytes = 64;

}  // namespace

std::uint64_t sampled_content(std::uint64_t address, std::uint64_t bytes) noexcept {
    if (bytes < least_content) {
        return 0;
    }
    std::array<std::uint64_t, samples * sample_bytes / sizeof(std::uint64_t)> words;
    std::array<iovec, samples> sources;
    for (std::size_t each = 0; each < samples; ++each) {
        const std::uint64_t last = bytes - sample_bytes;
        const std::uint64_t offset = each + 1 == samples ? last : last / (samples - 1) * each;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): CUDA's callbacks give numbers
        sources[each] = {reinterpret_cast<void*>(address + offset), sample_bytes};
    }
    const iovec target{words.data(), sizeof words};
    // Unlike a read of this process's own, it fails where memory is missing.
    if (process_vm_readv(getpid(), &target, 1, sources.data(), samples, 0) !=
        ssize_t(sizeof words)) {
        return 0;
    }
    std::uint64_t content = bytes;
    for (const std::uint64_t word : words) {
        content = mixed(content, word);
    }
    return content == 0 ? 1 : content;
}

}  // namespace gpuviz::record
