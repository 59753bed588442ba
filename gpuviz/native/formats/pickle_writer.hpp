#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace gpuviz::formats {

using ByteSink = std::function<void(std::string_view)>;

// Writes a pickle of protocol 4 with opcodes that every reader of memory snapshots supports.
class PickleWriter {
  public:
    // Number of values that extend a list or a dict at once; torch's viewer supports no more.
    static constexpr std::uint32_t batch = 1000;

    explicit PickleWriter(ByteSink sink) : sink_(std::move(sink)) {
        buffer_.reserve(full + 4096);
        opcode(0x80);
        opcode(4);
    }
    PickleWriter(const PickleWriter&) = delete;
    PickleWriter& operator=(const PickleWriter&) = delete;

    void finish() {
        opcode('.');
        flush();
    }
    void begin_dict() {
        opcode('}');
        opcode('(');
    }
    void end_dict() { opcode('u'); }
    void empty_list() { opcode(']'); }
    void mark() { opcode('('); }
    void end_batch() {
        opcode('e');
        if (buffer_.size() >= full) flush();
    }
    void tuple2() { opcode(0x86); }
    void boolean(bool value) { opcode(value ? 0x88 : 0x89); }
    void integer(std::int64_t value);
    void unsigned_integer(std::uint64_t value);
    void text(std::string_view value);
    // Adds values that another pickler wrote without memo.
    void raw(std::string_view values) { buffer_ += values; }

    // Memoizes the top of the stack; returns its number for recall().
    std::uint32_t remember() {
        opcode(0x94);
        return remembered_++;
    }
    void recall(std::uint32_t number);

  private:
    static constexpr std::size_t full = std::size_t{1} << 20;

    void opcode(int code) { buffer_ += static_cast<char>(code); }
    void little_endian(std::uint64_t value, int width);
    void flush() {
        sink_(buffer_);
        buffer_.clear();
    }

    ByteSink sink_;
    std::string buffer_;
    std::uint32_t remembered_ = 0;
};

}  // namespace gpuviz::formats
