#include "record/names.hpp"

#include <array>
#include <cstddef>
#include <map>
#include <utility>

#include "record/memory_event.hpp"

namespace gpuviz::record {

namespace {

// CU_STREAM_PER_THREAD, below the thread's id.
constexpr std::uint64_t per_thread = 2;
constexpr std::uint64_t tag_bits = 7;

// By the values of Framework.
constexpr auto libraries =
    std::to_array<std::string_view>({"", "CuPy", "PyTorch", "Numba", "cuda.core", "RMM", "JAX"});
static_assert(libraries.size() == framework_names.size());

std::string hex(std::uint64_t value) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    do {
        text.insert(text.begin(), digits[value & 15]);
        value >>= 4;
    } while (value != 0);
    return "0x" + text;
}

}  // namespace

StreamKind stream_kind(std::uint64_t handle) noexcept {
    if (handle <= 1) return StreamKind::default_stream;
    const bool is_per_thread = (handle & tag_bits) == per_thread;
    return is_per_thread ? StreamKind::per_thread_default : StreamKind::unknown;
}

std::string stream_name(std::uint64_t handle) {
    switch (stream_kind(handle)) {
        case StreamKind::default_stream:
            return "default stream";
        case StreamKind::per_thread_default:
            return "per-thread default stream of thread " + std::to_string(handle >> 8);
        default:
            return "stream " + hex(handle);
    }
}

std::string own_name(std::uint32_t number, std::uint64_t handle) {
    return handle == no_handle ? "internal stream " + std::to_string(number) : stream_name(handle);
}

void number_alike(std::span<const std::int16_t> devices, std::vector<std::string>& names) {
    std::map<std::pair<std::int16_t, std::string>, std::vector<std::size_t>> alike;
    for (std::size_t row = 0; row < names.size(); ++row) {
        alike[{devices[row], names[row]}].push_back(row);
    }
    for (const auto& [name, rows] : alike) {
        if (rows.size() == 1) continue;
        std::size_t place = 0;
        for (const std::size_t row : rows) names[row] += " #" + std::to_string(++place);
    }
}

std::string pool_name(std::uint32_t owner, std::string_view segment_type, Framework framework) {
    std::string name;
    Framework known = framework;
    const auto otherwise = [&](Framework library) {
        if (framework == Framework::none) known = library;
    };
    if (owner == 0) {
        name = "default";
    } else if (owner == rmm_owner) {
        name = "memory resource";
        otherwise(Framework::rmm);
    } else if (owner == jax_owner) {
        name = "arena";
        otherwise(Framework::jax);
    } else if (owner == torch_owner) {
        name = "default";
        otherwise(Framework::torch);
    } else if (owner > torch_owner) {
        name = "private pool " + std::to_string(owner - torch_owner);
        otherwise(Framework::torch);
    } else {
        name = "MemPool " + std::to_string(owner);
    }
    const auto code = static_cast<std::size_t>(known);
    const std::string_view library = code < libraries.size() ? libraries[code] : "";
    const std::string before = library.empty() ? "" : std::string(library) + " ";
    return before + name + " (" + std::string(segment_type) + ")";
}

}  // namespace gpuviz::record
