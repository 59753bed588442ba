#pragma once

#include <cstddef>
#include <cstdint>

// The interface between NVTX version 3 and its tools, as far as ranges need it. It is fixed in
// nvToolsExt.h and nvtxDetail/nvtxTypes.h of NVIDIA/NVTX for all versions.
namespace gpuviz::nvtx {

constexpr std::uint32_t callbacks_table = 1;  // NVTX_ETID_CALLBACKS
constexpr int no_tracking = -2;               // NVTX_NO_PUSH_POP_TRACKING

enum class Module : std::int32_t { core = 1, core2 = 5 };

// Positions in the table of Module::core.
enum class Core : unsigned {
    range_start_ex = 4,
    range_start_a = 5,
    range_start_w = 6,
    range_end = 7,
    range_push_ex = 8,
    range_push_a = 9,
    range_push_w = 10,
    range_pop = 11,
};

// Positions in the table of Module::core2.
enum class Core2 : unsigned {
    domain_range_start_ex = 2,
    domain_range_end = 3,
    domain_range_push_ex = 4,
    domain_range_pop = 5,
    domain_register_string_a = 10,
    domain_register_string_w = 11,
    domain_create_a = 12,
    domain_create_w = 13,
};

enum class MessageType : std::int32_t { none = 0, ascii = 1, wide = 2, registered = 3 };

// Handles are defined by the tool; null means no range, string or domain.
using RangeId = std::uint64_t;

struct EventAttributes {
    std::uint16_t version;
    std::uint16_t size;
    std::uint32_t category;
    std::int32_t color_type;
    std::uint32_t color;
    std::int32_t payload_type;
    std::int32_t reserved;
    std::uint64_t payload;
    MessageType message_type;
    const void* message;
};
static_assert(sizeof(EventAttributes) == 48 && offsetof(EventAttributes, message) == 40);

using Function = void (*)();
// The locations for the addresses of a tool's functions.
using FunctionTable = Function**;

struct Callbacks {
    std::size_t struct_size;
    int (*module_functions)(Module module, FunctionTable* table, unsigned* size);
};

using GetExportTable = const void* (*)(std::uint32_t table);

}  // namespace gpuviz::nvtx
