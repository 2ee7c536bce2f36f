#include "support/fake_cuda_state.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <sys/mman.h>
#include <utility>

namespace test {

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
    add_copy_kernel();
    thread = std::thread([this] { work(); });
}

void fake_cuda::state::stop()
{
    {
        const std::scoped_lock lock(mutex);
        stopping = true;
        changed.notify_all();
    }
    thread.join();
    for (auto& [start, b] : blocks)
        std::free(b.memory);
    blocks.clear();
    for (auto& [start, r] : ranges)
        ::munmap(start, r.bytes);
    ranges.clear();
    allocations.clear();
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

CUresult fake_cuda::state::push(stream& s, std::function<void()> run, bool unlocked)
{
    if (s.capture) {
        if (s.capture->invalid)
            return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        s.capture->items.push_back({std::move(run), {}, unlocked});
        s.last_node = s.capture->items.back().node = make_handle<CUgraphNode>();
        ++s.steps[s.handle];
        return CUDA_SUCCESS;
    }
    if (s.items.size() >= how.launch_queue)
        violate("the launch queue is full, the call would block");
    s.items.push_back({std::move(run), {}, unlocked});
    changed.notify_all();
    return CUDA_SUCCESS;
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
    std::size_t retained = 0;
    for (const auto& [device, p] : primaries)
        retained += static_cast<std::size_t>(p.retained);
    note(retained, "retained contexts");
    note(static_cast<std::size_t>(std::ranges::count_if(streams, [](auto& s) { return !s.second->destroyed; })),
         "streams");
    note(all_events.size(), "events");
    note(modules.size(), "modules");
    note(pools.size(), "pools");
    note(static_cast<std::size_t>(std::ranges::count_if(blocks, [](auto& b) { return !b.second.condemned; })),
         "blocks of memory");
    note(allocations.size(), "handles of memory");
    note(ranges.size(), "reserved address ranges");
    note(registrations.size(), "registered ranges");
    note(graphs.size(), "graphs");
    note(executables.size(), "executable graphs");
    return found;
}

} // namespace test
