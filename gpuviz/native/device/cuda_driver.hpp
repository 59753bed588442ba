#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string>

namespace gpuviz::device {

// What a device can do with the memory of another one.
struct PeerAccess {
    bool is_supported;
    int performance_rank;  // relative to other pairs; 0 is the fastest
    bool has_native_atomics;
};

// The CUDA driver's functions, loaded from libcuda.so.1 at run time, so that gpuviz can be imported
// without a driver. One instance serves all devices; thread-safe.
class CudaDriver {
  public:
    // Throws DeviceError with one sentence when the driver is missing, too old or finds no GPU.
    static std::shared_ptr<const CudaDriver> open();

    CudaDriver(const CudaDriver&) = delete;
    CudaDriver& operator=(const CudaDriver&) = delete;
    ~CudaDriver();

    // Throws DeviceError that names the call and the driver's error unless `result` is success.
    void check(CUresult result, const char* call) const;

    [[nodiscard]] int version() const noexcept { return version_; }  // 1000 * major + 10 * minor
    [[nodiscard]] int device_count() const;
    [[nodiscard]] std::string device_name(int ordinal) const;
    // The UUID that nvidia-smi prints after GPU- or MIG-.
    [[nodiscard]] std::string device_uuid(int ordinal) const;
    [[nodiscard]] std::uint64_t total_memory(int ordinal) const;
    [[nodiscard]] int multiprocessors(int ordinal) const;
    // Bytes per second that the clock and the width of the memory allow; 0 if unknown.
    [[nodiscard]] std::uint64_t memory_bandwidth(int ordinal) const;
    [[nodiscard]] PeerAccess peer_access(int from, int to) const;

#define GPUVIZ_CUDA_FUNCTIONS(X)                                            \
    X(init, cuInit, cuInit)                                                 \
    X(driver_version, cuDriverGetVersion, cuDriverGetVersion)               \
    X(error_name, cuGetErrorName, cuGetErrorName)                           \
    X(error_text, cuGetErrorString, cuGetErrorString)                       \
    X(count_devices, cuDeviceGetCount, cuDeviceGetCount)                    \
    X(get_device, cuDeviceGet, cuDeviceGet)                                 \
    X(get_device_name, cuDeviceGetName, cuDeviceGetName)                    \
    X(get_uuid, cuDeviceGetUuid, cuDeviceGetUuid_v2)                        \
    X(get_total_memory, cuDeviceTotalMem, cuDeviceTotalMem_v2)              \
    X(get_pci_bus_id, cuDeviceGetPCIBusId, cuDeviceGetPCIBusId)             \
    X(get_attribute, cuDeviceGetAttribute, cuDeviceGetAttribute)            \
    X(get_peer_attribute, cuDeviceGetP2PAttribute, cuDeviceGetP2PAttribute) \
    X(retain_primary, cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)   \
    X(push_context, cuCtxPushCurrent, cuCtxPushCurrent_v2)                  \
    X(current_context, cuCtxGetCurrent, cuCtxGetCurrent)                    \
    X(pop_context, cuCtxPopCurrent, cuCtxPopCurrent_v2)                     \
    X(synchronize_context, cuCtxSynchronize, cuCtxSynchronize)              \
    X(memory_info, cuMemGetInfo, cuMemGetInfo_v2)                           \
    X(allocate, cuMemAlloc, cuMemAlloc_v2)                                  \
    X(free, cuMemFree, cuMemFree_v2)                                        \
    X(reserve_address, cuMemAddressReserve, cuMemAddressReserve)            \
    X(free_address, cuMemAddressFree, cuMemAddressFree)                     \
    X(create_memory, cuMemCreate, cuMemCreate)                              \
    X(release_memory, cuMemRelease, cuMemRelease)                           \
    X(map_memory, cuMemMap, cuMemMap)                                       \
    X(unmap_memory, cuMemUnmap, cuMemUnmap)                                 \
    X(set_access, cuMemSetAccess, cuMemSetAccess)                           \
    X(allocate_host, cuMemHostAlloc, cuMemHostAlloc)                        \
    X(free_host, cuMemFreeHost, cuMemFreeHost)                              \
    X(fill, cuMemsetD8Async, cuMemsetD8Async)                               \
    X(copy_pieces, cuMemcpy2DAsync, cuMemcpy2DAsync_v2)                     \
    X(create_event, cuEventCreate, cuEventCreate)                           \
    X(record_event, cuEventRecord, cuEventRecord)                           \
    X(query_event, cuEventQuery, cuEventQuery)                              \
    X(synchronize_event, cuEventSynchronize, cuEventSynchronize)            \
    X(query_stream, cuStreamQuery, cuStreamQuery)                           \
    X(synchronize_stream, cuStreamSynchronize, cuStreamSynchronize)         \
    X(is_capturing, cuStreamIsCapturing, cuStreamIsCapturing)               \
    X(stream_flags, cuStreamGetFlags, cuStreamGetFlags)                     \
    X(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode)

// decltype, because the header maps unversioned names to its own versions.
#define GPUVIZ_DECLARE(member, function, symbol) decltype(&::function) member = nullptr;
    GPUVIZ_CUDA_FUNCTIONS(GPUVIZ_DECLARE)
#undef GPUVIZ_DECLARE

  private:
    CudaDriver() = default;

    void* library_ = nullptr;
    int version_ = 0;
};

}  // namespace gpuviz::device
