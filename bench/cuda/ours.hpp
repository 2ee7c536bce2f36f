#ifndef COACCEL_BENCH_CUDA_OURS_HPP
#define COACCEL_BENCH_CUDA_OURS_HPP

#include "clock.hpp"
#include "failure.hpp"

#include <coaccel/device/device.hpp>
#include <coaccel/ops/jit.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace coaccel::bench {

/// Awaits an op again and again; `start` returns a deferred one.
template <class Start>
asio::awaitable<void> repeat(Start start, int count)
{
    for (int i = 0; i < count; ++i) {
        auto r = co_await start();
        if (!r)
            throw failure(r.error().message());
    }
}

/// The same, appending the seconds of each op but the first `skip`, which may find the GPU busy with another context.
template <class Start>
asio::awaitable<void> repeat_timed(Start start, int skip, int count, std::vector<double>* times)
{
    for (int i = 0; i < skip + count; ++i) {
        const auto began = clock::now();
        auto r = co_await start();
        const double took = seconds_since(began);
        if (!r)
            throw failure(r.error().message());
        if (i >= skip)
            times->push_back(took);
    }
}

/// The GPU through coaccel's interface, and the one thread that runs its io_context.
class our_gpu {
public:
    using empty_launch = jit::launch_op<>;

    explicit our_gpu(const std::string& cache_folder, const device_options& options = {});
    our_gpu(const our_gpu&) = delete;
    our_gpu& operator=(const our_gpu&) = delete;
    ~our_gpu();

    const device& gpu() const noexcept { return gpu_; }

    /// An op that launches a kernel which does nothing, with one thread.
    empty_launch empty() const noexcept { return jit::launch(kernel_, jit::launch_shape{}); }

    /// A function for `repeat` that starts it.
    auto start_empty() const
    {
        return [gpu = &gpu_, op = empty()] { return gpu->async_exec(op); };
    }

    /// Runs until a deferred operation has completed.
    template <class T, class Operation>
    T get(Operation operation)
    {
        // Not on the stack: after a failure the handler may still be called.
        auto outcome = std::make_shared<std::optional<result<T>>>();
        std::move(operation)([outcome](result<T> r) { *outcome = std::move(r); });
        io_.restart();
        while (!*outcome)
            if (io_.run_one() == 0)
                throw failure("an operation was lost");
        return value_of(std::move(**outcome), "coaccel");
    }

    /// Runs this many coroutines to their ends, and gives the seconds that took.
    template <class Make>
    double run(int coroutines, Make make)
    {
        auto all = std::make_shared<crowd>();
        all->left = coroutines;
        for (int i = 0; i < coroutines; ++i)
            asio::co_spawn(io_, make(), [all, this](const std::exception_ptr& e) {
                if (e && !all->wrong)
                    all->wrong = e;
                if (--all->left == 0) {
                    all->ended = clock::now();
                    io_.stop();
                }
            });
        const auto began = clock::now();
        io_.restart();
        io_.run();
        if (all->left != 0)
            throw failure("a coroutine never ended");
        if (all->wrong)
            std::rethrow_exception(all->wrong);
        return std::chrono::duration<double>(all->ended - began).count();
    }

    /// Seconds per op with this many coroutines, each awaiting one empty kernel after another.
    double launch_time(int coroutines, int ops_each)
    {
        return run(coroutines, [&] { return repeat(start_empty(), ops_each); }) /
               (static_cast<double>(coroutines) * ops_each);
    }

private:
    struct crowd {
        int left = 0;
        std::exception_ptr wrong;
        clock::time_point ended;
    };

    asio::io_context io_{1};
    device gpu_;
    jit::kernel kernel_;
};

} // namespace coaccel::bench

#endif
