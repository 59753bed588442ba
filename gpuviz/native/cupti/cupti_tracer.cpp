#include "cupti/cupti_tracer.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "record/clock.hpp"
#include "record/pinned_copies.hpp"

namespace gpuviz::cupti {
namespace {

constexpr std::chrono::milliseconds kFlushInterval{50};
constexpr std::chrono::milliseconds kLongestWait{1000};
constexpr std::chrono::milliseconds kWaitInterval{5};

std::uint64_t CUPTIAPI timestamp() { return std::uint64_t(record::now_ns()); }

}  // namespace

CuptiTracer::CuptiTracer(std::shared_ptr<const CuptiLibrary> library, record::Session& session,
                         const CuptiOptions& options)
    : library_(std::move(library)),
      session_(session),
      options_(options),
      records_(*library_, session.log(), options.graph_nodes),
      buffers_(*library_, records_, session.log()),
      streams_(*library_, session.log()),
      waits_(session.log()),
      devices_(*library_),
      host_memory_(session, records_, captures_, devices_),
      calls_(driver_calls(*library_)),
      call_names_(calls_.size()) {}

CuptiTracer::~CuptiTracer() { stop(); }

void CuptiTracer::start() {
    const std::int64_t began_ns = record::now_ns();
    subscribe();
    try {
        // Activities, allocator events and ranges use one clock. CUPTI of CUDA 13.4 supports a
        // clock for each subscriber, but then rejects all functions called here
        // (CUPTI_ERROR_NOT_COMPATIBLE). With one subscriber per process, both are equivalent.
        library_->register_timestamp(&timestamp);
        library_->set_thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
        buffers_.activate();
        enable_activities();
        enable_callbacks(true);
        stopping_ = false;
        flusher_ = std::thread([this] { flush_until_stopped(); });
        pthread_setname_np(flusher_.native_handle(), "gpuviz-flush");
        attach_ns_ += record::now_ns() - began_ns;
    } catch (...) {
        stop();
        throw;
    }
}

void CuptiTracer::stop() noexcept {
    if (subscriber_ == nullptr) {
        return;
    }
    end_flusher();
    for (int device = 0; device < record::Session::max_devices; ++device) {
        if (record::StreamCalls* const follower = session_.stream_calls(device)) {
            follower->finish();
        }
    }
    enable_callbacks(false);  // also so that our own wait is not recorded
    forget_host_threads();
    if (record::PinnedCopies* const copies = session_.pinned_copies()) {
        copies->finish({record::now_ns(), {}});
    }
    synchronize_contexts();
    detach();
}

std::int64_t CuptiTracer::pause() noexcept {
    if (subscriber_ == nullptr) {
        return record::now_ns();
    }
    end_flusher();
    const std::int64_t paused_ns = record::now_ns();
    enable_callbacks(false);
    forget_host_threads();
    await_work();
    detach();
    forget();
    return paused_ns;
}

// What threads do after the last call that was seen is not between two calls.
void CuptiTracer::forget_host_threads() noexcept {
    if (record::HostSampler* const sampler = session_.host_sampler()) {
        sampler->forget_threads();
    }
}

void CuptiTracer::end_flusher() noexcept {
    if (flusher_.joinable()) {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_one();
        flusher_.join();
    }
}

void CuptiTracer::detach() noexcept {
    const std::int64_t began_ns = record::now_ns();
    disable_activities();
    library_->flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    library_->unsubscribe(std::exchange(subscriber_, nullptr));
    while (inside_.load() != 0) {
        std::this_thread::yield();
    }
    // While attached, CUPTI would continue to cost a microsecond per launch.
    library_->finalize();
    buffers_.deactivate();
    records_.finish();
    attach_ns_ += record::now_ns() - began_ns;
}

void CuptiTracer::await_work() noexcept {
    const auto until = std::chrono::steady_clock::now() + kLongestWait;
    while (records_.last_ended() < last_work_.load() && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(kWaitInterval);
        flush();
    }
}

void CuptiTracer::forget() noexcept {
    try {
        records_.number_calls_after(std::max(last_call_.load(), records_.last_ended()));
        waits_.events().forget();
        streams_.forget();
        captures_.forget();
        arguments_.forget_functions();
        devices_.forget_all();
    } catch (const std::exception&) {
        session_.log().count_lost(1);
    }
}

// Activities launched during the recording belong to it, so wait for them.
void CuptiTracer::synchronize_contexts() noexcept {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (driver == nullptr) {
        return;
    }
    const auto push =
        reinterpret_cast<CUresult (*)(CUcontext)>(dlsym(driver, "cuCtxPushCurrent_v2"));
    const auto pop =
        reinterpret_cast<CUresult (*)(CUcontext*)>(dlsym(driver, "cuCtxPopCurrent_v2"));
    const auto wait = reinterpret_cast<CUresult (*)()>(dlsym(driver, "cuCtxSynchronize"));
    for (CUcontext context : devices_.contexts()) {
        if (push(context) == CUDA_SUCCESS) {
            wait();
            pop(&context);
        }
    }
}

// While a program launches graphs that it builds node by node, as XLA does, a flush makes the
// driver crash in a later launch (seen with CUPTI 13.0 and the driver 580). Their activities arrive
// when a buffer of CUPTI is full, and when the recording ends.
void CuptiTracer::flush() noexcept {
    if (!builds_graphs_.load(std::memory_order_relaxed)) {
        library_->flush_all(0);
    }
}

void CuptiTracer::abandon_after_fork() noexcept {
    subscriber_ = nullptr;
    if (flusher_.joinable()) {
        flusher_.detach();
    }
}

void CuptiTracer::flush_until_stopped() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kFlushInterval, [&] { return stopping_; })) {
        lock.unlock();
        flush();
        lock.lock();
    }
}

void CuptiTracer::subscribe() {
    const CUptiResult result = library_->subscribe(&subscriber_, &callback, this);
    if (result == CUPTI_SUCCESS) {
        return;
    }
    subscriber_ = nullptr;
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
        const std::string name = other_subscriber();
        throw std::runtime_error("CUPTI serves one tool a process, and " +
                                 (name.empty() ? "another tool" : name) + " has it already.");
    }
    throw std::runtime_error("CUPTI refuses to be used: " + library_->name(result) + ".");
}

// The name of CUPTI's subscriber; empty if CUPTI does not report it.
std::string CuptiTracer::other_subscriber() const {
    if (library_->subscribe_by_name == nullptr) {
        return {};
    }
    std::array<char, 128> name{};
    CUpti_SubscriberParams parameters{};
    // The size in CUDA 13.0; newer members stay 0.
    parameters.structSize = offsetof(CUpti_SubscriberParams, allowMultipleSubscribers);
    parameters.oldSubscriberName = name.data();
    parameters.oldSubscriberSize = name.size();
    CUpti_SubscriberHandle unexpected = nullptr;
    if (library_->subscribe_by_name(&unexpected, &callback, nullptr, &parameters) ==
        CUPTI_SUCCESS) {
        library_->unsubscribe(unexpected);
    }
    return name.data();
}

void CuptiTracer::enable_activities() {
    constexpr std::array kinds{
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMCPY2,
        CUPTI_ACTIVITY_KIND_MEMSET,
        CUPTI_ACTIVITY_KIND_MEMORY2,
        CUPTI_ACTIVITY_KIND_OVERHEAD,
        CUPTI_ACTIVITY_KIND_JIT,
    };
    for (const CUpti_ActivityKind kind : kinds) {
        const CUptiResult result = library_->enable_activity(kind);
        if (result == CUPTI_SUCCESS) {
            kinds_.push_back(kind);
        } else if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
            throw std::runtime_error(
                "CUPTI does not record kernels here: " + library_->name(result) + ".");
        }
    }
    if (library_->enable_allocation_source != nullptr) {
        library_->enable_allocation_source(1);
    }
}

void CuptiTracer::disable_activities() noexcept {
    for (const CUpti_ActivityKind kind : kinds_) {
        library_->disable_activity(kind);
    }
    kinds_.clear();
}

void CuptiTracer::enable_callbacks(bool enable) noexcept {
    for (std::size_t id = 1; id < calls_.size(); ++id) {
        if (is_recorded(calls_[id]) || is_followed(calls_[id]) || calls_[id].is_about_waits() ||
            calls_[id].is_about_graphs()) {
            library_->enable_callback(enable, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API,
                                      CUpti_CallbackId(id));
        }
    }
    for (const CUpti_CallbackId id :
         {CUPTI_CBID_RESOURCE_STREAM_CREATED, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING,
          CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING,
          CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING}) {
        library_->enable_callback(enable, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, id);
    }
}

}  // namespace gpuviz::cupti
