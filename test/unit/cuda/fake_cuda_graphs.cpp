#include "support/fake_cublas.hpp"
#include "unit/cuda/captured_graph.hpp"

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace test_cuda_fake_cuda_graphs {

namespace {

using namespace test;
using session = test::fake_session;

} // namespace

TEST_SUITE_BEGIN("fake_cuda");

TEST_CASE("a capture records commands, and each launch of its graph runs them as one work item")
{
    fake_cuda fake(test::stepped_cuda());
    fake.add_kernel("add",
                    [](const fake_cuda::launch&, void** a) { **static_cast<int**>(a[0]) += *static_cast<int*>(a[1]); },
                    {sizeof(int*), sizeof(int)});
    session s(fake);
    CUmodule m = nullptr;
    CUfunction add = nullptr;
    REQUIRE(s.api.cuModuleLoadData(&m, "image") == CUDA_SUCCESS);
    REQUIRE(s.api.cuModuleGetFunction(&add, m, "add") == CUDA_SUCCESS);
    std::array<int, 4> host{1, 2, 3, 4};
    REQUIRE(s.api.cuMemHostRegister(host.data(), sizeof host, 0) == CUDA_SUCCESS);
    const auto p = s.allocate(16, s.first);
    const auto q = s.allocate(16, s.first);
    CHECK(fake.run_all() == 2);

    CHECK(s.api.cuStreamBeginCapture(s.first, global) == CUDA_SUCCESS);
    CHECK(status(s, s.first) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK(s.api.cuMemcpyHtoDAsync(p, host.data(), 16, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuMemsetD32Async(q, 7, 4, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuMemcpyDtoDAsync(q + 4, p, 4, s.first) == CUDA_SUCCESS);
    auto* target = reinterpret_cast<int*>(q);
    int by = 10;
    void* arguments[] = {&target, &by};
    CHECK(s.api.cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, s.first, arguments, nullptr) == CUDA_SUCCESS);
    CHECK(s.api.cuMemcpyDtoHAsync(host.data(), q, 4, s.first) == CUDA_SUCCESS);
    // The graph keeps the values of the arguments.
    by = 1000;
    target = nullptr;
    CUgraph graph = graph_of(s, s.first);
    CHECK(status(s, s.first) == CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK(fake.graphs() == 1);
    CHECK(fake.pending(s.first) == 0);
    std::size_t nodes = 0;
    CHECK(s.api.cuGraphGetNodes(graph, nullptr, &nodes) == CUDA_SUCCESS);
    CHECK(nodes == 5);

    CUgraphExec x = nullptr;
    CHECK(s.api.cuGraphInstantiateWithFlags(&x, graph, 0) == CUDA_SUCCESS);
    CHECK(s.api.cuGraphDestroy(graph) == CUDA_SUCCESS);
    CHECK(fake.graphs() == 0);
    CHECK(fake.executable_graphs() == 1);
    CHECK(ints(q)[0] == -1);

    CHECK(s.api.cuGraphUpload(x, s.second) == CUDA_SUCCESS);
    CHECK(fake.run_all() == 1);
    CHECK(s.api.cuGraphLaunch(x, s.second) == CUDA_SUCCESS);
    CHECK(fake.pending(s.second) == 1);
    CHECK(fake.graph_launches() == 0);
    CHECK(fake.step(s.second));
    CHECK(fake.graph_launches() == 1);
    CHECK(host[0] == 17);
    CHECK(ints(q)[1] == 1);
    CHECK(ints(q)[2] == 7);
    // It reads its memory anew, and is not changed by having run.
    host[0] = 5;
    CHECK(s.api.cuGraphLaunch(x, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuGraphExecDestroy(x) == CUDA_SUCCESS);
    CHECK(fake.executable_graphs() == 0);
    CHECK(s.api.cuStreamSynchronize(s.first) == CUDA_SUCCESS);
    CHECK(host[0] == 17);
    CHECK(ints(q)[1] == 5);
    CHECK(fake.graph_launches() == 2);
    CHECK(fake.calls("cuGraphLaunch") == 2);

    CHECK(s.api.cuMemFreeAsync(p, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuMemFreeAsync(q, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuMemHostUnregister(host.data()) == CUDA_SUCCESS);
    CHECK(s.api.cuModuleUnload(m) == CUDA_SUCCESS);
}

TEST_CASE("the work of a vendor library is captured too")
{
    fake_cuda fake;
    test::fake_cublas blas(fake);
    session s(fake);
    cublasHandle_t h = nullptr;
    REQUIRE(blas.api().cublasCreate(&h) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(blas.api().cublasSetStream(h, s.first) == CUBLAS_STATUS_SUCCESS);
    const auto p = s.allocate(4, s.first);
    auto* x = reinterpret_cast<float*>(p);
    const float one = 1;
    const float two = 2;
    unsigned bits = 0;
    std::memcpy(&bits, &one, sizeof bits);
    CHECK(s.api.cuMemsetD32Async(p, bits, 1, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuStreamBeginCapture(s.first, relaxed) == CUDA_SUCCESS);
    CHECK(blas.api().cublasSscal_64(h, 1, &two, x, 1) == CUBLAS_STATUS_SUCCESS);
    CHECK(blas.api().cublasSscal_64(h, 1, &two, x, 1) == CUBLAS_STATUS_SUCCESS);
    CUgraphExec doubled = executable_of(s, s.first);
    CHECK(s.api.cuStreamSynchronize(s.first) == CUDA_SUCCESS);
    CHECK(*x == 1);
    CHECK(s.api.cuGraphLaunch(doubled, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuStreamSynchronize(s.first) == CUDA_SUCCESS);
    CHECK(*x == 4);

    CHECK(s.api.cuStreamBeginCapture(s.first, relaxed) == CUDA_SUCCESS);
    fake.invalidate_capture(s.first);
    CHECK(blas.api().cublasSscal_64(h, 1, &two, x, 1) == CUBLAS_STATUS_EXECUTION_FAILED);
    CHECK(end_error(s, s.first) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(s.api.cuGraphExecDestroy(doubled) == CUDA_SUCCESS);
    CHECK(s.api.cuMemFreeAsync(p, s.first) == CUDA_SUCCESS);
    CHECK(blas.api().cublasDestroy(h) == CUBLAS_STATUS_SUCCESS);
}

TEST_CASE("a graph checks its memory each time it runs")
{
    fake_cuda fake;
    session s(fake);
    const auto p = s.allocate(16, s.first);
    CHECK(s.api.cuStreamBeginCapture(s.first, global) == CUDA_SUCCESS);
    CHECK(s.api.cuMemsetD32Async(p, 1, 4, s.first) == CUDA_SUCCESS);
    CUgraphExec x = executable_of(s, s.first);
    CHECK(s.api.cuGraphLaunch(x, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuMemFreeAsync(p, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuStreamSynchronize(s.first) == CUDA_SUCCESS);
    CHECK(fake.violations().empty());
    CHECK(s.api.cuGraphLaunch(x, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuStreamSynchronize(s.first) == CUDA_SUCCESS);
    const auto found = fake.violations();
    REQUIRE(found.size() == 1);
    CHECK(found.front().find("was freed") != std::string::npos);
    CHECK(s.api.cuGraphExecDestroy(x) == CUDA_SUCCESS);
}

TEST_CASE("launches of one executable graph run in the order of the calls, on whichever streams")
{
    fake_cuda fake(test::stepped_cuda());
    session s(fake);
    CHECK(s.api.cuStreamBeginCapture(s.first, global) == CUDA_SUCCESS);
    CUgraphExec x = executable_of(s, s.first);
    CHECK(s.api.cuGraphLaunch(x, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuGraphLaunch(x, s.second) == CUDA_SUCCESS);
    CHECK_FALSE(fake.step(s.second));
    CHECK(fake.step(s.first));
    CHECK(fake.step(s.second));
    CHECK(fake.graph_launches() == 2);
    CHECK(s.api.cuGraphExecDestroy(x) == CUDA_SUCCESS);
}

TEST_CASE("a fault in a graph stops its remaining commands")
{
    fake_cuda fake;
    session s(fake);
    bool later = false;
    CHECK(s.api.cuStreamBeginCapture(s.first, global) == CUDA_SUCCESS);
    CHECK(fake.enqueue(s.first, [&] { fake.kill(CUDA_ERROR_ILLEGAL_ADDRESS); }) == CUDA_SUCCESS);
    CHECK(fake.enqueue(s.first, [&] { later = true; }) == CUDA_SUCCESS);
    CUgraphExec x = executable_of(s, s.first);
    CHECK(s.api.cuGraphLaunch(x, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuStreamSynchronize(s.first) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_FALSE(later);
    CHECK(fake.graph_launches() == 0);
    CHECK(fake.verdict() == "");
}

TEST_CASE("captures and graphs fail where a test plans it")
{
    fake_cuda fake;
    session s(fake);
    const auto p = s.allocate(4, s.first);

    fake.fail("cuStreamBeginCapture", CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(s.api.cuStreamBeginCapture(s.first, global) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(status(s, s.first) == CU_STREAM_CAPTURE_STATUS_NONE);

    fake.fail("cuMemsetD32Async", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 2);
    CHECK(s.api.cuStreamBeginCapture(s.first, global) == CUDA_SUCCESS);
    CHECK(s.api.cuMemsetD32Async(p, 1, 1, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuMemsetD32Async(p, 2, 1, s.first) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(s.api.cuMemsetD32Async(p, 3, 1, s.first) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(end_error(s, s.first) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

    fake.fail("cuStreamEndCapture", CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(s.api.cuStreamBeginCapture(s.first, global) == CUDA_SUCCESS);
    CHECK(end_error(s, s.first) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(status(s, s.first) == CU_STREAM_CAPTURE_STATUS_NONE);

    CHECK(s.api.cuStreamBeginCapture(s.first, global) == CUDA_SUCCESS);
    fake.invalidate_capture(s.first);
    CHECK(s.api.cuMemsetD32Async(p, 1, 1, s.first) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(end_error(s, s.first) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

    CHECK(s.api.cuStreamBeginCapture(s.first, global) == CUDA_SUCCESS);
    CUgraph graph = graph_of(s, s.first);
    CUgraphExec x = nullptr;
    fake.fail("cuGraphInstantiateWithFlags", CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(s.api.cuGraphInstantiateWithFlags(&x, graph, 0) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(fake.executable_graphs() == 0);
    CHECK(fake.leaks() ==
          std::vector<std::string>{"1 retained contexts", "2 streams", "1 pools", "1 blocks of memory", "1 graphs"});
    CHECK(s.api.cuGraphInstantiateWithFlags(&x, graph, 0) == CUDA_SUCCESS);
    fake.fail("cuGraphLaunch", CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(s.api.cuGraphLaunch(x, s.first) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(fake.graph_launches() == 0);
    CHECK(s.api.cuGraphExecDestroy(x) == CUDA_SUCCESS);
    CHECK(s.api.cuGraphDestroy(graph) == CUDA_SUCCESS);
    CHECK(s.api.cuMemFreeAsync(p, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuStreamSynchronize(s.first) == CUDA_SUCCESS);
    CHECK(fake.violations().empty());
    CHECK(s.api.cuGraphDestroy(graph) == CUDA_ERROR_INVALID_VALUE);
    CHECK(s.api.cuGraphLaunch(x, s.first) == CUDA_ERROR_INVALID_VALUE);
    CHECK(s.api.cuStreamBeginCapture(s.first, global) == CUDA_SUCCESS);
    CUdeviceptr q = 0;
    CHECK(s.api.cuMemAllocFromPoolAsync(&q, 4, s.pool, s.first) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(end_error(s, s.first) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(fake.violations().size() == 3);
}

TEST_CASE("the arguments of a kernel node are changed for later launches, by the node of the graph")
{
    fake_cuda fake(test::stepped_cuda());
    fake.add_kernel("put",
                    [](const fake_cuda::launch&, void** a) { **static_cast<int**>(a[0]) = *static_cast<int*>(a[1]); },
                    {sizeof(int*), sizeof(int)});
    session s(fake);
    CUmodule m = nullptr;
    CUfunction put = nullptr;
    REQUIRE(s.api.cuModuleLoadData(&m, "image") == CUDA_SUCCESS);
    REQUIRE(s.api.cuModuleGetFunction(&put, m, "put") == CUDA_SUCCESS);
    const auto p = s.allocate(4, s.first);
    CHECK(fake.run_all() == 1);
    auto* target = reinterpret_cast<int*>(p);
    int number = 1;
    void* arguments[] = {&target, &number};
    const auto info = [&](CUgraphNode& node) {
        auto found = CU_STREAM_CAPTURE_STATUS_NONE;
        const CUgraphNode* nodes = nullptr;
        const CUgraphEdgeData* edges = nullptr;
        std::size_t count = 0;
        CHECK(s.api.capture_info(s.first, &found, nullptr, nullptr, &nodes, &edges, &count) == CUDA_SUCCESS);
        node = count == 1 ? nodes[0] : nullptr;
        return found;
    };
    CUgraphNode copy = nullptr;
    CUgraphNode kernel = nullptr;
    CHECK(info(kernel) == CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK(s.api.cuStreamBeginCapture(s.first, global) == CUDA_SUCCESS);
    CHECK(info(kernel) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK_FALSE(kernel);
    CHECK(s.api.cuMemsetD32Async(p, 7, 1, s.first) == CUDA_SUCCESS);
    CHECK(info(copy) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK(s.api.cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, s.first, arguments, nullptr) == CUDA_SUCCESS);
    CHECK(info(kernel) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK(kernel != copy);
    CUgraph graph = graph_of(s, s.first);
    CUgraphExec x = nullptr;
    REQUIRE(s.api.cuGraphInstantiateWithFlags(&x, graph, 0) == CUDA_SUCCESS);

    CHECK(s.api.cuGraphLaunch(x, s.first) == CUDA_SUCCESS);
    number = 2;
    CUDA_KERNEL_NODE_PARAMS values{};
    values.func = put;
    values.gridDimX = values.gridDimY = values.gridDimZ = 1;
    values.blockDimX = values.blockDimY = values.blockDimZ = 1;
    values.kernelParams = arguments;
    CHECK(s.api.cuGraphExecKernelNodeSetParams(x, kernel, &values) == CUDA_SUCCESS);
    number = 3;
    CHECK(fake.step(s.first));
    CHECK(*target == 1);
    for (int i = 0; i < 2; ++i) {
        CHECK(s.api.cuGraphLaunch(x, s.first) == CUDA_SUCCESS);
        CHECK(fake.step(s.first));
        CHECK(*target == 2);
    }
    CHECK(s.api.cuGraphExecKernelNodeSetParams(x, copy, &values) == CUDA_ERROR_INVALID_VALUE);
    values.gridDimX = 0;
    CHECK(s.api.cuGraphExecKernelNodeSetParams(x, kernel, &values) == CUDA_ERROR_INVALID_VALUE);
    CHECK(fake.violations().empty());
    CHECK(s.api.cuGraphDestroy(graph) == CUDA_SUCCESS);
    values.gridDimX = 1;
    CHECK(s.api.cuGraphExecKernelNodeSetParams(x, kernel, &values) == CUDA_ERROR_INVALID_VALUE);
    CHECK(fake.violations().size() == 1);
    CHECK(s.api.cuGraphExecDestroy(x) == CUDA_SUCCESS);
    CHECK(s.api.cuMemFreeAsync(p, s.first) == CUDA_SUCCESS);
    CHECK(fake.run_all() == 1);
    CHECK(s.api.cuModuleUnload(m) == CUDA_SUCCESS);
}

TEST_SUITE_END();

} // namespace test_cuda_fake_cuda_graphs
