#pragma once

#include <cupti.h>

#include <memory>
#include <string>

// The functions of CUPTI that gpuviz uses. Those of the second list may be missing in older
// versions.
#define GPUVIZ_CUPTI_FUNCTIONS(X)                                 \
    X(get_version, cuptiGetVersion)                               \
    X(get_result_string, cuptiGetResultString)                    \
    X(subscribe, cuptiSubscribe)                                  \
    X(unsubscribe, cuptiUnsubscribe)                              \
    X(enable_callback, cuptiEnableCallback)                       \
    X(get_callback_name, cuptiGetCallbackName)                    \
    X(get_context_id, cuptiGetContextId)                          \
    X(get_device_id, cuptiGetDeviceId)                            \
    X(get_stream_id, cuptiGetStreamIdEx)                          \
    X(enable_activity, cuptiActivityEnable)                       \
    X(disable_activity, cuptiActivityDisable)                     \
    X(register_callbacks, cuptiActivityRegisterCallbacks)         \
    X(register_timestamp, cuptiActivityRegisterTimestampCallback) \
    X(next_record, cuptiActivityGetNextRecord)                    \
    X(dropped_records, cuptiActivityGetNumDroppedRecords)         \
    X(set_thread_id_type, cuptiSetThreadIdType)                   \
    X(flush_all, cuptiActivityFlushAll)                           \
    X(finalize, cuptiFinalize)
#define GPUVIZ_CUPTI_NEWER_FUNCTIONS(X)     \
    X(subscribe_by_name, cuptiSubscribe_v2) \
    X(enable_allocation_source, cuptiActivityEnableAllocationSource)

namespace gpuviz::cupti {

// CUPTI, opened at run time and never closed, because its threads may run until the process ends.
class CuptiLibrary {
  public:
    // Throws std::runtime_error that names what is missing, unless the file is CUPTI of CUDA 12 or
    // newer.
    [[nodiscard]] static std::shared_ptr<const CuptiLibrary> open(const std::string& path);

#define GPUVIZ_DECLARE(member, function) decltype(&::function) member = nullptr;
    GPUVIZ_CUPTI_FUNCTIONS(GPUVIZ_DECLARE)
    GPUVIZ_CUPTI_NEWER_FUNCTIONS(GPUVIZ_DECLARE)
#undef GPUVIZ_DECLARE

    // CUPTI_API_VERSION of the library: 22 for CUDA 12.4, 130001 for CUDA 13.0.
    [[nodiscard]] std::uint32_t version() const noexcept { return version_; }
    // The name of a result: CUPTI_ERROR_...
    [[nodiscard]] std::string name(CUptiResult result) const;

  protected:
    // Without functions.
    CuptiLibrary() = default;

  private:
    std::uint32_t version_ = 0;
};

}  // namespace gpuviz::cupti
