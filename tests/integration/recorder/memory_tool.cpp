// An NVTX tool for tests: keeps the heaps and regions that it is told of, and what was wrong.

#include <cstddef>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>

namespace {

struct Range {
    std::size_t size;
    std::uintptr_t address;
};
struct Region {
    std::size_t size;
    std::uintptr_t heap;
};

std::map<std::uintptr_t, std::size_t> heaps;
std::map<std::uintptr_t, Region> regions;
std::string mistakes;
std::string text;
int domain_marker;

void expect(bool is_right, const char* mistake) {
    if (!is_right) {
        mistakes += std::string(mistake) + "; ";
    }
}

const void* create_domain(const char* name) {
    expect(std::string(name) == "gpuviz", "domain");
    return &domain_marker;
}

struct Heap {
    std::uint16_t layout, struct_size;
    std::uint32_t reserved, usage, type;
    std::size_t range_size;
    const Range* range;
    std::uint32_t category, message_type;
    const void* message;
};

const void* add_heap(const void* domain, const Heap* heap) {
    expect(domain == &domain_marker, "heap: domain");
    expect(heap->layout == 0x0102 && heap->struct_size == 48, "heap: layout");
    expect(heap->usage == 1 && heap->type == 1 && heap->range_size == 16, "heap: type");
    expect(heap->reserved == 0 && heap->category == 0 && heap->message == nullptr, "heap: rest");
    expect(heaps.emplace(heap->range->address, heap->range->size).second, "heap: twice");
    return reinterpret_cast<const void*>(heap->range->address + 1);
}

void remove_heap(const void*, const void* handle) {
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(handle) - 1;
    for (const auto& [at, region] : regions) {
        expect(region.heap != address, "heap: removed with regions");
    }
    expect(heaps.erase(address) == 1, "heap: unknown");
}

struct Registration {
    std::uint16_t layout, struct_size;
    std::uint32_t type;
    const void* heap;
    std::size_t count, element_size;
    const Range* elements;
    void* handles;
};

void add_regions(const void* domain, const Registration* given) {
    expect(domain == &domain_marker, "region: domain");
    expect(given->layout == 0x0102 && given->struct_size == 48 && given->type == 1, "region: type");
    expect(given->element_size == 16 && given->handles == nullptr, "region: layout");
    const std::uintptr_t heap = reinterpret_cast<std::uintptr_t>(given->heap) - 1;
    expect(heaps.count(heap) == 1, "region: heap");
    for (std::size_t i = 0; i < given->count; ++i) {
        const auto [size, address] = given->elements[i];
        expect(size > 0 && address >= heap && address + size <= heap + heaps[heap], "region: out");
        const auto next = regions.lower_bound(address);
        expect(next == regions.end() || next->first >= address + size, "region: overlap");
        if (next != regions.begin()) {
            const auto& [before, region] = *std::prev(next);
            expect(before + region.size <= address, "region: overlap");
        }
        regions[address] = {size, heap};
    }
}

struct Removal {
    std::uint16_t layout, struct_size;
    std::uint32_t reference_type;
    std::size_t count, element_size;
    const std::uintptr_t* elements;
};

void remove_regions(const void*, const Removal* given) {
    expect(given->layout == 0x0102 && given->struct_size == 32, "removal: layout");
    expect(given->reference_type == 1 && given->element_size == 8, "removal: type");
    for (std::size_t i = 0; i < given->count; ++i) {
        expect(regions.erase(given->elements[i]) == 1, "region: unknown");
    }
}

template <typename Function>
std::intptr_t slot_of(Function* function) {
    return reinterpret_cast<std::intptr_t>(function);
}

struct Callbacks {
    std::size_t struct_size;
    int (*functions)(int module, void (****table)(), unsigned* size);
};
struct Segment {
    std::size_t id, slot_count;
    std::intptr_t* slots;
};
struct Module {
    std::uint16_t version, struct_size, module, layout;
    std::size_t segment_count;
    Segment* segments;
    void* functions[2];
};

}  // namespace

extern "C" int InitializeInjectionNvtx2(const void* (*table_of)(std::uint32_t)) {
    const auto* callbacks = static_cast<const Callbacks*>(table_of(1));
    void (***table)() = nullptr;
    unsigned size = 0;
    const unsigned sizes[] = {16, 9, 15, 7, 16, 7};  // NVTX_CBID_CORE_SIZE and so on
    for (int module = 6; module > 0; --module) {
        expect(callbacks->functions(module, &table, &size) == 1, "functions: module");
        expect(size == sizes[module - 1] && table[size] == nullptr, "functions: size");
        for (unsigned position = 1; position < size; ++position) {
            expect(table[position] != nullptr && *table[position] == nullptr, "functions: places");
        }
    }
    expect(callbacks->functions(7, &table, &size) == 0, "functions: unknown module");
    callbacks->functions(5, &table, &size);
    *table[12] = reinterpret_cast<void (*)()>(&create_domain);
    return 1;
}

extern "C" int InitializeInjectionNvtxExtension(Module* module) {
    expect(module->module == 1 && module->layout == 0x0102 && module->version == 3, "module");
    expect(module->segment_count == 1 && module->segments->slot_count >= 13, "segments");
    std::intptr_t* slots = module->segments->slots;
    slots[0] = slot_of(&add_heap);
    slots[1] = slot_of(&remove_heap);
    slots[3] = slot_of(&add_regions);
    slots[5] = slot_of(&remove_regions);
    return 1;
}

// Lines `heap ADDRESS SIZE` and `region ADDRESS SIZE`, then all mistakes.
extern "C" const char* announced() {
    std::ostringstream lines;
    for (const auto& [address, size] : heaps) {
        lines << "heap " << address << ' ' << size << '\n';
    }
    for (const auto& [address, region] : regions) {
        lines << "region " << address << ' ' << region.size << '\n';
    }
    text = lines.str() + mistakes;
    return text.c_str();
}
