#pragma once

#include <cstddef>
#include <cstdint>

// NVTX's memory extension, as far as the announcement of a sub-allocator needs it. It is fixed in
// nvToolsExtMem.h and nvtxDetail/nvtxExtTypes.h of NVIDIA/NVTX; identifier 0x0102 names this
// layout.
namespace gpuviz::nvtx {

constexpr std::uint16_t memory_module = 1;
constexpr std::uint16_t memory_layout = 0x0102;     // NVTX_EXT_COMPATID_MEM
constexpr std::uint16_t interface_version = 3;      // NVTX_VERSION
constexpr std::uint32_t sub_allocator = 1;          // NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR
constexpr std::uint32_t virtual_address = 1;        // NVTX_MEM_TYPE_VIRTUAL_ADDRESS
constexpr std::uint32_t by_pointer = 1;             // NVTX_MEM_REGION_REF_TYPE_POINTER
constexpr std::size_t memory_slot_count = 63;       // NVTX_EXT_MEM_SLOT_COUNT
constexpr std::intptr_t last_empty_slot_value = 1;  // NVTX_EXTENSION_FRESH, NVTX_EXTENSION_DISABLED

// Positions of functions in the slots of the extension.
enum class MemorySlot : std::size_t {
    heap_register = 0,
    heap_unregister = 1,
    regions_register = 3,
    regions_unregister = 5,
};

// Handles are the tool's; those of domains and heaps may be null.
using Domain = const void*;
using Heap = const void*;

struct MemoryRange {
    std::size_t size;
    std::uintptr_t address;
};

struct HeapDescription {
    std::uint16_t layout;
    std::uint16_t struct_size;
    std::uint32_t reserved;
    std::uint32_t usage;
    std::uint32_t type;
    std::size_t range_size;
    const MemoryRange* range;
    std::uint32_t category;
    std::uint32_t message_type;
    const void* message;
};
static_assert(sizeof(HeapDescription) == 48);

struct RegionsToRegister {
    std::uint16_t layout;
    std::uint16_t struct_size;
    std::uint32_t type;
    Heap heap;
    std::size_t count;
    std::size_t element_size;
    const MemoryRange* elements;
    const void** handles;  // null: the tool returns none
};
static_assert(sizeof(RegionsToRegister) == 48);

struct RegionsToUnregister {
    std::uint16_t layout;
    std::uint16_t struct_size;
    std::uint32_t reference_type;
    std::size_t count;
    std::size_t element_size;
    const std::uintptr_t* elements;
};
static_assert(sizeof(RegionsToUnregister) == 32);

using DomainCreate = Domain (*)(const char* name);
using HeapRegister = Heap (*)(Domain domain, const HeapDescription* heap);
using HeapUnregister = void (*)(Domain domain, Heap heap);
using RegionsRegister = void (*)(Domain domain, const RegionsToRegister* regions);
using RegionsUnregister = void (*)(Domain domain, const RegionsToUnregister* regions);

struct ExtensionSegment {
    std::size_t id;
    std::size_t slot_count;
    std::intptr_t* slots;
};

struct ExtensionModule {
    std::uint16_t version;
    std::uint16_t struct_size;
    std::uint16_t module;
    std::uint16_t layout;
    std::size_t segment_count;
    ExtensionSegment* segments;
    std::intptr_t (*export_function)(std::uint32_t id);
    const void* information;
};
static_assert(sizeof(ExtensionModule) == 40);

}  // namespace gpuviz::nvtx
