#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <system_error>
#include <variant>

#include "bindings/bindings.hpp"
#include "bindings/columns.hpp"
#include "formats/format_error.hpp"
#include "formats/torch_recording.hpp"
#include "python/gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

namespace {

using Tables = nb::typed<nb::dict, nb::str, Columns>;
using Clock = std::chrono::steady_clock;

constexpr auto between_reports = std::chrono::milliseconds(50);

// Reports at most 20 times a second, and lets an interrupt through.
formats::ByteProgress reporting(const nb::object& progress) {
    return [&progress, last = Clock::now() - between_reports](std::uint64_t done,
                                                              std::uint64_t total) mutable {
        if (Clock::now() - last < between_reports) return;
        last = Clock::now();
        const python::GilAcquire locked;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!progress.is_none()) progress(done, total);
    };
}

// Each kind of column as arrays; texts are offsets and bytes.
struct ToPython {
    template <typename Value>
    nb::object operator()(std::vector<Value> values) const {
        return to_numpy(std::move(values));
    }
    nb::object operator()(formats::Texts texts) const {
        return nb::make_tuple(to_numpy(std::move(texts.first)),
                              nb::bytes(texts.bytes.data(), texts.bytes.size()));
    }
    template <typename Code>
    nb::object operator()(formats::Coded<Code> coded) const {
        return nb::make_tuple(to_numpy(std::move(coded.codes)), (*this)(std::move(coded.words)));
    }
    nb::object operator()(formats::Lists lists) const {
        return nb::make_tuple(to_numpy(std::move(lists.first)), to_numpy(std::move(lists.items)));
    }
};

nb::typed<nb::tuple, nb::str, Tables> to_python(formats::TorchRecording recording) {
    Tables tables;
    for (formats::Table& table : recording.tables) {
        Columns columns;
        for (formats::Column& column : table.columns) {
            columns[nb::str(column.name.data(), column.name.size())] =
                std::visit(ToPython(), std::move(column.values));
        }
        tables[nb::str(table.name.data(), table.name.size())] = columns;
    }
    return nb::make_tuple(recording.manifest, tables);
}

nb::typed<nb::tuple, nb::str, Tables> read_snapshot(const std::string& path,
                                                    std::uint64_t memory_limit,
                                                    const nb::object& progress) {
    try {
        formats::TorchRecording recording;
        {
            const python::GilRelease unlocked;
            recording = formats::torch_recording(formats::read_torch_snapshot(
                formats::ByteSource(path, reporting(progress)), memory_limit));
        }
        return to_python(std::move(recording));
    } catch (const formats::FormatError& error) {
        const nb::tuple parts = nb::make_tuple(error.place(), std::string(error.what()));
        PyErr_SetObject(PyExc_ValueError, parts.ptr());
        throw nb::python_error();
    } catch (const std::system_error& error) {
        errno = error.code().value();
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
        throw nb::python_error();
    }
}

}  // namespace

void bind_torch_snapshot(nb::module_& m) {
    m.def("read_torch_snapshot", &read_snapshot, "path"_a, "memory_limit"_a,
          "progress"_a.none() = nb::none(),
          "Return the manifest, as JSON, and the tables of a file of "
          "torch.cuda.memory._snapshot(). Texts are offsets and bytes, dictionaries codes and "
          "texts, lists offsets and items. Nothing in the file is executed. `progress` gets bytes "
          "done and in all. Raises ValueError(place, problem).");
    m.def(
        "kept_manifest_texts",
        [] {
            nb::typed<nb::list, nb::str> names;
            for (const auto name : formats::kept_texts) {
                names.append(nb::str(name.data(), name.size()));
            }
            return names;
        },
        "Return which texts of a manifest a snapshot's key `gpuviz` keeps.");
}

}  // namespace gpuviz::bindings
