#include "device/devices.hpp"
#include "heap.hpp"
#include "row.hpp"

#include <coaccel/ops/memory.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <condition_variable>
#include <mutex>

namespace coaccel::bench {
namespace {

constexpr double to_ns = 1e9;

asio::awaitable<void> exec_loop(device gpu, ref<float> x, int count)
{
    for (int i = 0; i < count; ++i)
        (void)co_await gpu.async_exec(memory::fill<float>{x, 1.0f});
}

/// The seconds per op with this many coroutines, each awaiting one op after another.
double exec_time(asio::io_context& io, const device& gpu, ref<float> x, int coroutines, int ops_each)
{
    for (int i = 0; i < coroutines; ++i)
        asio::co_spawn(io, exec_loop(gpu, x, ops_each), asio::detached);
    return timed_run(io) / (static_cast<double>(coroutines) * ops_each);
}

// Posts to a strand and back, repeatedly.
struct hop {
    asio::io_context* io;
    asio::strand<asio::io_context::executor_type>* strand;
    int left;
    bool back = false;

    void operator()()
    {
        back = !back;
        if (back && left-- > 0)
            asio::post(*strand, hop(*this));
        else if (!back)
            asio::post(*io, hop(*this));
    }
};

double post_time(asio::io_context& io, int chains, int hops_each)
{
    auto strand = asio::make_strand(io);
    for (int i = 0; i < chains; ++i)
        asio::post(io, hop{&io, &strand, hops_each});
    return timed_run(io) / (static_cast<double>(chains) * hops_each);
}

pair in_nanoseconds(pair p)
{
    return {p.ours * to_ns, p.theirs * to_ns};
}

void against_post(rows& table)
{
    asio::io_context io;
    {
        auto gpu = make_device(io, host_mode::inline_);
        auto x = await<buffer<float>>(io, gpu.async_alloc<float>(1));
        const auto p =
            side_by_side(9, [&] { return exec_time(io, gpu, x, 1, 20000); }, [&] { return post_time(io, 1, 20000); });
        table.push_back(at_most("exec_vs_post", in_nanoseconds(p), 4, "ns/op", "<= 4"));
    }
    auto gpu = make_device(io, host_mode::pool);
    auto x = await<buffer<float>>(io, gpu.async_alloc<float>(1));
    const auto p =
        side_by_side(9, [&] { return exec_time(io, gpu, x, 64, 1000); }, [&] { return post_time(io, 64, 1000); });
    table.push_back(at_most("exec_depth64_vs_post", in_nanoseconds(p), 6, "ns/op", "<= 6"));
}

void growth(rows& table)
{
    asio::io_context io;
    auto gpu = make_device(io, host_mode::pool);
    auto x = await<buffer<float>>(io, gpu.async_alloc<float>(1));
    const auto p = side_by_side(
        3, [&] { return exec_time(io, gpu, x, 100000, 4); }, [&] { return exec_time(io, gpu, x, 100, 4000); });
    table.push_back(at_most("pending_growth", in_nanoseconds(p), 2, "ns/op", "<= 2"));
}

class gate {
public:
    void open()
    {
        const std::scoped_lock lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }

    void pass()
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return open_; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;
};

struct pass_gate {
    gate* where;
    void operator()(native_stream, std::span<float>) const { where->pass(); }
};

struct ignore {
    void operator()(error_code) const noexcept {}
};

void pending_bytes(rows& table)
{
    constexpr int pending = 100000;
    asio::io_context io;
    auto gpu = make_device(io, host_mode::pool);
    auto x = await<buffer<float>>(io, gpu.async_alloc<float>(1));
    gate hold;
    gpu.async_submit(inout(x), pass_gate{&hold}, ignore{});
    const auto before = heap().bytes;
    for (int i = 0; i < pending; ++i)
        gpu.async_exec(memory::fill<float>{x, 1.0f}, ignore{});
    // Lets the device accept all ops and start those that can start.
    io.restart();
    io.run_for(std::chrono::milliseconds(200));
    const double each = static_cast<double>(heap().bytes - before) / pending;
    hold.open();
    io.restart();
    io.run();
    table.push_back(at_most("bytes_per_pending_op", {each, 1024}, 1, "bytes", "<= 1024"));
}

void allocations(rows& table, const char* name, host_mode mode, int coroutines)
{
    constexpr int ops = 5000;
    asio::io_context io;
    auto gpu = make_device(io, mode);
    auto x = await<buffer<float>>(io, gpu.async_alloc<float>(1));
    double worst = 0;
    // The first rounds fill the caches. The difference of two run lengths cancels the allocations for spawning the
    // loops.
    for (int round = 0; round < 4; ++round) {
        const auto before = heap().allocations;
        exec_time(io, gpu, x, coroutines, ops);
        const auto few = heap().allocations - before;
        exec_time(io, gpu, x, coroutines, 2 * ops);
        const auto many = heap().allocations - before - few;
        worst = many > few ? static_cast<double>(many - few) / (coroutines * ops) : 0;
    }
    table.push_back({name, worst, worst, 0, "allocations/op", "0", worst < 0.0005});
}

} // namespace

void exec_rows(rows& table)
{
    against_post(table);
    growth(table);
    pending_bytes(table);
    allocations(table, "allocations_per_op", host_mode::inline_, 1);
    allocations(table, "allocations_per_op_depth64", host_mode::pool, 64);
}

} // namespace coaccel::bench
