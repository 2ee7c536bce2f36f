#include "support/fake_cuda_state.hpp"

#include <algorithm>
#include <utility>

namespace test {

using state = fake_cuda::state;

namespace {

/// Two points in one capture: everything before either of them.
void merge(state::capture_steps& into, const state::capture_steps& from)
{
    for (const auto& [s, n] : from)
        into[s] = std::max(into[s], n);
}

} // namespace

CUresult state::check_captures()
{
    const auto mode = fake_thread::of(*this).mode;
    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    const bool any = invalidate_captures([&](const capture& c) {
        if (c.thread == std::this_thread::get_id())
            return c.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        return mode == CU_STREAM_CAPTURE_MODE_GLOBAL && c.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    });
    return any ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult state::check_not_captured(stream& s)
{
    if (!s.capture)
        return CUDA_SUCCESS;
    s.capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult state::check_not_captured(const event& e)
{
    if (!e.captured)
        return CUDA_SUCCESS;
    if (e.captured->ended)
        return CUDA_ERROR_INVALID_VALUE;
    e.captured->invalid = true;
    return CUDA_ERROR_CAPTURED_EVENT;
}

void state::end_capture(const std::shared_ptr<capture>& ended)
{
    // A copy, because the reference may be to the member of a stream.
    const auto c = ended;
    c->ended = true;
    for (auto& [handle, s] : streams)
        if (s->capture == c) {
            s->capture.reset();
            s->steps.clear();
            s->last_node = nullptr;
        }
}

CUresult state::record_in_capture(stream& s, event& e)
{
    if (s.capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    e.captured = s.capture;
    e.steps = s.steps;
    return CUDA_SUCCESS;
}

CUresult state::wait_in_capture(stream& s, const event& e)
{
    if (s.capture && s.capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!e.captured) {
        s.capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (e.captured->ended)
        return CUDA_ERROR_INVALID_VALUE;
    if (e.captured->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (s.capture && s.capture != e.captured) {
        s.capture->invalid = e.captured->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (!s.capture) {
        // The stream joins the capture, which is a step too: it must be joined with the origin before the end.
        s.capture = e.captured;
        ++s.steps[s.handle];
    }
    merge(s.steps, e.steps);
    return CUDA_SUCCESS;
}

CUresult state::begin_capture(CUstream s, CUstreamCaptureMode mode)
{
    auto* found = find_stream(s, "cuStreamBeginCapture");
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    if (found->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    found->capture = std::make_shared<capture>();
    found->capture->context = found->context;
    found->capture->origin = s;
    found->capture->mode = mode;
    found->capture->thread = std::this_thread::get_id();
    return CUDA_SUCCESS;
}

CUresult state::end_stream_capture(CUstream s, CUgraph* made)
{
    *made = nullptr;
    auto* found = find_stream(s, "cuStreamEndCapture");
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    const auto c = found->capture;
    if (!c)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->origin != s) {
        c->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    const bool joined = std::ranges::all_of(streams, [&](auto& other) {
        return other.second->capture != c || found->steps[other.first] >= other.second->steps[other.first];
    });
    end_capture(c);
    if (c->thread != std::this_thread::get_id() && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (planned_end != CUDA_SUCCESS)
        return planned_end;
    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!joined)
        return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    *made = make_handle<CUgraph>();
    graphs.emplace(*made, std::move(c->items));
    return CUDA_SUCCESS;
}

CUresult state::is_capturing(CUstream s, CUstreamCaptureStatus* status)
{
    const auto* found = find_stream(s, "cuStreamIsCapturing");
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (found->capture)
        *status = found->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

CUresult state::exchange_capture_mode(CUstreamCaptureMode* mode)
{
    std::swap(*mode, fake_thread::of(*this).mode);
    return CUDA_SUCCESS;
}

CUresult state::graph_instantiate(CUgraphExec* made, CUgraph g, unsigned long long)
{
    *made = nullptr;
    const auto found = graphs.find(g);
    if (found == graphs.end()) {
        violate("cuGraphInstantiateWithFlags of an unknown graph");
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto x = std::make_shared<executable>();
    x->context = current();
    x->items = found->second;
    *made = make_handle<CUgraphExec>();
    executables.emplace(*made, std::move(x));
    return CUDA_SUCCESS;
}

CUresult state::graph_upload(CUgraphExec x, CUstream s)
{
    auto* where = find_stream(s, "cuGraphUpload");
    const auto found = executables.find(x);
    if (found == executables.end())
        violate("cuGraphUpload of an unknown executable graph");
    if (!where || found == executables.end())
        return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult r = check_not_captured(*where); r != CUDA_SUCCESS)
        return r;
    return push(*where, [] {});
}

CUresult state::graph_launch(CUgraphExec x, CUstream s)
{
    auto* where = find_stream(s, "cuGraphLaunch");
    const auto found = executables.find(x);
    if (found == executables.end())
        violate("cuGraphLaunch of an unknown executable graph");
    if (!where || found == executables.end())
        return CUDA_ERROR_INVALID_VALUE;
    if (found->second->context != where->context)
        violate("cuGraphLaunch: executable graph of another context");
    if (const CUresult r = check_not_captured(*where); r != CUDA_SUCCESS)
        return r;
    const auto launched = found->second;
    const auto before = launched->issued++;
    // Kernels modify the copies of their arguments, so each launch runs its own copy of the commands.
    auto run = [this, launched, items = launched->items] {
        for (const item& i : items) {
            std::unique_lock lock(mutex);
            if (dead != CUDA_SUCCESS)
                return;
            if (i.unlocked)
                lock.unlock();
            i.run();
        }
        const std::scoped_lock lock(mutex);
        ++launched->completed;
        // A fault in the last kernel ends the graph too.
        if (dead == CUDA_SUCCESS)
            ++graph_launches;
    };
    const CUresult r = push(*where, std::move(run), true);
    where->items.back().ready = [launched, before] { return launched->completed >= before; };
    return r;
}

CUresult state::graph_nodes(CUgraph g, CUgraphNode* nodes, std::size_t* count)
{
    const auto found = graphs.find(g);
    if (found == graphs.end()) {
        violate("cuGraphGetNodes of an unknown graph");
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::size_t all = found->second.size();
    if (nodes)
        for (std::size_t i = 0; i < *count; ++i)
            nodes[i] = i < all ? found->second[i].node : nullptr;
    *count = nodes ? std::min(*count, all) : all;
    return CUDA_SUCCESS;
}

CUresult state::capture_info(CUstream s, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                             const CUgraphNode** nodes, const CUgraphEdgeData** edges, std::size_t* count)
{
    if (const CUresult r = is_capturing(s, status); r != CUDA_SUCCESS || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return r;
    const auto* found = find_stream(s, "cuStreamGetCaptureInfo");
    *nodes = &found->last_node;
    *edges = nullptr;
    *count = found->last_node ? 1 : 0;
    return CUDA_SUCCESS;
}

state::item* state::find_node(CUgraphExec x, CUgraphNode node, const char* where)
{
    // The real driver needs the graph too, by whose nodes it identifies those of the executable graph.
    const bool known = std::ranges::any_of(graphs, [&](const auto& g) {
        return std::ranges::any_of(g.second, [&](const item& i) { return i.node == node; });
    });
    const auto found = executables.find(x);
    if (!known || found == executables.end()) {
        violate(std::string(where) + " of an unknown graph or node");
        return nullptr;
    }
    auto& items = found->second->items;
    const auto at = std::ranges::find(items, node, &item::node);
    return at == items.end() ? nullptr : &*at;
}

CUresult state::kernel_node_set(CUgraphExec x, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* values)
{
    auto* const found = find_node(x, node, "cuGraphExecKernelNodeSetParams");
    if (!found || !found->function || !values->func)
        return CUDA_ERROR_INVALID_VALUE;
    std::function<void()> run;
    const launch how{{values->gridDimX, values->gridDimY, values->gridDimZ},
                     {values->blockDimX, values->blockDimY, values->blockDimZ},
                     values->sharedMemBytes};
    if (const CUresult r = make_launch(values->func, how, values->kernelParams, values->extra, run); r != CUDA_SUCCESS)
        return r;
    // Launches that are queued have their own copies of the commands.
    found->run = std::move(run);
    found->function = values->func;
    return CUDA_SUCCESS;
}

CUresult state::graph_exec_destroy(CUgraphExec x)
{
    // Launches that have not run yet are still run, as by the real driver.
    if (executables.erase(x))
        return CUDA_SUCCESS;
    violate("cuGraphExecDestroy of an unknown executable graph");
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult state::graph_destroy(CUgraph g)
{
    if (graphs.erase(g))
        return CUDA_SUCCESS;
    violate("cuGraphDestroy of an unknown graph");
    return CUDA_ERROR_INVALID_VALUE;
}

} // namespace test
