#include "testing/synthetic_records.hpp"

namespace gpuviz::testing {
namespace {

constexpr std::uint32_t kNames = 30;
constexpr std::uint32_t kStreams = 4;
constexpr std::uint32_t kShapes = 20;
// Of this many consecutive records one is a copy.
constexpr std::uint32_t kTurn = 8;

// Sets the members common to all activities.
template <typename Record>
Record begun(CUpti_ActivityKind kind, std::uint32_t number) {
    Record record{};
    record.kind = kind;
    record.start = std::uint64_t{number} * 3000 + 1;
    record.end = record.start + 2000 + number % 64;
    record.contextId = 1;
    record.streamId = 7 + number % kStreams;
    record.correlationId = 2 * number + 1;
    return record;
}

}  // namespace

SyntheticRecords::SyntheticRecords(std::size_t count) {
    for (std::uint32_t number = 0; number < kNames; ++number) {
        const std::string name = "elementwise_" + std::to_string(number) + "_of_many";
        names_.push_back("_Z" + std::to_string(name.size()) + name + "IfEvPKT_PS0_lb");
    }
    records_.reserve(count);
    for (std::uint32_t number = 0; number < count; ++number) {
        records_.push_back(number % kTurn == 0 ? copy(number) : kernel(number));
    }
    for (const Record& record : records_) {
        pointers_.push_back(std::visit(
            [](const auto& one) { return reinterpret_cast<const CUpti_Activity*>(&one); }, record));
    }
}

SyntheticRecords::Record SyntheticRecords::kernel(std::uint32_t number) const {
    auto record = begun<CUpti_ActivityKernel9>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, number);
    record.name = names_[number % kNames].c_str();
    record.gridX = std::int32_t(1 + number % kShapes);
    record.gridY = record.gridZ = 1;
    record.blockX = 128;
    record.blockY = record.blockZ = 1;
    record.registersPerThread = 32;
    return record;
}

SyntheticRecords::Record SyntheticRecords::copy(std::uint32_t number) {
    auto record = begun<CUpti_ActivityMemcpy5>(CUPTI_ACTIVITY_KIND_MEMCPY, number);
    record.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    record.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    record.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    record.bytes = 1 << 20;
    return record;
}

}  // namespace gpuviz::testing
