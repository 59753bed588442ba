#pragma once

#include <cupti.h>

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "cupti/cupti_library.hpp"

namespace gpuviz::testing {

// A stand-in for a recent CUPTI, sufficient for parsing existing records.
class AbsentCupti final : public cupti::CuptiLibrary {};

// Activity records in CUPTI's form, of a program that launches some kernels repeatedly on a few
// streams, with occasional copies.
class SyntheticRecords {
  public:
    explicit SyntheticRecords(std::size_t count);
    SyntheticRecords(const SyntheticRecords&) = delete;
    SyntheticRecords& operator=(const SyntheticRecords&) = delete;

    // Valid during the lifetime of this object.
    [[nodiscard]] const std::vector<const CUpti_Activity*>& records() const noexcept {
        return pointers_;
    }

  private:
    using Record = std::variant<CUpti_ActivityKernel9, CUpti_ActivityMemcpy5>;

    [[nodiscard]] Record kernel(std::uint32_t number) const;
    [[nodiscard]] static Record copy(std::uint32_t number);

    std::vector<std::string> names_;
    std::vector<Record> records_;
    std::vector<const CUpti_Activity*> pointers_;
};

}  // namespace gpuviz::testing
