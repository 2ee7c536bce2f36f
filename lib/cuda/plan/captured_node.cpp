#include "cuda/plan/captured_node.hpp"

#include "cuda/backend.hpp"

namespace coaccel::cuda {

result<CUgraphNode> last_captured_node(backend& b, CUstream s)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUgraphNode* nodes = nullptr;
    const CUgraphEdgeData* edges = nullptr;
    std::size_t count = 0;
    // What the next command would wait for. The driver refuses to leave out the edge data where a library has set some.
    if (auto ec = b.check(b.api().capture_info(s, &status, nullptr, nullptr, &nodes, &edges, &count)))
        return ec;
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || count != 1)
        return make_error_with_message(errc::backend_error, "plan.load: the node of a command was not found in the "
                                                            "capture of its stream");
    return nodes[0];
}

} // namespace coaccel::cuda
