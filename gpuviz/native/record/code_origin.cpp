#include "record/code_origin.hpp"

#include <algorithm>
#include <array>

namespace gpuviz::record {

namespace {

constexpr bool is_separator(char letter) noexcept { return letter == '/' || letter == '\\'; }
constexpr bool is_digit(char letter) noexcept { return letter >= '0' && letter <= '9'; }

// Code that somebody typed has one of these between the brackets that stand for its file.
constexpr auto typed = std::to_array<std::string_view>(
    {"input", "stdin", "console", "timed", "timeit", "doctest", "pyshell"});

// Calls `matches` with each part of a path that folders follow, and the path from it on.
template <typename Matches>
bool any_folder(std::string_view path, Matches&& matches) {
    for (std::size_t start = 0; start < path.size();) {
        const std::size_t end = path.find_first_of("/\\", start);
        if (end == std::string_view::npos) return false;
        if (start > 0 && matches(path.substr(start, end - start), path.substr(end + 1))) {
            return true;
        }
        start = end + 1;
    }
    return false;
}

bool begins_with_folder(std::string_view path, std::string_view folder) {
    return path.size() > folder.size() && path.starts_with(folder) &&
           is_separator(path[folder.size()]);
}

// `python3.11`, in a folder `lib` or `lib64`.
bool is_library_of_python(std::string_view rest) {
    const auto digits = [&](std::size_t from) {
        while (from < rest.size() && is_digit(rest[from])) ++from;
        return from;
    };
    constexpr std::string_view python = "python";
    if (!rest.starts_with(python)) return false;
    const std::size_t major = digits(python.size());
    if (major == python.size() || major >= rest.size() || rest[major] != '.') return false;
    const std::size_t minor = digits(major + 1);
    return minor > major + 1 && minor < rest.size() && is_separator(rest[minor]);
}

// The demo's programs count as the user's, although they are part of the package.
bool is_of_demo(std::string_view path) {
    return any_folder(path, [](std::string_view folder, std::string_view rest) {
        if (folder != "gpuviz" || !begins_with_folder(rest, "commands")) return false;
        return begins_with_folder(rest.substr(std::string_view("commands/").size()), "workloads");
    });
}

// Caches have code that libraries fetch or write; Bazel runs the program's own from one.
bool is_of_package(std::string_view path) {
    return any_folder(path, [](std::string_view folder, std::string_view rest) {
        if (folder == "site-packages" || folder == "dist-packages") return true;
        if (folder == ".cache") return !begins_with_folder(rest, "bazel");
        if (folder.starts_with("torchinductor_")) return true;
        return (folder == "lib" || folder == "lib64") && is_library_of_python(rest);
    });
}

bool names_typed_code(std::string_view filename) {
    const auto contains = [&](std::string_view word) {
        return filename.find(word) != std::string_view::npos;
    };
    if (std::ranges::any_of(typed, contains)) return true;
    constexpr std::string_view command = "command-";  // a number follows: a cell of Databricks
    for (auto at = filename.find(command); at != std::string_view::npos;
         at = filename.find(command, at + 1)) {
        const std::size_t next = at + command.size();
        if (next < filename.size() && is_digit(filename[next])) return true;
    }
    return false;
}

}  // namespace

CodeOrigin code_origin(std::string_view filename) {
    if (filename.empty() || filename.starts_with("<frozen")) return CodeOrigin::installed;
    if (is_of_package(filename) && !is_of_demo(filename)) return CodeOrigin::installed;
    // Code that has no file and that nobody typed, such as `<string>` of `exec` and of dataclasses.
    const bool has_no_file =
        filename.front() == '<' && filename.find('>') != std::string_view::npos;
    return has_no_file && !names_typed_code(filename) ? CodeOrigin::generated : CodeOrigin::own;
}

}  // namespace gpuviz::record
