#include "device/nvml.hpp"

#include <dlfcn.h>

#include <memory>

namespace gpuviz::device {

namespace {

// The declarations of nvml.h in versions 12 and 13; no wheel needed by the build contains it.
using NvmlDevice = void*;
struct NvmlProcess {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance;
    unsigned compute_instance;
};
constexpr int kNvmlSuccess = 0;
constexpr unsigned long long kNotAvailable = ~0ull;
constexpr unsigned kMostProcesses = 256;

struct CloseLibrary {
    void operator()(void* library) const noexcept { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

template <typename Function>
Function* find(const Library& library, const char* name) {
    return reinterpret_cast<Function*>(dlsym(library.get(), name));
}

}  // namespace

std::vector<ProcessMemory> compute_processes(const std::string& pci_bus_id) {
    const Library library(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
    if (library == nullptr) {
        return {};
    }
    auto* init = find<int()>(library, "nvmlInit_v2");
    auto* shutdown = find<int()>(library, "nvmlShutdown");
    auto* open = find<int(const char*, NvmlDevice*)>(library, "nvmlDeviceGetHandleByPciBusId_v2");
    auto* list = find<int(NvmlDevice, unsigned*, NvmlProcess*)>(
        library, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (init == nullptr || shutdown == nullptr || open == nullptr || list == nullptr ||
        init() != kNvmlSuccess) {
        return {};
    }
    std::vector<ProcessMemory> processes;
    NvmlDevice device = nullptr;
    unsigned count = kMostProcesses;
    std::vector<NvmlProcess> found(count);
    if (open(pci_bus_id.c_str(), &device) == kNvmlSuccess &&
        list(device, &count, found.data()) == kNvmlSuccess) {
        for (unsigned i = 0; i < count; ++i) {
            if (found[i].used != kNotAvailable) {
                processes.push_back({found[i].pid, found[i].used});
            }
        }
    }
    shutdown();
    return processes;
}

}  // namespace gpuviz::device
