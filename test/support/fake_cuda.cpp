#include "support/fake_cuda_state.hpp"

#include <boost/assert.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
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

fake_thread& fake_thread::of(const fake_cuda::state& s)
{
    static thread_local fake_thread mine;
    if (mine.identity != s.identity)
        mine = {.identity = s.identity, .current = {}};
    return mine;
}

fake_cuda::state::state(const settings& s) : how(s), random(s.seed)
{
    static std::atomic<std::uint64_t> identities{0};
    identity = ++identities;
    fill(table);
    thread = std::thread([this] { work(); });
}

fake_cuda::state::~state()
{
    {
        const std::scoped_lock lock(mutex);
        stopping = true;
        changed.notify_all();
    }
    thread.join();
    for (auto& [start, b] : blocks)
        std::free(b.memory);
}

void fake_cuda::state::work()
{
    std::unique_lock lock(mutex);
    while (!stopping) {
        stream* s = pick();
        if (!s && polling()) {
            changed.wait_for(lock, std::chrono::microseconds(100));
            continue;
        }
        if (!s) {
            changed.wait(lock);
            continue;
        }
        if (fuse > 0 && --fuse == 0) {
            die(fate);
            continue;
        }
        const item next = std::move(s->items.front());
        s->items.pop_front();
        s->credit = std::max(0, s->credit - 1);
        active = s;
        if (next.unlocked)
            lock.unlock();
        next.run();
        if (next.unlocked)
            lock.lock();
        active = nullptr;
        if (s->destroyed && s->items.empty())
            streams.erase(s->handle);
        changed.notify_all();
    }
}

bool fake_cuda::state::polling() const
{
    return std::ranges::any_of(
        streams, [](const auto& s) { return !s.second->items.empty() && s.second->items.front().polled; });
}

bool fake_cuda::state::runnable(const stream& s) const
{
    return dead == CUDA_SUCCESS && !s.items.empty() && !s.held && !all_held &&
           (!s.items.front().ready || s.items.front().ready());
}

fake_cuda::state::stream* fake_cuda::state::pick()
{
    std::vector<stream*> choice;
    for (auto& [handle, s] : streams)
        if ((how.how == mode::automatic || draining > 0 || s->credit > 0) && runnable(*s))
            choice.push_back(s.get());
    if (choice.empty())
        return nullptr;
    return choice[std::uniform_int_distribution<std::size_t>(0, choice.size() - 1)(random)];
}

void fake_cuda::state::push(stream& s, std::function<void()> run, bool unlocked)
{
    if (s.items.size() >= how.launch_queue)
        violate("the launch queue is full, the call would block");
    s.items.push_back({std::move(run), {}, unlocked});
    changed.notify_all();
}

void fake_cuda::state::die(CUresult sticky)
{
    if (dead == CUDA_SUCCESS)
        dead = sticky;
    changed.notify_all();
}

void fake_cuda::state::violate(std::string what)
{
    // Limited, because a loop would add complaints forever.
    if (complaints.size() < 20)
        complaints.push_back(std::move(what));
}

CUresult fake_cuda::state::refuse(std::string_view function)
{
    bool& told = fake_thread::of(*this).told;
    if (told)
        late_calls.emplace_back(function);
    // Making a context current does not count as learning of its death.
    told |= function != "cuCtxPushCurrent" && function != "cuCtxSetCurrent";
    return dead;
}

std::vector<std::string> fake_cuda::state::leaks() const
{
    std::vector<std::string> found;
    auto note = [&](std::size_t n, const char* what) {
        if (n)
            found.push_back(std::to_string(n) + " " + what);
    };
    note(contexts.size(), "contexts");
    note(static_cast<std::size_t>(std::ranges::count_if(streams, [](auto& s) { return !s.second->destroyed; })),
         "streams");
    note(all_events.size(), "events");
    note(modules.size(), "modules");
    note(pools.size(), "pools");
    note(static_cast<std::size_t>(std::ranges::count_if(blocks, [](auto& b) { return !b.second.condemned; })),
         "blocks of memory");
    note(registrations.size(), "registered ranges");
    return found;
}

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

void fake_cuda::enqueue(CUstream s, std::function<void()> work)
{
    const std::scoped_lock lock(state_->mutex);
    if (auto* found = state_->find_stream(s, "enqueue"))
        state_->push(*found, std::move(work), true);
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

void fake_cuda::kill_at(CUresult sticky, int nth)
{
    const std::scoped_lock lock(state_->mutex);
    state_->fate = sticky;
    state_->fuse = nth;
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

std::uint64_t fake_cuda::allocated() const
{
    const std::scoped_lock lock(state_->mutex);
    std::uint64_t sum = 0;
    for (const auto& [start, b] : state_->blocks)
        sum += b.freed ? 0 : b.bytes;
    return sum;
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
    static const std::vector<std::string_view> names{COACCEL_CUDA_DRIVER_FUNCTIONS(COACCEL_FAKE_NAME) "cuCtxCreate",
                                                     "cuMemPrefetchAsync", "cuMemAdvise"};
#undef COACCEL_FAKE_NAME
    return names;
}

} // namespace test
