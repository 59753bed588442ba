#include "nvtx/memory_announcer.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <exception>

#include "nvtx/nvtx_abi.hpp"

namespace gpuviz::nvtx {

using record::Action;
using record::MemoryEvent;

namespace {

// One more than the highest position of each module's functions, by the module's number.
constexpr std::array<unsigned, 7> function_counts = {0, 16, 9, 15, 7, 16, 7};

// The functions that a tool offers to NVTX without extensions. Only the creation of a domain is
// called; the others have a place because a tool may fill all of them.
struct ToolFunctions {
    std::array<std::array<Function, 16>, function_counts.size()> functions{};
    std::array<std::array<Function*, 17>, function_counts.size()> tables{};  // end with null

    ToolFunctions() noexcept {
        for (std::size_t module = 0; module < function_counts.size(); ++module) {
            for (std::size_t position = 1; position < function_counts[module]; ++position) {
                tables[module][position] = &functions[module][position];
            }
        }
    }
};

ToolFunctions& tool_functions() noexcept {
    static ToolFunctions& process = *new ToolFunctions;  // never deleted: tools keep its address
    return process;
}

int module_functions(Module module, FunctionTable* table, unsigned* size) {
    const auto number = static_cast<std::size_t>(module);
    if (number == 0 || number >= function_counts.size()) {
        return 0;
    }
    if (table != nullptr) {
        *table = tool_functions().tables[number].data();
    }
    if (size != nullptr) {
        *size = function_counts[number];
    }
    return 1;
}

struct VersionInfo {
    std::size_t struct_size;
    std::uint32_t version;
    std::uint32_t reserved;
    void (*set_injection_version)(std::uint32_t version);
};

const void* export_table(std::uint32_t table) {
    static const Callbacks callbacks = {sizeof(Callbacks), &module_functions};
    static const VersionInfo version = {sizeof(VersionInfo), interface_version, 0,
                                        [](std::uint32_t) {}};
    constexpr std::uint32_t version_table = 3;  // NVTX_ETID_VERSIONINFO
    return table == callbacks_table ? static_cast<const void*>(&callbacks)
           : table == version_table ? static_cast<const void*>(&version)
                                    : nullptr;
}

Domain create_domain(void* library) {
    using Initialize = int (*)(GetExportTable);
    const auto initialize =
        reinterpret_cast<Initialize>(dlsym(library, "InitializeInjectionNvtx2"));
    if (initialize == nullptr || initialize(&export_table) == 0) {
        return nullptr;
    }
    const Function create =
        tool_functions().functions[std::size_t(Module::core2)][std::size_t(Core2::domain_create_a)];
    return create == nullptr ? nullptr : reinterpret_cast<DomainCreate>(create)("gpuviz");
}

// The slots that the tool fills; NVTX has a slot for the state of the extension before them.
using Slots = std::array<std::intptr_t, memory_slot_count + 1>;

template <typename Called>
void take(const Slots& slots, MemorySlot position, Called& function) noexcept {
    const std::intptr_t slot = slots[std::size_t(position) + 1];
    function = slot < 0 || slot > last_empty_slot_value ? reinterpret_cast<Called>(slot) : nullptr;
}

const MemoryTool* load_tool() noexcept {
    const char* path = std::getenv("NVTX_INJECTION64_PATH");
    void* library = path == nullptr ? nullptr : dlopen(path, RTLD_LAZY);
    if (library == nullptr) {
        return nullptr;
    }
    using Initialize = int (*)(ExtensionModule*);
    const auto initialize =
        reinterpret_cast<Initialize>(dlsym(library, "InitializeInjectionNvtxExtension"));
    if (initialize == nullptr) {
        return nullptr;
    }
    static Slots slots{};
    static ExtensionSegment segment = {1, memory_slot_count, &slots[1]};
    static ExtensionModule module = {.version = interface_version,
                                     .struct_size = sizeof(ExtensionModule),
                                     .module = memory_module,
                                     .layout = memory_layout,
                                     .segment_count = 1,
                                     .segments = &segment,
                                     .export_function = nullptr,
                                     .information = nullptr};
    static MemoryTool tool;
    tool.domain = create_domain(library);
    if (initialize(&module) == 0) {
        return nullptr;
    }
    take(slots, MemorySlot::heap_register, tool.heap_register);
    take(slots, MemorySlot::heap_unregister, tool.heap_unregister);
    take(slots, MemorySlot::regions_register, tool.regions_register);
    take(slots, MemorySlot::regions_unregister, tool.regions_unregister);
    const bool is_complete = tool.heap_register != nullptr && tool.heap_unregister != nullptr &&
                             tool.regions_register != nullptr && tool.regions_unregister != nullptr;
    return is_complete ? &tool : nullptr;
}

bool is_private(const MemoryEvent& event) noexcept { return event.pool / 2 != 0; }

}  // namespace

const MemoryTool* MemoryTool::find() noexcept {
    static const MemoryTool* const tool = load_tool();
    return tool;
}

void MemoryAnnouncer::push(const MemoryEvent& event) noexcept {
    try {
        announce(event);
    } catch (const std::exception&) {
        // Without memory for its entry a segment is not announced.
    }
    pass_on(event);
}

void MemoryAnnouncer::announce(const MemoryEvent& event) {
    switch (event.action) {
        case Action::segment_alloc:
            return add_heap(event);
        case Action::segment_free:
            return remove_heap(event.address);
        case Action::alloc:
            return add_region(event);
        case Action::free_requested:
            return event.completed ? remove_region(event.address) : void();
        case Action::free_completed:
            return remove_region(event.address);
        default:
            return;
    }
}

void MemoryAnnouncer::add_heap(const MemoryEvent& event) {
    if (is_private(event)) {
        return;
    }
    Segment& segment = segments_[event.address];
    const MemoryRange range = {event.size, event.address};
    const HeapDescription heap = {.layout = memory_layout,
                                  .struct_size = sizeof(HeapDescription),
                                  .reserved = 0,
                                  .usage = sub_allocator,
                                  .type = virtual_address,
                                  .range_size = sizeof(MemoryRange),
                                  .range = &range,
                                  .category = 0,
                                  .message_type = 0,
                                  .message = nullptr};
    segment = {event.size, tool_.heap_register(tool_.domain, &heap)};
}

void MemoryAnnouncer::remove_heap(std::uint64_t address) {
    const auto found = segments_.find(address);
    if (found == segments_.end()) {
        return;
    }
    tool_.heap_unregister(tool_.domain, found->second.heap);
    segments_.erase(found);
}

const MemoryAnnouncer::Segment* MemoryAnnouncer::segment_of(std::uint64_t address) const noexcept {
    auto after = segments_.upper_bound(address);
    if (after == segments_.begin()) {
        return nullptr;
    }
    --after;
    return address - after->first < after->second.size ? &after->second : nullptr;
}

void MemoryAnnouncer::add_region(const MemoryEvent& event) const {
    const Segment* segment = segment_of(event.address);
    if (segment == nullptr) {
        return;
    }
    const MemoryRange range = {event.requested_size, event.address};
    const RegionsToRegister regions = {.layout = memory_layout,
                                       .struct_size = sizeof(RegionsToRegister),
                                       .type = virtual_address,
                                       .heap = segment->heap,
                                       .count = 1,
                                       .element_size = sizeof(MemoryRange),
                                       .elements = &range,
                                       .handles = nullptr};
    tool_.regions_register(tool_.domain, &regions);
}

void MemoryAnnouncer::remove_region(std::uint64_t address) const {
    if (segment_of(address) == nullptr) {
        return;
    }
    const std::uintptr_t pointer = address;
    const RegionsToUnregister regions = {.layout = memory_layout,
                                         .struct_size = sizeof(RegionsToUnregister),
                                         .reference_type = by_pointer,
                                         .count = 1,
                                         .element_size = sizeof(pointer),
                                         .elements = &pointer};
    tool_.regions_unregister(tool_.domain, &regions);
}

}  // namespace gpuviz::nvtx
