#include "breakdown.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

namespace coaccel::bench {
namespace {

constexpr std::size_t block_bytes = std::size_t(64) << 20;
constexpr std::size_t block_floats = block_bytes / sizeof(float);

/// The seconds per call: the median of several bursts, each of which starts with an idle stream and is short enough for
/// the queue of the stream.
template <class F>
double call_time(const raw_gpu& raw, F f, int burst = 400)
{
    std::vector<double> times;
    for (int round = 0; round < 11; ++round) {
        const auto began = clock::now();
        for (int i = 0; i < burst; ++i)
            f();
        times.push_back(seconds_since(began) / burst);
        raw.synchronize();
    }
    return median(times);
}

class raw_event {
public:
    explicit raw_event(const raw_gpu& raw) : raw_(raw)
    {
        raw_.check(raw_.api().cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    }
    raw_event(const raw_event&) = delete;
    raw_event& operator=(const raw_event&) = delete;
    ~raw_event() { (void)raw_.api().cuEventDestroy(event_); }

    CUevent native() const noexcept { return event_; }
    void record() const { raw_.check(raw_.api().cuEventRecord(event_, raw_.stream()), "cuEventRecord"); }

    bool passed() const
    {
        const CUresult r = raw_.api().cuEventQuery(event_);
        if (r == CUDA_ERROR_NOT_READY)
            return false;
        raw_.check(r, "cuEventQuery");
        return true;
    }

private:
    const raw_gpu& raw_;
    CUevent event_ = nullptr;
};

class raw_stream {
public:
    explicit raw_stream(const raw_gpu& raw) : raw_(raw)
    {
        raw_.check(raw_.api().cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0),
                   "cuStreamCreateWithPriority");
    }
    raw_stream(const raw_stream&) = delete;
    raw_stream& operator=(const raw_stream&) = delete;
    ~raw_stream() { (void)raw_.api().cuStreamDestroy(stream_); }

    CUstream native() const noexcept { return stream_; }

private:
    const raw_gpu& raw_;
    CUstream stream_ = nullptr;
};

void calls(const raw_gpu& raw)
{
    const auto& api = raw.api();
    const raw_event event(raw);
    const raw_stream other(raw);
    print("cuLaunchKernel", call_time(raw, [&] { raw.launch(); }));
    print("cuEventRecord", call_time(raw, [&] { event.record(); }));
    print("cuLaunchKernel + cuEventRecord", call_time(raw, [&] {
              raw.launch();
              event.record();
          }));
    const raw_pinned word(raw, 1);
    print("cuLaunchKernel + cuStreamWriteValue32", call_time(raw, [&] {
              raw.launch();
              raw.check(raw.write_value(raw.stream(), reinterpret_cast<CUdeviceptr>(word.span().data()), 1, 0),
                        "cuStreamWriteValue32");
          }));
    print("cuEventQuery, passed", call_time(raw, [&] { (void)event.passed(); }));
    print("cuStreamQuery, idle", call_time(raw, [&] { raw.check(api.cuStreamQuery(raw.stream()), "cuStreamQuery"); }));
    print("cuStreamWaitEvent, passed", call_time(raw, [&] {
              raw.check(api.cuStreamWaitEvent(other.native(), event.native(), 0), "cuStreamWaitEvent");
          }));
    print("cuLaunchKernel + cuEventRecord + cuStreamWaitEvent", call_time(raw, [&] {
              raw.launch();
              event.record();
              raw.check(api.cuStreamWaitEvent(other.native(), event.native(), 0), "cuStreamWaitEvent");
          }));
    print("cuLaunchHostFunc",
          call_time(
              raw, [&] { raw.check(api.cuLaunchHostFunc(raw.stream(), [](void*) {}, nullptr), "cuLaunchHostFunc"); },
              100));
    print("cuCtxPushCurrent + cuCtxPopCurrent", call_time(raw, [&] { const auto again = raw.enter(); }));
    print("enqueue only, 20000 launches", raw.enqueue_time());
}

void memory_calls(const raw_gpu& raw)
{
    const auto& api = raw.api();
    const raw_pool pool(raw);
    std::array<CUdeviceptr, 200> blocks{};
    std::vector<double> taken;
    std::vector<double> given;
    for (int round = 0; round < 11; ++round) {
        const auto began = clock::now();
        for (auto& p : blocks)
            p = pool.allocate(std::size_t(1) << 20);
        taken.push_back(seconds_since(began) / blocks.size());
        const auto half = clock::now();
        for (const auto p : blocks)
            pool.release(p);
        given.push_back(seconds_since(half) / blocks.size());
        raw.synchronize();
    }
    print("cuMemAllocFromPoolAsync, 1 MiB", median(taken));
    print("cuMemFreeAsync, 1 MiB", median(given));
    print("cuMemPoolGetAttribute", call_time(raw, [&] {
              cuuint64_t used = 0;
              raw.check(api.cuMemPoolGetAttribute(pool.native(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used),
                        "cuMemPoolGetAttribute");
          }));

    const raw_pinned pinned(raw, block_floats);
    const std::vector<float> pageable(block_floats, 1.0f);
    const raw_memory target(raw, block_bytes);
    auto look = [&](const void* p) {
        return [&raw, &api, at = reinterpret_cast<CUdeviceptr>(p)] {
            CUmemorytype type{};
            unsigned managed = 0;
            std::array<CUpointer_attribute, 2> wanted{CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                      CU_POINTER_ATTRIBUTE_IS_MANAGED};
            std::array<void*, 2> found{&type, &managed};
            raw.check(api.cuPointerGetAttributes(2, wanted.data(), found.data(), at), "cuPointerGetAttributes");
        };
    };
    print("cuPointerGetAttributes, pageable", call_time(raw, look(pageable.data())));
    print("cuPointerGetAttributes, pinned", call_time(raw, look(pinned.span().data())));

    auto copy = [&](const void* from, std::size_t bytes) {
        return [&raw, &api, &target, from, bytes] {
            raw.check(api.cuMemcpyHtoDAsync(target.address(), from, bytes, raw.stream()), "cuMemcpyHtoDAsync");
        };
    };
    print("cuMemcpyHtoDAsync, 4 KiB, pinned", call_time(raw, copy(pinned.span().data(), 4096)));
    print("cuMemcpyHtoDAsync, 4 KiB, pageable", call_time(raw, copy(pageable.data(), 4096)));
    print("cuMemcpyHtoDAsync, 64 KiB, pageable", call_time(raw, copy(pageable.data(), 65536), 50));

    // A copy of about one millisecond keeps the event pending.
    const raw_event event(raw);
    copy(pinned.span().data(), block_bytes)();
    event.record();
    int pending = 0;
    const auto began = clock::now();
    auto last = began;
    while (pending < 500 && !event.passed()) {
        ++pending;
        last = clock::now();
    }
    raw.synchronize();
    if (pending > 0)
        print("cuEventQuery, pending (and a look at the clock)",
              std::chrono::duration<double>(last - began).count() / pending);

    for (const int threads : {1, 2, 4}) {
        std::vector<double> times;
        for (int round = 0; round < 7; ++round) {
            const auto started = clock::now();
            {
                std::vector<std::jthread> crew;
                const std::size_t part = block_floats / static_cast<std::size_t>(threads);
                for (std::size_t i = 0; i < static_cast<std::size_t>(threads); ++i)
                    crew.emplace_back([&pinned, &pageable, part, i] {
                        std::memcpy(pinned.span().data() + i * part, pageable.data() + i * part, part * sizeof(float));
                    });
            }
            times.push_back(seconds_since(started));
        }
        const std::string what = "memcpy of 64 MiB, pageable to pinned, threads: " + std::to_string(threads);
        print(what.c_str(), median(times));
    }
}

void round_trips(const raw_gpu& raw)
{
    constexpr int count = 3000;
    std::vector<double> times;
    raw.round_trips(100, count, times);
    print("launch + cuStreamSynchronize, p50", median(times));

    const raw_event event(raw);
    times.clear();
    for (int i = 0; i < count; ++i) {
        const auto began = clock::now();
        raw.launch();
        event.record();
        raw.check(raw.api().cuEventSynchronize(event.native()), "cuEventSynchronize");
        times.push_back(seconds_since(began));
    }
    print("launch + record + cuEventSynchronize, p50", median(times));

    // The minimum for an awaited op: make the context current, record the event, query it.
    const clock::time_point deadline = clock::now() + std::chrono::seconds(5);
    times.clear();
    for (int i = 0; i < count; ++i) {
        const auto began = clock::now();
        {
            const auto inside = raw.enter();
            raw.launch();
            event.record();
        }
        for (bool passed = false; !passed;) {
            const auto inside = raw.enter();
            passed = event.passed();
            if (clock::now() > deadline)
                throw failure("the event did not pass");
        }
        times.push_back(seconds_since(began));
    }
    print("push, launch, record, pop, (push, query, pop)*, p50", median(times));

    // Without an event: query the stream itself.
    auto stream_passed = [&raw] {
        const CUresult r = raw.api().cuStreamQuery(raw.stream());
        if (r != CUDA_ERROR_NOT_READY)
            raw.check(r, "cuStreamQuery");
        return r == CUDA_SUCCESS;
    };
    times.clear();
    for (int i = 0; i < count; ++i) {
        const auto began = clock::now();
        {
            const auto inside = raw.enter();
            raw.launch();
        }
        for (bool passed = false; !passed;) {
            const auto inside = raw.enter();
            passed = stream_passed();
            if (clock::now() > deadline)
                throw failure("the stream did not become idle");
        }
        times.push_back(seconds_since(began));
    }
    print("push, launch, pop, (push, cuStreamQuery, pop)*, p50", median(times));

    const raw_pinned word(raw, 1);
    auto* const seen = reinterpret_cast<std::uint32_t*>(word.span().data());
    times.clear();
    for (std::uint32_t i = 1; i <= count; ++i) {
        const auto began = clock::now();
        raw.launch();
        raw.check(raw.write_value(raw.stream(), reinterpret_cast<CUdeviceptr>(seen), i, 0), "cuStreamWriteValue32");
        while (std::atomic_ref(*seen).load(std::memory_order_acquire) != i)
            if (clock::now() > deadline)
                throw failure("the value was not written");
        times.push_back(seconds_since(began));
    }
    print("launch, cuStreamWriteValue32, spin, p50", median(times));
}

// The cost of sleeping while the GPU computes: once until just before the expected end, or in short intervals.
void sleeps(const raw_gpu& raw)
{
    constexpr std::int64_t n = 4096;
    constexpr std::size_t bytes = n * n * sizeof(float);
    constexpr auto early = std::chrono::microseconds(240);
    const raw_memory a(raw, bytes);
    const raw_memory b(raw, bytes);
    const raw_memory c(raw, bytes);
    const raw_blas blas(raw);
    const raw_event event(raw);
    struct way {
        const char* what;
        clock::duration nap;
        std::vector<double> times;
    };
    std::array<way, 3> ways{{{"sgemm 4096, looking all the time, p50", {}, {}},
                             {"sgemm 4096, asleep until 240 us before the end, p50", std::chrono::seconds(1), {}},
                             {"the same in naps of 200 us, p50", std::chrono::microseconds(200), {}}}};
    auto multiply = [&](const way& w, clock::duration expected) {
        const auto began = clock::now();
        const auto until = began + expected - early;
        blas.multiply(n, a, b, c);
        event.record();
        for (auto now = clock::now(); w.nap.count() > 0 && now < until; now = clock::now())
            std::this_thread::sleep_until(std::min(until, now + w.nap));
        while (!event.passed())
            continue;
        return clock::now() - began;
    };
    clock::duration expected{};
    for (int i = 0; i < 20; ++i)
        expected = multiply(ways[0], {});
    for (int i = 0; i < 100; ++i)
        for (way& w : ways) {
            // Only the second multiplication is timed; the thread that launches it has just slept.
            (void)multiply(w, expected);
            w.times.push_back(std::chrono::duration<double>(multiply(w, expected)).count());
        }
    for (const way& w : ways)
        print(w.what, median(w.times));
}

void posts()
{
    constexpr int count = 100000;
    asio::io_context io(1);
    int left = count;
    auto again = [&](auto& self) -> void {
        if (left-- > 0)
            asio::post(io, [&self] { self(self); });
    };
    again(again);
    const auto began = clock::now();
    io.run();
    print("asio::post", seconds_since(began) / count);
}

// The same with a pending timer, as every device has one: each pass of the io_context then polls the system for events.
void posts_beside_a_timer()
{
    constexpr int count = 100000;
    asio::io_context io(1);
    asio::steady_timer timer(io, std::chrono::hours(1));
    timer.async_wait([](const error_code&) {});
    int left = count;
    auto again = [&](auto& self) -> void {
        if (left-- > 0)
            asio::post(io, [&self] { self(self); });
        else
            timer.cancel();
    };
    again(again);
    const auto began = clock::now();
    io.run();
    print("asio::post, beside a timer", seconds_since(began) / count);
}

void clocks()
{
    constexpr int count = 100000;
    auto last = clock::now();
    const auto began = last;
    for (int i = 0; i < count; ++i)
        last = clock::now();
    print("steady_clock::now", std::chrono::duration<double>(last - began).count() / count);
}

} // namespace

void print_breakdown(const stage& s)
{
    std::printf("breakdown:\n");
    {
        const auto inside = s.raw.enter();
        calls(s.raw);
        memory_calls(s.raw);
        round_trips(s.raw);
        sleeps(s.raw);
    }
    posts();
    posts_beside_a_timer();
    clocks();
    print_contexts(s);
    print_our_ops(s);
}

} // namespace coaccel::bench
