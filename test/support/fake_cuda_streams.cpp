#include "support/fake_cuda_state.hpp"

#include <algorithm>

namespace test {

using state = fake_cuda::state;

CUcontext state::current() const
{
    const auto& stack = fake_thread::of(*this).current;
    return stack.empty() || !contexts.contains(stack.back()) ? nullptr : stack.back();
}

void state::enter(CUcontext c)
{
    fake_thread::of(*this).current.push_back(c);
    ++entered;
}

void state::leave()
{
    fake_thread::of(*this).current.pop_back();
    --entered;
    changed.notify_all();
}

CUresult state::context_retain(CUcontext* primary, CUdevice device)
{
    if (device < 0 || device >= how.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    auto& p = primaries[device];
    if (!p.handle)
        p.handle = make_handle<CUcontext>();
    ++p.retained;
    contexts.insert(p.handle);
    *primary = p.handle;
    return CUDA_SUCCESS;
}

CUresult state::context_release(CUdevice device)
{
    const auto found = primaries.find(device);
    if (found == primaries.end() || found->second.retained == 0) {
        violate("cuDevicePrimaryCtxRelease of a context that is not retained");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (--found->second.retained > 0)
        return CUDA_SUCCESS;
    const CUcontext c = found->second.handle;
    if (dead == CUDA_SUCCESS) {
        auto waiting = [&](auto& s) { return s.second->context == c && !idle(*s.second); };
        (void)block_until([&] { return std::ranges::none_of(streams, waiting) || (!active && !pick()); });
        if (std::ranges::any_of(streams, waiting))
            violate("cuDevicePrimaryCtxRelease would hang: work is pending");
        if (current() == c)
            violate("cuDevicePrimaryCtxRelease of a context that is current on this thread");
    }
    forget_context(c);
    return CUDA_SUCCESS;
}

void state::forget_context(CUcontext c)
{
    auto of_context = [&](auto& x) { return x.second->context == c; };
    auto left = [&](std::size_t n, const char* what) {
        if (n && dead == CUDA_SUCCESS)
            violate("cuDevicePrimaryCtxRelease with " + std::to_string(n) + " " + what + " left");
    };
    changed.wait(mutex, [&] { return !active; });
    left(static_cast<std::size_t>(
             std::ranges::count_if(streams, [&](auto& s) { return of_context(s) && !s.second->destroyed; })),
         "streams");
    std::erase_if(streams, of_context);
    left(std::erase_if(all_events, of_context), "events");
    std::erase_if(functions, [&](auto& f) { return modules.at(f.second.module) == c; });
    left(std::erase_if(modules, [&](auto& m) { return m.second == c; }), "modules");
    std::vector<const char*> gone;
    for (auto& [start, b] : blocks)
        if (!b.from && b.context == c && !b.condemned)
            gone.push_back(start);
    for (const char* start : gone)
        bury(start, "cuDevicePrimaryCtxRelease");
    left(gone.size(), "blocks of managed memory");
    left(std::erase_if(registrations, [&](auto& r) { return r.second.context == c; }), "registered ranges");
    contexts.erase(c);
}

CUresult state::context_push(CUcontext c)
{
    if (!contexts.contains(c)) {
        violate("cuCtxPushCurrent of an unknown context");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    enter(c);
    return CUDA_SUCCESS;
}

CUresult state::context_pop(CUcontext* popped)
{
    auto& stack = fake_thread::of(*this).current;
    if (stack.empty()) {
        violate("cuCtxPopCurrent without a current context");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (popped)
        *popped = stack.back();
    leave();
    return CUDA_SUCCESS;
}

CUresult state::context_set(CUcontext c)
{
    if (c && !contexts.contains(c)) {
        violate("cuCtxSetCurrent of an unknown context");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    auto& stack = fake_thread::of(*this).current;
    if (!stack.empty())
        stack.pop_back();
    if (c)
        stack.push_back(c);
    return CUDA_SUCCESS;
}

CUresult state::priority_range(int* least, int* greatest)
{
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
}

state::stream* state::find_stream(CUstream s, const char* where)
{
    const auto found = streams.find(s);
    if (found == streams.end() || found->second->destroyed) {
        violate(std::string(where) + ": unknown stream");
        return nullptr;
    }
    if (const CUcontext c = current(); c && c != found->second->context)
        violate(std::string(where) + ": stream of another context");
    return found->second.get();
}

std::shared_ptr<state::event> state::find_event(CUevent e, const char* where)
{
    const auto found = all_events.find(e);
    if (found == all_events.end()) {
        violate(std::string(where) + ": unknown event");
        return nullptr;
    }
    if (found->second->context != current())
        violate(std::string(where) + ": event of another context");
    return found->second;
}

CUresult state::stream_create(CUstream* made, unsigned flags, int priority)
{
    auto s = std::make_unique<stream>();
    *made = s->handle = make_handle<CUstream>();
    s->context = current();
    s->flags = flags;
    // A priority out of range is clamped and is not an error.
    s->priority = std::clamp(priority, -5, 0);
    streams.emplace(*made, std::move(s));
    return CUDA_SUCCESS;
}

CUresult state::stream_destroy(CUstream s)
{
    auto* found = find_stream(s, "cuStreamDestroy");
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    if (found->capture) {
        violate("cuStreamDestroy of a stream in a capture");
        found->capture->invalid = true;
        end_capture(found->capture);
    }
    found->destroyed = true;
    if (idle(*found))
        streams.erase(s);
    return CUDA_SUCCESS;
}

CUresult state::stream_query(CUstream s)
{
    auto* found = find_stream(s, "cuStreamQuery");
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult r = check_not_captured(*found); r != CUDA_SUCCESS)
        return r;
    return idle(*found) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult state::stream_synchronize(CUstream s)
{
    auto* asked = find_stream(s, "cuStreamSynchronize");
    if (!asked)
        return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult r = check_not_captured(*asked); r != CUDA_SUCCESS)
        return r;
    return block_until([&] {
        const auto found = streams.find(s);
        return found == streams.end() || idle(*found->second);
    });
}

CUresult state::stream_wait(CUstream s, CUevent e, unsigned)
{
    auto* found = find_stream(s, "cuStreamWaitEvent");
    auto awaited = find_event(e, "cuStreamWaitEvent");
    if (!found || !awaited)
        return CUDA_ERROR_INVALID_HANDLE;
    if (found->capture || awaited->captured)
        return wait_in_capture(*found, *awaited);
    const auto mark = awaited->issued;
    found->items.push_back({[] {}, [awaited, mark] { return awaited->completed >= mark; }});
    changed.notify_all();
    return CUDA_SUCCESS;
}

CUresult state::event_create(CUevent* made, unsigned flags)
{
    *made = make_handle<CUevent>();
    auto e = std::make_shared<event>();
    e->context = current();
    e->timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    all_events.emplace(*made, std::move(e));
    return CUDA_SUCCESS;
}

CUresult state::event_destroy(CUevent e)
{
    if (!find_event(e, "cuEventDestroy"))
        return CUDA_ERROR_INVALID_HANDLE;
    all_events.erase(e);
    return CUDA_SUCCESS;
}

CUresult state::event_record(CUevent e, CUstream s)
{
    auto* found = find_stream(s, "cuEventRecord");
    auto marked = find_event(e, "cuEventRecord");
    if (!found || !marked)
        return CUDA_ERROR_INVALID_HANDLE;
    if (found->capture)
        return record_in_capture(*found, *marked);
    marked->captured.reset();
    const auto mark = ++marked->issued;
    return push(*found, [marked, mark] {
        marked->completed = std::max(marked->completed, mark);
        if (marked->timed)
            marked->at = std::chrono::steady_clock::now();
    });
}

CUresult state::event_query(CUevent e)
{
    auto found = find_event(e, "cuEventQuery");
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult r = check_not_captured(*found); r != CUDA_SUCCESS)
        return r;
    if (const CUresult r = check_captures(); r != CUDA_SUCCESS)
        return r;
    return found->completed >= found->issued ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult state::event_synchronize(CUevent e)
{
    auto found = find_event(e, "cuEventSynchronize");
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult r = check_not_captured(*found); r != CUDA_SUCCESS)
        return r;
    if (const CUresult r = check_captures(); r != CUDA_SUCCESS)
        return r;
    const auto mark = found->issued;
    return block_until([&] { return found->completed >= mark; });
}

CUresult state::event_elapsed_time(float* milliseconds, CUevent start, CUevent stop)
{
    const auto first = find_event(start, "cuEventElapsedTime");
    const auto last = find_event(stop, "cuEventElapsedTime");
    if (!first || !last || !first->timed || !last->timed || first->issued == 0 || last->issued == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (first->completed < first->issued || last->completed < last->issued)
        return CUDA_ERROR_NOT_READY;
    *milliseconds = std::chrono::duration<float, std::milli>(last->at - first->at).count();
    return CUDA_SUCCESS;
}

CUresult state::host_function(CUstream s, CUhostFn f, void* argument)
{
    auto* found = find_stream(s, "cuLaunchHostFunc");
    if (!found || !f)
        return found ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    auto call = [this, f, argument] {
        {
            const std::scoped_lock lock(mutex);
            if (swallow || dead != CUDA_SUCCESS)
                return;
            ++callbacks;
        }
        auto& self = fake_thread::of(*this);
        self.in_callback = true;
        f(argument);
        self.in_callback = false;
    };
    return push(*found, call, true);
}

} // namespace test
