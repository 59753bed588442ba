#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "simulation/simulated_gpu.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using simulation::GpuKernel;

namespace {

using Dimensions = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
using Accesses = std::vector<std::pair<std::uint64_t, int>>;

std::vector<simulation::GpuAccess> to_native(const Accesses& accesses) {
    std::vector<simulation::GpuAccess> native;
    for (const auto& [address, mode] : accesses) {
        native.push_back({address, record::AccessMode(mode)});
    }
    return native;
}

void make_kernel(GpuKernel* place, std::string name, std::int64_t duration_ns,
                 std::uint32_t multiprocessors, const Dimensions& grid, const Dimensions& block,
                 std::uint32_t registers, std::uint32_t static_shared_memory,
                 std::uint32_t dynamic_shared_memory, const Accesses& accesses,
                 std::uint64_t arguments) {
    const auto [grid_x, grid_y, grid_z] = grid;
    const auto [block_x, block_y, block_z] = block;
    new (place) GpuKernel{.name = std::move(name),
                          .duration_ns = duration_ns,
                          .multiprocessors = multiprocessors,
                          .configuration = {.id = 0,
                                            .grid_x = grid_x,
                                            .grid_y = grid_y,
                                            .grid_z = grid_z,
                                            .block_x = block_x,
                                            .block_y = block_y,
                                            .block_z = block_z,
                                            .registers = registers,
                                            .static_shared_memory = static_shared_memory,
                                            .dynamic_shared_memory = dynamic_shared_memory},
                          .accesses = to_native(accesses),
                          .arguments = arguments};
}

}  // namespace

void bind_gpu_kernel(nb::module_& m) {
    nb::class_<GpuKernel>(m, "GpuKernel", "A kernel for a SimulatedGpu.")
        .def("__init__", &make_kernel, nb::kw_only(), "name"_a, "duration_ns"_a,
             "multiprocessors"_a = simulation::GpuSchedule::multiprocessors,
             "grid"_a = Dimensions{1, 1, 1}, "block"_a = Dimensions{1, 1, 1}, "registers"_a = 0,
             "static_shared_memory"_a = 0, "dynamic_shared_memory"_a = 0, "accesses"_a = Accesses{},
             "arguments"_a = 0,
             "`accesses` are pairs of an address and a mode, a number of DICTIONARIES; `arguments` "
             "is "
             "equal for equal other arguments, 0 if they are unknown.");
}

}  // namespace gpuviz::bindings
