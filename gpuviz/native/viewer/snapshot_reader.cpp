// The reader of torch's snapshots for the page of `gpuviz viewer`, which calls it as WebAssembly
// (extension/src/wire/snapshot_reader.ts). Compiled by cmake/snapshot_reader.py, not into the core.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

#include "formats/format_error.hpp"
#include "formats/json_text.hpp"
#include "formats/torch_recording.hpp"
#include "viewer/derived_tables.hpp"

namespace gpuviz::viewer {

namespace {

// Of the values of a pickle, in bytes; the page limits the memory for all.
constexpr std::uint64_t most_values = std::uint64_t{2} << 30;

// The file and then the result, for the page; there is one of each per instance of the module.
std::vector<char> file;
formats::TorchRecording recording;
std::string description;

template <typename Value>
std::string_view type_name() {
    const bool is_signed = std::is_signed_v<Value>;
    switch (sizeof(Value)) {
        case 1:
            return is_signed ? "int8" : "uint8";
        case 2:
            return is_signed ? "int16" : "uint16";
        case 4:
            return is_signed ? "int32" : "uint32";
        default:
            return is_signed ? "int64" : "uint64";
    }
}

// The type of some numbers, where they are in memory, and how many there are.
template <typename Values>
std::string array(std::string_view type, const Values& values) {
    formats::JsonList parts;
    parts.add(formats::json_text(type));
    parts.add(std::to_string(reinterpret_cast<std::uintptr_t>(values.data())));
    parts.add(std::to_string(values.size()));
    return std::move(parts).text();
}

// Where the values of a column are in memory.
struct Described {
    template <typename Value>
    std::string operator()(const std::vector<Value>& values) const {
        formats::JsonObject part;
        part.add("values", array(type_name<Value>(), values));
        return std::move(part).text();
    }
    std::string operator()(const formats::Texts& texts) const {
        formats::JsonObject part;
        part.add("starts", array("int32", texts.first));
        part.add("values", array("uint8", texts.bytes));
        return std::move(part).text();
    }
    template <typename Code>
    std::string operator()(const formats::Coded<Code>& coded) const {
        formats::JsonObject part;
        part.add("values", array(type_name<Code>(), coded.codes));
        part.add("words", (*this)(coded.words));
        return std::move(part).text();
    }
    std::string operator()(const formats::Lists& lists) const {
        formats::JsonObject part;
        part.add("starts", array("int32", lists.first));
        part.add("items", array("uint32", lists.items));
        return std::move(part).text();
    }
};

std::string described(const formats::Table& table) {
    formats::JsonObject columns;
    for (const formats::Column& column : table.columns) {
        columns.add(column.name, std::visit(Described(), column.values));
    }
    formats::JsonObject part;
    part.add("rows", std::to_string(table.rows));
    part.add("columns", std::move(columns).text());
    return std::move(part).text();
}

std::string described(const formats::TorchRecording& whole) {
    formats::JsonObject tables;
    for (const formats::Table& table : whole.tables) tables.add(table.name, described(table));
    formats::JsonObject part;
    part.add("manifest", whole.manifest);
    part.add("tables", std::move(tables).text());
    return std::move(part).text();
}

}  // namespace

}  // namespace gpuviz::viewer

using namespace gpuviz;

extern "C" {

// Ends the call: the page throws an error with the part of the file and the problem.
[[noreturn]] __attribute__((import_module("page"), import_name("fail"))) void page_fail(
    const char* place, std::size_t place_size, const char* problem, std::size_t problem_size);

// Nothing here is unwound: an instance that failed is not called again. The core throws and these
// functions, which the C++ library has otherwise, give the exception to the page.
void* __cxa_allocate_exception(std::size_t size) noexcept { return std::malloc(size); }
void __cxa_free_exception(void* exception) noexcept { std::free(exception); }
[[noreturn]] void __cxa_throw(void* thrown, std::type_info* type, void (*)(void*)) {
    std::string place;
    std::string problem = type->name();
    if (*type == typeid(formats::FormatError)) {
        const auto& error = *static_cast<formats::FormatError*>(thrown);
        place = error.place();
        problem = error.what();
    }
    page_fail(place.data(), place.size(), problem.data(), problem.size());
}
}

// Without this, memory that the page does not give ends the call without a reason.
void* operator new(std::size_t size) {
    if (void* place = std::malloc(size)) return place;
    constexpr std::string_view problem = "it needs more memory than the 4 GiB that this page has";
    page_fail("", 0, problem.data(), problem.size());
}
void operator delete(void* place) noexcept { std::free(place); }
void operator delete(void* place, std::size_t) noexcept { std::free(place); }

extern "C" {

// Where the page puts the file.
__attribute__((export_name("reserve"))) char* gpuviz_reserve(std::size_t size) {
    viewer::file.resize(size);
    return viewer::file.data();
}

// Reads the file; `description()` says in JSON where the tables are.
__attribute__((export_name("read"))) std::size_t gpuviz_read() {
    viewer::recording = formats::torch_recording(formats::read_torch_snapshot(
        formats::ByteSource(std::move(viewer::file)), viewer::most_values));
    viewer::append_derived_tables(viewer::recording.tables);
    viewer::description = viewer::described(viewer::recording);
    return viewer::description.size();
}

__attribute__((export_name("description"))) const char* gpuviz_description() {
    return viewer::description.data();
}
}
