#include "device/cuda_captures.hpp"

#include <dlfcn.h>

#include <optional>

#include "device/cuda_parameters.hpp"

namespace gpuviz::device {

namespace {

// The driver's functions about graphs. A driver without one of them tells nothing.
class GraphReader {
  public:
    GraphReader();

    [[nodiscard]] CapturedAddresses read(CUstream stream) const;

  private:
    [[nodiscard]] bool read_nodes(CUgraph graph, std::vector<Address>& found) const;
    [[nodiscard]] bool read_node(CUgraphNode node, std::vector<Address>& found) const;
    [[nodiscard]] bool read_kernel(CUgraphNode node, std::vector<Address>& found) const;
    [[nodiscard]] bool read_copy(CUgraphNode node, std::vector<Address>& found) const;

    CudaParameters parameters_;
    bool has_all_ = true;
    CUresult (*capture_info_)(CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*,
                              const CUgraphNode**, std::size_t*) = nullptr;
    CUresult (*nodes_)(CUgraph, CUgraphNode*, std::size_t*) = nullptr;
    CUresult (*type_)(CUgraphNode, CUgraphNodeType*) = nullptr;
    CUresult (*kernel_)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*) = nullptr;
    CUresult (*copy_)(CUgraphNode, CUDA_MEMCPY3D*) = nullptr;
    CUresult (*fill_)(CUgraphNode, CUDA_MEMSET_NODE_PARAMS*) = nullptr;
    CUresult (*child_)(CUgraphNode, CUgraph*) = nullptr;
};

GraphReader::GraphReader() {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    const auto load = [&](auto& function, const char* name) {
        if (driver != nullptr) {
            function =
                reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(driver, name));
        }
        has_all_ = has_all_ && function != nullptr;
    };
    load(capture_info_, "cuStreamGetCaptureInfo_v2");
    load(nodes_, "cuGraphGetNodes");
    load(type_, "cuGraphNodeGetType");
    load(kernel_, "cuGraphKernelNodeGetParams_v2");
    load(copy_, "cuGraphMemcpyNodeGetParams");
    load(fill_, "cuGraphMemsetNodeGetParams");
    load(child_, "cuGraphChildGraphNodeGetGraph");
}

CapturedAddresses GraphReader::read(CUstream stream) const {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    CUgraph graph = nullptr;
    CapturedAddresses found{{}, false};
    if (has_all_ && capture_info_(stream, &status, &id, &graph, nullptr, nullptr) == CUDA_SUCCESS &&
        status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        found.are_all = read_nodes(graph, found.addresses);
    }
    return found;
}

bool GraphReader::read_nodes(CUgraph graph, std::vector<Address>& found) const {
    std::size_t count = 0;
    if (nodes_(graph, nullptr, &count) != CUDA_SUCCESS) {
        return false;
    }
    std::vector<CUgraphNode> nodes(count);
    if (count != 0 && nodes_(graph, nodes.data(), &count) != CUDA_SUCCESS) {
        return false;
    }
    bool are_all = true;
    for (const CUgraphNode node : nodes) {
        are_all = read_node(node, found) && are_all;
    }
    return are_all;
}

bool GraphReader::read_node(CUgraphNode node, std::vector<Address>& found) const {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (type_(node, &type) != CUDA_SUCCESS) {
        return false;
    }
    switch (type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return read_kernel(node, found);
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return read_copy(node, found);
        case CU_GRAPH_NODE_TYPE_MEMSET: {
            CUDA_MEMSET_NODE_PARAMS fill{};
            const bool is_known = fill_(node, &fill) == CUDA_SUCCESS;
            found.push_back(fill.dst);
            return is_known;
        }
        case CU_GRAPH_NODE_TYPE_GRAPH: {
            CUgraph child = nullptr;
            return child_(node, &child) == CUDA_SUCCESS && read_nodes(child, found);
        }
        case CU_GRAPH_NODE_TYPE_EMPTY:
        case CU_GRAPH_NODE_TYPE_HOST:
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            return true;
        default:  // such as conditions
            return false;
    }
}

bool GraphReader::read_kernel(CUgraphNode node, std::vector<Address>& found) const {
    CUDA_KERNEL_NODE_PARAMS launch{};
    if (kernel_(node, &launch) != CUDA_SUCCESS) {
        return false;
    }
    void* const kernel = launch.func != nullptr ? static_cast<void*>(launch.func) : launch.kern;
    const std::optional<ParameterPlaces> places = parameters_.of(kernel);
    const ParameterValues values(launch.kernelParams, launch.extra);
    if (!places || (!values.exist() && !places->empty())) {
        return false;
    }
    for (std::size_t index = 0; index < places->size(); ++index) {
        const ParameterPlace& place = (*places)[index];
        for_each_word(place, values.at(index, place),
                      [&](std::uint64_t word) { found.push_back(word); });
    }
    return true;
}

bool GraphReader::read_copy(CUgraphNode node, std::vector<Address>& found) const {
    CUDA_MEMCPY3D copy{};
    if (copy_(node, &copy) != CUDA_SUCCESS) {
        return false;
    }
    const auto is_address = [](CUmemorytype type) {
        return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED;
    };
    if (is_address(copy.srcMemoryType)) {
        found.push_back(copy.srcDevice);
    }
    if (is_address(copy.dstMemoryType)) {
        found.push_back(copy.dstDevice);
    }
    return true;
}

}  // namespace

CapturedAddresses captured_addresses(CUstream stream) { return GraphReader().read(stream); }

}  // namespace gpuviz::device
