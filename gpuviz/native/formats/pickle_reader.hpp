#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/byte_source.hpp"
#include "formats/pickle_texts.hpp"
#include "formats/pickle_value.hpp"

namespace gpuviz::formats {

// Reads a pickle of plain values: None, booleans, numbers, texts, bytes, lists, tuples, dicts and
// sets, in protocols 2 to 5. Opcodes that import, call or build anything are rejected, so nothing
// in the file can be executed. The reader is not recursive, so nesting cannot exhaust the stack.
class PickleReader {
  public:
    PickleReader(ByteSource& source, PickleArena& arena, PickleTexts& texts);
    PickleReader(const PickleReader&) = delete;
    PickleReader& operator=(const PickleReader&) = delete;

    // The value of the whole pickle. Throws FormatError that names the invalid byte.
    PickleValue read();

  private:
    // False after the last opcode.
    bool step(std::uint8_t opcode);
    bool step_scalar(std::uint8_t opcode);
    bool step_text(std::uint8_t opcode);
    bool step_container(std::uint8_t opcode);
    bool step_memo(std::uint8_t opcode);

    void start();
    void check_frame();
    void push(PickleValue value);
    PickleValue pop();
    PickleValue& top();
    std::size_t pop_mark();
    void push_integer(std::int64_t value);
    void push_long(std::uint64_t width);
    void push_text(std::uint64_t size);
    void push_other(std::uint64_t size);
    void push_items(PickleValue::Kind kind, std::size_t first);
    void extend(PickleValue::Kind kind, std::size_t first);
    void append(PickleItems& items, std::size_t first);
    void remember(std::uint64_t number);
    void recall(std::uint64_t number);
    [[noreturn]] void fail(const std::string& problem) const;

    ByteSource* source_;
    PickleArena* arena_;
    PickleTexts* texts_;
    std::uint64_t opcode_offset_ = 0;
    std::vector<PickleValue> stack_;
    std::vector<std::size_t> marks_;  // heights of the stack
    std::vector<PickleValue> memo_;
    std::vector<std::uint8_t> known_;  // of memo_
};

}  // namespace gpuviz::formats
