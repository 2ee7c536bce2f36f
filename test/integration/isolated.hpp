#ifndef COACCEL_TEST_UNIT_ISOLATED_ISOLATED_HPP
#define COACCEL_TEST_UNIT_ISOLATED_ISOLATED_HPP

#include "support/device_fixture.hpp"
#include "support/numbers.hpp"

#include <coaccel/core/log.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <boost/asio/executor_work_guard.hpp>

#include <csignal>
#include <mutex>
#include <string>
#include <vector>

namespace test {

/// The log lines of workers and their supervision, of all devices.
class worker_log {
public:
    static void add(std::string_view line)
    {
        const std::scoped_lock lock(mutex());
        lines().emplace_back(line);
    }

    static bool has(std::string_view text)
    {
        (void)coaccel::flush_log();
        const std::scoped_lock lock(mutex());
        for (const auto& l : lines())
            if (l.find(text) != std::string::npos)
                return true;
        return false;
    }

private:
    static std::mutex& mutex()
    {
        static auto& m = *new std::mutex;
        return m;
    }
    static std::vector<std::string>& lines()
    {
        // Never destroyed: the thread of the log may add to it until the end of the program.
        static auto& l = *new std::vector<std::string>;
        return l;
    }
};

inline coaccel::device_options isolated_options()
{
    auto o = pool_options();
    o.isolation = coaccel::isolation::worker;
    o.worker.log = &worker_log::add;
    o.worker.staging_bytes = std::uint64_t(16) << 20;
    o.restart.max_restarts = 1000;
    return o;
}

/// A device in a worker process, on its own io_context.
struct isolated_fixture : device_fixture {
    explicit isolated_fixture(const coaccel::device_options& o = isolated_options()) : device_fixture(o) {}

    template <class Op>
    coaccel::error_code run(const Op& op)
    {
        auto r = exec(op);
        return r ? coaccel::error_code() : r.error();
    }

    int process() { return await(io, gpu.async_stats()).value().hardware.process; }
    void send(int signal)
    {
        const int worker = process();
        // 0, while the device has no worker, would mean this process and its group.
        REQUIRE(worker > 0);
        REQUIRE(::kill(worker, signal) == 0);
    }

    /// Waits until the device is ready again in another generation.
    void wait_for_generation(coaccel::generation g)
    {
        run_until(io,
                  [&] { return gpu.status().generation >= g && gpu.status().state == coaccel::device_state::ready; });
    }

    // As in a server, which always has outstanding work; an idle device is none. Destroyed before the device.
    asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(io);
};

} // namespace test

#endif
