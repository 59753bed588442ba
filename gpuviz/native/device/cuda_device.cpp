#include "device/cuda_device.hpp"

#include <unistd.h>

#include <array>
#include <string>

#include "device/nvml.hpp"

namespace gpuviz::device {

namespace {

// Real handles are aligned pointers, so their low byte is never CU_STREAM_PER_THREAD's (2).
constexpr StreamHandle kPerThreadTag = 0x2;
constexpr StreamHandle kTagMask = 0x7;
constexpr StreamHandle kDefaultStream = 0;

bool is_per_thread(StreamHandle stream) noexcept { return (stream & kTagMask) == kPerThreadTag; }

bool is_foreign_thread_stream(StreamHandle stream) noexcept {
    return is_per_thread(stream) && stream != kPerThreadTag &&
           stream != per_thread_stream(std::uint32_t(gettid()));
}

// Of a stream that the calling thread can refer to.
CUstream raw(StreamHandle stream) noexcept {
    return reinterpret_cast<CUstream>(is_per_thread(stream) ? kPerThreadTag : stream);
}
CUevent raw_event(EventHandle event) noexcept { return reinterpret_cast<CUevent>(event); }

}  // namespace

StreamHandle per_thread_stream(std::uint32_t thread) noexcept {
    return StreamHandle{thread} << 8 | kPerThreadTag;
}

// Makes the primary context current, and allows the allocator's calls during a capture: memory
// allocated while a stream captures is not part of the graph.
class CudaDevice::Scope {
  public:
    explicit Scope(const CudaDevice& device) : driver_(*device.driver_) {
        CUcontext current = nullptr;
        // Costs a fraction of pushing and popping a context.
        is_pushed_ =
            driver_.current_context(&current) != CUDA_SUCCESS || current != device.context_;
        if (is_pushed_) {
            driver_.check(driver_.push_context(device.context_), "cuCtxPushCurrent");
        }
        driver_.exchange_capture_mode(&mode_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
        driver_.exchange_capture_mode(&mode_);
        CUcontext popped = nullptr;
        if (is_pushed_) {
            driver_.pop_context(&popped);
        }
    }

  private:
    const CudaDriver& driver_;
    bool is_pushed_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

CudaDevice::CudaDevice(std::shared_ptr<const CudaDriver> driver, int ordinal)
    : driver_(std::move(driver)), ordinal_(ordinal) {
    CUdevice device = 0;
    driver_->check(driver_->get_device(&device, ordinal), "cuDeviceGet");
    driver_->check(driver_->retain_primary(&context_, device), "cuDevicePrimaryCtxRetain");
    total_memory_ = driver_->total_memory(ordinal);
    int supported = 0;
    driver_->check(driver_->get_attribute(
                       &supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device),
                   "cuDeviceGetAttribute");
    virtual_memory_ = supported != 0;
}

MemoryInfo CudaDevice::memory_info() {
    const Scope scope(*this);
    std::size_t free = 0;
    std::size_t total = 0;
    driver_->check(driver_->memory_info(&free, &total), "cuMemGetInfo");
    return {free, total};
}

std::vector<ProcessMemory> CudaDevice::processes() {
    std::array<char, 32> pci_bus_id{};
    driver_->check(
        driver_->get_pci_bus_id(pci_bus_id.data(), static_cast<int>(pci_bus_id.size()), ordinal_),
        "cuDeviceGetPCIBusId");
    return compute_processes(pci_bus_id.data());
}

std::optional<Address> CudaDevice::allocate(std::uint64_t size) {
    const Scope scope(*this);
    CUdeviceptr address = 0;
    const CUresult result = driver_->allocate(&address, size);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        return std::nullopt;
    }
    driver_->check(result, "cuMemAlloc");
    return address;
}

void CudaDevice::free(Address address, std::uint64_t /*size*/) {
    const Scope scope(*this);
    driver_->check(driver_->free(address), "cuMemFree");
}

Address CudaDevice::reserve_range(std::uint64_t size) {
    const Scope scope(*this);
    CUdeviceptr address = 0;
    driver_->check(driver_->reserve_address(&address, size, 0, 0, 0), "cuMemAddressReserve");
    return address;
}

void CudaDevice::release_range(Address address, std::uint64_t size) {
    const Scope scope(*this);
    driver_->check(driver_->free_address(address, size), "cuMemAddressFree");
}

bool CudaDevice::map(Address address, std::uint64_t size, std::uint64_t page) {
    const Scope scope(*this);
    for (std::uint64_t mapped = 0; mapped < size; mapped += page) {
        if (!map_page(address + mapped, page)) {
            unmap(address, mapped, page);
            return false;
        }
    }
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = ordinal_;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    driver_->check(driver_->set_access(address, size, &access, 1), "cuMemSetAccess");
    return true;
}

bool CudaDevice::map_page(Address address, std::uint64_t page) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = ordinal_;
    CUmemGenericAllocationHandle handle = 0;
    const CUresult result = driver_->create_memory(&handle, page, &properties, 0);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        return false;
    }
    driver_->check(result, "cuMemCreate");
    const CUresult mapped = driver_->map_memory(address, page, 0, handle, 0);
    if (mapped != CUDA_SUCCESS) {
        driver_->release_memory(handle);
        driver_->check(mapped, "cuMemMap");
    }
    pages_.emplace(address, handle);
    return true;
}

void CudaDevice::unmap(Address address, std::uint64_t size, std::uint64_t page) {
    const Scope scope(*this);
    for (std::uint64_t done = 0; done < size; done += page) {
        driver_->check(driver_->unmap_memory(address + done, page), "cuMemUnmap");
        const auto handle = pages_.extract(address + done);
        driver_->check(driver_->release_memory(handle.mapped()), "cuMemRelease");
    }
}

// Within a Scope. The legacy stream cannot be used while a blocking stream captures.
bool CudaDevice::can_enqueue(StreamHandle stream) const {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return !is_foreign_thread_stream(stream) &&
           driver_->is_capturing(raw(stream), &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_NONE;
}

bool CudaDevice::fill(Address address, std::uint64_t size, std::uint8_t value,
                      StreamHandle stream) {
    const Scope scope(*this);
    if (!can_enqueue(stream)) {
        return false;
    }
    driver_->check(driver_->fill(address, value, size, raw(stream)), "cuMemsetD8Async");
    return true;
}

bool CudaDevice::read(const Samples& samples, void* to, StreamHandle stream) {
    const Scope scope(*this);
    if (!can_enqueue(stream)) {
        return false;
    }
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = samples.first;
    copy.srcPitch = samples.stride;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = to;
    copy.dstPitch = samples.width;
    copy.WidthInBytes = samples.width;
    copy.Height = samples.count;
    driver_->check(driver_->copy_pieces(&copy, raw(stream)), "cuMemcpy2DAsync");
    return true;
}

void* CudaDevice::host_memory(std::uint64_t size) {
    const Scope scope(*this);
    void* memory = nullptr;
    driver_->check(driver_->allocate_host(&memory, size, 0), "cuMemHostAlloc");
    return memory;
}

std::optional<Address> CudaDevice::allocate_host(std::uint64_t size) {
    const Scope scope(*this);
    void* memory = nullptr;
    const CUresult result = driver_->allocate_host(&memory, size, CU_MEMHOSTALLOC_PORTABLE);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        return std::nullopt;
    }
    driver_->check(result, "cuMemHostAlloc");
    return reinterpret_cast<Address>(memory);
}

void CudaDevice::free_host(Address address, std::uint64_t /*size*/) {
    const Scope scope(*this);
    driver_->check(driver_->free_host(reinterpret_cast<void*>(address)), "cuMemFreeHost");
}

EventHandle CudaDevice::record_event(StreamHandle stream) {
    const Scope scope(*this);
    CUevent event = idle_event();
    if (event == nullptr) {
        driver_->check(driver_->create_event(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    }
    if (is_foreign_thread_stream(stream)) {
        // Only the stream's own thread can refer to it; waiting for everything is safe.
        driver_->check(driver_->synchronize_context(), "cuCtxSynchronize");
        stream = 0;
    }
    driver_->check(driver_->record_event(event, raw(stream)), "cuEventRecord");
    return reinterpret_cast<EventHandle>(event);
}

// Null if all are in use.
CUevent CudaDevice::idle_event() {
    const std::lock_guard lock(events_mutex_);
    if (idle_events_.empty()) {
        return nullptr;
    }
    CUevent event = idle_events_.back();
    idle_events_.pop_back();
    return event;
}

bool CudaDevice::is_complete(EventHandle event) {
    const Scope scope(*this);
    const CUresult result = driver_->query_event(raw_event(event));
    if (result == CUDA_ERROR_NOT_READY) {
        return false;
    }
    driver_->check(result, "cuEventQuery");
    return true;
}

void CudaDevice::synchronize(EventHandle event) {
    const Scope scope(*this);
    driver_->check(driver_->synchronize_event(raw_event(event)), "cuEventSynchronize");
}

void CudaDevice::release(EventHandle event) {
    const std::lock_guard lock(events_mutex_);
    idle_events_.push_back(raw_event(event));
}

void CudaDevice::synchronize_stream(StreamHandle stream) {
    const Scope scope(*this);
    // The program may have destroyed its stream, on whose handle the driver would crash; that of
    // another thread cannot be referred to. Waiting for everything is safe.
    const bool is_sure = stream == kDefaultStream || stream == kPerThreadTag;
    driver_->check(
        is_sure ? driver_->synchronize_stream(raw(stream)) : driver_->synchronize_context(),
        is_sure ? "cuStreamSynchronize" : "cuCtxSynchronize");
}

bool CudaDevice::is_idle(StreamHandle stream) {
    const Scope scope(*this);
    if (!can_enqueue(stream)) {
        return false;
    }
    const CUresult result = driver_->query_stream(raw(stream));
    if (result == CUDA_ERROR_NOT_READY) {
        return false;
    }
    driver_->check(result, "cuStreamQuery");
    return true;
}

bool CudaDevice::is_capturing(StreamHandle stream) {
    if (is_foreign_thread_stream(stream)) {
        return false;
    }
    const Scope scope(*this);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = driver_->is_capturing(raw(stream), &status);
    // The answer for the legacy stream, which cannot capture, while a blocking stream does.
    if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
        return false;
    }
    driver_->check(result, "cuStreamIsCapturing");
    return status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

bool CudaDevice::can_record(StreamHandle stream) {
    const Scope scope(*this);
    return is_foreign_thread_stream(stream) || can_enqueue(stream);
}

bool CudaDevice::is_blocking(StreamHandle stream) {
    if (is_per_thread(stream)) {
        return true;
    }
    const Scope scope(*this);
    unsigned flags = 0;
    driver_->check(driver_->stream_flags(raw(stream), &flags), "cuStreamGetFlags");
    return (flags & CU_STREAM_NON_BLOCKING) == 0;
}

}  // namespace gpuviz::device
