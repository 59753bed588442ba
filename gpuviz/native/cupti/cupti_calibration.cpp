#include "cupti/cupti_calibration.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "record/clock.hpp"

namespace gpuviz::cupti {

// The functions of the driver that is loaded already, under the names of their versions.
#define GPUVIZ_CALIBRATED_FUNCTIONS(X)                          \
    X(current_context, cuCtxGetCurrent, "cuCtxGetCurrent")      \
    X(load_module, cuModuleLoadData, "cuModuleLoadData")        \
    X(unload_module, cuModuleUnload, "cuModuleUnload")          \
    X(get_function, cuModuleGetFunction, "cuModuleGetFunction") \
    X(launch, cuLaunchKernel, "cuLaunchKernel")                 \
    X(create_stream, cuStreamCreate, "cuStreamCreate")          \
    X(destroy_stream, cuStreamDestroy, "cuStreamDestroy_v2")    \
    X(synchronize, cuStreamSynchronize, "cuStreamSynchronize")  \
    X(wait_event, cuStreamWaitEvent, "cuStreamWaitEvent")       \
    X(create_event, cuEventCreate, "cuEventCreate")             \
    X(destroy_event, cuEventDestroy, "cuEventDestroy_v2")       \
    X(record_event, cuEventRecord, "cuEventRecord")             \
    X(allocate, cuMemAlloc, "cuMemAlloc_v2")                    \
    X(free, cuMemFree, "cuMemFree_v2")                          \
    X(fill, cuMemsetD8Async, "cuMemsetD8Async")                 \
    X(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode")

struct CalibrationCalls::Driver {
#define GPUVIZ_DECLARE(member, function, symbol) decltype(&::function) member = nullptr;
    GPUVIZ_CALIBRATED_FUNCTIONS(GPUVIZ_DECLARE)
#undef GPUVIZ_DECLARE

    static const Driver& loaded() {
        static const Driver driver = [] {
            Driver found;
            void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
            if (library == nullptr) {
                throw std::runtime_error("CUDA is not in use.");
            }
#define GPUVIZ_FIND(member, function, symbol)                                       \
    found.member = reinterpret_cast<decltype(&::function)>(dlsym(library, symbol)); \
    if (found.member == nullptr) {                                                  \
        throw std::runtime_error("The driver lacks " symbol ".");                   \
    }
            GPUVIZ_CALIBRATED_FUNCTIONS(GPUVIZ_FIND)
#undef GPUVIZ_FIND
            return found;
        }();
        return driver;
    }
};

namespace {

constexpr const char* kKernel = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry gpuviz_calibration(.param .u64 unused) { ret; }
)";
constexpr std::size_t kBytes = 64;
// Fewer than a stream can hold before a launch waits.
constexpr int kCallsBetweenWaits = 100;

// Another thread may capture a stream, which makes allocations fail unless this one opts out.
class OutsideCaptures {
  public:
    explicit OutsideCaptures(decltype(&::cuThreadExchangeStreamCaptureMode) exchange)
        : exchange_(exchange) {
        exchange_(&mode_);
    }
    OutsideCaptures(const OutsideCaptures&) = delete;
    OutsideCaptures& operator=(const OutsideCaptures&) = delete;
    ~OutsideCaptures() { exchange_(&mode_); }

  private:
    decltype(&::cuThreadExchangeStreamCaptureMode) exchange_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace

CalibrationCalls::CalibrationCalls() : driver_(Driver::loaded()) {
    CUcontext context = nullptr;
    check(driver_.current_context(&context), "cuCtxGetCurrent");
    if (context == nullptr) {
        throw std::runtime_error("This thread has no CUDA context.");
    }
    const OutsideCaptures outside(driver_.exchange_capture_mode);
    try {
        create();
    } catch (...) {
        release();
        throw;
    }
}

CalibrationCalls::~CalibrationCalls() {
    const OutsideCaptures outside(driver_.exchange_capture_mode);
    release();
}

void CalibrationCalls::create() {
    check(driver_.load_module(&module_, kKernel), "cuModuleLoadData");
    check(driver_.get_function(&kernel_, module_, "gpuviz_calibration"), "cuModuleGetFunction");
    check(driver_.create_stream(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check(driver_.create_event(&event_, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    check(driver_.allocate(&memory_, kBytes), "cuMemAlloc");
}

void CalibrationCalls::release() noexcept {
    if (stream_ != nullptr) {
        driver_.synchronize(stream_);
        driver_.destroy_stream(stream_);
    }
    if (event_ != nullptr) {
        driver_.destroy_event(event_);
    }
    if (memory_ != 0) {
        driver_.free(memory_);
    }
    if (module_ != nullptr) {
        driver_.unload_module(module_);
    }
}

std::array<std::int64_t, CalibrationCalls::kinds> CalibrationCalls::measure(
    std::size_t bytes_between, int calls) {
    const OutsideCaptures outside(driver_.exchange_capture_mode);
    read_between_.resize(bytes_between / sizeof(std::uint64_t));
    std::array<std::int64_t, kinds> medians{};
    std::vector<std::int64_t> times(static_cast<std::size_t>(std::max(calls, 1)));
    check(driver_.record_event(event_, stream_), "cuEventRecord");
    for (std::size_t kind = 0; kind < kinds; ++kind) {
        check(call(Kind(kind)), "a call");  // the first one prepares the driver
        for (std::size_t number = 0; number < times.size(); ++number) {
            if (number % kCallsBetweenWaits == 0) {
                check(driver_.synchronize(stream_), "cuStreamSynchronize");
            }
            for (std::size_t word = 0; word < read_between_.size(); word += 8) {
                sum_ += read_between_[word];  // a cache line
            }
            const std::int64_t began_ns = record::now_ns();
            check(call(Kind(kind)), "a call");
            times[number] = record::now_ns() - began_ns;
        }
        const auto middle = times.begin() + std::ptrdiff_t(times.size() / 2);
        std::nth_element(times.begin(), middle, times.end());
        medians[kind] = *middle;
    }
    check(driver_.synchronize(stream_), "cuStreamSynchronize");
    return medians;
}

CUresult CalibrationCalls::call(Kind kind) {
    switch (kind) {
        case launch: {
            std::uint64_t argument = sum_;
            void* parameters[] = {&argument};
            return driver_.launch(kernel_, 1, 1, 1, 1, 1, 1, 0, stream_, parameters, nullptr);
        }
        case copy:
            return driver_.fill(memory_, 0, kBytes, stream_);
        case event_record:
            return driver_.record_event(event_, stream_);
        case stream_wait:
            return driver_.wait_event(stream_, event_, 0);
        case synchronize:
            return driver_.synchronize(stream_);
    }
    return CUDA_ERROR_INVALID_VALUE;
}

void CalibrationCalls::check(CUresult result, const char* name) const {
    if (result != CUDA_SUCCESS) {
        throw std::runtime_error("CUDA cannot be measured: " + std::string(name) + " failed with " +
                                 std::to_string(int(result)) + ".");
    }
}

}  // namespace gpuviz::cupti
