#pragma once

#include <stdexcept>
#include <string>

namespace gpuviz::formats {

// A file is invalid. `what()` contains what was found and what was expected.
class FormatError : public std::runtime_error {
  public:
    FormatError(std::string place, const std::string& problem)
        : std::runtime_error(problem), place_(std::move(place)) {}

    // The part of the file at fault, such as "byte 17" or "segments[2]".
    [[nodiscard]] const std::string& place() const noexcept { return place_; }

  private:
    std::string place_;
};

}  // namespace gpuviz::formats
