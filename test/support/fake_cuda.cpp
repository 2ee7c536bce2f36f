#include "support/fake_cuda_state.hpp"

#include <boost/assert.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <forward_list>
#include <memory>
#include <utility>

namespace test {

namespace {

int index_of(std::string_view name)
{
    const auto& names = fake_cuda::function_names();
    const auto found = std::ranges::find(names, name);
    BOOST_ASSERT_MSG(found != names.end(), "no such function of the driver's");
    return static_cast<int>(found - names.begin());
}

} // namespace

fake_cuda::fake_cuda(const settings& s) : state_(std::make_unique<state>(s))
{
    BOOST_ASSERT_MSG(!current_fake, "one fake driver at a time");
    current_fake = state_.get();
}

fake_cuda::~fake_cuda()
{
    {
        // Waits for threads that were left in a blocking call.
        const std::scoped_lock lock(state_->mutex);
        const auto ours = static_cast<int>(fake_thread::of(*state_).current.size());
        state_->changed.wait(state_->mutex, [&] { return state_->draining == 0 && state_->entered <= ours; });
    }
    if (!state_->looked_at) {
        const std::string found = verdict();
        CHECK_MESSAGE(found.empty(), "the fake driver complains: ", found);
    }
    current_fake = nullptr;
    state_->stop();
    // A thread of an abandoned context may have checked that the context is alive, and make its call only now. A real
    // driver remains loaded, too.
    static auto& stopped = *new std::forward_list<std::unique_ptr<state>>;
    stopped.push_front(std::move(state_));
}

const coaccel::cuda::driver_api& fake_cuda::api() const noexcept
{
    return state_->table;
}

void fake_cuda::add_kernel(std::string name, kernel k, std::vector<std::size_t> parameter_sizes)
{
    const std::scoped_lock lock(state_->mutex);
    state_->kernels[std::move(name)] = {std::move(k), std::move(parameter_sizes)};
}

CUresult fake_cuda::enqueue(CUstream s, std::function<void()> work)
{
    const std::scoped_lock lock(state_->mutex);
    auto* found = state_->find_stream(s, "enqueue");
    return found ? state_->push(*found, std::move(work), true) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult fake_cuda::library_call(std::string_view function)
{
    const std::scoped_lock lock(state_->mutex);
    if (state_->dead != CUDA_SUCCESS)
        return state_->refuse(function);
    if (state_->current())
        return CUDA_SUCCESS;
    state_->violate(std::string(function) + " without a current context");
    return CUDA_ERROR_INVALID_CONTEXT;
}

void fake_cuda::complain(std::string violation)
{
    const std::scoped_lock lock(state_->mutex);
    state_->violate(std::move(violation));
}

bool fake_cuda::touch(const void* p, std::size_t bytes)
{
    const std::scoped_lock lock(state_->mutex);
    return state_->check_device("touch", reinterpret_cast<CUdeviceptr>(p), bytes, true);
}

bool fake_cuda::touch_to_write(const void* p, std::size_t bytes)
{
    const std::scoped_lock lock(state_->mutex);
    return state_->check_device("touch_to_write", reinterpret_cast<CUdeviceptr>(p), bytes, true, state::use::write);
}

bool fake_cuda::step(CUstream s)
{
    std::unique_lock lock(state_->mutex);
    const auto found = state_->streams.find(s);
    if (found == state_->streams.end() || !state_->runnable(*found->second))
        return false;
    const std::size_t before = found->second->items.size();
    found->second->credit = 1;
    state_->changed.notify_all();
    state_->changed.wait(lock, [&] {
        const auto still = state_->streams.find(s);
        return still == state_->streams.end() || state_->dead != CUDA_SUCCESS ||
               (still->second->items.size() < before && state_->active != still->second.get());
    });
    return true;
}

std::size_t fake_cuda::run_all()
{
    std::unique_lock lock(state_->mutex);
    auto left = [&] {
        std::size_t n = 0;
        for (auto& [handle, s] : state_->streams)
            n += s->items.size();
        return n;
    };
    const std::size_t before = left();
    ++state_->draining;
    state_->changed.notify_all();
    state_->changed.wait(lock, [&] { return !state_->active && !state_->pick(); });
    --state_->draining;
    return before - left();
}

std::size_t fake_cuda::pending(CUstream s) const
{
    const std::scoped_lock lock(state_->mutex);
    const auto found = state_->streams.find(s);
    return found == state_->streams.end()
               ? 0
               : found->second->items.size() + (state_->active == found->second.get() ? 1 : 0);
}

std::vector<fake_cuda::stream_info> fake_cuda::streams() const
{
    const std::scoped_lock lock(state_->mutex);
    std::vector<stream_info> all;
    for (auto& [handle, s] : state_->streams)
        if (!s->destroyed)
            all.push_back({handle, s->priority, s->flags, s->items.size()});
    return all;
}

std::size_t fake_cuda::events() const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->all_events.size();
}

std::size_t fake_cuda::graphs() const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->graphs.size();
}

std::size_t fake_cuda::executable_graphs() const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->executables.size();
}

int fake_cuda::graph_launches() const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->graph_launches;
}

CUstreamCaptureMode fake_cuda::capture_mode() const
{
    return fake_thread::of(*state_).mode;
}

void fake_cuda::hold(CUstream s)
{
    const std::scoped_lock lock(state_->mutex);
    if (auto* found = state_->find_stream(s, "hold"))
        found->held = true;
}

void fake_cuda::let_go(CUstream s)
{
    const std::scoped_lock lock(state_->mutex);
    if (auto* found = state_->find_stream(s, "let_go"))
        found->held = false;
    state_->changed.notify_all();
}

void fake_cuda::hold_all(bool held)
{
    const std::scoped_lock lock(state_->mutex);
    state_->all_held = held;
    state_->changed.notify_all();
}

void fake_cuda::block(CUstream s, std::function<bool()> ready)
{
    const std::scoped_lock lock(state_->mutex);
    if (auto* found = state_->find_stream(s, "block"))
        found->items.push_back({[] {}, std::move(ready), false, true});
    state_->changed.notify_all();
}

void fake_cuda::fail(std::string_view function, CUresult result, int nth)
{
    const std::scoped_lock lock(state_->mutex);
    state_->plans[index_of(function)].push_back({result, nth});
}

void fake_cuda::fail_from(std::string_view function, CUresult result, int nth)
{
    const std::scoped_lock lock(state_->mutex);
    state_->plans[index_of(function)].push_back({result, nth, true});
}

void fake_cuda::forgive()
{
    const std::scoped_lock lock(state_->mutex);
    state_->plans.clear();
}

void fake_cuda::kill(CUresult sticky)
{
    std::unique_lock lock(state_->mutex);
    state_->die(sticky);
    if (std::this_thread::get_id() != state_->thread.get_id())
        state_->changed.wait(lock, [&] { return !state_->active; });
}

void fake_cuda::reset_context()
{
    kill(CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

void fake_cuda::kill_at(CUresult sticky, int nth)
{
    const std::scoped_lock lock(state_->mutex);
    state_->fate = sticky;
    state_->fuse = nth;
}

void fake_cuda::invalidate_capture(CUstream s)
{
    const std::scoped_lock lock(state_->mutex);
    const auto found = state_->streams.find(s);
    BOOST_ASSERT_MSG(found != state_->streams.end() && found->second->capture, "the stream is not in a capture");
    found->second->capture->invalid = true;
}

void fake_cuda::swallow_host_functions(bool swallow)
{
    const std::scoped_lock lock(state_->mutex);
    state_->swallow = swallow;
}

int fake_cuda::calls(std::string_view function) const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->counts[static_cast<std::size_t>(index_of(function))];
}

int fake_cuda::calls() const
{
    const std::scoped_lock lock(state_->mutex);
    int sum = 0;
    for (const int n : state_->counts)
        sum += n;
    return sum;
}

int fake_cuda::calls_after_death() const
{
    const std::scoped_lock lock(state_->mutex);
    return static_cast<int>(state_->late_calls.size());
}

std::string fake_cuda::late_calls() const
{
    const std::scoped_lock lock(state_->mutex);
    std::string text;
    for (const auto& name : state_->late_calls)
        text += (text.empty() ? "" : ", ") + name;
    return text;
}

bool fake_cuda::dead() const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->dead != CUDA_SUCCESS;
}

int fake_cuda::host_functions_called() const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->callbacks;
}

std::size_t fake_cuda::current_depth() const
{
    return fake_thread::of(*state_).current.size();
}

CUcontext fake_cuda::current_context() const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->current();
}

std::uint64_t fake_cuda::allocated() const
{
    const std::scoped_lock lock(state_->mutex);
    std::uint64_t sum = 0;
    for (const auto& [start, b] : state_->blocks)
        sum += b.freed ? 0 : b.bytes;
    return sum + state_->allocation_bytes();
}

std::uint64_t fake_cuda::registered() const
{
    const std::scoped_lock lock(state_->mutex);
    std::uint64_t sum = 0;
    for (const auto& [start, r] : state_->registrations)
        sum += r.bytes;
    return sum;
}

std::vector<std::string> fake_cuda::violations() const
{
    const std::scoped_lock lock(state_->mutex);
    state_->looked_at = true;
    return state_->complaints;
}

std::vector<std::string> fake_cuda::leaks() const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->leaks();
}

std::string fake_cuda::verdict()
{
    const std::scoped_lock lock(state_->mutex);
    state_->looked_at = true;
    auto all = state_->complaints;
    if (state_->dead == CUDA_SUCCESS)
        for (auto& l : state_->leaks())
            all.push_back("left behind: " + l);
    std::string text;
    for (const auto& line : all)
        text += (text.empty() ? "" : "; ") + line;
    return text;
}

const std::vector<std::string_view>& fake_cuda::function_names()
{
#define COACCEL_FAKE_NAME(function) #function,
    static const std::vector<std::string_view> names{
        COACCEL_CUDA_DRIVER_FUNCTIONS(COACCEL_FAKE_NAME)
            COACCEL_CUDA_OPTIONAL_DRIVER_FUNCTIONS(COACCEL_FAKE_NAME) "cuMemPrefetchAsync",
        "cuMemAdvise", "cuStreamGetCaptureInfo", "cuEventElapsedTime"};
#undef COACCEL_FAKE_NAME
    return names;
}

} // namespace test
