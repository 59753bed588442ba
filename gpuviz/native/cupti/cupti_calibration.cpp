#include "cupti/cupti_calibration.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "record/clock.hpp"

namespace gpuviz::cupti {

// The functions of the driver that is loaded already, under the names of their versions.
#define GPUVIZ_CALIBRATED_FUNCTIONS(X)                                \
    X(current_context, cuCtxGetCurrent, "cuCtxGetCurrent")            \
    X(load_module, cuModuleLoadData, "cuModuleLoadData")              \
    X(unload_module, cuModuleUnload, "cuModuleUnload")                \
    X(get_function, cuModuleGetFunction, "cuModuleGetFunction")       \
    X(launch, cuLaunchKernel, "cuLaunchKernel")                       \
    X(create_stream, cuStreamCreate, "cuStreamCreate")                \
    X(destroy_stream, cuStreamDestroy, "cuStreamDestroy_v2")          \
    X(synchronize, cuStreamSynchronize, "cuStreamSynchronize")        \
    X(wait_event, cuStreamWaitEvent, "cuStreamWaitEvent")             \
    X(create_event, cuEventCreate, "cuEventCreate")                   \
    X(destroy_event, cuEventDestroy, "cuEventDestroy_v2")             \
    X(record_event, cuEventRecord, "cuEventRecord")                   \
    X(allocate, cuMemAlloc, "cuMemAlloc_v2")                          \
    X(free, cuMemFree, "cuMemFree_v2")                                \
    X(copy, cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2")                \
    X(read_back, cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2")           \
    X(query_event, cuEventQuery, "cuEventQuery")                      \
    X(elapsed, cuEventElapsedTime, "cuEventElapsedTime")              \
    X(create_graph, cuGraphCreate, "cuGraphCreate")                   \
    X(add_node, cuGraphAddKernelNode, "cuGraphAddKernelNode_v2")      \
    X(instantiate, cuGraphInstantiate, "cuGraphInstantiateWithFlags") \
    X(launch_graph, cuGraphLaunch, "cuGraphLaunch")                   \
    X(destroy_executable, cuGraphExecDestroy, "cuGraphExecDestroy")   \
    X(destroy_graph, cuGraphDestroy, "cuGraphDestroy")                \
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

// A kernel that does nothing, and one that takes so many cycles.
constexpr const char* kKernels = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry gpuviz_calibration(.param .u64 unused) { ret; }
.visible .entry gpuviz_calibration_spin(.param .u64 cycles) {
    .reg .u64 %begin, %now, %cycles;
    .reg .pred %is_early;
    ld.param.u64 %cycles, [cycles];
    mov.u64 %begin, %clock64;
again:
    mov.u64 %now, %clock64;
    sub.u64 %now, %now, %begin;
    setp.lt.u64 %is_early, %now, %cycles;
    @%is_early bra again;
    ret;
}
)";
// While the GPU does this, a graph is queued, even if CUPTI takes two microseconds for each node.
constexpr std::uint64_t kCyclesOfSpin = 500'000;
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
    check(driver_.load_module(&module_, kKernels), "cuModuleLoadData");
    check(driver_.get_function(&kernel_, module_, "gpuviz_calibration"), "cuModuleGetFunction");
    check(driver_.get_function(&spin_, module_, "gpuviz_calibration_spin"), "cuModuleGetFunction");
    check(driver_.create_stream(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check(driver_.create_event(&event_, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    check(driver_.allocate(&memory_, kBytes), "cuMemAlloc");
    check(driver_.create_event(&began_, CU_EVENT_DEFAULT), "cuEventCreate");
    check(driver_.create_event(&ended_, CU_EVENT_DEFAULT), "cuEventCreate");
    graph_ = make_graph(graph_nodes);
    long_graph_ = make_graph(long_graph_nodes);
    make(event_record);
}

CalibrationCalls::Graph CalibrationCalls::make_graph(int nodes) const {
    Graph made;
    check(driver_.create_graph(&made.graph, 0), "cuGraphCreate");
    std::uint64_t argument = 0;
    void* arguments[] = {&argument};
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = kernel_;
    node.gridDimX = node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = arguments;
    CUgraphNode last = nullptr;
    for (int number = 0; number < nodes; ++number) {
        const CUgraphNode before = last;
        const CUresult added =
            driver_.add_node(&last, made.graph, &before, number == 0 ? 0 : 1, &node);
        if (added != CUDA_SUCCESS) {
            release(made);
        }
        check(added, "cuGraphAddKernelNode");
    }
    return made;
}

// CUPTI learns the nodes of a graph when it is instantiated.
void CalibrationCalls::instantiate(Graph& graph) const {
    if (graph.executable != nullptr) {
        driver_.destroy_executable(graph.executable);
        graph.executable = nullptr;
    }
    check(driver_.instantiate(&graph.executable, graph.graph, 0), "cuGraphInstantiate");
}

void CalibrationCalls::release() noexcept {
    if (stream_ != nullptr) {
        driver_.synchronize(stream_);
        driver_.destroy_stream(stream_);
    }
    release(graph_);
    release(long_graph_);
    for (CUevent const event : {event_, began_, ended_}) {
        if (event != nullptr) {
            driver_.destroy_event(event);
        }
    }
    if (memory_ != 0) {
        driver_.free(memory_);
    }
    if (module_ != nullptr) {
        driver_.unload_module(module_);
    }
}

void CalibrationCalls::release(const Graph& graph) const noexcept {
    if (graph.executable != nullptr) {
        driver_.destroy_executable(graph.executable);
    }
    if (graph.graph != nullptr) {
        driver_.destroy_graph(graph.graph);
    }
}

void CalibrationCalls::make(Kind kind) const {
    const OutsideCaptures outside(driver_.exchange_capture_mode);
    check(call(kind), "a call");
}

std::array<std::int64_t, CalibrationCalls::kinds> CalibrationCalls::measure(int calls) {
    const OutsideCaptures outside(driver_.exchange_capture_mode);
    make(synchronize);
    instantiate(graph_);
    std::array<std::int64_t, kinds> medians{};
    std::vector<std::int64_t> times(static_cast<std::size_t>(std::max(calls, 1)));
    for (std::size_t kind = 0; kind < kinds; ++kind) {
        make(Kind(kind));  // the first one prepares the driver
        for (std::size_t number = 0; number < times.size(); ++number) {
            if (number % kCallsBetweenWaits == 0) {
                make(synchronize);
            }
            const std::int64_t began_ns = record::now_ns();
            const CUresult result = call(Kind(kind));
            times[number] = record::now_ns() - began_ns;
            check(result, "a call");
        }
        const auto middle = times.begin() + std::ptrdiff_t(times.size() / 2);
        std::nth_element(times.begin(), middle, times.end());
        medians[kind] = *middle;
    }
    make(synchronize);
    return medians;
}

std::int64_t CalibrationCalls::time_graph(int launches) {
    const OutsideCaptures outside(driver_.exchange_capture_mode);
    make(synchronize);
    instantiate(long_graph_);
    std::vector<float> times(static_cast<std::size_t>(std::max(launches, 1)));
    for (float& time_ms : times) {
        check(launch_kernel(spin_, kCyclesOfSpin), "cuLaunchKernel");
        check(driver_.record_event(began_, stream_), "cuEventRecord");
        check(driver_.launch_graph(long_graph_.executable, stream_), "cuGraphLaunch");
        check(driver_.record_event(ended_, stream_), "cuEventRecord");
        make(synchronize);
        check(driver_.elapsed(&time_ms, began_, ended_), "cuEventElapsedTime");
    }
    const auto middle = times.begin() + std::ptrdiff_t(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return std::int64_t(double(*middle) * 1e6);
}

CUresult CalibrationCalls::call(Kind kind) const {
    std::array<std::byte, kBytes> host{};
    switch (kind) {
        case launch:
            return launch_kernel(kernel_, 0);
        case copy:  // the driver keeps what it copies later
            return driver_.copy(memory_, host.data(), host.size(), stream_);
        case read_back:
            return driver_.read_back(host.data(), memory_, host.size(), stream_);
        case event_record:
            return driver_.record_event(event_, stream_);
        case event_query: {
            const CUresult result = driver_.query_event(event_);
            return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
        }
        case stream_wait:
            return driver_.wait_event(stream_, event_, 0);
        case synchronize:
            return driver_.synchronize(stream_);
        case graph_launch:
            return driver_.launch_graph(graph_.executable, stream_);
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult CalibrationCalls::launch_kernel(CUfunction kernel, std::uint64_t argument) const {
    void* parameters[] = {&argument};
    return driver_.launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream_, parameters, nullptr);
}

void CalibrationCalls::check(CUresult result, const char* name) const {
    if (result != CUDA_SUCCESS) {
        throw std::runtime_error("CUDA cannot be measured: " + std::string(name) + " failed with " +
                                 std::to_string(int(result)) + ".");
    }
}

}  // namespace gpuviz::cupti
