#ifndef COACCEL_TEST_UNIT_CUDA_CAPTURED_GRAPH_HPP
#define COACCEL_TEST_UNIT_CUDA_CAPTURED_GRAPH_HPP

#include "unit/cuda/fake_session.hpp"

namespace test {

inline constexpr auto global = CU_STREAM_CAPTURE_MODE_GLOBAL;
inline constexpr auto thread_local_mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
inline constexpr auto relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

inline CUstreamCaptureStatus status(const fake_session& s, CUstream of)
{
    auto found = CU_STREAM_CAPTURE_STATUS_NONE;
    CHECK(s.api.cuStreamIsCapturing(of, &found) == CUDA_SUCCESS);
    return found;
}

/// Ends the capture, which must succeed.
inline CUgraph graph_of(const fake_session& s, CUstream captured)
{
    CUgraph made = nullptr;
    REQUIRE(s.api.cuStreamEndCapture(captured, &made) == CUDA_SUCCESS);
    REQUIRE(made);
    return made;
}

/// Ends the capture and returns the error; there is no graph then.
inline CUresult end_error(const fake_session& s, CUstream captured)
{
    CUgraph made = nullptr;
    const CUresult r = s.api.cuStreamEndCapture(captured, &made);
    CHECK_FALSE(made);
    return r;
}

/// Turns the capture into an executable graph.
inline CUgraphExec executable_of(const fake_session& s, CUstream captured)
{
    CUgraph graph = graph_of(s, captured);
    CUgraphExec made = nullptr;
    REQUIRE(s.api.cuGraphInstantiateWithFlags(&made, graph, 0) == CUDA_SUCCESS);
    CHECK(s.api.cuGraphDestroy(graph) == CUDA_SUCCESS);
    return made;
}

} // namespace test

#endif
