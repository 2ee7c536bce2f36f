#include "cuda/memory/staged_copy.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace coaccel::cuda {
namespace {

using direction = host_copy::direction;
using clock = std::chrono::steady_clock;

constexpr std::size_t smallest_chunk = 4096;
/// A smaller share is not worth waking another thread.
constexpr std::size_t smallest_share = std::size_t(256) << 10;
constexpr std::size_t chunks_per_thread = 2;
/// A chunk takes some tens of microseconds. A longer wait means that the stream is busy with other work.
constexpr auto spin_time = std::chrono::microseconds(100);
constexpr auto nap = std::chrono::microseconds(50);

CUresult submit(const driver_api& api, direction way, CUdeviceptr device, void* host, std::size_t bytes, CUstream s)
{
    return way == direction::to_device ? api.cuMemcpyHtoDAsync(device, host, bytes, s)
                                       : api.cuMemcpyDtoHAsync(host, device, bytes, s);
}

/// Counts this thread as using the callers' memory, which it may do if `given_up` is false after this. Queued jobs do
/// not count: they would keep a context from ending while all threads are stuck in the driver.
class caller_memory_guard {
public:
    explicit caller_memory_guard(const copy_setting& my) noexcept : my_(my)
    {
        my_.busy_with_callers.fetch_add(1, std::memory_order_seq_cst);
    }
    caller_memory_guard(const caller_memory_guard&) = delete;
    caller_memory_guard& operator=(const caller_memory_guard&) = delete;
    ~caller_memory_guard() { my_.busy_with_callers.fetch_sub(1, std::memory_order_seq_cst); }

private:
    const copy_setting& my_;
};

} // namespace

/// One copy through the pinned pool. The executor begins and ends it; in between, only its workers use it.
class staged_copies::copy {
public:
    explicit copy(const copy_setting& setting) noexcept : my_(setting) {}

    void begin(CUstream s, const host_copy& what)
    {
        stream_ = s;
        what_ = what;
        stage_ = what.bytes <= small_copy ? stage::small : stage::large;
        const std::size_t at_once = chunks_per_thread * my_.helpers.limit();
        chunk_bytes_ = std::clamp(std::bit_ceil(what.bytes / at_once), smallest_share, chunk_bytes);
        next_.store(0, std::memory_order_relaxed);
        error_ = {};
        failed_.store(false, std::memory_order_relaxed);
        done_.store(false, std::memory_order_relaxed);
        submitted_.store(false, std::memory_order_relaxed);
    }

    result<progress> advance()
    {
        if (stage_ == stage::small)
            return copy_small();
        if (stage_ == stage::large)
            return get_going();
        if (!done_.load(std::memory_order_acquire))
            return progress::pending;
        if (error_)
            return error_;
        return progress::passed;
    }

    /// Whether the device may be using the chunks.
    bool submitted() const noexcept { return submitted_.load(std::memory_order_acquire); }

    void deliver() noexcept
    {
        if (stage_ != stage::small || what_.way != direction::to_host || !submitted())
            return;
        if (what_.host)
            std::memcpy(what_.host, chunks_.front().memory, what_.bytes);
        else
            what_.sink.append(what_.sink.object, chunks_.front().memory, what_.bytes);
    }

    void give_back() noexcept
    {
        for (const chunk& c : chunks_)
            my_.staging.release(c.memory);
        chunks_.clear();
    }

    void destroy_events() noexcept
    {
        for (CUevent e : events_)
            if (e)
                (void)my_.api.cuEventDestroy(e);
        events_.clear();
    }

private:
    enum class stage : std::uint8_t { small, large, working };
    enum class wait_result : std::uint8_t { passed, not_yet, failed };

    struct chunk {
        void* memory = nullptr;
        std::size_t offset = 0;
        std::size_t length = 0;
        bool in_flight = false;
    };

    result<progress> copy_small()
    {
        auto block = get_chunk(what_.bytes);
        if (!block && block.error() == errc::out_of_memory) {
            stage_ = stage::large;
            return get_going();
        }
        if (!block)
            return block.error();
        if (!block.value())
            return progress::pending;
        void* memory = chunks_.front().memory;
        if (what_.way == direction::to_device)
            std::memcpy(memory, what_.host, what_.bytes);
        if (auto ec = my_.check(submit(my_.api, what_.way, what_.device, memory, what_.bytes, stream_)))
            return ec;
        submitted_.store(true, std::memory_order_relaxed);
        return progress::passed;
    }

    result<bool> get_chunk(std::size_t bytes)
    {
        chunks_.reserve(chunks_.size() + 1);
        BOOST_OUTCOME_TRY(void* memory, my_.staging.try_allocate_own(bytes));
        if (memory)
            chunks_.push_back({.memory = memory});
        return memory != nullptr;
    }

    /// Starts with the chunks available now; pending only if there is none.
    result<progress> get_going()
    {
        const std::size_t threads = my_.helpers.limit();
        for (;;) {
            const std::size_t pieces = (what_.bytes + chunk_bytes_ - 1) / chunk_bytes_;
            const std::size_t wanted = std::min(pieces, chunks_per_thread * threads);
            result<bool> more = true;
            while (more && more.value() && chunks_.size() < wanted)
                more = get_chunk(chunk_bytes_);
            if (!chunks_.empty())
                return start(std::min({threads, chunks_.size(), pieces}));
            if (more)
                return progress::pending;
            // A smaller chunk may still be granted.
            if (more.error() != errc::out_of_memory || chunk_bytes_ / 2 < smallest_chunk)
                return more.error();
            chunk_bytes_ /= 2;
        }
    }

    result<progress> start(std::size_t workers)
    {
        events_.resize(std::max(events_.size(), chunks_.size()));
        turns_.assign(workers, 0);
        running_.store(1, std::memory_order_relaxed);
        stage_ = stage::working;
        if (my_.helpers.run([this] { lead(); }))
            return progress::pending;
        return errc::out_of_memory;
    }

    void lead() noexcept
    {
        if (!find_room())
            return leave();
        for (std::size_t i = 1; i < turns_.size(); ++i) {
            running_.fetch_add(1, std::memory_order_relaxed);
            if (call(i))
                continue;
            // The workers already started do the whole copy.
            running_.fetch_sub(1, std::memory_order_relaxed);
            break;
        }
        work(0);
    }

    bool find_room() noexcept
    {
        const caller_memory_guard here(my_);
        if (my_.given_up()) {
            fail(errc::context_lost);
            return false;
        }
        if (!what_.host)
            what_.host = what_.sink.room(what_.sink.object, what_.bytes);
        if (!what_.host)
            fail(errc::out_of_memory);
        return what_.host != nullptr;
    }

    bool call(std::size_t worker) noexcept
    {
        return my_.helpers.run([this, worker] { work(worker); });
    }

    void work(std::size_t worker) noexcept
    {
        if (go_on(worker)) {
            if (call(worker))
                return;
            fail(errc::out_of_memory);
        }
        leave();
    }

    // Worker i owns every n-th chunk; each worker takes the next piece of the copy for its chunk. Returns true if the
    // worker must wait for the stream.
    bool go_on(std::size_t worker) noexcept
    {
        const caller_memory_guard here(my_);
        while (!failed_.load(std::memory_order_relaxed)) {
            if (my_.given_up()) {
                fail(errc::context_lost);
                break;
            }
            const std::size_t at = worker + turns_[worker] * turns_.size();
            chunk& c = chunks_[at];
            if (c.in_flight) {
                const wait_result w = wait(events_[at]);
                if (w == wait_result::not_yet)
                    return true;
                if (w == wait_result::failed)
                    break;
                c.in_flight = false;
                if (what_.way == direction::to_host)
                    std::memcpy(static_cast<char*>(what_.host) + c.offset, c.memory, c.length);
            }
            const std::size_t offset = next_.fetch_add(chunk_bytes_, std::memory_order_relaxed);
            if (offset < what_.bytes) {
                c.offset = offset;
                c.length = std::min(chunk_bytes_, what_.bytes - offset);
                if (!send(c, events_[at]))
                    break;
            } else if (what_.way == direction::to_device || !any_in_flight(worker)) {
                break;
            }
            turns_[worker] = at + turns_.size() < chunks_.size() ? turns_[worker] + 1 : 0;
        }
        return false;
    }

    bool any_in_flight(std::size_t worker) const noexcept
    {
        for (std::size_t i = worker; i < chunks_.size(); i += turns_.size())
            if (chunks_[i].in_flight)
                return true;
        return false;
    }

    bool send(chunk& c, CUevent& e) noexcept
    {
        if (what_.way == direction::to_device)
            std::memcpy(c.memory, static_cast<const char*>(what_.host) + c.offset, c.length);
        if (!e && !went_well(my_.api.cuEventCreate(&e, CU_EVENT_DISABLE_TIMING)))
            return false;
        submitted_.store(true, std::memory_order_release);
        if (!went_well(submit(my_.api, what_.way, what_.device + c.offset, c.memory, c.length, stream_)))
            return false;
        c.in_flight = true;
        return went_well(my_.api.cuEventRecord(e, stream_));
    }

    // The wait is bounded: behind a long kernel a worker must not occupy a thread or keep a core busy.
    wait_result wait(CUevent e) noexcept
    {
        const auto end = clock::now() + spin_time;
        do {
            const CUresult r = my_.api.cuEventQuery(e);
            if (r == CUDA_SUCCESS)
                return wait_result::passed;
            if (r != CUDA_ERROR_NOT_READY)
                return went_well(r) ? wait_result::passed : wait_result::failed;
            if (my_.given_up())
                return wait_result::not_yet;
            std::this_thread::yield();
        } while (clock::now() < end);
        std::this_thread::sleep_for(nap);
        return wait_result::not_yet;
    }

    bool went_well(CUresult r) noexcept
    {
        const error_code ec = my_.check(r);
        if (ec)
            fail(ec);
        return !ec;
    }

    void fail(error_code ec) noexcept
    {
        const std::scoped_lock lock(mutex_);
        if (!failed_.exchange(true, std::memory_order_relaxed))
            error_ = ec;
    }

    void leave() noexcept
    {
        if (running_.fetch_sub(1, std::memory_order_acq_rel) != 1)
            return;
        // Once `done_` is set, the executor may reuse this object for the next copy.
        const copy_setting& my = my_;
        done_.store(true, std::memory_order_release);
        my.notify_progress();
    }

    const copy_setting& my_;
    CUstream stream_ = nullptr;
    host_copy what_;
    stage stage_ = stage::small;
    std::size_t chunk_bytes_ = 0;
    std::vector<chunk> chunks_;
    /// One event per chunk, reused by later copies.
    std::vector<CUevent> events_;
    /// For each worker, the index of its next chunk.
    std::vector<std::size_t> turns_;
    std::atomic<std::size_t> next_{0};
    std::atomic<int> running_{0};
    std::atomic<bool> submitted_{false};
    std::atomic<bool> failed_{false};
    std::atomic<bool> done_{false};
    std::mutex mutex_;
    error_code error_;
};

staged_copies::staged_copies(copy_setting setting) : setting_(std::move(setting)) {}

staged_copies::~staged_copies()
{
    for (auto& c : all_)
        c->give_back();
}

result<progress> staged_copies::enqueue(CUstream s, bound_op& op, const host_copy& what)
try {
    if (!op.state) {
        if (what.host && page_locked(what.host, what.bytes)) {
            if (auto ec = setting_.check(submit(setting_.api, what.way, what.device, what.host, what.bytes, s)))
                return ec;
            return progress::passed;
        }
        copy* taken = take();
        taken->begin(s, what);
        op.state = taken;
    }
    auto* c = static_cast<copy*>(op.state);
    auto where = c->advance();
    if (!where && !c->submitted())
        finish(op);
    return where;
} catch (const std::bad_alloc&) {
    finish(op);
    return errc::out_of_memory;
}

void staged_copies::finish(bound_op& op) noexcept
{
    auto* c = static_cast<copy*>(std::exchange(op.state, nullptr));
    if (!c)
        return;
    c->deliver();
    c->give_back();
    unused_.push_back(c);
}

void staged_copies::destroy() noexcept
{
    for (auto& c : all_)
        c->destroy_events();
}

staged_copies::copy* staged_copies::take()
{
    if (unused_.empty()) {
        // Reserve now, because finish() must not fail.
        unused_.reserve(all_.size() + 1);
        all_.push_back(std::make_unique<copy>(setting_));
        return all_.back().get();
    }
    copy* taken = unused_.back();
    unused_.pop_back();
    return taken;
}

bool staged_copies::page_locked(const void* host, std::size_t bytes) const noexcept
{
    unsigned type = 0;
    CUdeviceptr start = 0;
    std::size_t size = 0;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void* values[] = {&type, &start, &size};
    const auto first = reinterpret_cast<CUdeviceptr>(host);
    // Memory unknown to the driver has type zero. The copy itself reports any real error.
    return setting_.api.cuPointerGetAttributes(3, which, values, first) == CUDA_SUCCESS && type != 0 &&
           start <= first && size >= bytes && first - start <= size - bytes;
}

bool staged_copies::usable_by_kernels(const void* host, std::size_t bytes) const noexcept
{
    unsigned type = 0;
    CUdeviceptr mapped = 0;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
    void* values[] = {&type, &mapped};
    const auto first = reinterpret_cast<CUdeviceptr>(host);
    // Memory that was registered for another context only has no address in this one.
    return setting_.api.cuPointerGetAttributes(2, which, values, first) == CUDA_SUCCESS && type == CU_MEMORYTYPE_HOST &&
           mapped == first && page_locked(host, bytes);
}

} // namespace coaccel::cuda
