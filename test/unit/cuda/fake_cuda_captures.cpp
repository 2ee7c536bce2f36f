#include "unit/cuda/captured_graph.hpp"

#include <array>
#include <functional>
#include <thread>

namespace test_cuda_fake_cuda_captures {

namespace {

using namespace test;
using session = test::fake_session;

/// A call on another thread that has the context current and the given mode.
CUresult elsewhere(const session& s, CUstreamCaptureMode mode, const std::function<CUresult()>& call)
{
    CUresult r = CUDA_ERROR_UNKNOWN;
    std::thread([&] {
        (void)s.api.cuCtxPushCurrent(s.context);
        (void)s.api.cuThreadExchangeStreamCaptureMode(&mode);
        r = call();
        CUcontext popped = nullptr;
        (void)s.api.cuCtxPopCurrent(&popped);
    }).join();
    return r;
}

} // namespace

TEST_SUITE_BEGIN("fake_cuda");

TEST_CASE("a capture extends to streams that wait for its events, and they must join before its end")
{
    fake_cuda fake;
    session s(fake);
    CUevent e = s.event();
    const auto p = s.allocate(4, s.first);
    CHECK(s.api.cuStreamSynchronize(s.first) == CUDA_SUCCESS);
    auto fork = [&] {
        CHECK(s.api.cuStreamBeginCapture(s.first, thread_local_mode) == CUDA_SUCCESS);
        CHECK(s.api.cuMemsetD32Async(p, 1, 1, s.first) == CUDA_SUCCESS);
        CHECK(s.api.cuEventRecord(e, s.first) == CUDA_SUCCESS);
        CHECK(s.api.cuStreamWaitEvent(s.second, e, 0) == CUDA_SUCCESS);
        CHECK(status(s, s.second) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
        CHECK(s.api.cuMemsetD32Async(p, 2, 1, s.second) == CUDA_SUCCESS);
        CHECK(s.api.cuEventRecord(e, s.second) == CUDA_SUCCESS);
    };
    fork();
    CHECK(s.api.cuStreamWaitEvent(s.first, e, 0) == CUDA_SUCCESS);
    CUgraphExec x = executable_of(s, s.first);
    CHECK(status(s, s.second) == CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK(s.api.cuGraphLaunch(x, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuStreamSynchronize(s.first) == CUDA_SUCCESS);
    CHECK(ints(p)[0] == 2);
    // An event of an ended capture says nothing until it is recorded again.
    CHECK(s.api.cuEventQuery(e) == CUDA_ERROR_INVALID_VALUE);
    CHECK(s.api.cuStreamWaitEvent(s.second, e, 0) == CUDA_ERROR_INVALID_VALUE);
    CHECK(s.api.cuEventRecord(e, s.second) == CUDA_SUCCESS);
    CHECK(s.api.cuEventSynchronize(e) == CUDA_SUCCESS);

    fork();
    CHECK(end_error(s, s.first) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    CHECK(status(s, s.second) == CU_STREAM_CAPTURE_STATUS_NONE);
    fork();
    CHECK(s.api.cuStreamWaitEvent(s.first, e, 0) == CUDA_SUCCESS);
    CHECK(s.api.cuMemsetD32Async(p, 3, 1, s.second) == CUDA_SUCCESS);
    CHECK(end_error(s, s.first) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    fork();
    CHECK(end_error(s, s.second) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CHECK(end_error(s, s.first) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

    CHECK(s.api.cuGraphExecDestroy(x) == CUDA_SUCCESS);
    CHECK(s.api.cuMemFreeAsync(p, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuEventDestroy(e) == CUDA_SUCCESS);
}

TEST_CASE("calls that no capture can contain fail and invalidate it, in every mode")
{
    fake_cuda fake;
    session s(fake);
    CUevent inside = s.event();
    CUevent outside = s.event();
    CHECK(s.api.cuEventRecord(outside, s.second) == CUDA_SUCCESS);
    CHECK(s.api.cuStreamBeginCapture(s.first, relaxed) == CUDA_SUCCESS);
    CUgraphExec x = executable_of(s, s.first);
    const struct {
        const char* what;
        CUresult expected;
        std::function<CUresult()> call;
    } cases[] = {
        {"query of the stream", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return s.api.cuStreamQuery(s.first); }},
        {"wait for the stream", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         [&] { return s.api.cuStreamSynchronize(s.first); }},
        {"query of its event", CUDA_ERROR_CAPTURED_EVENT, [&] { return s.api.cuEventQuery(inside); }},
        {"wait for its event", CUDA_ERROR_CAPTURED_EVENT, [&] { return s.api.cuEventSynchronize(inside); }},
        {"dependency on other work", CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
         [&] { return s.api.cuStreamWaitEvent(s.first, outside, 0); }},
        {"launch of a graph", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return s.api.cuGraphLaunch(x, s.first); }},
        {"upload of a graph", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return s.api.cuGraphUpload(x, s.first); }},
    };
    for (const auto mode : {global, thread_local_mode, relaxed})
        for (const auto& c : cases) {
            CAPTURE(c.what);
            CAPTURE(int(mode));
            CHECK(s.api.cuStreamBeginCapture(s.first, mode) == CUDA_SUCCESS);
            CHECK(s.api.cuEventRecord(inside, s.first) == CUDA_SUCCESS);
            auto own = relaxed;
            CHECK(s.api.cuThreadExchangeStreamCaptureMode(&own) == CUDA_SUCCESS);
            CHECK(own == global);
            CHECK(c.call() == c.expected);
            CHECK(s.api.cuThreadExchangeStreamCaptureMode(&own) == CUDA_SUCCESS);
            CHECK(own == relaxed);
            CHECK(status(s, s.first) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
            CHECK(fake.enqueue(s.first, [] {}) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
            CHECK(end_error(s, s.first) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
            CHECK(status(s, s.first) == CU_STREAM_CAPTURE_STATUS_NONE);
        }
    CHECK(s.api.cuGraphExecDestroy(x) == CUDA_SUCCESS);
    CHECK(s.api.cuEventDestroy(inside) == CUDA_SUCCESS);
    CHECK(s.api.cuEventDestroy(outside) == CUDA_SUCCESS);
}

TEST_CASE("the modes of the capture and of the thread decide which unrelated calls invalidate it")
{
    fake_cuda fake;
    session s(fake);
    std::array<int, 4> host{};
    CUevent e = s.event();
    CHECK(s.api.cuEventRecord(e, s.second) == CUDA_SUCCESS);
    CHECK(s.api.cuEventSynchronize(e) == CUDA_SUCCESS);
    CUdeviceptr p = s.allocate(4, s.second);
    CHECK(s.api.cuStreamSynchronize(s.second) == CUDA_SUCCESS);
    const struct {
        const char* what;
        std::function<CUresult()> call;
        std::function<void()> undo;
    } cases[] = {
        {"event query", [&] { return s.api.cuEventQuery(e); }, [] {}},
        {"event wait", [&] { return s.api.cuEventSynchronize(e); }, [] {}},
        {"stream query", [&] { return s.api.cuStreamQuery(s.second); }, [] {}},
        {"stream wait", [&] { return s.api.cuStreamSynchronize(s.second); }, [] {}},
        {"allocation", [&] { return s.api.cuMemAllocFromPoolAsync(&p, 4, s.pool, s.second); },
         [&] { CHECK(s.api.cuMemFreeAsync(p, s.second) == CUDA_SUCCESS); }},
        {"registration", [&] { return s.api.cuMemHostRegister(host.data(), sizeof host, 0); },
         [&] { CHECK(s.api.cuMemHostUnregister(host.data()) == CUDA_SUCCESS); }},
    };
    CHECK(s.api.cuMemFreeAsync(p, s.second) == CUDA_SUCCESS);
    const struct {
        CUstreamCaptureMode capture;
        CUstreamCaptureMode thread;
        bool same_thread;
        bool allowed;
    } modes[] = {
        {global, global, false, false},
        {global, thread_local_mode, false, true},
        {global, relaxed, false, true},
        {thread_local_mode, global, false, true},
        {relaxed, global, false, true},
        {global, global, true, false},
        {thread_local_mode, thread_local_mode, true, false},
        {thread_local_mode, relaxed, true, true},
        {relaxed, global, true, true},
    };
    for (const auto& m : modes)
        for (const auto& c : cases) {
            CAPTURE(c.what);
            CAPTURE(int(m.capture));
            CAPTURE(int(m.thread));
            CAPTURE(m.same_thread);
            CHECK(s.api.cuStreamBeginCapture(s.first, m.capture) == CUDA_SUCCESS);
            auto mode = m.thread;
            CUresult r = CUDA_SUCCESS;
            if (m.same_thread) {
                (void)s.api.cuThreadExchangeStreamCaptureMode(&mode);
                r = c.call();
                (void)s.api.cuThreadExchangeStreamCaptureMode(&mode);
            } else {
                r = elsewhere(s, mode, c.call);
            }
            CHECK(r == (m.allowed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
            if (m.allowed) {
                CHECK(s.api.cuGraphDestroy(graph_of(s, s.first)) == CUDA_SUCCESS);
                c.undo();
                CHECK(s.api.cuStreamSynchronize(s.second) == CUDA_SUCCESS);
            } else {
                CHECK(end_error(s, s.first) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
            }
        }
    // Work on other streams is allowed in every mode.
    CHECK(s.api.cuStreamBeginCapture(s.first, global) == CUDA_SUCCESS);
    CHECK(s.api.cuEventRecord(e, s.second) == CUDA_SUCCESS);
    CHECK(s.api.cuGraphDestroy(graph_of(s, s.first)) == CUDA_SUCCESS);
    CHECK(s.api.cuEventDestroy(e) == CUDA_SUCCESS);
}

TEST_CASE("a capture begins and ends once, on the thread that began it unless it is relaxed")
{
    fake_cuda fake;
    session s(fake);
    CHECK(end_error(s, s.first) == CUDA_ERROR_ILLEGAL_STATE);
    CHECK(s.api.cuStreamBeginCapture(s.first, global) == CUDA_SUCCESS);
    CHECK(s.api.cuStreamBeginCapture(s.first, global) == CUDA_ERROR_ILLEGAL_STATE);
    CHECK(status(s, s.first) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK(elsewhere(s, global, [&] { return end_error(s, s.first); }) == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    CHECK(end_error(s, s.first) == CUDA_ERROR_ILLEGAL_STATE);
    CHECK(s.api.cuStreamBeginCapture(s.first, relaxed) == CUDA_SUCCESS);
    CUgraph made = nullptr;
    CHECK(elsewhere(s, global, [&] { return s.api.cuStreamEndCapture(s.first, &made); }) == CUDA_SUCCESS);
    CHECK(s.api.cuGraphDestroy(made) == CUDA_SUCCESS);
}

TEST_SUITE_END();

} // namespace test_cuda_fake_cuda_captures
