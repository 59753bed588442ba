#include "formats/byte_source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "formats/format_error.hpp"

namespace gpuviz::formats {

namespace {

constexpr std::size_t piece = std::size_t{1} << 20;

[[noreturn]] void throw_errno(const std::string& path) {
    throw std::system_error(errno, std::generic_category(), path);
}

}  // namespace

ByteSource::ByteSource(const std::string& path, ByteProgress progress)
    : file_(std::fopen(path.c_str(), "rb")), progress_(std::move(progress)), buffer_(piece) {
    if (!file_ || std::fseek(file_.get(), 0, SEEK_END) != 0) throw_errno(path);
    const long end = std::ftell(file_.get());
    if (end < 0 || std::fseek(file_.get(), 0, SEEK_SET) != 0) throw_errno(path);
    size_ = static_cast<std::uint64_t>(end);
}

std::uint64_t ByteSource::little_endian(unsigned width) {
    if (end_ - next_ < width) fill(width);
    std::uint64_t value = 0;
    std::memcpy(&value, buffer_.data() + next_, width);
    next_ += width;
    return value;
}

std::string_view ByteSource::bytes(std::uint64_t count) {
    if (end_ - next_ < count) fill(count);
    const std::string_view view(buffer_.data() + next_, static_cast<std::size_t>(count));
    next_ += view.size();
    return view;
}

void ByteSource::fill(std::uint64_t count) {
    const std::uint64_t left = size_ - std::min(size_, offset());
    if (count > left) {
        throw FormatError("byte " + std::to_string(offset()),
                          "truncated (" + std::to_string(count) + " bytes must follow, there are " +
                              std::to_string(left) + ")");
    }
    const std::size_t kept = end_ - next_;
    std::memmove(buffer_.data(), buffer_.data() + next_, kept);
    before_ += next_;
    next_ = 0;
    end_ = kept;
    if (buffer_.size() < count) buffer_.resize(static_cast<std::size_t>(count));
    while (end_ < count) {
        const std::size_t got =
            std::fread(buffer_.data() + end_, 1, buffer_.size() - end_, file_.get());
        if (got == 0) {
            if (std::ferror(file_.get()) != 0) throw_errno("");
            throw FormatError("byte " + std::to_string(before_ + end_),
                              "truncated (the file became shorter while it was read)");
        }
        end_ += got;
    }
    if (progress_) progress_(before_, size_);
}

}  // namespace gpuviz::formats
