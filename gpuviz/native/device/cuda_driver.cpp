#include "device/cuda_driver.hpp"

#include <dlfcn.h>

#include <array>
#include <string_view>

#include "device/device.hpp"

namespace gpuviz::device {

namespace {

// CUDA 12.0, the oldest driver of the supported CuPy releases.
constexpr int kOldestDriver = 12000;

std::string version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

std::shared_ptr<const CudaDriver> CudaDriver::open() {
    std::shared_ptr<CudaDriver> driver(new CudaDriver);
    driver->library_ = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver->library_ == nullptr) {
        throw DeviceError("No NVIDIA driver: libcuda.so.1 was not found.");
    }
    auto load = [&](auto& function, const char* symbol) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
            dlsym(driver->library_, symbol));
        return function != nullptr;
    };
    // Checked first, so that the error names an old driver's version and not a missing function.
    if (load(driver->driver_version, "cuDriverGetVersion")) {
        driver->driver_version(&driver->version_);
    }
    if (driver->version_ < kOldestDriver) {
        throw DeviceError("The NVIDIA driver serves CUDA " + version_text(driver->version_) +
                          "; gpuviz needs one for CUDA " + version_text(kOldestDriver) +
                          " or newer.");
    }
#define GPUVIZ_LOAD(member, function, symbol)                                      \
    if (!load(driver->member, #symbol)) {                                          \
        throw DeviceError("The NVIDIA driver (libcuda.so.1) has no " #symbol "."); \
    }
    GPUVIZ_CUDA_FUNCTIONS(GPUVIZ_LOAD)
#undef GPUVIZ_LOAD
    driver->check(driver->init(0), "cuInit");
    return driver;
}

CudaDriver::~CudaDriver() {
    if (library_ != nullptr) {
        dlclose(library_);
    }
}

void CudaDriver::check(CUresult result, const char* call) const {
    if (result == CUDA_SUCCESS) {
        return;
    }
    const char* name = nullptr;
    const char* text = nullptr;
    error_name(result, &name);
    error_text(result, &text);
    throw DeviceError(std::string(call) + " failed: " + (name == nullptr ? "unknown error" : name) +
                      (text == nullptr ? "" : std::string(" (") + text + ")") + ".");
}

int CudaDriver::device_count() const {
    int count = 0;
    check(count_devices(&count), "cuDeviceGetCount");
    return count;
}

std::string CudaDriver::device_name(int ordinal) const {
    CUdevice device = 0;
    check(get_device(&device, ordinal), "cuDeviceGet");
    std::array<char, 256> name{};
    check(get_device_name(name.data(), static_cast<int>(name.size()), device), "cuDeviceGetName");
    return name.data();
}

std::string CudaDriver::device_uuid(int ordinal) const {
    CUdevice device = 0;
    check(get_device(&device, ordinal), "cuDeviceGet");
    CUuuid uuid{};
    check(get_uuid(&uuid, device), "cuDeviceGetUuid");
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const char byte : uuid.bytes) {
        const auto value = static_cast<unsigned char>(byte);
        text += {digits[value / 16], digits[value % 16]};
        if (text.size() == 8 || text.size() == 13 || text.size() == 18 || text.size() == 23) {
            text += '-';
        }
    }
    return text;
}

std::uint64_t CudaDriver::total_memory(int ordinal) const {
    CUdevice device = 0;
    check(get_device(&device, ordinal), "cuDeviceGet");
    std::size_t total = 0;
    check(get_total_memory(&total, device), "cuDeviceTotalMem");
    return total;
}

int CudaDriver::multiprocessors(int ordinal) const {
    CUdevice device = 0;
    check(get_device(&device, ordinal), "cuDeviceGet");
    int count = 0;
    check(get_attribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
          "cuDeviceGetAttribute");
    return count;
}

std::uint64_t CudaDriver::memory_bandwidth(int ordinal) const {
    CUdevice device = 0;
    check(get_device(&device, ordinal), "cuDeviceGet");
    int kilohertz = 0;
    int bits = 0;
    if (get_attribute(&kilohertz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device) != CUDA_SUCCESS ||
        get_attribute(&bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device) != CUDA_SUCCESS ||
        kilohertz <= 0 || bits <= 0) {
        return 0;
    }
    // Memory of GPUs transfers at both edges of the clock.
    return 2 * 1000 * std::uint64_t(kilohertz) * std::uint64_t(bits) / 8;
}

PeerAccess CudaDriver::peer_access(int from, int to) const {
    CUdevice source = 0;
    CUdevice destination = 0;
    check(get_device(&source, from), "cuDeviceGet");
    check(get_device(&destination, to), "cuDeviceGet");
    const auto attribute = [&](CUdevice_P2PAttribute which) {
        int value = 0;
        check(get_peer_attribute(&value, which, source, destination), "cuDeviceGetP2PAttribute");
        return value;
    };
    return {.is_supported = attribute(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED) != 0,
            .performance_rank = attribute(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK),
            .has_native_atomics = attribute(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED) != 0};
}

}  // namespace gpuviz::device
