#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpuviz::formats {

// Called repeatedly with the bytes done and the total; its exceptions end the work.
using ByteProgress = std::function<void(std::uint64_t, std::uint64_t)>;

// A file read sequentially in large pieces, or bytes in memory. Not thread-safe.
class ByteSource {
  public:
    // Throws std::system_error if the file cannot be opened.
    ByteSource(const std::string& path, ByteProgress progress);
    explicit ByteSource(std::vector<char> bytes) noexcept
        : size_(bytes.size()), buffer_(std::move(bytes)), end_(buffer_.size()) {}

    // The offset of the next byte.
    [[nodiscard]] std::uint64_t offset() const noexcept { return before_ + next_; }
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

    // These throw FormatError at the end of the file, and std::system_error if it cannot be read.
    std::uint8_t byte() {
        if (next_ == end_) fill(1);
        return static_cast<std::uint8_t>(buffer_[next_++]);
    }
    // A little-endian unsigned integer of 1 to 8 bytes.
    std::uint64_t little_endian(unsigned width);
    // Valid until the next call.
    std::string_view bytes(std::uint64_t count);

  private:
    struct Close {
        void operator()(std::FILE* file) const noexcept { std::fclose(file); }
    };

    // Ensures that `count` bytes from next_ on are in the buffer.
    void fill(std::uint64_t count);

    std::unique_ptr<std::FILE, Close> file_;
    ByteProgress progress_;
    std::uint64_t size_ = 0;
    std::uint64_t before_ = 0;  // bytes before the buffer's
    std::vector<char> buffer_;
    std::size_t next_ = 0;
    std::size_t end_ = 0;
};

}  // namespace gpuviz::formats
