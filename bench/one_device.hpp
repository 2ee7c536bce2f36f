#ifndef COACCEL_BENCH_ONE_DEVICE_HPP
#define COACCEL_BENCH_ONE_DEVICE_HPP

#include "cuda/clock.hpp"
#include "cuda/failure.hpp"

#include <coaccel/device/device.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace coaccel::bench {

/// Awaits `count` ops one after another; `start` returns a deferred op.
template <class Start>
asio::awaitable<void> await_each(Start start, int count)
{
    for (int i = 0; i < count; ++i) {
        auto r = co_await start();
        if (!r)
            throw failure(r.error().message());
    }
}

/// The same, and appends the seconds of each op. Skips the first `skip`, because the GPU may still be busy with another
/// context.
template <class Start>
asio::awaitable<void> time_each(Start start, int skip, int count, std::vector<double>* times)
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

/// A device, and the thread that runs its io_context, or several.
class one_device {
public:
    explicit one_device(const device_options& options, int threads = 1) : io_(threads), threads_(threads)
    {
        gpu_ = get<device>(device::async_create(io_.get_executor(), options));
    }
    one_device(const one_device&) = delete;
    one_device& operator=(const one_device&) = delete;

    ~one_device()
    {
        try {
            get<void>(gpu_.async_shutdown(shutdown::abandon));
        } catch (const std::exception&) {
        }
    }

    const device& gpu() const noexcept { return gpu_; }

    /// Runs the io_context until a deferred operation has completed.
    template <class T, class Operation>
    result<T> outcome_of(Operation operation)
    {
        // Not on the stack: after a failure the handler may still be called.
        auto outcome = std::make_shared<std::optional<result<T>>>();
        std::move(operation)([outcome](result<T> r) { *outcome = std::move(r); });
        io_.restart();
        while (!*outcome)
            io_.run_one();
        return std::move(**outcome);
    }

    template <class T, class Operation>
    T get(Operation operation)
    {
        return value_of(outcome_of<T>(std::move(operation)), "coaccel");
    }

    /// Runs only the background work of the device for this time.
    void idle_for(clock::duration time)
    {
        io_.restart();
        io_.run_for(time);
    }

    /// Runs this many coroutines to completion and returns the elapsed seconds.
    template <class Make>
    double run(int coroutines, Make make)
    {
        auto all = std::make_shared<crowd>();
        all->left = coroutines;
        for (int i = 0; i < coroutines; ++i)
            asio::co_spawn(io_, make(), [all, this](const std::exception_ptr& e) {
                if (e && !all->failed.exchange(true))
                    all->wrong = e;
                if (--all->left == 0) {
                    all->ended = clock::now();
                    io_.stop();
                }
            });
        const auto began = clock::now();
        io_.restart();
        {
            std::vector<std::jthread> others;
            for (int i = 1; i < threads_; ++i)
                others.emplace_back([this] { io_.run(); });
            io_.run();
        }
        if (all->failed)
            std::rethrow_exception(all->wrong);
        return std::chrono::duration<double>(all->ended - began).count();
    }

private:
    struct crowd {
        std::atomic<int> left{0};
        std::atomic<bool> failed{false};
        std::exception_ptr wrong;
        clock::time_point ended;
    };

    asio::io_context io_;
    const int threads_;
    // As in a server, which always has pending work.
    asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
    device gpu_;
};

} // namespace coaccel::bench

#endif
