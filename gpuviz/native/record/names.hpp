#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/codes.hpp"

// What a reader calls streams and pools.
namespace gpuviz::record {

// Of a stream that the driver made for itself, such as that of a graph's branch.
inline constexpr std::uint64_t no_handle = ~std::uint64_t{0};

// The kind of a stream, as far as its handle determines it.
[[nodiscard]] StreamKind stream_kind(std::uint64_t handle) noexcept;
[[nodiscard]] std::string stream_name(std::uint64_t handle);
// The name of a stream, by its id, that the program has not named.
[[nodiscard]] std::string own_name(std::uint32_t number, std::uint64_t handle);
// Numbers those of one device that share a name, in their order.
void number_alike(std::span<const std::int16_t> devices, std::vector<std::string>& names);

// The default pool of an allocator, a pool that the program or a library made, or the blocks of
// RMM; with the library if it is known, and the size of its segments.
[[nodiscard]] std::string pool_name(std::uint32_t owner, std::string_view segment_type,
                                    Framework framework);

}  // namespace gpuviz::record
